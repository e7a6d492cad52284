/** The upstream of the gateway's benchmark, as a process of its own: it streams replies of many events. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { events, message, text, toolUse } from "../gateway/messages.js";

const call = toolUse("toolu_a", "Bash", { command: "npm test" });
// Seven characters to an event; the events around them bring it to 200.
const reply = events(message([text("seven c".repeat(187)), call]));
/** How many events a reply has. */
export const REPLY_EVENTS = reply.length;

const LONG_REPLY_PARTS = 400;
const LONGER_REPLY_PARTS = 1_600;
const long = {
  head: reply.slice(0, 3).join(""),
  part: events(message([text("seven c".repeat(1_000))]))
    .slice(3, -3)
    .join(""),
  tail: events(message([call]))
    .slice(2)
    .join(""),
};

/** Answers with the reply at once, event by event (`/paced`), or with a very long one (`/long`, `/longer`). */
async function answer(path: string, response: ServerResponse): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream" });
  if (path.startsWith("/long")) {
    response.write(long.head);
    const parts = path.startsWith("/longer") ? LONGER_REPLY_PARTS : LONG_REPLY_PARTS;
    for (let sent = 0; sent < parts; sent++)
      if (!response.write(long.part)) await new Promise((resolve) => response.once("drain", resolve));
    response.end(long.tail);
    return;
  }
  for (const [index, event] of reply.entries()) {
    response.write(event);
    if (path.startsWith("/paced") && index % 10 === 9)
      await new Promise((resolve) => setTimeout(resolve, 20));
  }
  response.end();
}

if (process.argv[2] === "serve") {
  const server = createServer((incoming, response) => {
    incoming.resume().on("end", () => void answer(incoming.url ?? "", response));
  });
  server.listen(0, "127.0.0.1", () => {
    console.log(JSON.stringify({ port: (server.address() as AddressInfo).port }));
  });
  process.once("SIGTERM", () => process.exit(0));
}
