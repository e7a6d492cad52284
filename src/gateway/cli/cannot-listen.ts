import { errorCode } from "./log-line.js";

/** The server cannot take its address: it is in use, not this machine's, or not allowed. */
export class CannotListen extends Error {
  override readonly name = "CannotListen";

  constructor({ host, port }: { host: string; port: number }, cause: unknown) {
    const address = host.includes(":") ? `[${host}]` : host;
    super(`The gateway cannot listen on ${address}:${port}: ${errorCode(cause)}`, { cause });
  }
}
