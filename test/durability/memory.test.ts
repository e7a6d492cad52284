import { join } from "node:path";
import { threadsOutlive } from "./suite.js";

threadsOutlive("MemorySaver", async (folder) => ({
  place: { kind: "memory", file: join(folder, "memory") },
}));
