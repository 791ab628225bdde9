// What a server over stdio offers without a gateway, asked with plain lines.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { inTime } from '../servers/program.mjs';

const ANSWER_MS = 30_000;
/** As the gateway declares them: some servers offer more to clients that can do more. */
const capabilities = { roots: {}, sampling: {}, elicitation: { form: {}, url: {} } };

/** Its lists. */
export async function direct({ command, env = {} }) {
  const [program, ...words] = command;
  const child = spawn(program, words, { stdio: ['pipe', 'pipe', 'ignore'], env: { ...process.env, ...env } });
  const waiting = new Map();
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = JSON.parse(line);
    // A question of the server: what it is for is not the matter here.
    if (message.method && message.id !== undefined) send({ id: message.id, result: { roots: [] } });
    else waiting.get(message.id)?.(message);
  });
  let last = 0;
  const ask = (method, params = {}) => {
    const id = ++last;
    const answer = new Promise((done) => waiting.set(id, done));
    send({ id, method, params });
    return inTime(`${method} of ${words.join(' ')}`, ANSWER_MS, answer);
  };
  const all = async (method, key) => {
    const found = [];
    let cursor;
    do {
      const { result } = await ask(method, cursor ? { cursor } : {});
      found.push(...(result?.[key] ?? []));
      cursor = result?.nextCursor;
    } while (cursor);
    return found;
  };
  try {
    await ask('initialize', { protocolVersion: '2025-11-25', capabilities, clientInfo: { name: 'direct', version: '1' } });
    send({ method: 'notifications/initialized' });
    return {
      tools: await all('tools/list', 'tools'),
      prompts: await all('prompts/list', 'prompts'),
      resources: await all('resources/list', 'resources'),
      templates: await all('resources/templates/list', 'resourceTemplates'),
    };
  } finally {
    child.kill('SIGKILL');
  }
}
