// A server made with the TypeScript SDK as its documentation shows it: one call turns three tools on
// or off, and each of them announces itself. It also lists a resource that it never updates.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';

const server = new McpServer({ name: 'judge-flip', version: '1.0.0' });
const tools = ['one', 'two', 'three'].map((name) => server.registerTool(name, { description: 'Comes and goes' }, () => ({ content: [] })));
server.registerTool('flip', { description: 'Turns three tools on or off' }, () => {
  for (const tool of tools) {
    if (tool.enabled) tool.disable();
    else tool.enable();
  }
  return { content: [{ type: 'text', text: 'flipped' }] };
});
await server.connect(new StdioServerTransport());
