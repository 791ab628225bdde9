// A client of another SDK, in a process of its own, that does what it is told: an order a line in, an
// answer a line out (see python/obey.py and typescript/obey.mjs).
import { access, constants } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { VENV_PYTHON } from '../install.mjs';
import { killGroup, start } from '../process.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
export const TS_DIR = join(HERE, 'typescript');
const ORDER_MS = 20_000; // how long one order may take

const PROGRAMS = {
  python: [VENV_PYTHON, ['-u', join(HERE, 'python', 'obey.py')]],
  'ts-v1': [process.execPath, [join(TS_DIR, 'client-v1.mjs'), '--obey', 'yes']],
  'ts-v2': [process.execPath, [join(TS_DIR, 'client-v2.mjs'), '--obey', 'yes']],
};

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** A promise that must settle in time. */
export function inTime(what, promise, ms = ORDER_MS) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing came within ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export class Foreign {
  /** `sdk` is a key of PROGRAMS; `args` say the era, the transport and where the server is. */
  constructor(sdk, args) {
    const [command, before] = PROGRAMS[sdk];
    this.child = start(command, [...before, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.child.stdin.on('error', () => {});
    this.waiting = new Map();
    this.last = 0;
    this.ready = this.answer(0, 'connect');
    createInterface({ input: this.child.stdout }).on('line', (line) => {
      const { id, value, error } = JSON.parse(line);
      const { done, failed } = this.waiting.get(id) ?? {};
      if (error) failed?.(new Error(error));
      else done?.(value);
    });
  }

  answer(id, what) {
    const answered = new Promise((done, failed) => this.waiting.set(id, { done, failed }));
    const ended = this.child.ended.then(({ why }) => Promise.reject(new Error(`${what}: ${why}\n${this.child.err}`)));
    ended.catch(() => {});
    return inTime(what, Promise.race([answered, ended]));
  }

  order(order, rest = {}) {
    const id = ++this.last;
    const answered = this.answer(id, order);
    this.child.stdin.write(JSON.stringify({ id, order, ...rest }) + '\n');
    return answered;
  }

  watch = (uri) => this.order('watch', { uri });
  unwatch = (uri) => this.order('unwatch', { uri });
  count = (uri) => this.order('count', { uri });
  follow = () => this.order('follow');
  heard = () => this.order('heard');
  tools = () => this.order('tools');
  read = (uri) => this.order('read', { uri });
  call = (name, args) => this.order('call', { name, args });
  errors = () => this.order('errors');
  /** Goes away without a word. */
  vanish = () => killGroup(this.child);
}

/** The program that is judged, by the options of the judge. */
export async function judged(options) {
  const program = resolve(options.program);
  await access(program, constants.X_OK).catch(() => {
    console.error(`${options.program} is not an executable file`);
    process.exit(2);
  });
  return program;
}

/** Starts `tidings serve` over HTTP with these words and resolves with its URL. */
export async function serve(program, words) {
  const child = start(program, ['serve', ...words, '--http', '127.0.0.1:0', '--json']);
  const listening = new Promise((done) => createInterface({ input: child.stdout }).on('line', (line) => done(JSON.parse(line).endpoint)));
  const failed = child.ended.then(({ why }) => Promise.reject(new Error(`the server: ${why}\n${child.err}`)));
  failed.catch(() => {});
  return { child, url: await inTime('the server', Promise.race([listening, failed])) };
}

/** Stops a server, and kills it if it does not stop. */
export async function stop({ child }) {
  child.kill('SIGTERM');
  await Promise.race([child.ended, sleep(2000)]);
  killGroup(child);
}

/** Prints the checks of one combination. */
export function print(name, checks, seconds) {
  console.log(`# ${name} (${seconds.toFixed(1)} s)`);
  for (const { name: check, ok, expected, got } of checks) {
    console.log(`${ok ? 'ok  ' : 'FAIL'} ${name} | ${check}`);
    if (!ok) console.log(`    expected: ${JSON.stringify(expected)}\n    came:     ${typeof got === 'string' ? got : JSON.stringify(got)}`);
  }
}
