// A client of the TypeScript SDK 2.x, in either era, that counts the notices it gets.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

// The SDK is installed for the other judges.
const PEERS = join(dirname(fileURLToPath(import.meta.url)), '..', 'peers', 'typescript', 'client-v2.mjs');
const FRESH = { cacheMode: 'bypass' };

export async function connect(url, era) {
  const path = createRequire(PEERS).resolve('@modelcontextprotocol/client');
  const { Client, StreamableHTTPClientTransport } = await import(pathToFileURL(path));
  const mode = era === 'modern' ? { pin: '2026-07-28' } : 'legacy';
  const client = new Client({ name: 'tidings-gateway-judge', version: '1.0.0' }, { versionNegotiation: { mode } });
  const updated = [];
  client.setNotificationHandler('notifications/resources/updated', (notice) => updated.push(notice.params.uri));
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  const all = async (list, key, field) => {
    const found = [];
    let cursor;
    do {
      const page = await list(cursor ? { cursor } : undefined, FRESH);
      found.push(...page[key].map((item) => item[field]));
      cursor = page.nextCursor;
    } while (cursor);
    return found;
  };
  return {
    updated,
    tools: () => all(client.listTools.bind(client), 'tools', 'name'),
    resources: () => all(client.listResources.bind(client), 'resources', 'uri'),
    call: (name, args) => client.callTool({ name, arguments: args }),
    async watch(uris) {
      if (era === 'modern') await client.listen({ resourceSubscriptions: uris });
      else for (const uri of uris) await client.subscribeResource({ uri });
    },
    async close() {
      if (era === 'legacy') await transport.terminateSession();
      await client.close();
    },
  };
}
