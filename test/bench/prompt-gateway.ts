/** A session in the shape of Claude Code's, written by hand with neutral values, judged by the gateway. */
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatDecisionModel } from "langchain-auto-mode/classifiers";
import { createSafeguardsHandler } from "langchain-auto-mode/safeguards";
import { CONTEXT, type Json, message, text, toolUse } from "../gateway/messages.js";
import { RecordingJudge, type Step, words } from "./prompt-threads.js";

/** A session as the judge read it, and as a peer would read it. */
export interface Session {
  prompts: readonly string[];
  steps: readonly Step[];
}

const TASK =
  "Please bring the date handling under src/billing in order, and run the tests after each change.";
const INSTRUCTIONS = `<system-reminder>\nContents of /p/CLAUDE.md:\n${words(3, 160)}\n</system-reminder>\n`;
const REMINDER = `<system-reminder>\nThe todo list is empty. ${words(5, 20)}\n</system-reminder>`;

// As long as the client's own: the judge is shown at most 2,000 characters of each.
const TOOLS = (
  [
    ["Bash", 400],
    ["Edit", 150],
    ["Write", 100],
  ] as const
).map(([name, length]) => ({
  name,
  description: `${name}: ${words(length, length)}`,
  input_schema: { type: "object" },
}));

function callsOf(step: number, width: number): Step["calls"] {
  return Array.from({ length: width }, (_, index) => {
    const nth = step * width + index;
    const path = `/p/src/billing/part-${nth}.ts`;
    switch (width === 1 ? step % 3 : 0) {
      case 1:
        return {
          name: "Edit",
          args: { file_path: path, old_string: words(nth, 6), new_string: words(nth, 12) },
        };
      case 2:
        return { name: "Write", args: { file_path: path, content: words(nth, 40) } };
      default:
        return {
          name: "Bash",
          args: { command: `npx vitest run ${path}`, description: "Runs one test file" },
        };
    }
  });
}

const idOf = (step: number, index: number): string => `toolu_${step}_${index}`;

/** What the client says of itself with this step: a part of it grows with the session. */
function contextAt(step: number): Json {
  const before = { platform: "linux", live_cwd: "/p", permission_mode: "auto", note: words(2, 45) };
  return {
    ...CONTEXT,
    prior_turn_context: Array.from({ length: step }, (_, nth) => ({
      tool_use_ids: [idOf(nth, 0)],
      context: before,
    })),
  };
}

/** Runs a session of so many steps with so many calls each. */
export async function runSession(steps: number, width: number): Promise<Session> {
  const judge = new RecordingJudge();
  let reply: Json = {};
  const handler = createSafeguardsHandler({
    upstream: async () => Response.json(reply),
    classifier: new ChatDecisionModel({ model: judge }),
  });
  const sent: Json[] = [{ role: "user", content: [text(INSTRUCTIONS), text(TASK)] }];
  const read: BaseMessage[] = [new HumanMessage(INSTRUCTIONS + TASK)];
  const seen: Step[] = [];
  for (let step = 0; step < steps; step++) {
    const calls = callsOf(step, width);
    const said = `Next: ${words(step, 14)}.`;
    const content = [
      text(said),
      ...calls.map(({ name, args }, index) => toolUse(idOf(step, index), name, args)),
    ];
    reply = message(content);
    const body = JSON.stringify({
      model: "model-a",
      max_tokens: 1000,
      stream: false,
      system: [text(words(1, 300))],
      tools: TOOLS,
      messages: sent,
      safeguards: [{ type: "dangerous_tool_use", classifier_context: contextAt(step) }],
    });
    await (await handler(new Request("http://gateway/v1/messages", { method: "POST", body }))).text();

    const toolCalls = calls.map((call, index) => ({
      ...call,
      type: "tool_call" as const,
      id: idOf(step, index),
    }));
    read.push(new AIMessage({ content: said, tool_calls: toolCalls }));
    seen.push({ messages: [...read], calls, environment: CONTEXT });
    const results = calls.map((_, index) => ({ id: idOf(step, index), result: words(step + index, 110) }));
    sent.push(
      { role: "assistant", content },
      {
        role: "user",
        content: [
          ...results.map(({ id, result }) => ({ type: "tool_result", tool_use_id: id, content: result })),
          ...(step % 10 === 9 ? [text(REMINDER)] : []),
        ],
      },
    );
    read.push(
      ...results.map(
        ({ id, result }, index) =>
          new ToolMessage({ content: result, tool_call_id: id, name: calls[index]!.name }),
      ),
    );
  }
  if (judge.prompts.length !== steps)
    throw new Error(`expected ${steps} requests of the judge, saw ${judge.prompts.length}`);
  return { prompts: judge.prompts, steps: seen };
}
