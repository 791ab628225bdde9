// Outside judges: clients made with other SDKs count the notices of a server.
//
//   node judges/peers/run.mjs --server /path/to/binary [--only TEXT] [--jobs N]
//
// --only runs the combinations whose name contains TEXT, e.g. "modern http".
// --jobs runs N combinations at once (1 unless told; they share nothing).
// PYTHON names the interpreter that makes the venv (python3 unless set; 3.11 or newer).
import { access, constants } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { VENV_PYTHON, installNode, installPython } from '../install.mjs';
import { killGroup, start } from '../process.mjs';
import { judge, parse } from '../tally.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const PYTHON_DIR = join(HERE, 'python');
const TS_DIR = join(HERE, 'typescript');
const RUN_MS = 60_000;
const READY_MS = 10_000;

const PEERS = {
  python: { command: VENV_PYTHON, script: join(PYTHON_DIR, 'client.py'), eras: ['legacy', 'modern'] },
  'ts-v1': { command: process.execPath, script: join(TS_DIR, 'client-v1.mjs'), eras: ['legacy'] },
  'ts-v2': { command: process.execPath, script: join(TS_DIR, 'client-v2.mjs'), eras: ['legacy', 'modern'] },
};

const sleep = (ms) => new Promise((done) => setTimeout(done, ms).unref());

async function setUp(names) {
  if (names.has('python')) await installPython();
  if (names.has('ts-v1') || names.has('ts-v2')) await installNode(TS_DIR);
}

/** Starts the server on a free port and resolves with its URL. */
async function serve(binary) {
  const child = start(binary, ['--http', '127.0.0.1:0']);
  const ready = new Promise((done) => {
    child.stderr.on('data', () => {
      const found = /listening on (http:\/\/\S+)/.exec(child.err);
      if (found) done(found[1]);
    });
  });
  const url = await Promise.race([ready, child.ended.then(() => undefined), sleep(READY_MS)]);
  if (!url) {
    killGroup(child);
    throw new Error(`the server did not say "listening on http://..." on stderr\n${child.err}`);
  }
  return { child, url };
}

async function stop(server) {
  server.child.kill('SIGTERM');
  await Promise.race([server.child.ended, sleep(2000)]);
  killGroup(server.child);
}

/** One combination: its checks, as the client reported them, and one more when the run itself went wrong. */
async function runOne({ peer, era, transport }, binary) {
  const checks = [];
  const broken = (expected, got, log) => checks.push({ check: 'run', ok: false, expected, got, log });
  let server;
  try {
    if (transport === 'http') server = await serve(binary);
  } catch (error) {
    broken('a server that listens', error.message);
    return checks;
  }
  const { command, script } = PEERS[peer];
  const where = server ? ['--url', server.url] : ['--server', binary];
  const client = start(command, [...(peer === 'python' ? ['-u'] : []), script, '--era', era, '--transport', transport, ...where]);
  let timer;
  const late = new Promise((done) => (timer = setTimeout(() => done({ code: null, why: `still running after ${RUN_MS} ms` }), RUN_MS)));
  const { code, why } = await Promise.race([client.ended, late]);
  clearTimeout(timer);
  killGroup(client);
  await Promise.race([client.drained, sleep(1000)]);
  if (server) {
    // A server that a client can end is a finding of its own.
    const alive = server.child.exitCode === null && server.child.signalCode === null;
    checks.push({ check: '9 the server still runs', ok: alive, expected: 'running', got: alive ? 'running' : `exit code ${server.child.exitCode}, signal ${server.child.signalCode}` });
    await stop(server);
  }
  let done = false;
  for (const line of client.out.split('\n').filter(Boolean)) {
    let report;
    try {
      report = JSON.parse(line);
    } catch {
      broken('a line of JSON', line);
      continue;
    }
    if (report.done) done = true;
    else checks.push(report);
  }
  const tail = [client.err && `client stderr:\n${client.err}`, server?.child.err && `server stderr:\n${server.child.err}`].filter(Boolean).map((text) => text.slice(-4000));
  if (!done || code !== 0) broken('a client that reports "done" and ends with exit code 0', `${done ? 'done' : 'not done'}, ${why}`, tail);
  else if (checks.some((c) => !c.ok) && tail.length) checks.findLast((c) => !c.ok).tail = tail;
  checks.sort((a, b) => (parseInt(a.check) || 99) - (parseInt(b.check) || 99));
  return checks;
}

const indent = (text) => String(text).split('\n').map((line) => `      ${line}`).join('\n');

function print(name, checks, seconds) {
  console.log(`# ${name} (${seconds.toFixed(1)} s)`);
  for (const { check, ok, expected, got, log, tail } of checks) {
    console.log(`${ok ? 'ok  ' : 'FAIL'} ${name} | ${check}`);
    if (ok) continue;
    console.log(`    expected: ${typeof expected === 'string' ? expected : JSON.stringify(expected)}`);
    console.log(`    came:     ${typeof got === 'string' ? got.trimEnd().split('\n').join('\n              ') : JSON.stringify(got)}`);
    if (log?.length) console.log(`    log:\n${log.map(indent).join('\n')}`);
    if (tail?.length) console.log(tail.map(indent).join('\n'));
  }
}

const options = parse(process.argv.slice(2), 'server');
const binary = resolve(options.server);
await access(binary, constants.X_OK).catch(() => {
  console.error(`${options.server} is not an executable file`);
  process.exit(2);
});

const combinations = [];
for (const [peer, { eras }] of Object.entries(PEERS)) {
  for (const era of eras) for (const transport of ['stdio', 'http']) combinations.push({ name: `${peer} ${era} ${transport}`, peer, era, transport });
}
const chosen = combinations.filter(({ name }) => name.includes(options.only));
if (!chosen.length) {
  console.error(`--only ${options.only} leaves nothing of: ${combinations.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}

await judge('peers', {
  combinations: chosen,
  jobs: options.jobs,
  setUp: () => setUp(new Set(chosen.map(({ peer }) => peer))),
  run: (combination) => runOne(combination, binary),
  print,
});
