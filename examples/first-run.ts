// What `npm run example` shows: the three outcomes, an agent that obeys an instruction hidden in a file, and
// what to look at next. It needs no key and no network.
import { main as guardedAgent } from "./guarded-agent.js";
import { formatCalls, paint, paragraph, processScreen } from "./show/screen.js";
import { threeOutcomes } from "./three-outcomes.js";

const NEXT = [
  ["README.md", "install it, and use it in your own agent"],
  ["examples/three-outcomes.ts", "the first program above, to start from"],
  ["docs/classifiers.md", "which decision model to take"],
  ["docs/testing.md", "test your policy without a key"],
  ["examples/README.md", "recipes: a person, MCP, subagents, retries"],
] as const;

const screen = processScreen();
const print = (line: string) => console.log(line);
const title = (text: string) => print(`${paint(text, "bold", screen)}\n`);

title("1. Three outcomes");
for (const line of formatCalls(await threeOutcomes(), screen)) print(line);
title("2. An instruction hidden in a file");
const isFine = await guardedAgent(print, screen);
print("");
title("What to look at next");
const widest = Math.max(...NEXT.map(([file]) => file.length));
for (const [file, what] of NEXT)
  if (widest + 4 + what.length <= screen.width) print(`  ${file.padEnd(widest)}  ${what}`);
  else for (const line of [`  ${file}`, ...paragraph(what, "      ", screen)]) print(line);
process.exitCode = isFine ? 0 : 1;
