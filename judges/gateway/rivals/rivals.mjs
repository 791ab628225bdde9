// Installs the gateways that the benchmark runs beside ours, and prints how each is started.
//
//   node judges/gateway/rivals/rivals.mjs
//
// One line of JSON each, on standard output: `{ name, version, command }`, or `{ name, missing }` with
// the reason if it could not be installed. In a command, `{port}` is the port to listen on,
// `{config}` an `mcp.json` with the server, `{line}` the server's command in one word, and `{command}`
// all its words. The line `{ server, command }` is server-everything.
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installNode, installPython, venvPython } from '../../install.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const SERVERS = join(HERE, '..', 'servers');
const node = (...words) => [process.execPath, join(HERE, 'node_modules', ...words)];
const python = (folder, name) => [join(dirname(venvPython(join(HERE, folder))), name)];

// What the installers say is no line of ours.
console.log = console.error;
const print = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

async function rival(name, install, version, command) {
  try {
    await install();
    print({ name, version: await version(), command });
  } catch (error) {
    print({ name, missing: error.message });
  }
}

const ofNode = (name) => async () => {
  const found = JSON.parse(await readFile(join(HERE, 'node_modules', name, 'package.json'), 'utf8'));
  return found.version;
};

const ofPython = (folder, name) => async () => {
  const lines = await readFile(join(HERE, folder, 'requirements.txt'), 'utf8');
  return lines.split('\n').find((line) => line.startsWith(`${name}==`)).split('==')[1];
};

await rival('mcp-proxy (Python)', () => installPython(join(HERE, 'mcp-proxy-python')), ofPython('mcp-proxy-python', 'mcp-proxy'), [
  ...python('mcp-proxy-python', 'mcp-proxy'), '--log-level', 'ERROR', '--host', '127.0.0.1', '--port', '{port}', '--', '{command}',
]);
await rival('mcp-proxy (npm)', () => installNode(HERE), ofNode('mcp-proxy'), [
  ...node('mcp-proxy', 'dist', 'bin', 'mcp-proxy.mjs'), '--host', '127.0.0.1', '--port', '{port}', '--server', 'stream', '--', '{command}',
]);
await rival('supergateway', () => installNode(HERE), ofNode('supergateway'), [
  ...node('supergateway', 'dist', 'index.js'), '--stdio', '{line}', '--outputTransport', 'streamableHttp', '--stateful', '--logLevel', 'none', '--port', '{port}',
]);
await rival('fastmcp', () => installPython(join(HERE, 'fastmcp')), ofPython('fastmcp', 'fastmcp'), [
  ...python('fastmcp', 'fastmcp'), 'run', '{config}', '--transport', 'http', '--host', '127.0.0.1', '--port', '{port}', '--no-banner', '--log-level', 'ERROR',
]);
try {
  await installNode(SERVERS);
  const entry = join(SERVERS, 'node_modules', '@modelcontextprotocol', 'server-everything', 'dist', 'index.js');
  print({ server: 'server-everything', command: [process.execPath, entry] });
} catch (error) {
  print({ server: 'server-everything', missing: error.message });
}
