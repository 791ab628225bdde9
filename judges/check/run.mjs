// `tidings check` against servers made with other SDKs: it must find the faults they are known for,
// and no others.
//
//   node judges/check/run.mjs --program /path/to/tidings [--only TEXT] [--jobs N]
//
// --only runs the servers whose name contains TEXT. --jobs runs N of them at once.
import { rmSync } from 'node:fs';
import { access, constants, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { VENV_PYTHON, installNode, installPython, venvPython } from '../install.mjs';
import { killGroup, start } from '../process.mjs';
import { judge, parse } from '../tally.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const NODE_DIR = join(HERE, 'typescript');
const FASTMCP_DIR = join(HERE, 'python');
const SERVERS = join(HERE, '..', 'servers');
const RUN_MS = 150_000; // how long one run may take on a busy machine

// Whether a server exits in time, and how fast changes can be made, depends on the machine.
const BUSY = ['proc.eof-exit', 'notice.not-starved'];

const reference = (folder, name) => join(folder, 'node_modules', '@modelcontextprotocol', name, 'dist', 'index.js');

/** Each server: how it is run and changed, the faults that are known, and what must hold. */
function servers(scratch) {
  const node = process.execPath;
  const sdk = join(SERVERS, 'typescript');
  return [
    {
      // Updates of resources that did not change; `subscribe` itself works.
      name: 'everything',
      command: [node, reference(sdk, 'server-everything'), 'stdio'],
      words: ['--change', 'toggle-subscriber-updates', '--expects', 'demo://resource/static/document/features.md'],
      fails: ['caps.depend-on-client legacy', 'list.cursor-bad legacy', 'notice.spurious legacy', 'sub.unknown-uri legacy'],
      passes: ['caps.subscribe-works legacy', 'list.order-stable legacy', 'read.notfound legacy', 'proc.stdout-clean legacy'],
    },
    {
      name: 'memory',
      command: [node, reference(NODE_DIR, 'server-memory')],
      environment: { MEMORY_FILE_PATH: join(scratch, 'memory.jsonl') },
      words: [],
      fails: ['list.cursor-bad legacy', 'sub.unknown-uri legacy'],
      passes: ['caps.list-served legacy', 'caps.subscribe-works legacy', 'list.order-stable legacy'],
    },
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

async function check(program, { command, words, environment, fails, passes }) {
  const child = start(program, ['check', '--json', '--listen', '500ms', ...words, '--', ...command], { env: { ...process.env, GITHUB_ACTIONS: '', ...environment } });
  const timer = setTimeout(() => killGroup(child), RUN_MS);
  const { code, why } = await child.ended;
  await child.drained;
  clearTimeout(timer);
  const checks = [{ name: 'it could be checked', ok: code === 0 || code === 1, more: `${why}\n${child.err}` }];
  if (!checks[0].ok) return checks;
  const lines = child.out.split('\n').filter(Boolean).map((line) => JSON.parse(line));
  const named = (verdict) => lines.filter((line) => line.verdict === verdict).map((line) => [`${line.id} ${line.era ?? 'both'}`, line]);
  const failed = new Map(named('fail'));
  const passed = new Map(named('pass'));
  for (const id of fails) checks.push({ name: `finds ${id}`, ok: failed.has(id) });
  for (const id of passes) checks.push({ name: `passes ${id}`, ok: passed.has(id), more: failed.get(id)?.said });
  for (const [id, { said, evidence }] of failed) {
    if (fails.includes(id) || BUSY.includes(id.split(' ')[0])) continue;
    checks.push({ name: `fails ${id}, which is not known`, ok: false, more: [said, ...evidence].join('\n') });
  }
  return checks;
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
const chosen = servers(scratch).filter(({ name }) => name.includes(options.only));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
await judge('check', {
  combinations: chosen,
  jobs: options.jobs,
  setUp: async () => {
    await installNode(NODE_DIR);
    await installNode(join(SERVERS, 'typescript'));
    if (chosen.some(({ name }) => name === 'python')) await installPython();
    if (chosen.some(({ name }) => name === 'fastmcp')) await installPython(FASTMCP_DIR);
  },
  run: (server) => check(program, server),
  print,
});
