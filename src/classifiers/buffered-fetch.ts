/**
 * A `fetch` that gives a response only once its body is there. For clients that clone a response: on
 * Node 20 the abort of a stalled clone ends in a rejection that nobody can handle, and with it the
 * process.
 */
export function bufferedFetch(fetch: typeof globalThis.fetch = globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const { status, statusText, headers } = response;
    const body = response.body === null ? null : await response.arrayBuffer();
    return new Response(body, { status, statusText, headers });
  };
}
