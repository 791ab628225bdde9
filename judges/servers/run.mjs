// Outside judges of the client: the command line against servers made with other SDKs, and our own.
//
//   node judges/servers/run.mjs --program /path/to/tidings [--only TEXT] [--jobs N]
//
// --only runs the combinations whose name contains TEXT, e.g. "ts-v2 modern http".
// --jobs runs N combinations at once (1 unless told; they share nothing).
// PYTHON names the interpreter that makes the environment (python3 unless set; 3.11 or newer).
import { spawnSync } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { fileURLToPath } from 'node:url';
import { VENV_PYTHON, installNode, installPython } from '../install.mjs';
import { judge, parse } from '../tally.mjs';
import { everything, shelf, stateless, station } from './checks.mjs';
import { Bench } from './program.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const WORDS = 2000; // how much of what the program said is shown with a failure
const TS_DIR = join(HERE, 'typescript');

/** How each server is started over stdio and HTTP, what it speaks, and what is checked of it. */
function servers(program) {
  const node = (script) => [process.execPath, join(TS_DIR, script)];
  const python = [VENV_PYTHON, '-u', join(HERE, 'python', 'server.py')];
  const reference = join(TS_DIR, 'node_modules', '@modelcontextprotocol', 'server-everything', 'dist', 'index.js');
  const overHttp = ({ http }) => http;
  const demo = [program, 'serve', '--demo', '--every', '0.05'];
  const own = (name, command, eras, more) => ({ name, eras, stdio: command, http: [...command, '--http'], obeys: true, check: shelf, ...more });
  return {
    everything: {
      eras: ['legacy'],
      stdio: [process.execPath, reference, 'stdio'],
      http: [process.execPath, '--import', join(TS_DIR, 'say-port.mjs'), reference, 'streamableHttp'],
      environment: { PORT: '0' },
      check: everything,
    },
    // Its SDK keeps standard output to itself, so that no noise can get there.
    python: own('judge-python', python, ['legacy', 'modern'], { cuts: ({ era }) => era === 'modern' }),
    'ts-v1': own('judge-ts-v1', node('server-v1.mjs'), ['legacy'], { noisy: true, cuts: overHttp }),
    'ts-v2': own('judge-ts-v2', node('server-v2.mjs'), ['legacy', 'modern'], { noisy: true, cuts: overHttp }),
    'ts-v2-stateless': {
      name: 'judge-ts-v2',
      eras: ['legacy', 'modern'],
      http: [...node('server-v2.mjs'), '--http', '--stateless'],
      only: 'legacy http',
      check: stateless,
    },
    tidings: {
      eras: ['legacy', 'modern'],
      version: spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout?.split(/\s+/)[1],
      stdio: [...demo, '--stdio'],
      http: [...demo, '--http', '127.0.0.1:0'],
      check: station,
    },
  };
}

/** Collects the findings of one combination. */
class Judge {
  checks = [];

  check(name, expected, got, words) {
    this.checks.push({ name, ok: isDeepStrictEqual(expected, got), expected, got, words });
  }

  /** What a step throws is a failed check, and the steps after it still run. */
  async step(name, body) {
    try {
      await body();
    } catch (error) {
      this.checks.push({ name: `${name}: no error`, ok: false, expected: 'no error', got: error.message });
    }
  }
}

async function runOne({ server, era, transport }, program) {
  const judge = new Judge();
  const bench = new Bench(program, server, { era, transport });
  await judge.step('the server', async () => {
    await bench.open();
    await server.check(bench, judge);
    judge.check('the server still runs', true, bench.alive(), bench.child?.err);
  });
  await bench.close();
  return judge.checks;
}

const indent = (text) => String(text).trimEnd().split('\n').map((line) => `      ${line}`).join('\n');
const shown = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

function print(name, checks, seconds) {
  console.log(`# ${name} (${seconds.toFixed(1)} s)`);
  for (const { name: check, ok, expected, got, words } of checks) {
    console.log(`${ok ? 'ok  ' : 'FAIL'} ${name} | ${check}`);
    if (ok) continue;
    console.log(`    expected: ${shown(expected)}\n    came:     ${shown(got)}`);
    if (words?.length) console.log(indent(shown(words).slice(-WORDS)));
  }
}

const options = parse(process.argv.slice(2), 'program');
const program = resolve(options.program);
await access(program, constants.X_OK).catch(() => {
  console.error(`${options.program} is not an executable file`);
  process.exit(2);
});

const combinations = [];
for (const [key, server] of Object.entries(servers(program))) {
  for (const era of server.eras) {
    for (const transport of ['stdio', 'http']) {
      const how = `${era} ${transport}`;
      if ((server.only ?? how) === how) combinations.push({ name: `${key} ${how}`, key, server, era, transport });
    }
  }
}
const chosen = combinations.filter(({ name }) => name.includes(options.only));
if (!chosen.length) {
  console.error(`--only ${options.only} leaves nothing of: ${combinations.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}

await judge('servers', {
  combinations: chosen,
  jobs: options.jobs,
  setUp: async () => {
    if (chosen.some(({ key }) => key === 'python')) await installPython();
    if (chosen.some(({ key }) => key.startsWith('ts-') || key === 'everything')) await installNode(TS_DIR);
  },
  run: (combination) => runOne(combination, program),
  print,
});
