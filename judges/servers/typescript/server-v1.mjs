// A server made with the TypeScript SDK 1.x: legacy, over stdio or (`--http`) Streamable HTTP with sessions.
import { randomUUID } from 'node:crypto';
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { aborted, addExtra, chatter, listen, obey, offer, world } from './offer.mjs';

/** Server of one connection -> the URIs its client watches. */
const connections = new Map();

const tell = {
  grow() {
    world.extra++;
    // Registering tells the client.
    for (const server of connections.keys()) addExtra(server, world.extra);
    return `extra_${world.extra}`;
  },
  touch(uri) {
    world.count++;
    for (const [server, uris] of connections) if (uris.has(uri)) server.server.sendResourceUpdated({ uri });
    return `count ${world.count}`;
  },
};

function progress({ _meta, sendNotification }, step, steps) {
  if (_meta?.progressToken === undefined) return;
  return sendNotification({
    method: 'notifications/progress',
    params: { progressToken: _meta.progressToken, progress: step, total: steps, message: `step ${step}` },
  });
}

function make() {
  const server = new McpServer(
    { name: 'judge-ts-v1', title: 'A judge', version: '1.0.0' },
    { capabilities: { resources: { subscribe: true } }, instructions: 'Call `touch` and look at the counter.' },
  );
  offer(server, { ResourceTemplate, completable, progress, gone: ({ signal }) => aborted(signal), tell, values: (fields) => fields });
  const uris = new Set();
  server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => (uris.add(params.uri), {}));
  server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => (uris.delete(params.uri), {}));
  server.server.oninitialized = () => connections.set(server, uris);
  server.server.onclose = () => connections.delete(server);
  return server;
}

obey(tell);
if (process.argv.includes('--http')) {
  const sessions = new Map();
  listen(async (request, response) => {
    const id = request.headers['mcp-session-id'];
    let transport = sessions.get(id);
    if (id && !transport) return response.writeHead(404).end();
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (made) => sessions.set(made, transport),
        onsessionclosed: (gone) => sessions.delete(gone),
      });
      await make().connect(transport);
    }
    await transport.handleRequest(request, response);
  });
} else {
  chatter();
  await make().connect(new StdioServerTransport());
}
