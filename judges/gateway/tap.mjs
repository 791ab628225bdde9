// Passes a server over stdio on, and logs what it is asked: `tap.mjs LOG COMMAND…`.
//
// A line of the log is `start PID` for the server's process, or the method of a message, with the URI
// if it has one.
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [log, command, ...words] = process.argv.slice(2);
const note = (line) => appendFileSync(log, `${line}\n`);
const server = spawn(command, words, { stdio: ['pipe', 'inherit', 'inherit'] });
note(`start ${server.pid}`);
server.on('exit', (code) => process.exit(code ?? 1));
server.stdin.on('error', () => {});
createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { method, params } = JSON.parse(line);
    if (method) note([method, params?.uri].filter(Boolean).join(' '));
    server.stdin.write(`${line}\n`);
  })
  .on('close', () => server.stdin.end());
