// What both TypeScript servers offer, and how they are told to change.
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';

const option = (name) => {
  const at = process.argv.indexOf(name);
  return at < 0 ? 0 : Number(process.argv[at + 1]);
};

/** What every connection of this process sees; `--extra N` begins with more tools. */
export const world = { count: 0, extra: option('--extra') };
const NAMES = ['Ada', 'Alan', 'Grace'];
const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const text = (line) => ({ content: [{ type: 'text', text: line }] });

/** `tell` changes the world and says so: grow() and touch(uri). `gone` waits until the caller gives up. `values` makes a prompt's schema of its fields. */
export function offer(server, { ResourceTemplate, completable, progress, gone, tell, values = z.object }) {
  server.registerTool('echo', { description: 'Says it again', inputSchema: z.object({ message: z.string() }) }, ({ message }) => text(message));
  server.registerTool(
    'add',
    { description: 'Adds two numbers', inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }) },
    ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }),
  );
  server.registerTool('grow', { description: 'Adds one more tool', inputSchema: z.object({}) }, () => text(tell.grow()));
  const inputSchema = z.object({ uri: z.string().optional(), times: z.number().int().optional() });
  server.registerTool('touch', { description: 'Changes a resource', inputSchema }, ({ uri = 'test://counter', times = 1 }) => {
    for (let n = 1; n < times; n++) tell.touch(uri);
    return text(tell.touch(uri));
  });
  server.registerTool('fail', { description: 'Fails', inputSchema: z.object({}) }, () => ({ ...text('it did not work'), isError: true }));
  server.registerTool('slow', { description: 'Says how far it is', inputSchema: z.object({ steps: z.number().int() }) }, async ({ steps }, context) => {
    for (let step = 1; step <= steps; step++) {
      await progress(context, step, steps);
      await pause(10);
    }
    return text(`${steps} steps`);
  });
  server.registerTool('cut', { description: 'Breaks every stream and changes what nobody hears of', inputSchema: z.object({}) }, () => {
    const streams = cut();
    tell.touch('test://counter');
    return text(`${streams} streams`);
  });
  server.registerTool('hang', { description: 'Never answers', inputSchema: z.object({}) }, async (_, context) => {
    await gone(context);
    console.error('hang was cancelled');
    return text('cancelled');
  });
  for (let n = 1; n <= world.extra; n++) addExtra(server, n);

  server.registerResource('counter', 'test://counter', { mimeType: 'text/plain', description: 'How often it was touched' }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: `count ${world.count}` }],
  }));
  server.registerResource('picture', 'test://picture', { mimeType: 'image/png' }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'image/png', blob: PICTURE }],
  }));
  const complete = { id: (value) => ['1', '10', '2'].filter((id) => id.startsWith(value)) };
  server.registerResource('item', new ResourceTemplate('test://item/{id}', { list: undefined, complete }), { mimeType: 'text/plain' }, (uri, { id }) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: `item ${id}` }],
  }));
  const name = completable(z.string(), (value) => NAMES.filter((known) => known.startsWith(value)));
  server.registerPrompt('greet', { description: 'Greets somebody', argsSchema: values({ name }) }, (given) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Hello, ${given.name}` } }],
  }));
}

export function addExtra(server, n) {
  server.registerTool(`extra_${n}`, { description: `The extra tool ${n}`, inputSchema: z.object({}) }, () => text(`extra ${n}`));
}

/** Waits until a request is given up. */
export const aborted = (signal) => new Promise((done) => (signal.aborted ? done() : signal.addEventListener('abort', done)));

/** With `--control PORT`: does what the judge says over that connection, and answers each line. */
export function obey(tell) {
  const port = option('--control');
  if (!port) return;
  const socket = connect(port, '127.0.0.1');
  // The judge's line alone keeps no server alive: it ends when its client goes.
  socket.unref();
  socket.setEncoding('utf8').on('data', (lines) => {
    for (const line of lines.split('\n').filter(Boolean)) {
      const [what, times = 1] = line.split(' ');
      if (what === 'die') process.kill(process.pid, 'SIGKILL');
      for (let n = 0; n < times; n++) what === 'grow' ? tell.grow() : tell.touch('test://counter');
      socket.write(`${line} done\n`);
    }
  });
  socket.on('error', () => {});
}

/** With `--noisy`: the fault that every author of a server over stdio makes once. */
export function chatter() {
  if (process.argv.includes('--noisy')) console.log('debug: about to begin');
}

/** What may be cut: the answers over HTTP that last. */
const streams = new Set();

/** Breaks the connections under all streams that were there before this request. */
function cut() {
  const some = [...streams].slice(0, -1);
  for (const response of some) response.destroy();
  return some.length;
}

/** Serves `/mcp` on a free port, or on `--port N`, and says where. */
export function listen(handle) {
  const server = createServer((request, response) => {
    streams.add(response);
    response.on('close', () => streams.delete(response));
    if (new URL(request.url, 'http://localhost').pathname === '/mcp') handle(request, response);
    else response.writeHead(404).end();
  });
  server.listen(option('--port'), '127.0.0.1', () => console.error(`listening on http://127.0.0.1:${server.address().port}/mcp`));
}
