import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import {
  BaseChatModel,
  type BaseChatModelCallOptions,
  type BindToolsInput,
} from "@langchain/core/language_models/chat_models";
import {
  AIMessage,
  AIMessageChunk,
  type AIMessageChunkFields,
  type BaseMessage,
} from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";

/** What comes out of a model next: a piece of its reply, or the error that ends it. */
export type Piece = AIMessageChunkFields | Error;

/** A chat model that streams what it is told, and keeps what it was asked. */
export class ScriptedChatModel extends BaseChatModel {
  readonly asked: { messages: BaseMessage[]; options: Record<string, unknown> }[] = [];
  /** How many pieces it was asked for. */
  pulled = 0;
  signal: AbortSignal | undefined;
  readonly #pieces: Iterable<Piece> | AsyncIterable<Piece>;

  constructor(pieces: Iterable<Piece> | AsyncIterable<Piece>) {
    super({});
    this.#pieces = pieces;
  }

  _llmType(): string {
    return "scripted";
  }

  override bindTools(tools: BindToolsInput[], kwargs: object = {}) {
    return this.withConfig({ tools, ...kwargs } as Partial<BaseChatModelCallOptions>);
  }

  _generate(): Promise<ChatResult> {
    return Promise.resolve({ generations: [{ text: "", message: new AIMessage("") }] });
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    _manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    this.asked.push({ messages, options: { ...options } });
    this.signal = options.signal;
    for await (const piece of this.#pieces) {
      this.pulled++;
      if (piece instanceof Error) throw piece;
      const message = new AIMessageChunk(piece);
      yield new ChatGenerationChunk({ text: message.text, message });
    }
  }
}

/** The last piece of a reply. */
export const finished = (reason = "stop"): AIMessageChunkFields => ({
  content: "",
  response_metadata: { finish_reason: reason },
  usage_metadata: { input_tokens: 12, output_tokens: 3, total_tokens: 15 },
});

/** A piece of a call, as providers that number their calls send it. */
export const callPiece = (index: number, args: string, named: { id?: string; name?: string } = {}) => ({
  content: "",
  tool_call_chunks: [{ type: "tool_call_chunk" as const, index, args, ...named }],
});
