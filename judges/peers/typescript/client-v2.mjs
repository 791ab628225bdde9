// The peer made with the TypeScript SDK 2.x: both eras.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Ears, VERSIONS, inTime, main } from './judge.mjs';

const NOTICES = [
  'notifications/tools/list_changed',
  'notifications/prompts/list_changed',
  'notifications/resources/list_changed',
  'notifications/resources/updated',
];
const FRESH = { cacheMode: 'bypass' };

await main(({ era, transport: kind, server, words, url, requestInit }) => ({
  async connect() {
    const ears = new Ears(era);
    const transport = ears.tap(
      kind === 'stdio'
        ? new StdioClientTransport({ command: server, args: words, stderr: 'inherit' })
        : new StreamableHTTPClientTransport(new URL(url), { requestInit }),
    );
    const client = new Client(
      { name: 'tidings-peer-ts-v2', version: '1.0.0' },
      { versionNegotiation: { mode: era === 'modern' ? { pin: VERSIONS.modern } : 'legacy' } },
    );
    for (const method of NOTICES) client.setNotificationHandler(method, (notice) => ears.fromHandler(notice));
    client.fallbackNotificationHandler = async (notice) => ears.fromHandler(notice);
    client.onerror = (error) => ears.error(error);
    await client.connect(transport);
    return {
      ears,
      version: () => client.getNegotiatedProtocolVersion(),
      async tools() {
        const names = [];
        let cursor;
        do {
          const page = await inTime('tools/list', client.listTools(cursor ? { cursor } : undefined, FRESH));
          names.push(...page.tools.map((tool) => tool.name));
          cursor = page.nextCursor;
        } while (cursor);
        return names;
      },
      async read(uri) {
        const result = await inTime('resources/read', client.readResource({ uri }, FRESH));
        return result.contents.map((part) => part.text).join('\n');
      },
      async call(name, args) {
        const result = await inTime(name, client.callTool({ name, arguments: args }));
        if (result.isError) throw new Error(`${name} failed: ${JSON.stringify(result.content)}`);
        return result;
      },
      subscribe: (uri) => inTime('subscribe', client.subscribeResource({ uri })),
      unsubscribe: (uri) => inTime('unsubscribe', client.unsubscribeResource({ uri })),
      async listen(filter) {
        // Every listen is awaited before the next begins, so the newest id sent is this one's.
        const handle = await inTime('listen', client.listen(filter));
        return { id: ears.listenIds.at(-1), honored: handle.honoredFilter, close: () => inTime('close of a listen', handle.close()) };
      },
      async close() {
        if (kind === 'http' && era === 'legacy') await transport.terminateSession();
        await client.close();
      },
    };
  },
}));
