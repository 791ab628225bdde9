// Starts programs for the judges and lets none of them outlive a run.
import { spawn } from 'node:child_process';

export const WINDOWS = process.platform === 'win32';

/** Kills a process and what it started; every process here leads its own group. */
export function killGroup(child) {
  try {
    if (WINDOWS) child.kill('SIGKILL');
    else process.kill(-child.pid, 'SIGKILL');
  } catch {
    // It is gone already.
  }
}

const live = new Set();
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    for (const child of live) killGroup(child);
    process.exit(1);
  });
}

export function start(command, args, options = {}) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: !WINDOWS, ...options });
  child.out = '';
  child.err = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (child.out += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (child.err += text));
  live.add(child);
  // `exit`, not `close`: a grandchild that keeps the pipes open must not hold up the run.
  child.ended = new Promise((done) => {
    child.on('error', (error) => done({ code: null, why: String(error) }));
    child.on('exit', (code, signal) => done({ code, why: signal ? `ended by ${signal}` : `exit code ${code}` }));
  }).finally(() => live.delete(child));
  child.drained = new Promise((done) => child.on('close', done));
  return child;
}
