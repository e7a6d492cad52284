// Loaded before a snippet: what it needs must be on this machine.
import { Socket } from "node:net";

const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|::1)$/;
const connect = Socket.prototype.connect;

Socket.prototype.connect = function connectOffline(...args) {
  const [first, second] = args.flat();
  const host = typeof first === "object" ? first?.host : typeof second === "string" ? second : undefined;
  if (host !== undefined && !LOOPBACK.test(host)) {
    throw new Error("A snippet of the documentation must not use the network; mark it as not run.");
  }
  return connect.apply(this, args);
};
