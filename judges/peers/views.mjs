// Outside judges of views: clients of other SDKs with different tokens at one server. What each is
// offered changes, and every notice is counted.
//
//   node judges/peers/views.mjs --program /path/to/tidings [--only TEXT] [--jobs N]
//
// --only runs the combinations whose name contains TEXT, e.g. "modern http".
// --jobs runs N combinations at once (1 unless told; they share nothing).
// PYTHON names the interpreter that makes the environment (python3 unless set; 3.11 or newer).
import { access, chmod, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { installNode, installPython } from '../install.mjs';
import { start } from '../process.mjs';
import { judge, parse } from '../tally.mjs';
import { Foreign, TS_DIR, inTime, judged, print, serve, sleep, stop } from './foreign.mjs';

const ARRIVE_MS = 10_000; // how long an expected notice may take
const SILENCE_MS = 600; // how long it must then stay silent
const PILOT = 'role:pilot';
// A station on which nothing happens by itself, and that announces nothing to new sessions.
const STATION = ['--demo', '--every', '3600', '--silent'];

/** A folder with a tool for pilots and one for a role that nobody here has. */
class Folder {
  constructor(directory) {
    this.directory = directory;
    this.drafts = `${directory}-drafts`;
  }

  static async make(directory) {
    const folder = new Folder(directory);
    for (const place of ['resources', 'tools']) await mkdir(join(directory, place), { recursive: true });
    await mkdir(folder.drafts);
    await writeFile(join(directory, 'resources', 'open.md'), 'for everyone');
    await folder.tool('fly', 'Flies', PILOT);
    await folder.tool('purge', 'Purges', 'role:admin');
    return folder;
  }

  /** Adds a tool in one step, or describes it anew: a slow machine would show what is in between. */
  async tool(name, description, audience) {
    const home = join(this.directory, 'tools', name);
    const meta = JSON.stringify({ name, description, audience });
    if (await access(home).then(() => true, () => false)) return this.put(join(home, 'tool.meta.json'), meta);
    const draft = join(this.drafts, name);
    await mkdir(draft, { recursive: true });
    await writeFile(join(draft, 'tool.sh'), '#!/bin/sh\necho done\n');
    await chmod(join(draft, 'tool.sh'), 0o755);
    await writeFile(join(draft, 'tool.meta.json'), meta);
    await rename(draft, home);
  }

  template(audience) {
    const template = { name: 'logbook', uriTemplate: 'logbook://{+path}', path: '{+path}', audience };
    return this.put(join(this.directory, 'resources', 'logbook.meta.json'), JSON.stringify(template));
  }

  async put(path, text) {
    const draft = join(this.drafts, 'file');
    await writeFile(draft, text);
    await rename(draft, path);
  }
}

/** Runs the program to its end; returns what it printed. */
async function run(program, words) {
  const child = start(program, words);
  const { code, why } = await inTime(words.join(' '), child.ended);
  await child.drained;
  if (code !== 0) throw new Error(`${words.join(' ')}: ${why}\n${child.err}`);
  return child.out.trim();
}

/** Everybody's notices since the last look. */
class Ledger {
  constructor(clients, check) {
    Object.assign(this, { clients, check, before: {} });
  }

  async since() {
    const news = {};
    for (const [name, client] of Object.entries(this.clients)) {
      const heard = await client.heard();
      const before = this.before[name] ?? {};
      const more = Object.entries(heard).map(([thing, count]) => [thing, count - (before[thing] ?? 0)]);
      news[name] = Object.fromEntries(more.filter(([, count]) => count !== 0));
    }
    return news;
  }

  /** Each client hears exactly this, and then nothing; who is not named hears nothing. */
  async exactly(name, expected) {
    const wanted = Object.fromEntries(Object.keys(this.clients).map((client) => [client, expected[client] ?? {}]));
    const end = Date.now() + ARRIVE_MS;
    const missing = (news) =>
      Object.entries(wanted).some(([client, things]) => Object.entries(things).some(([thing, count]) => (news[client][thing] ?? 0) < count));
    while (Date.now() < end && missing(await this.since())) await sleep(20);
    await sleep(SILENCE_MS);
    this.check(name, wanted, await this.since());
    for (const [client, each] of Object.entries(this.clients)) this.before[client] = await each.heard();
  }
}

/**
 * `pilot` is offered what pilots are, `visitor` is not, and `second` is another session of the pilot.
 * Over stdio there is the pilot alone.
 */
async function scenario({ clients, era, folder, withdraw, streams }, check) {
  const { pilot, visitor, second } = clients;
  const ledger = new Ledger(clients, check);
  const offers = async (client, ...names) => {
    const tools = client && (await client.tools());
    return tools && names.filter((name) => tools.includes(name));
  };
  /** The notices of the pilot, and of whoever else has the same view. */
  const pilots = (heard) => ({ pilot: heard, ...(second && { second: heard }) });
  // A request without a session logs in its person, so the other streams of that person are told, too.
  const together = era === 'modern' ? pilots({ tools: 1 }) : { pilot: { tools: 1 } };
  await ledger.exactly('nothing is told before something happens', {});
  check('the pilot is offered the tool of pilots', ['fly'], await offers(pilot, 'fly', 'purge', 'clear_ports'));
  if (visitor) check('the visitor is not', [], await offers(visitor, 'fly', 'purge', 'clear_ports'));

  await pilot.call('login', {});
  await ledger.exactly('login: one notice', together);
  check('the pilot is offered the tool of commanders', ['fly', 'clear_ports'], await offers(pilot, 'fly', 'clear_ports'));
  if (visitor) check('the visitor is offered nothing more', [], await offers(visitor, 'fly', 'clear_ports'));
  await pilot.call('logout', {});
  await ledger.exactly('logout: one notice', together);
  check('the tool of commanders is gone', ['fly'], await offers(pilot, 'fly', 'clear_ports'));

  await folder.tool('purge', 'Purges everything', 'role:admin');
  await ledger.exactly('a hidden tool changes: silence', {});
  await folder.tool('fly', 'Flies far', PILOT);
  await ledger.exactly('a tool of pilots changes: one notice for each pilot', pilots({ tools: 1 }));

  await folder.template(PILOT);
  await ledger.exactly('a template for pilots comes: one notice for each pilot', pilots({ resources: 1 }));
  await folder.template('role:admin');
  await ledger.exactly('it is for another role: one notice for each pilot', pilots({ resources: 1 }));

  if (visitor) {
    const before = await streams();
    await withdraw();
    await ledger.exactly('a withdrawn token: nobody else notices', {});
    check('its streams and its session are gone', { ...before, streams: before.streams - 1, sessions: before.sessions - (era === 'legacy' ? 1 : 0) }, await streams());
    const refused = await visitor.tools().then((tools) => tools, () => 'refused');
    check('its requests are refused', 'refused', refused);
  }
  await folder.tool('look', 'Looks');
  await ledger.exactly('a tool for everyone: one notice for each who is left', pilots({ tools: 1 }));
  check('no error from an SDK', [[], []], [await pilot.errors(), (await second?.errors()) ?? []]);
}

async function overHttp({ era, sdk }, program, directory, check) {
  const folder = await Folder.make(join(directory, 'folder'));
  const tokens = ['--tokens', join(directory, 'tokens.toml')];
  const ada = await run(program, ['token', 'new', 'ada', '--label', PILOT, ...tokens]);
  const bob = await run(program, ['token', 'new', 'bob', ...tokens]);
  const server = await serve(program, [...STATION, '--folder', folder.directory, ...tokens]);
  const connect = (token) => new Foreign(sdk, ['--era', era, '--transport', 'http', '--url', server.url, '--token', token]);
  const clients = { pilot: connect(ada), visitor: connect(bob), second: connect(ada) };
  /** The open streams and sessions, as the server counts them. */
  const streams = async () => {
    const page = await fetch(new URL('/metrics', server.url), { headers: { authorization: `Bearer ${ada}` } });
    const text = await page.text();
    const figure = (name) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
    return { streams: figure('tidings_listeners'), sessions: figure('tidings_sessions') };
  };
  const withdraw = () => run(program, ['token', 'rm', 'bob', ...tokens]);
  try {
    await Promise.all(Object.values(clients).map(({ ready }) => ready));
    await Promise.all(Object.values(clients).map((client) => client.follow()));
    await scenario({ clients, era, folder, withdraw, streams }, check);
    check('the server still runs', null, server.child.exitCode);
  } catch (error) {
    throw new Error(`${error.stack ?? error}\n${server.child.err}`);
  } finally {
    Object.values(clients).forEach((client) => client.vanish());
    await stop(server);
  }
}

async function overStdio({ era, sdk }, program, directory, check) {
  const folder = await Folder.make(join(directory, 'folder'));
  const words = ['serve', '--stdio', ...STATION, '--folder', folder.directory, '--label', PILOT];
  const pilot = new Foreign(sdk, ['--era', era, '--transport', 'stdio', '--server', program, '--words', JSON.stringify(words)]);
  try {
    await pilot.ready;
    await pilot.follow();
    await scenario({ clients: { pilot }, era, folder }, check);
  } finally {
    pilot.vanish();
  }
}

async function runOne(combination, program) {
  const checks = [];
  const check = (name, expected, got) => checks.push({ name, ok: isDeepStrictEqual(expected, got), expected, got });
  const directory = await mkdtemp(join(tmpdir(), 'tidings-views-'));
  try {
    await (combination.transport === 'http' ? overHttp : overStdio)(combination, program, directory, check);
  } catch (error) {
    checks.push({ name: 'run', ok: false, expected: 'no error', got: String(error.stack ?? error) });
  }
  await rm(directory, { recursive: true, force: true });
  return checks;
}

const options = parse(process.argv.slice(2), 'program');
const program = await judged(options);

const SDKS = { legacy: ['python', 'ts-v1', 'ts-v2'], modern: ['python', 'ts-v2'] };
const combinations = Object.entries(SDKS).flatMap(([era, sdks]) =>
  sdks.flatMap((sdk) => ['stdio', 'http'].map((transport) => ({ name: `${sdk} ${era} ${transport}`, era, sdk, transport }))),
);
await judge('views', {
  combinations: combinations.filter(({ name }) => name.includes(options.only)),
  jobs: options.jobs,
  setUp: async () => {
    await installPython();
    await installNode(TS_DIR);
  },
  run: (combination) => runOne(combination, program),
  print,
});
