import Anthropic from "@anthropic-ai/sdk";
import type { UpstreamModel } from "../../../src/gateway/model/model-upstream.js";
import { createModelUpstream } from "../../../src/gateway/model/model-upstream.js";
import { dataOf, type Json } from "../messages.js";
import { type Piece, ScriptedChatModel } from "./scripted-chat-model.js";

/** The client of Anthropic's SDK, in front of a model. */
export function clientOf(model: UpstreamModel): Anthropic {
  const upstream = createModelUpstream(model);
  return new Anthropic({
    apiKey: "sk-client",
    baseURL: "http://gateway.test",
    maxRetries: 0,
    fetch: (url, init) => upstream(new Request(url, init)),
  });
}

export const ASKED: Anthropic.MessageCreateParamsNonStreaming = {
  model: "model-a",
  max_tokens: 100,
  messages: [{ role: "user", content: "Look around." }],
};

/** Sends a body to a model, as it is. */
export async function post(
  model: UpstreamModel,
  body: unknown,
  path = "/v1/messages?beta=true",
): Promise<{ status: number; headers: Headers; raw: string; json: Json; events: Json[] }> {
  const upstream = createModelUpstream(model);
  const sent = typeof body === "string" ? body : JSON.stringify(body);
  const response = await upstream(new Request(`http://gateway.test${path}`, { method: "POST", body: sent }));
  const raw = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  const json = isJson ? (JSON.parse(raw) as Json) : {};
  return { status: response.status, headers: response.headers, raw, json, events: dataOf(raw) };
}

/** What a client gets that streams, and one that does not, when a model says this. */
export async function bothReplies(
  pieces: readonly Piece[],
  fields: Partial<Anthropic.MessageCreateParamsNonStreaming> = {},
) {
  const body = { ...ASKED, ...fields };
  const streamed = await clientOf(new ScriptedChatModel(pieces)).messages.stream(body).finalMessage();
  const whole = await clientOf(new ScriptedChatModel(pieces)).messages.create(body);
  return [streamed, whole] as const;
}
