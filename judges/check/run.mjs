// `tidings check` against servers made with other SDKs, directly and behind our gateway: it must find
// the faults they are known for, and its report must be the one that is kept in `reports/`.
//
//   node judges/check/run.mjs --program /path/to/tidings [--only TEXT] [--jobs N]
//
// --only runs the servers whose name contains TEXT. --jobs runs N of them at once. With REPORTS=write,
// the reports are written instead of compared: read the difference before you keep them.
import { mkdirSync, rmSync } from 'node:fs';
import { access, constants, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { VENV_PYTHON, installNode, installPython, venvPython } from '../install.mjs';
import { killGroup, start } from '../process.mjs';
import { judge, parse } from '../tally.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const NODE_DIR = join(HERE, 'typescript');
const FASTMCP_DIR = join(HERE, 'python');
const REPORTS = join(HERE, 'reports');
const SERVERS = join(HERE, '..', 'servers');
const RUN_MS = 240_000; // how long one run may take on a busy machine

// These must not fail unless the report says so, but a busy machine may be too slow to try them.
const IN_TIME = ['notice.not-starved'];

const reference = (folder, name) => join(folder, 'node_modules', '@modelcontextprotocol', name, 'dist', 'index.js');
const GRAPH = 'memory://knowledge-graph';
const entity = (tool, name = 'entity') => `${tool} entities=[{"name": "${name}", "entityType": "test", "observations": []}]`;

/** Each server: how it is run and changed, the faults that are known, and what must hold. */
function servers(program, scratch) {
  const node = process.execPath;
  const sdk = join(SERVERS, 'typescript');
  const everything = reference(sdk, 'server-everything');
  const memory = reference(NODE_DIR, 'server-memory');
  const remembers = (name) => ({ MEMORY_FILE_PATH: join(scratch, `${name}.jsonl`) });
  // A gateway of `server-memory`, with a place for its socket and its pins. Change and undo take turns.
  const gateway = (name, words, more) => {
    const folder = join(scratch, name);
    mkdirSync(folder);
    return {
      name,
      command: [program, 'serve', ...words, '--upstream', `memory=${node} ${memory}`],
      environment: { ...remembers(name), XDG_RUNTIME_DIR: folder, XDG_DATA_HOME: folder },
      words: ['--change', entity('memory__create_entities'), '--undo', 'memory__delete_entities entityNames=["entity"]', '--expects', GRAPH],
      fails: [],
      passes: ['legacy', 'modern'].flatMap((era) => ['notice.delivered', 'notice.once', 'notice.last-told', 'list.cursor-bad', 'sub.unknown-uri'].map((id) => `${id} ${era}`)),
      ...more,
    };
  };
  return [
    {
      // Updates of resources that did not change; `subscribe` itself works.
      name: 'everything',
      command: [node, everything, 'stdio'],
      words: ['--change', 'toggle-subscriber-updates', '--expects', 'demo://resource/static/document/features.md'],
      fails: ['caps.depend-on-client legacy', 'list.cursor-bad legacy', 'notice.spurious legacy', 'sub.unknown-uri legacy'],
      passes: ['caps.subscribe-works legacy', 'list.order-stable legacy', 'read.notfound legacy', 'proc.stdout-clean legacy'],
    },
    {
      // It asks its clients for their roots.
      name: 'everything-http',
      command: [node, '--import', join(sdk, 'say-port.mjs'), everything, 'streamableHttp'],
      environment: { PORT: '0' },
      listens: ['stderr', /listening on (\S+)/],
      words: [],
      fails: ['caps.depend-on-client legacy', 'http.origin legacy', 'list.cursor-bad legacy', 'sub.unknown-uri legacy'],
      passes: ['caps.subscribe-works legacy', 'list.order-stable legacy'],
    },
    {
      // It announces a write that changes nothing.
      name: 'memory',
      command: [node, memory],
      environment: remembers('memory'),
      words: ['--change', entity('create_entities', 'entity {n}'), '--expects', GRAPH],
      fails: ['list.cursor-bad legacy', 'notice.noop-silent legacy', 'sub.unknown-uri legacy'],
      passes: ['caps.list-served legacy', 'caps.subscribe-works legacy', 'list.order-stable legacy', 'notice.delivered legacy'],
    },
    gateway('gateway-memory', ['--stdio']),
    // Each change is a new one, so it is also made without pause, and while another client stalls.
    gateway('gateway-memory-http', ['--http', '127.0.0.1:0'], {
      listens: ['stdout', /listening on (\S+)/],
      ready: /upstream {2}memory: ready/,
      words: ['--change', entity('memory__create_entities', 'entity {n}'), '--expects', GRAPH],
    }),
    {
      name: 'filesystem',
      command: [node, reference(NODE_DIR, 'server-filesystem'), scratch],
      words: [],
      fails: ['list.cursor-bad legacy'],
      passes: ['caps.list-served legacy', 'list.names-legal legacy', 'list.order-stable legacy'],
    },
    {
      // `listChanged` is advertised, and a tool that is added is not announced.
      name: 'fastmcp',
      command: [venvPython(FASTMCP_DIR), '-u', join(FASTMCP_DIR, 'server.py')],
      words: ['--change', 'grow', '--protocol', 'legacy', '--expects', 'tools'],
      fails: ['caps.kinds-honest legacy', 'list.cursor-bad legacy'],
      passes: ['caps.list-served legacy', 'list.order-stable legacy', 'read.notfound legacy'],
    },
    {
      // The same in the modern era; in the legacy era, `listChanged` is not advertised.
      name: 'python-plain',
      command: [VENV_PYTHON, '-u', join(FASTMCP_DIR, 'plain.py')],
      words: ['--change', 'grow', '--expects', 'tools'],
      fails: ['caps.silent-change legacy', 'caps.kinds-honest modern', 'caps.eras-agree both'],
      passes: ['caps.list-served legacy', 'list.order-stable modern', 'listen.ack-first modern'],
    },
    {
      // The low-level server of the SDK: what it accepts is up to its author.
      name: 'python',
      command: [VENV_PYTHON, '-u', join(SERVERS, 'python', 'server.py')],
      words: ['--change', 'touch', '--expects', 'test://counter'],
      fails: ['caps.eras-agree both', 'list.cursor-bad legacy', 'list.cursor-bad modern', 'sub.unknown-uri legacy', 'sub.unknown-uri modern'],
      passes: ['notice.delivered legacy', 'notice.delivered modern', 'notice.once modern', 'sub.unsubscribe-quiet legacy', 'listen.tagged modern', 'cache.hints modern'],
    },
    {
      name: 'ts-v1',
      command: [node, join(sdk, 'server-v1.mjs')],
      words: ['--change', 'grow', '--expects', 'tools'],
      fails: ['list.cursor-bad legacy', 'sub.unknown-uri legacy'],
      passes: ['caps.kinds-honest legacy', 'notice.once legacy', 'notice.after-visible legacy'],
    },
    {
      // Three tools are turned on or off: three notices.
      name: 'ts-v1-flip',
      command: [node, join(NODE_DIR, 'flip.mjs')],
      words: ['--change', 'flip', '--expects', 'tools'],
      fails: ['list.cursor-bad legacy', 'notice.once legacy'],
      passes: ['caps.kinds-honest legacy', 'notice.delivered legacy', 'notice.last-told legacy'],
    },
    {
      name: 'ts-v2',
      command: [node, join(sdk, 'server-v2.mjs')],
      words: ['--change', 'touch', '--expects', 'test://counter'],
      fails: ['list.cursor-bad legacy', 'list.cursor-bad modern', 'sub.unknown-uri legacy', 'sub.unknown-uri modern'],
      passes: ['notice.delivered legacy', 'notice.delivered modern', 'listen.ack-first modern', 'listen.parallel modern'],
    },
  ];
}

/** Starts a server over HTTP and waits until it listens, and until what is behind it is `ready`. */
async function serve({ command: [name, ...args], environment, listens: [output, pattern], ready }) {
  const child = start(name, args, { env: { ...process.env, ...environment } });
  let url;
  let isReady = !ready;
  await new Promise((done, failed) => {
    createInterface({ input: child[output] }).on('line', (line) => {
      url ??= pattern.exec(line)?.[1];
      isReady ||= ready.test(line);
      if (url && isReady) done();
    });
    child.ended.then(({ why }) => failed(new Error(`the server ended: ${why}\n${child.err}`)));
  });
  return { child, url };
}

async function run(program, words, environment) {
  const child = start(program, ['check', '--json', '--listen', '500ms', ...words], { env: { ...process.env, GITHUB_ACTIONS: '', ...environment } });
  const timer = setTimeout(() => killGroup(child), RUN_MS);
  const { code, why } = await child.ended;
  await child.drained;
  clearTimeout(timer);
  return { code, why, lines: child.out.split('\n').filter(Boolean).map((line) => JSON.parse(line)), err: child.err };
}

/** A report without what is different in each run: numbers, times and places. */
function kept(lines) {
  const verdicts = lines.filter(({ id }) => id).map(({ id, era, verdict, said }) => {
    const isLate = IN_TIME.includes(id) && verdict !== 'fail' && verdict !== 'not offered';
    const shown = isLate ? 'pass, or not tried on a busy machine' : verdict;
    return `${id} ${era ?? 'both'}: ${shown}${verdict === 'fail' ? `: ${said.replace(/\d+/g, 'N')}` : ''}`;
  });
  return `${verdicts.sort().join('\n')}\n`;
}

async function compare(name, report) {
  const file = join(REPORTS, `${name}.txt`);
  if (process.env.REPORTS === 'write') await writeFile(file, report);
  const before = await readFile(file, 'utf8').catch(() => '');
  const [old, now] = [before.split('\n'), report.split('\n')];
  const more = [...old.filter((line) => !now.includes(line)).map((line) => `- ${line}`), ...now.filter((line) => !old.includes(line)).map((line) => `+ ${line}`)];
  return { name: 'the report is the one that is kept', ok: before === report, more: more.join('\n') };
}

async function check(program, server) {
  const { name, command, words, environment, fails, passes, listens } = server;
  let served;
  let result;
  try {
    served = listens && (await serve(server));
    result = await run(program, [...words, ...(served ? [served.url] : ['--', ...command])], environment);
  } catch (error) {
    return [{ name: 'it could be checked', ok: false, more: error.message }];
  } finally {
    if (served) killGroup(served.child);
  }
  const { code, why, lines, err } = result;
  const checks = [{ name: 'it could be checked', ok: code === 0 || code === 1, more: `${why}\n${err}` }];
  if (!checks[0].ok) return checks;
  const named = (verdict) => lines.filter((line) => line.verdict === verdict).map((line) => [`${line.id} ${line.era ?? 'both'}`, line]);
  const failed = new Map(named('fail'));
  const passed = new Map(named('pass'));
  for (const id of fails) checks.push({ name: `finds ${id}`, ok: failed.has(id) });
  for (const id of passes) checks.push({ name: `passes ${id}`, ok: passed.has(id), more: failed.get(id)?.said });
  const compared = await compare(name, kept(lines));
  const unknown = [...failed].filter(([id]) => !compared.ok && compared.more.includes(`+ ${id}: fail`));
  compared.more += unknown.map(([id, { evidence }]) => `\n${id}:\n${evidence.join('\n')}`).join('');
  return [...checks, compared];
}

function print(name, checks, seconds) {
  console.log(`# ${name} (${seconds.toFixed(1)} s)`);
  for (const { name: what, ok, more } of checks) {
    console.log(`${ok ? 'ok  ' : 'FAIL'} ${name} | ${what}`);
    if (!ok && more) console.log(more.trimEnd().split('\n').map((line) => `      ${line}`).join('\n'));
  }
}

const options = parse(process.argv.slice(2), 'program');
const program = resolve(options.program);
await access(program, constants.X_OK).catch(() => {
  console.error(`${options.program} is not an executable file`);
  process.exit(2);
});
const scratch = await mkdtemp(join(tmpdir(), 'tidings-check-'));
const chosen = servers(program, scratch).filter(({ name }) => name.includes(options.only));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
await judge('check', {
  combinations: chosen,
  jobs: options.jobs,
  setUp: async () => {
    await installNode(NODE_DIR);
    await installNode(join(SERVERS, 'typescript'));
    if (chosen.some(({ name }) => name.startsWith('python'))) await installPython();
    if (chosen.some(({ name }) => name === 'fastmcp')) await installPython(FASTMCP_DIR);
  },
  run: (server) => check(program, server),
  print,
});
