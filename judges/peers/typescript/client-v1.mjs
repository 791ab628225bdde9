// The peer made with the TypeScript SDK 1.x: the legacy era, the only one it knows.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { Ears, inTime, main } from './judge.mjs';

const NOTICES = [
  PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
];

await main(({ era, transport: kind, server, words, url, requestInit }) => {
  if (era !== 'legacy') throw new Error('the 1.x SDK knows the legacy era only');
  return {
    async connect() {
      const ears = new Ears(era);
      const transport = ears.tap(
        kind === 'stdio'
          ? new StdioClientTransport({ command: server, args: words, stderr: 'inherit' })
          : new StreamableHTTPClientTransport(new URL(url), { requestInit }),
      );
      // Over stdio the transport is not told the version, so it is taken from here.
      let negotiated;
      const tell = transport.setProtocolVersion?.bind(transport);
      transport.setProtocolVersion = (version) => {
        negotiated = version;
        tell?.(version);
      };
      const client = new Client({ name: 'tidings-peer-ts-v1', version: '1.0.0' });
      for (const schema of NOTICES) client.setNotificationHandler(schema, (notice) => ears.fromHandler(notice));
      client.fallbackNotificationHandler = async (notice) => ears.fromHandler(notice);
      client.onerror = (error) => ears.error(error);
      await client.connect(transport);
      return {
        ears,
        version: () => negotiated,
        async tools() {
          const names = [];
          let cursor;
          do {
            const page = await inTime('tools/list', client.listTools(cursor ? { cursor } : undefined));
            names.push(...page.tools.map((tool) => tool.name));
            cursor = page.nextCursor;
          } while (cursor);
          return names;
        },
        async read(uri) {
          const result = await inTime('resources/read', client.readResource({ uri }));
          return result.contents.map((part) => part.text).join('\n');
        },
        async call(name, args) {
          const result = await inTime(name, client.callTool({ name, arguments: args }));
          if (result.isError) throw new Error(`${name} failed: ${JSON.stringify(result.content)}`);
          return result;
        },
        subscribe: (uri) => inTime('subscribe', client.subscribeResource({ uri })),
        unsubscribe: (uri) => inTime('unsubscribe', client.unsubscribeResource({ uri })),
        async close() {
          if (kind === 'http') await transport.terminateSession();
          await client.close();
        },
      };
    },
  };
});
