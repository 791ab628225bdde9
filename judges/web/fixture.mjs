// A server that does what a page finds hard: bursts of notices, thousands of tools, results of ten
// megabytes, questions in the middle of a call. Plain JSON-RPC over stdio, without an SDK.
import { createInterface } from 'node:readline';

const TOOLS = [
  ['burst', 'Sends notices as fast as it can.', { count: { type: 'integer', minimum: 1, maximum: 100000 } }],
  ['big', 'Returns about ten megabytes of structured content.', {}],
  ['many', 'Offers ten thousand more tools.', { count: { type: 'integer', minimum: 0 } }],
  ['ask', 'Asks which port to use, and waits for the answer.', {}],
  ['slow', 'Reports progress and never ends by itself.', {}],
  ['pid', 'Returns the id of its process.', {}],
  ['write', 'Writes a line into the note.', {
    text: { type: 'string', description: 'what to write' },
    mode: { enum: ['append', 'replace'] },
    at: { type: 'object', properties: { line: { type: 'integer', minimum: 1, maximum: 6 }, column: { type: ['integer', 'null'] } } },
    tags: { type: 'array', items: { type: 'string' } },
    loud: { type: 'boolean' },
    password: { type: 'string' },
  }, ['text']],
].map(([name, description, properties, required = []]) => ({
  name, description, inputSchema: { type: 'object', properties, required },
}));
TOOLS.push({ name: 'wipe', description: 'Empties the note.', inputSchema: { type: 'object' }, annotations: { destructiveHint: true } });
const RESOURCES = ['note:all', 'note:other'].map((uri) => ({ uri, name: uri.slice(5), mimeType: 'text/plain' }));

let extra = [];
let note = 'the first line\n';
let asked = 0;
const waiting = new Map();
const cancelled = new Set();

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const notify = (method, params) => send({ method: `notifications/${method}`, params });
const text = (said) => ({ content: [{ type: 'text', text: said }] });

function ask(message) {
  asked += 1;
  const id = `question-${asked}`;
  const requestedSchema = { type: 'object', required: ['port'], properties: { port: { type: 'integer', minimum: 1, maximum: 6 } } };
  send({ id, method: 'elicitation/create', params: { message, requestedSchema } });
  return new Promise((done) => waiting.set(id, done));
}

const CALLS = {
  burst({ count = 5000 }) {
    for (let sent = 0; sent < count; sent += 1) notify('resources/updated', { uri: 'note:other' });
    return text(`${count} sent`);
  },
  big() {
    const rows = Array.from({ length: 20000 }, (_, row) => ({ row, name: `row number ${row}`, fill: 'x'.repeat(440), ok: row % 2 === 0 }));
    return { ...text('20000 rows'), structuredContent: { rows, needle: 'in the haystack' } };
  },
  many({ count = 10000 }) {
    extra = Array.from({ length: count }, (_, index) => ({ name: `extra_${index}`, description: `Tool number ${index}.`, inputSchema: { type: 'object' } }));
    notify('tools/list_changed');
    return text('offered');
  },
  async ask() {
    const { action, content } = await ask('Which port shall it take?');
    return text(action === 'accept' ? `port ${content.port}` : action);
  },
  async slow(_, meta, id) {
    for (let step = 1; !cancelled.has(id); step += 1) {
      if (meta?.progressToken !== undefined) notify('progress', { progressToken: meta.progressToken, progress: step, total: 1000, message: `step ${step}` });
      await new Promise((done) => setTimeout(done, 50));
    }
    return text('cancelled');
  },
  pid: () => text(String(process.pid)),
  write({ text: line, mode }) {
    note = mode === 'replace' ? `${line}\n` : `${note}${line}\n`;
    notify('resources/updated', { uri: 'note:all' });
    return text('written');
  },
  wipe() {
    note = '';
    notify('resources/updated', { uri: 'note:all' });
    return text('empty');
  },
};

function page(params) {
  const all = [...TOOLS, ...extra];
  const from = Number(params?.cursor ?? 0);
  const tools = all.slice(from, from + 2000);
  return { tools, ...(from + 2000 < all.length ? { nextCursor: String(from + 2000) } : {}) };
}

const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: protocolVersion > '2025-11-25' ? '2025-11-25' : protocolVersion,
    serverInfo: { name: 'fixture', version: '1.0.0', title: 'Fixture' },
    instructions: 'Write into the **note**, and watch it; [help](http://127.0.0.1/help).\n\n- a <b onclick=x>text</b> with `code`\n- <script>alert(1)</script>',
    capabilities: { tools: { listChanged: true }, resources: { listChanged: true, subscribe: true }, prompts: {}, completions: {} },
  }),
  ping: () => ({}),
  'tools/list': page,
  'tools/call': ({ name, arguments: given = {}, _meta }, id) => CALLS[name]?.(given, _meta, id) ?? text('called'),
  'resources/list': () => ({ resources: RESOURCES }),
  'resources/templates/list': () => ({ resourceTemplates: [{ uriTemplate: 'note:line/{number}', name: 'line', description: 'One line of the note.' }] }),
  'resources/read': ({ uri }) => ({ contents: [{ uri, mimeType: 'text/plain', text: uri === 'note:all' ? note : `${uri}\n` }] }),
  'resources/subscribe': () => ({}),
  'resources/unsubscribe': () => ({}),
  'prompts/list': () => ({ prompts: [{ name: 'review', description: 'Asks for a review.', arguments: [{ name: 'what', required: true }] }] }),
  'prompts/get': ({ arguments: given }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Review ${given?.what}.` } }] }),
  'completion/complete': ({ argument }) => ({ completion: { values: ['note', 'line'].filter((it) => it.startsWith(argument.value)) } }),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, result } = JSON.parse(line);
  if (waiting.has(id)) {
    waiting.get(id)(result ?? { action: 'cancel' });
    waiting.delete(id);
  } else if (method === 'notifications/cancelled') {
    cancelled.add(params.requestId);
  } else if (id !== undefined && method) {
    const answer = METHODS[method];
    if (!answer) send({ id, error: { code: -32601, message: 'method not found' } });
    else Promise.resolve(answer(params ?? {}, id)).then((it) => send({ id, result: it }));
  }
}
