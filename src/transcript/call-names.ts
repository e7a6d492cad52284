import { nameOr } from "./calls.js";
import { fieldsOf } from "./media.js";
import { fieldOf, kindOfMessage, listOf } from "./message-fields.js";

function callsOf(message: unknown): readonly (readonly [id: unknown, name: string])[] {
  const fields = fieldsOf(message);
  if (fields === undefined || kindOfMessage(fields) !== "ai") return [];
  return [...listOf(fields, "tool_calls"), ...listOf(fields, "invalid_tool_calls")].flatMap((call) =>
    call["id"] === undefined ? [] : [[call["id"], nameOr(call["name"])] as const],
  );
}

function answeredId(message: unknown): unknown {
  const fields = fieldsOf(message);
  return fields && kindOfMessage(fields) === "tool" ? fieldOf(fields, "tool_call_id") : undefined;
}

/**
 * Which tool a nameless tool message answers: that of the nearest earlier call with its id. The part of a
 * list that is settled is read once, however often and for however many messages this is asked.
 */
export class CallNames {
  readonly #byId = new Map<unknown, string>();
  readonly #answered = new Map<number, string>();
  #read = 0;

  nameAt(messages: readonly unknown[], at: number, settled = messages.length): string | undefined {
    const id = answeredId(messages[at]);
    if (id === undefined) return undefined;
    for (let earlier = at - 1; earlier >= settled; earlier -= 1) {
      const call = callsOf(messages[earlier]).findLast(([known]) => known === id);
      if (call) return call[1];
    }
    this.#readTo(messages, Math.min(settled, messages.length));
    return at < settled ? this.#answered.get(at) : this.#byId.get(id);
  }

  #readTo(messages: readonly unknown[], end: number): void {
    for (; this.#read < end; this.#read += 1) {
      const message = messages[this.#read];
      for (const [id, name] of callsOf(message)) this.#byId.set(id, name);
      const name = this.#byId.get(answeredId(message));
      if (name !== undefined) this.#answered.set(this.#read, name);
    }
  }
}
