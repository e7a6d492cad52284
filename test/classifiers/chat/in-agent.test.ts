import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import { tool } from "@langchain/core/tools";
import { createAgent, createMiddleware } from "langchain";
import { ChatDecisionModel } from "langchain-auto-mode/classifiers";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { oneCall, risky } from "../questions.js";

const ANSWER = '{"explanation":"It is SECRET.","call_1":0.25}';

/** Calls a tool, then says done; to a classifier's request it answers, token by token. */
class StreamingModel extends BaseChatModel {
  constructor() {
    super({});
  }
  _llmType(): string {
    return "streaming";
  }
  override bindTools(): this {
    return this;
  }
  #replyTo(messages: readonly BaseMessage[]): AIMessage {
    if (messages[0]!.text.includes("You are a decision model")) return new AIMessage(ANSWER);
    if (messages.at(-1)!.type === "tool") return new AIMessage("All done.");
    return new AIMessage({
      content: "",
      tool_calls: [{ id: "1", name: "delete_file", args: {}, type: "tool_call" }],
    });
  }
  async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const message = this.#replyTo(messages);
    return { generations: [{ text: message.text, message }] };
  }
  override async *_streamResponseChunks(
    messages: BaseMessage[],
    _options: this["ParsedCallOptions"],
    run?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const message = this.#replyTo(messages);
    const pieces = message.text === "" ? [""] : message.text.match(/.{1,5}/gs)!;
    for (const text of pieces) {
      const chunk = new AIMessageChunk({
        content: text,
        tool_call_chunks: message.tool_calls!.map(({ id, name }) => ({
          id: id!,
          name,
          args: "{}",
          index: 0,
          type: "tool_call_chunk",
        })),
      });
      yield new ChatGenerationChunk({ text, message: chunk });
      await run?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, {
        chunk: new ChatGenerationChunk({ text, message: chunk }),
      });
    }
  }
}

const deleteFile = tool(() => "deleted", {
  name: "delete_file",
  description: "Deletes.",
  schema: z.object({}),
});

/** An agent whose tool calls wait for this check. */
function agentWith(model: BaseChatModel, check: () => Promise<unknown>) {
  const guard = createMiddleware({
    name: "guard",
    wrapToolCall: async (request, handler) => {
      await check();
      return handler(request);
    },
  });
  return createAgent({ model, tools: [deleteFile], middleware: [guard] });
}

async function streamed(agent: ReturnType<typeof agentWith>): Promise<string> {
  let text = "";
  const stream = await agent.stream(
    { messages: [{ role: "user", content: "Clean up." }] },
    { streamMode: "messages" },
  );
  for await (const [chunk] of stream) text += chunk.text;
  return text;
}

describe("inside an agent whose messages are streamed", () => {
  const request = { state: oneCall, questions: { call_1: risky } };

  test("the judge's tokens stay out of the stream, also where it is the agent's own model", async () => {
    const model = new StreamingModel();
    const judge = new ChatDecisionModel({ model });
    const risks: number[] = [];
    const text = await streamed(
      agentWith(model, async () => risks.push((await judge.invoke(request)).nouls.call_1.noul)),
    );
    expect(risks).toEqual([0.25]);
    expect(text).toContain("All done.");
    expect(text).not.toContain("SECRET");
  });

  test("those of a plain call would be in it", async () => {
    const model = new StreamingModel();
    const asked = [{ role: "system" as const, content: "You are a decision model" }];
    expect(await streamed(agentWith(model, () => model.invoke(asked)))).toContain("SECRET");
  });

  test("the judge's run nests under the tool's step, and the chat model's under the judge's", async () => {
    class Runs extends BaseCallbackHandler {
      name = "runs";
      override awaitHandlers = true;
      readonly parents = new Map<string, string | undefined>();
      readonly names = new Map<string, string>();
      // The host gives the parent where its types name the run's type.
      override handleChainStart(
        ...[, , id, parent, , , , name]: Parameters<BaseCallbackHandler["handleChainStart"] & object>
      ) {
        this.names.set(id, name ?? "");
        this.parents.set(id, parent);
      }
      override handleChatModelStart(
        ...[, messages, id, parent]: Parameters<BaseCallbackHandler["handleChatModelStart"] & object>
      ) {
        this.names.set(
          id,
          messages[0]![0]!.text.includes("decision model") ? "judge's chat model" : "agent's chat model",
        );
        this.parents.set(id, parent);
      }
    }
    const runs = new Runs();
    const model = new StreamingModel();
    const judge = new ChatDecisionModel({ model });
    await agentWith(model, () => judge.invoke(request, { runName: "judge" })).invoke(
      { messages: [{ role: "user", content: "Clean up." }] },
      { callbacks: [runs] },
    );
    const path: string[] = [];
    let id = [...runs.names].find(([, name]) => name === "judge's chat model")?.[0];
    for (; id !== undefined; id = runs.parents.get(id)) path.unshift(runs.names.get(id)!);
    expect(path.slice(-3)).toEqual(["tools", "judge", "judge's chat model"]);
    expect(path.length).toBeGreaterThan(3);
  });
});
