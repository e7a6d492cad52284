import {
  AIMessage,
  type BaseMessage,
  type ContentBlock,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import { ApiError } from "./api-error.js";
import type { Block, MessagesRequest } from "./messages-request.js";

type Message = MessagesRequest["messages"][number];

/** A text, or an image or file in the one form that every provider's package reads. */
type Part = { type: "text"; text: string } | MediaPart;
type MediaPart = ContentBlock & { type: "image_url" | "file" };

/**
 * Translates a conversation of Anthropic's messages API for a LangChain chat model, so that the strictest
 * provider takes it: one system message, at the start; each tool result right after the call it answers; texts
 * of one role next to each other in one message; plain strings wherever there is nothing but text.
 *
 * - Thinking is dropped, and so is what Anthropic's own tools did: another model can read neither.
 * - A `system` message in the middle becomes part of the user's turn, in `<system>` tags.
 * - Images and files of a tool result follow in the user's turn: most providers take text alone as a result.
 *
 * @throws {ApiError} with status 400 for a block that no other model can read, and for a result without its call.
 */
export function messagesToLangChain({ system, messages }: Pick<MessagesRequest, "system" | "messages">) {
  const conversation = new Conversation();
  for (const [index, message] of messages.entries()) conversation.add(message, `messages[${index}]`);
  const turns = conversation.end();
  if (turns.length === 0) throw new ApiError(400, "messages: there is no text, image or tool call in them");
  const instructions = textsOf(system ?? "", "system").join("\n\n");
  return instructions === "" ? turns : [new SystemMessage(instructions), ...turns];
}

class Conversation {
  readonly #done: BaseMessage[] = [];
  readonly #toolNames = new Map<string, string>();
  // What belongs to the turn of the user, and of the model, until the other one speaks.
  #userParts: Part[] = [];
  #modelTexts: string[] = [];
  #modelCalls: ToolCall[] = [];

  add(message: Message, at: string): void {
    if (message.role === "assistant") {
      this.#addModelContent(message, at);
      return;
    }
    this.#endModelTurn();
    if (message.role === "system") {
      const text = textsOf(message.content, at).join("\n\n");
      if (text !== "") this.#userParts.push({ type: "text", text: `<system>\n${text}\n</system>` });
      return;
    }
    for (const [index, block] of blocksOf(message.content).entries()) {
      const place = `${at}.content[${index}]`;
      if (block.type === "tool_result") this.#addResult(block, place);
      else this.#userParts.push(...partsOf(block, place));
    }
  }

  end(): BaseMessage[] {
    this.#endModelTurn();
    this.#endUserTurn();
    return this.#done;
  }

  #addModelContent({ content }: Message, at: string): void {
    for (const [index, block] of blocksOf(content).entries()) {
      if (block.type === "text") {
        const text = stringField(block, "text", `${at}.content[${index}]`);
        if (text !== "") this.#modelTexts.push(text);
      } else if (block.type === "tool_use") {
        this.#modelCalls.push(this.#readCall(block, `${at}.content[${index}]`));
      }
    }
  }

  #readCall(block: Block, place: string): ToolCall {
    const id = stringField(block, "id", place);
    const name = stringField(block, "name", place);
    const { input } = block;
    if (typeof input !== "object" || input === null || Array.isArray(input))
      throw new ApiError(400, `${place}.input: expected an object`);
    this.#toolNames.set(id, name);
    return { type: "tool_call", id, name, args: { ...input } };
  }

  /** A result goes before everything else the user's side has said since the call. */
  #addResult(block: Block, place: string): void {
    const id = stringField(block, "tool_use_id", place);
    const name = this.#toolNames.get(id);
    if (name === undefined)
      throw new ApiError(400, `${place}.tool_use_id: no earlier message has a tool_use with this id`);
    const texts: string[] = [];
    const media: MediaPart[] = [];
    for (const [index, inner] of blocksOf(block["content"], `${place}.content`).entries())
      for (const part of partsOf(inner, `${place}.content[${index}]`)) {
        if (part.type === "text") texts.push(part.text);
        else media.push(part);
      }
    if (media.length > 0) {
      texts.push(`(${media.length} attached below)`);
      this.#userParts.push({ type: "text", text: `Attached to the result of ${name} (${id}):` }, ...media);
    }
    const failed = block["is_error"] === true;
    // Few providers have a field for a failure, so the text says it too.
    const content = `${failed ? "The tool reported an error.\n" : ""}${texts.join("\n\n")}`;
    this.#done.push(
      new ToolMessage({ tool_call_id: id, name, content, status: failed ? "error" : "success" }),
    );
  }

  #endUserTurn(): void {
    const parts = this.#userParts;
    this.#userParts = [];
    if (parts.length === 0) return;
    const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
    this.#done.push(
      new HumanMessage(texts.length === parts.length ? texts.join("\n\n") : { content: parts }),
    );
  }

  #endModelTurn(): void {
    const content = this.#modelTexts.join("\n\n");
    const tool_calls = this.#modelCalls;
    this.#modelTexts = [];
    this.#modelCalls = [];
    // A turn of thinking alone is none: what the user said before and after it belongs together.
    if (content === "" && tool_calls.length === 0) return;
    this.#endUserTurn();
    this.#done.push(new AIMessage({ content, tool_calls }));
  }
}

