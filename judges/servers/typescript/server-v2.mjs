// A server made with the TypeScript SDK 2.x: both eras, over stdio or (`--http`) Streamable HTTP.
import { randomUUID } from 'node:crypto';
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import { McpServer, ResourceTemplate, completable, createMcpHandler, isLegacyRequest } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { aborted, addExtra, chatter, listen, obey, offer, world } from './offer.mjs';

/** Server of one lasting connection -> whether its client watches a URI. */
const connections = new Map();
/** The endpoint of the modern era over HTTP: it makes a server for every request. */
let endpoint;

const tell = {
  grow() {
    world.extra++;
    // Registering tells the client.
    for (const server of connections.keys()) addExtra(server, world.extra);
    endpoint?.notify.toolsChanged();
    return `extra_${world.extra}`;
  },
  touch(uri) {
    world.count++;
    for (const [server, watches] of connections) if (watches(uri)) server.server.sendResourceUpdated({ uri });
    endpoint?.notify.resourceUpdated(uri);
    return `count ${world.count}`;
  },
};

function progress({ mcpReq }, step, steps) {
  if (mcpReq._meta?.progressToken === undefined) return;
  return mcpReq.notify({
    method: 'notifications/progress',
    params: { progressToken: mcpReq._meta.progressToken, progress: step, total: steps, message: `step ${step}` },
  });
}

function make({ era }) {
  const server = new McpServer(
    { name: 'judge-ts-v2', title: 'A judge', version: '1.0.0' },
    { capabilities: { tools: { listChanged: true }, resources: { subscribe: true } }, instructions: 'Call `touch` and look at the counter.' },
  );
  offer(server, { ResourceTemplate, completable, progress, gone: ({ mcpReq }) => aborted(mcpReq.signal), tell });
  if (era === 'legacy') {
    const uris = new Set();
    server.server.setRequestHandler('resources/subscribe', ({ params }) => (uris.add(params.uri), {}));
    server.server.setRequestHandler('resources/unsubscribe', ({ params }) => (uris.delete(params.uri), {}));
    server.server.oninitialized = () => connections.set(server, (uri) => uris.has(uri));
  }
  server.server.onclose = () => connections.delete(server);
  return server;
}

obey(tell);
if (process.argv.includes('--http')) {
  // `--stateless`: as the SDK serves the legacy era by itself, without sessions and streams.
  const stateless = process.argv.includes('--stateless');
  endpoint = createMcpHandler(make, { legacy: stateless ? 'stateless' : 'reject' });
  const modern = toNodeHandler(endpoint);
  const sessions = new Map();
  listen(async (request, response) => {
    const probe = await toWebRequest(request);
    const body = probe.method === 'POST' ? await probe.clone().json() : undefined;
    if (stateless || !(await isLegacyRequest(probe))) return modern(request, response, body);
    const id = request.headers['mcp-session-id'];
    let transport = sessions.get(id);
    if (id && !transport) return response.writeHead(404).end();
    if (!transport) {
      transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (made) => sessions.set(made, transport),
        onsessionclosed: (gone) => sessions.delete(gone),
      });
      await make({ era: 'legacy' }).connect(transport);
    }
    await transport.handleRequest(request, response, body);
  });
} else {
  chatter();
  serveStdio((context) => {
    const server = make(context);
    // What the client did not listen to, the SDK keeps from it.
    if (context.era === 'modern') connections.set(server, () => true);
    return server;
  });
}
