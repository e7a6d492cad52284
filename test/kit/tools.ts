import { StructuredTool } from "@langchain/core/tools";
import { tool } from "langchain";
import { z } from "zod";

/** What a tool really did. */
export interface Ran {
  readonly name: string;
  readonly args: unknown;
}

/** Fresh tools that write down what they really did, after their schema. */
export function toolBox() {
  const ran: Ran[] = [];
  const run =
    (name: string) =>
    (args: unknown): string => {
      ran.push({ name, args: structuredClone(args) });
      return `${name} done`;
    };
  const onFile = (name: string, description: string) =>
    tool(run(name), { name, description, schema: z.object({ path: z.string() }) });
  const deleteFile = onFile("delete_file", "Deletes one file for good.");
  const readFile = onFile("read_file", "Reads one file.");
  const draftFile = onFile("draft_file", "Writes a draft.");
  const sendMail = tool(run("send_mail"), {
    name: "send_mail",
    description: "Sends one mail.",
    schema: z.object({ to: z.string(), body: z.string() }),
  });
  return {
    ran,
    deleteFile,
    readFile,
    draftFile,
    sendMail,
    all: [deleteFile, readFile, draftFile, sendMail],
    /** The arguments of each run of one tool, in order. */
    ranWith: (name: string): unknown[] => ran.flatMap((entry) => (entry.name === name ? [entry.args] : [])),
  };
}

export type ToolBox = ReturnType<typeof toolBox>;

/** A tool written as a class, several of which may share the class. */
export class FileTool extends StructuredTool {
  readonly ran: string[] = [];
  override schema = z.object({ path: z.string() });
  override description = "Does something to a file.";
  override readonly name: string;

  constructor(name: string) {
    super();
    this.name = name;
  }

  protected async _call({ path }: { path: string }): Promise<string> {
    this.ran.push(path);
    return `${this.name} done`;
  }
}
