import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import type { Place } from "./protocol.js";
import { dropSchema } from "./stores.js";
import { threadsOutlive } from "./suite.js";

/** A PostgreSQL: the one that is named, else an embedded one that other processes reach by a socket. */
async function startPostgres(): Promise<{ place: Place; stop: () => Promise<void> }> {
  const schema = `auto_mode_${process.pid}`;
  const given = process.env.POSTGRES_URL;
  if (given) {
    const place = { kind: "postgres", url: given, schema } as const;
    return { place, stop: async () => dropSchema(place) };
  }
  const db = await PGlite.create();
  const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 50 });
  await server.start();
  const url = `postgres://postgres@${server.getServerConn()}/postgres`;
  return {
    place: { kind: "postgres", url, schema },
    stop: async () => {
      await server.stop();
      await db.close();
    },
  };
}

threadsOutlive("PostgreSQL", startPostgres);
