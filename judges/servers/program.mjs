// Drives the `tidings` command line against one server, over stdio or HTTP.
import { createServer } from 'node:net';
import { killGroup, start } from '../process.mjs';

const RUN_MS = 20_000; // how long one command may take
const READY_MS = 20_000; // how long a server may take to listen
const ARRIVE_MS = 10_000; // how long a line of `watch` may take
const GONE_MS = 5_000; // how long a server may outlive the client that started it

/** A promise that must settle in time. */
export function inTime(what, ms, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing came within ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

const parseLines = (text) =>
  text.split('\n').filter(Boolean).map((line) => {
    try {
      return JSON.parse(line);
    } catch {
      return { notJson: line };
    }
  });

/** One server of one combination, and the program that speaks to it. */
export class Bench {
  constructor(program, server, { era, transport }) {
    this.program = program;
    this.server = server;
    this.era = era;
    this.http = transport === 'http';
    this.obedient = [];
  }

  /** Over HTTP the server is ours; over stdio the program starts it, and it calls back for orders. */
  async open() {
    if (this.http) await this.serve();
    else if (this.server.obeys) {
      this.orders = createServer((socket) => {
        socket.setEncoding('utf8').on('error', () => {});
        socket.gone = new Promise((done) => socket.on('close', done));
        this.obedient.push(socket);
      });
      await new Promise((done) => this.orders.listen(0, '127.0.0.1', done));
    }
  }

  async serve(...more) {
    const [command, ...args] = this.server.http;
    const child = start(command, [...args, ...more], { env: { ...process.env, ...this.server.environment } });
    this.child = child;
    const listening = new Promise((done) => {
      const look = () => {
        const found = /listening on (http:\/\/\S+)/.exec(child.err + child.out);
        if (found) done(found[1]);
      };
      child.stderr.on('data', look);
      child.stdout.on('data', look);
    });
    const died = child.ended.then(({ why }) => Promise.reject(new Error(`the server did not start: ${why}\n${child.err}`)));
    died.catch(() => {});
    this.url = await inTime('"listening on" of the server', READY_MS, Promise.race([listening, died]));
  }

  /** Ends the server without a word and starts another in its place. */
  async replace(...more) {
    killGroup(this.child);
    await this.child.ended;
    await this.serve('--port', new URL(this.url).port, ...more);
  }

  async close() {
    this.orders?.close();
    for (const socket of this.obedient) socket.destroy();
    if (!this.child) return;
    this.child.kill('SIGTERM');
    await inTime('the end of the server', 2000, this.child.ended).catch(() => {});
    killGroup(this.child);
  }

  /** Whether the server we started still runs: one that a client can end is a finding. */
  alive() {
    return !this.child || (this.child.exitCode === null && this.child.signalCode === null);
  }

  line(command, words, { protocol = this.era, more = [] } = {}) {
    const flags = ['--json', '--protocol', protocol];
    if (this.http) return [command, this.url, ...words, ...flags];
    const control = this.orders ? ['--control', String(this.orders.address().port)] : [];
    return [command, ...words, ...flags, '--', ...this.server.stdio, ...control, ...more];
  }

  start(command, words, options) {
    const child = start(this.program, this.line(command, words, options));
    child.shown = `tidings ${[command, ...words].join(' ')}`;
    return child;
  }

  /** Runs a command to its end: its exit code, its lines, and what it said on standard error. */
  async run(command, words = [], options = {}) {
    const seen = this.obedient.length;
    const child = this.start(command, words, options);
    try {
      const { code, why } = await inTime(child.shown, RUN_MS, child.ended);
      await inTime('the end of the output', GONE_MS, child.drained);
      // What the program started must go with it.
      for (const socket of this.obedient.slice(seen)) await inTime('the end of the server after its client', GONE_MS, socket.gone);
      return { code: code ?? why, lines: parseLines(child.out), err: child.err };
    } finally {
      killGroup(child);
    }
  }

  /** Follows a server until the program ends by itself. */
  watch(words, options) {
    return new Watching(this, this.obedient.length, this.start('watch', words, options));
  }

  /** Waits until the server we started said something on standard error. */
  heard(words) {
    const { child } = this;
    const said = new Promise((done) => {
      const look = () => child.err.includes(words) && done();
      child.stderr.on('data', look);
      look();
    });
    return inTime(`"${words}" of the server`, ARRIVE_MS, said);
  }

  /** Has the server change while it is watched: over HTTP by a second client, else by our order. */
  async order(watching, what, times = 1) {
    if (this.http) {
      const { code, err } = await this.run('call', times === 1 ? [what] : [what, `times=${times}`]);
      if (code !== 0) throw new Error(`tidings call ${what}: exit code ${code}\n${err}`);
      return;
    }
    const socket = watching.sockets().findLast(({ readyState }) => readyState === 'open');
    if (!socket) throw new Error('the server that is watched did not call for orders');
    const done = what === 'die' ? socket.gone : new Promise((resolve) => socket.once('data', resolve));
    socket.write(`${what} ${times}\n`);
    await inTime(`the server to ${what}`, ARRIVE_MS, done);
  }
}

class Watching {
  constructor(bench, before, child) {
    this.bench = bench;
    this.before = before;
    this.child = child;
    this.waiters = new Set();
    const wake = () => [...this.waiters].forEach((waiter) => waiter());
    child.stdout.on('data', wake);
    child.ended.then(wake);
  }

  /** The servers that the program started to watch; a client may start one only to find out its era. */
  sockets() {
    return this.bench.obedient.slice(this.before);
  }

  /** All whole lines so far. */
  events() {
    return parseLines(this.child.out.slice(0, this.child.out.lastIndexOf('\n') + 1));
  }

  /** Resolves once the lines satisfy; what they are is part of the error if they never do. */
  until(what, satisfied) {
    const waiting = new Promise((resolve, reject) => {
      const waiter = () => {
        const over = this.child.exitCode !== null || this.child.signalCode !== null;
        if (satisfied(this.events())) resolve();
        else if (over) reject(new Error(`watch ended before ${what}`));
        else return;
        this.waiters.delete(waiter);
      };
      this.waiters.add(waiter);
      waiter();
    });
    return inTime(what, ARRIVE_MS, waiting).catch((error) => {
      throw new Error(`${error.message}\n${this.child.out}${this.child.err}`);
    });
  }

  async ended() {
    const { code, why } = await inTime('the end of watch', ARRIVE_MS, this.child.ended).catch((error) => {
      throw new Error(`${error.message}\n${this.child.out}${this.child.err}`);
    });
    await inTime('the end of the output', GONE_MS, this.child.drained);
    for (const socket of this.sockets()) await inTime('the end of the server after its client', GONE_MS, socket.gone);
    return code ?? why;
  }

  kill() {
    killGroup(this.child);
  }
}
