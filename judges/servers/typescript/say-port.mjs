// Preloaded into a server that takes any free port without saying which: says it on standard error.
import { Server } from 'node:net';

const emit = Server.prototype.emit;
Server.prototype.emit = function (event, ...rest) {
  if (event === 'listening') console.error(`listening on http://127.0.0.1:${this.address().port}/mcp`);
  return emit.call(this, event, ...rest);
};
