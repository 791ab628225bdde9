// Clients of the SDKs, all used in the same way: each counts the notices it gets.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { VENV_PYTHON } from '../install.mjs';
import { killGroup, start } from '../process.mjs';
import { inTime } from '../servers/program.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
// The SDK is installed for the other judges.
const PEERS = join(HERE, '..', 'peers', 'typescript', 'client-v2.mjs');
const FRESH = { cacheMode: 'bypass' };
const ANSWER_MS = 30_000;

/** What a client heard: URIs that were updated, and kinds of lists that changed. */
class Heard {
  updated = [];
  changed = [];

  count = (uri) => this.updated.filter((it) => it === uri).length;
}

export const connect = (url, { sdk, era }) => (sdk === 'python' ? python(url, era) : typescript(url, era));

async function typescript(url, era) {
  const path = createRequire(PEERS).resolve('@modelcontextprotocol/client');
  const { Client, StreamableHTTPClientTransport } = await import(pathToFileURL(path));
  const mode = era === 'modern' ? { pin: '2026-07-28' } : 'legacy';
  const client = new Client({ name: 'tidings-gateway-judge', version: '1.0.0' }, { versionNegotiation: { mode } });
  const heard = new Heard();
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => heard.updated.push(params.uri));
  for (const kind of ['tools', 'prompts', 'resources']) {
    client.setNotificationHandler(`notifications/${kind}/list_changed`, () => heard.changed.push(kind));
  }
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  const all = async (list, key) => {
    const found = [];
    let cursor;
    do {
      const page = await list.call(client, cursor ? { cursor } : undefined, FRESH);
      found.push(...page[key]);
      cursor = page.nextCursor;
    } while (cursor);
    return found;
  };
  return {
    heard,
    tools: () => all(client.listTools, 'tools'),
    prompts: () => all(client.listPrompts, 'prompts'),
    resources: () => all(client.listResources, 'resources'),
    templates: () => all(client.listResourceTemplates, 'resourceTemplates'),
    read: (uri) => client.readResource({ uri }, FRESH),
    prompt: (name, values) => client.getPrompt({ name, arguments: values }),
    complete: async (ref, argument) => (await client.complete({ ref, argument })).completion.values,
    /** The result, and the progress that was reported. */
    async call(name, values) {
      const progress = [];
      const onprogress = (said) => progress.push(said.progress);
      return { result: await client.callTool({ name, arguments: values }, { onprogress }), progress };
    },
    async watch(uris) {
      if (era === 'modern') await client.listen({ resourceSubscriptions: uris, toolsListChanged: true });
      else for (const uri of uris) await client.subscribeResource({ uri });
    },
    async close() {
      if (era === 'legacy') await transport.terminateSession();
      await client.close();
    },
  };
}

/** The Python SDK, in a process of its own: one line of JSON for each request, answer and notice. */
async function python(url, era) {
  const child = start(VENV_PYTHON, ['-u', join(HERE, 'client.py'), url, era], { stdio: ['pipe', 'pipe', 'pipe'] });
  const heard = new Heard();
  const waiting = new Map();
  let begun;
  const beginning = new Promise((done) => (begun = done));
  createInterface({ input: child.stdout }).on('line', (line) => {
    const said = JSON.parse(line);
    if (said.updated !== undefined) heard.updated.push(said.updated);
    else if (said.changed) heard.changed.push(said.changed);
    else if (said.ready) begun();
    else waiting.get(said.id)?.(said);
  });
  const died = child.ended.then(({ why }) => Promise.reject(new Error(`the Python client ended: ${why}\n${child.err}`)));
  died.catch(() => {});
  let last = 0;
  const ask = async (does, ...words) => {
    const id = ++last;
    const answered = new Promise((done) => waiting.set(id, done));
    child.stdin.write(`${JSON.stringify({ id, does, words })}\n`);
    const answer = await inTime(`${does} of the Python client`, ANSWER_MS, Promise.race([answered, died]));
    if (answer.error) throw new Error(answer.error);
    return answer.value;
  };
  await inTime('the start of the Python client', ANSWER_MS, Promise.race([beginning, died]));
  return {
    heard,
    ...Object.fromEntries(
      ['tools', 'prompts', 'resources', 'templates', 'read', 'prompt', 'complete', 'call', 'watch'].map((does) => [does, (...words) => ask(does, ...words)]),
    ),
    async close() {
      child.stdin.end();
      await inTime('the end of the Python client', ANSWER_MS, child.ended).catch(() => {});
      killGroup(child);
    },
  };
}
