// Servers of others behind `tidings serve`: what they offer arrives, and notices come for changes only.
//
//   node judges/gateway/run.mjs --program /path/to/tidings [--only TEXT] [--jobs N]
//
// All servers are behind one gateway, and clients of both eras use it.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installNode } from '../install.mjs';
import { killGroup, start } from '../process.mjs';
import { judge, parse } from '../tally.mjs';
import { connect } from './client.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const SERVERS = join(HERE, 'servers');
const PEERS = join(HERE, '..', 'peers', 'typescript');
const READY_MS = 30_000;
const NOTICE_MS = 8_000;
/** server-everything says every 5 s that its resource was updated; nothing is. */
const QUIET_MS = 11_000;

const options = parse(process.argv.slice(2), 'program');
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const folder = mkdtempSync(join(tmpdir(), 'tidings-gateway-'));
const files = join(folder, 'files');
let gateway;
let url;

const entry = (name) => join(SERVERS, 'node_modules', '@modelcontextprotocol', `server-${name}`, 'dist', 'index.js');
const section = (name, words, more = '') =>
  `[upstream.${name}]\ncommand = ${JSON.stringify([process.execPath, ...words])}\n${more}\n`;

/** Starts the gateway, and waits until all its servers are ready. */
async function setUp() {
  await installNode(SERVERS);
  await installNode(PEERS);
  mkdirSync(files);
  writeFileSync(join(files, 'note.txt'), 'hello\n');
  const memory = JSON.stringify(join(folder, 'memory.jsonl'));
  writeFileSync(
    join(folder, 'tidings.toml'),
    section('everything', [entry('everything'), 'stdio']) +
      section('memory', [entry('memory')], `env = { MEMORY_FILE_PATH = ${memory} }`) +
      section('files', [entry('filesystem'), files]),
  );
  gateway = start(options.program, ['serve', '--config', 'tidings.toml', '--http', '127.0.0.1:0'], {
    cwd: folder,
    env: { ...process.env, XDG_RUNTIME_DIR: folder, XDG_DATA_HOME: folder },
  });
  const needed = [/listening on (\S+)/, /everything: ready/, /memory: ready/, /files: ready/];
  const until = Date.now() + READY_MS;
  while (!needed.every((pattern) => pattern.test(gateway.out))) {
    if (Date.now() > until) throw new Error(`not ready in time:\n${gateway.out}${gateway.err}`);
    await sleep(50);
  }
  url = needed[0].exec(gateway.out)[1];
}

process.on('exit', () => {
  if (gateway) killGroup(gateway);
  rmSync(folder, { recursive: true, force: true });
});

/** Collects the checks of one combination. */
function checker(era) {
  const checks = [];
  const check = (name, ok, got) => checks.push({ name: `${era}: ${name}`, ok, got });
  return { checks, check };
}

async function offers({ era }) {
  const { checks, check } = checker(era);
  const client = await connect(url, era);
  const tools = await client.tools();
  for (const name of ['everything__echo', 'memory__create_entities', 'files__read_text_file']) {
    check(`${name} is offered`, tools.includes(name), tools.length);
  }
  const echoed = await client.call('everything__echo', { message: 'hi' });
  check('a call reaches its server', JSON.stringify(echoed).includes('hi'), echoed);
  const text = await client.call('files__read_text_file', { path: join(files, 'note.txt') });
  check('a file is read', JSON.stringify(text).includes('hello'), text);
  await client.close();
  return checks;
}

/** What the server says every five seconds is not passed on, and a real change is, once. */
async function notices({ era }) {
  const { checks, check } = checker(era);
  const client = await connect(url, era);
  const resources = await client.resources();
  const still = resources.find((uri) => /static|document/.test(uri));
  check('a resource to watch is offered', still !== undefined, resources);
  const graph = resources.find((uri) => uri.includes('memory') || uri.includes('graph'));
  await client.watch([still, graph].filter(Boolean));
  await client.call('everything__toggle-subscriber-updates', {}).catch(() => {});
  await sleep(QUIET_MS);
  const before = client.updated.length;
  check('nothing changed, and no notice came', before === 0, client.updated);
  if (graph !== undefined) {
    const name = `entity-${era}-${Date.now()}`;
    await client.call('memory__create_entities', { entities: [{ name, entityType: 'test', observations: [] }] });
    const until = Date.now() + NOTICE_MS;
    while (!client.updated.includes(graph) && Date.now() < until) await sleep(20);
    await sleep(500);
    const told = client.updated.filter((uri) => uri === graph).length;
    check('a real change is announced once', told === 1, client.updated);
  }
  await client.close();
  return checks;
}

/** One after another: a change that one era makes is a notice for the other. */
const inTurns = async ({ eras }) => {
  const checks = [];
  for (const era of eras) checks.push(...(await notices({ era })));
  return checks;
};

const combinations = [
  { name: 'legacy offers', era: 'legacy', run: offers },
  { name: 'modern offers', era: 'modern', run: offers },
  { name: 'notices in both eras', eras: ['legacy', 'modern'], run: inTurns },
];

await judge('gateway', {
  combinations: combinations.filter(({ name }) => name.includes(options.only)),
  jobs: options.jobs,
  setUp,
  run: (combination) => combination.run(combination),
  print(name, checks, seconds) {
    const failed = checks.filter(({ ok }) => !ok);
    console.log(`${failed.length === 0 ? 'ok  ' : 'FAIL'} ${name} (${checks.length} checks, ${seconds} s)`);
    for (const { name: what, got } of failed) console.log(`  ${what}; got ${JSON.stringify(got)}`);
  },
});