function blocksOf(content: unknown, at = "content"): Block[] {
  if (content === undefined || content === null) return [];
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (Array.isArray(content) && content.every((block) => isBlock(block))) return content;
  throw new ApiError(400, `${at}: expected a string or an array of blocks with a type`);
}

function isBlock(value: unknown): value is Block {
  return (
    typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string"
  );
}

/** The texts of content that can hold nothing else. */
function textsOf(content: unknown, at: string): string[] {
  return blocksOf(content, at).flatMap((block, index) => {
    const parts = partsOf(block, `${at}[${index}]`);
    return parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
  });
}

function partsOf(block: Block, place: string): Part[] {
  switch (block.type) {
    case "text": {
      const text = stringField(block, "text", place);
      return text === "" ? [] : [{ type: "text", text }];
    }
    case "image":
      return [{ type: "image_url", image_url: { url: urlOf(block["source"], place) } }];
    case "document":
      return documentParts(block, place);
    case "search_result":
      return [{ type: "text", text: searchResultText(block, place) }];
    // Deferred tools are all given to the model from the start.
    case "tool_reference":
      return [
        { type: "text", text: `The tool ${stringField(block, "tool_name", place)} can be called now.` },
      ];
    case "thinking":
    case "redacted_thinking":
      return [];
    default:
      throw new ApiError(400, `${place}: a block of this type cannot be given to this model`);
  }
}

function urlOf(source: unknown, place: string): string {
  const { type, media_type, data, url } = fieldsOf(source);
  if (type === "base64" && typeof media_type === "string" && typeof data === "string")
    return `data:${media_type};base64,${data}`;
  if (type === "url" && typeof url === "string") return url;
  throw new ApiError(400, `${place}.source: expected base64 data with its media_type, or a url`);
}

function documentParts(block: Block, place: string): Part[] {
  const source = fieldsOf(block["source"]);
  const title = typeof block["title"] === "string" ? block["title"] : undefined;
  const heading: Part[] = title === undefined ? [] : [{ type: "text", text: `Document: ${title}` }];
  if (source["type"] === "text")
    return [...heading, { type: "text", text: stringField(source, "data", `${place}.source`) }];
  if (source["type"] === "content") {
    const inner = blocksOf(source["content"], `${place}.source.content`);
    return [
      ...heading,
      ...inner.flatMap((part, index) => partsOf(part, `${place}.source.content[${index}]`)),
    ];
  }
  const { media_type, data } = source;
  if (source["type"] !== "base64" || typeof media_type !== "string" || typeof data !== "string")
    throw new ApiError(400, `${place}.source: expected a text, content, or base64 data with its media_type`);
  const metadata = { filename: title ?? "document" };
  return [...heading, { type: "file", source_type: "base64", mime_type: media_type, data, metadata }];
}

function searchResultText(block: Block, place: string): string {
  const texts = textsOf(block["content"], `${place}.content`);
  return [block["title"], block["source"], ...texts].filter((text) => typeof text === "string").join("\n");
}

function stringField(fields: Readonly<Record<string, unknown>>, name: string, place: string): string {
  const value = fields[name];
  if (typeof value === "string") return value;
  throw new ApiError(400, `${place}.${name}: expected a string`);
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** A tool as `bindTools` of every provider's package takes it. */
interface BoundTool {
  readonly type: "function";
  readonly function: { readonly name: string; readonly description?: string; readonly parameters: object };
}

/** The tools of a request, and which of them the model may or must call. */
export interface ToolUse {
  readonly tools: readonly BoundTool[];
  /** `"auto"`, `"any"`, `"none"` or a tool's name. */
  readonly toolChoice: string | undefined;
  /** How many calls the reply may hold. No provider's package is relied on to keep to it. */
  readonly maxCalls: number;
}

/**
 * Translates the tools of a request. All deferred tools are given from the start, so Anthropic's tool search has
 * nothing left to find and is dropped.
 *
 * @throws {ApiError} with status 400 for a tool that is Anthropic's own, and for a choice of a tool that is not there.
 */
export function toolsToLangChain(request: Pick<MessagesRequest, "tools" | "tool_choice">): ToolUse {
  const tools = (request.tools ?? []).flatMap((tool, index): BoundTool[] => {
    const { type, name, description, input_schema } = tool;
    if (type?.startsWith("tool_search_tool_")) return [];
    if (type !== undefined && type !== null && type !== "custom")
      throw new ApiError(
        400,
        `tools[${index}]: a tool of this type is Anthropic's own; this model cannot have it`,
      );
    if (!input_schema) throw new ApiError(400, `tools[${index}].input_schema: expected an object`);
    const { $schema: _, ...parameters } = input_schema;
    return [{ type: "function", function: { name, ...(description ? { description } : {}), parameters } }];
  });
  const choice = request.tool_choice;
  if (!choice || tools.length === 0) return { tools, toolChoice: undefined, maxCalls: Infinity };
  if (choice.type === "none") return { tools, toolChoice: "none", maxCalls: 0 };
  const maxCalls = choice.disable_parallel_tool_use === true ? 1 : Infinity;
  if (choice.type !== "tool") return { tools, toolChoice: choice.type, maxCalls };
  if (!tools.some((tool) => tool.function.name === choice.name))
    throw new ApiError(400, "tool_choice.name: there is no tool with this name");
  return { tools, toolChoice: choice.name, maxCalls };
}
