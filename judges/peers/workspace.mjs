// Outside judges of a workspace: our mirror, a Python SDK client and a TypeScript SDK client at one
// server at once. A watches the newest artifacts, B those with a tag, C makes them; every notice is
// counted.
//
//   node judges/peers/workspace.mjs --program /path/to/tidings [--only TEXT] [--jobs N]
//
// --only runs the combinations whose name contains TEXT, e.g. "modern".
// --jobs runs N combinations at once (1 unless told; they share nothing).
// PYTHON names the interpreter that makes the environment (python3 unless set; 3.11 or newer).
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual } from 'node:util';
import { installNode, installPython } from '../install.mjs';
import { killGroup, start } from '../process.mjs';
import { judge, parse } from '../tally.mjs';
import { Foreign, TS_DIR, inTime, judged, print, serve, sleep, stop } from './foreign.mjs';

const RECENT = 'artifacts://recent';
const MIDI = 'artifacts://by-tag/type:midi';
const ARRIVE_MS = 10_000; // how long an expected notice may take
const SILENCE_MS = 600; // how long it must then stay silent

/** Our own client: the mirror, as the command line has it. */
class Own {
  constructor(program, url, era) {
    Object.assign(this, { program, target: [url, '--protocol', era, '--json'], watches: new Map(), counts: new Map(), ready: Promise.resolve() });
  }

  async watch(uri) {
    const child = start(this.program, ['watch', ...this.target, uri]);
    this.watches.set(uri, child);
    const watched = new Promise((done) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        const event = JSON.parse(line);
        if (event.event === 'subscriptions_changed' && event.uris.includes(uri)) done();
        if (event.uri === uri && event.cause === 'notice') this.counts.set(uri, (this.counts.get(uri) ?? 0) + 1);
      });
    });
    await inTime('watch', Promise.race([watched, child.ended.then(({ why }) => Promise.reject(new Error(`${why}\n${child.err}`)))]));
  }

  async unwatch(uri) {
    const child = this.watches.get(uri);
    child.kill('SIGINT');
    await inTime('the end of watch', child.ended);
  }

  async run(...words) {
    const child = start(this.program, words);
    const { code, why } = await inTime(words[0], child.ended);
    await child.drained;
    if (code !== 0) throw new Error(`${words.join(' ')}: ${why}\n${child.err}`);
    return JSON.parse(child.out);
  }

  count = async (uri) => this.counts.get(uri) ?? 0;
  read = async (uri) => JSON.parse((await this.run('read', ...this.target, uri)).contents[0].text);
  call = async (name, args) => (await this.run('call', ...this.target, name, '--args', JSON.stringify(args))).result.structuredContent;
  errors = async () => [];
  vanish = () => this.watches.forEach((child) => killGroup(child));
}

async function scenario({ a, b, c }, check) {
  const made = [];
  const create = async (title, tags) => {
    const artifact = await c.call('create_artifact', { title, text: `the text of ${title}`, tags });
    made.unshift(title);
    return artifact.id;
  };
  /** So many notices have come to A and to B, and no more come. */
  const counts = async (name, expected) => {
    const now = async () => [await a.count(RECENT), await b.count(MIDI)];
    const end = Date.now() + ARRIVE_MS;
    while (Date.now() < end && (await now()).some((count, i) => count < expected[i])) await sleep(20);
    await sleep(SILENCE_MS);
    check(name, expected, await now());
  };
  const titles = ({ items }) => items.map(({ title }) => title);
  await a.watch(RECENT);
  await b.watch(MIDI);
  await counts('nothing is told before something happens', [0, 0]);

  const first = await create('one', ['type:midi', 'mood:calm']);
  await counts('an artifact with the tag: one notice each', [1, 1]);
  check('A reads it', ['one'], titles(await a.read(RECENT)));
  check('B reads it', ['one'], titles(await b.read(MIDI)));

  const second = await create('two', ['type:wav']);
  await counts('an artifact without the tag: one notice for A', [2, 1]);
  check('A reads both', ['two', 'one'], titles(await a.read(RECENT)));
  check('B reads the one', ['one'], titles(await b.read(MIDI)));

  await c.call('tag', { id: second, tags: ['type:midi'] });
  await counts('a tag that is new: one notice each', [3, 2]);
  await c.call('tag', { id: second, tags: ['type:midi'] });
  await c.call('search_artifacts', { query: 'text' });
  await counts('a tag that is there already, and a search: silence', [3, 2]);
  check('B reads both', ['two', 'one'], titles(await b.read(MIDI)));

  await c.call('annotate', { id: first, message: 'listen to this' });
  await counts('a remark is in neither list: silence', [3, 2]);

  await a.unwatch(RECENT);
  await create('three', ['type:midi']);
  await counts('after A stopped to watch: one notice for B', [3, 3]);

  await a.watch(RECENT);
  b.vanish();
  await create('four', ['type:midi']);
  const end = Date.now() + ARRIVE_MS;
  while (Date.now() < end && (await a.count(RECENT)) < 4) await sleep(20);
  await sleep(SILENCE_MS);
  check('after B went away: one notice for A', 4, await a.count(RECENT));
  check('A reads all', made, titles(await a.read(RECENT)));
  const lineage = await c.read(`artifacts://lineage/${first}`);
  check('the lineage of the first is itself', [first], lineage.items.map(({ id }) => id));
  check('no error from an SDK', [[], []], [await a.errors(), await c.errors()]);
}

async function runOne({ era, roles }, program) {
  const checks = [];
  const check = (name, expected, got) => checks.push({ name, ok: isDeepStrictEqual(expected, got), expected, got });
  const directory = await mkdtemp(join(tmpdir(), 'tidings-workspace-'));
  let server;
  const clients = {};
  try {
    server = await serve(program, ['--workspace', join(directory, 'w')]);
    const peers = {
      mirror: () => new Own(program, server.url, era),
      python: () => new Foreign('python', ['--era', era, '--transport', 'http', '--url', server.url]),
      typescript: () => new Foreign('ts-v2', ['--era', era, '--transport', 'http', '--url', server.url]),
    };
    for (const [role, peer] of Object.entries(roles)) clients[role] = peers[peer]();
    await Promise.all(Object.values(clients).map(({ ready }) => ready));
    await scenario(clients, check);
    check('the server still runs', null, server.child.exitCode);
  } catch (error) {
    checks.push({ name: 'run', ok: false, expected: 'no error', got: `${error.stack ?? error}\n${server?.child.err ?? ''}` });
  }
  Object.values(clients).forEach((client) => client.vanish());
  if (server) await stop(server);
  await rm(directory, { recursive: true, force: true });
  return checks;
}

const options = parse(process.argv.slice(2), 'program');
const program = await judged(options);

const ROLES = [
  { a: 'mirror', b: 'python', c: 'typescript' },
  { a: 'typescript', b: 'mirror', c: 'python' },
  { a: 'python', b: 'typescript', c: 'mirror' },
];
const combinations = ['legacy', 'modern'].flatMap((era) =>
  ROLES.map((roles) => ({ name: `${era} A=${roles.a} B=${roles.b} C=${roles.c}`, era, roles })),
);
await judge('workspace', {
  combinations: combinations.filter(({ name }) => name.includes(options.only)),
  jobs: options.jobs,
  setUp: async () => {
    await installPython();
    await installNode(TS_DIR);
  },
  run: (combination) => runOne(combination, program),
  print,
});
