import { appendMember } from "./json-text.js";
import { resultsOf } from "./protocol.js";
import { readMessage } from "./reply.js";
import type { JudgeReply } from "./streamed-verdicts.js";

/**
 * Reads a reply that is not streamed and adds the verdicts at its top level. What is no message, or
 * carries results of its own, comes back as it was.
 */
export async function addVerdictsToMessage(
  source: AsyncIterator<Uint8Array, unknown>,
  judge: JudgeReply,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await readAll(source);
  let message: unknown;
  try {
    message = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return bytes;
  }
  const reply = readMessage(message);
  if (reply === undefined || reply.hasOwnResults) return bytes;
  const status = await judge(reply);
  return appendMember(bytes, "safeguard_results", resultsOf(status));
}

async function readAll(source: AsyncIterator<Uint8Array, unknown>): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  for (let read = await source.next(); !read.done; read = await source.next()) parts.push(read.value);
  return Buffer.concat(parts);
}
