// Compiled in an empty folder against the installed types, as a user's project would be.
import type { BaseDecisionModel } from "@langchain/core/decisions";
import { createAgent, tool } from "langchain";
import { type AutoModeOptions, autoModeMiddleware, ConfigurationError, haltRun } from "langchain-auto-mode";
import {
  CascadeDecisionModel,
  ChatDecisionModel,
  OpenAIDecisionModel,
  ProvenanceDecisionModel,
  SystemOneDecisionModel,
} from "langchain-auto-mode/classifiers";
import { caseLog } from "langchain-auto-mode/evaluation";
import { createSafeguardsHandler } from "langchain-auto-mode/safeguards";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { z } from "zod";

const deleteFile = tool(({ path }) => `deleted ${path}`, {
  name: "delete_file",
  description: "Deletes a file.",
  schema: z.object({ path: z.string() }),
});

const classifier: BaseDecisionModel = fakeDecisionModel().respond(0.1);
const options: AutoModeOptions = {
  tools: [deleteFile, { tool: "send_mail", threshold: 0.2 }],
  classifier,
  whenLimitReached: haltRun(),
};

export const agent = createAgent({
  model: "provider:name",
  tools: [deleteFile],
  middleware: [autoModeMiddleware(options)],
});

// @ts-expect-error: a classifier is required
autoModeMiddleware({ tools: [deleteFile] });

// A view that may be undefined, and facts whose type is an interface.
interface Rules {
  cwd: string;
}
const rules: Rules = { cwd: "/srv" };
const cascade = new CascadeDecisionModel({ first: classifier, second: classifier });
autoModeMiddleware({ tools: [deleteFile], classifier: cascade, environment: rules });

export const isOurs: boolean = ConfigurationError.isInstance(new Error("not ours"));

// A listener that logs cases is one for onDecision.
autoModeMiddleware({ tools: [deleteFile], classifier, onDecision: caseLog("cases.jsonl", { sample: 0.1 }) });

// Their packages are not installed here: naming the classes asks for none of them.
export const models = [ChatDecisionModel, OpenAIDecisionModel, SystemOneDecisionModel];
export const handler = createSafeguardsHandler({
  upstream: "https://api.example.com",
  classifier: new ProvenanceDecisionModel(),
});
