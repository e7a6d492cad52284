import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { deserialize, serialize } from "node:v8";
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import { MemorySaver } from "@langchain/langgraph";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import type { Place } from "./protocol.js";

/** A MemorySaver whose bytes are kept in a file, so that another process can go on with them. */
class FileMemorySaver extends MemorySaver {
  readonly #file: string;

  constructor(file: string) {
    super();
    this.#file = file;
  }

  #load(): void {
    if (!existsSync(this.#file)) return;
    const { storage, writes } = deserialize(readFileSync(this.#file)) as Pick<this, "storage" | "writes">;
    this.storage = storage;
    this.writes = writes;
  }

  #save(): void {
    const draft = `${this.#file}.${process.pid}`;
    writeFileSync(draft, serialize({ storage: this.storage, writes: this.writes }));
    // At once or not at all: a process that is killed leaves no half of it.
    renameSync(draft, this.#file);
  }

  override async getTuple(...args: Parameters<MemorySaver["getTuple"]>) {
    this.#load();
    return super.getTuple(...args);
  }

  override async put(...args: Parameters<MemorySaver["put"]>) {
    const config = await super.put(...args);
    this.#save();
    return config;
  }

  override async putWrites(...args: Parameters<MemorySaver["putWrites"]>): Promise<void> {
    await super.putWrites(...args);
    this.#save();
  }
}

const open = new Map<string, Promise<BaseCheckpointSaver>>();

async function openStore(place: Place): Promise<BaseCheckpointSaver> {
  switch (place.kind) {
    case "memory":
      return new FileMemorySaver(place.file);
    case "sqlite":
      return SqliteSaver.fromConnString(place.file);
    case "postgres": {
      const saver = PostgresSaver.fromConnString(place.url, { schema: place.schema });
      await saver.setup();
      return saver;
    }
  }
}

/** The store at a place; one for each process. */
export async function storeAt(place: Place): Promise<BaseCheckpointSaver> {
  const key = JSON.stringify(place);
  const known = open.get(key) ?? openStore(place);
  open.set(key, known);
  return known;
}

/** Leaves nothing behind on a server that is not ours. */
export async function dropSchema(place: Extract<Place, { kind: "postgres" }>): Promise<void> {
  const saver = PostgresSaver.fromConnString(place.url);
  // The pool is the saver's own; no other client is installed.
  const { pool } = saver as unknown as { pool: { query(sql: string): Promise<unknown> } };
  await pool.query(`DROP SCHEMA IF EXISTS ${place.schema} CASCADE`);
  await saver.end();
}
