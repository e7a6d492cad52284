import { join } from "node:path";
import { threadsOutlive } from "./suite.js";

threadsOutlive("SQLite", async (folder) => ({ place: { kind: "sqlite", file: join(folder, "sqlite.db") } }));
