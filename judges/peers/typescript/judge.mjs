// What every TypeScript peer checks, whatever SDK it is made with.
//
// A peer hands in an adapter (see client-v1.mjs and client-v2.mjs). This file
// drives it through the scenario and prints one JSON object per check on
// stdout: {"check", "ok", "expected", "got", "log"}, then {"done": true}.

import { obey } from './obey.mjs';

export const WATCHED = 'test://watched-resource';
export const STATIC = 'test://static-text';
export const UNKNOWN = 'test://no-such-resource';
export const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';
export const VERSIONS = { legacy: '2025-11-25', modern: '2026-07-28' };

const ARRIVE_MS = 3000; // how long an expected notice may take
const SILENCE_MS = 600; // how long it must then stay silent
const CALL_MS = 10000; // how long one request may take
const NEEDED_TOOLS = ['add_tools', 'remove_tools', 'test_simple_text', 'touch_watched'];

const started = Date.now();
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const say = (object) => process.stdout.write(JSON.stringify(object) + '\n');

/** A promise that must settle in time. */
export function inTime(what, promise, ms = CALL_MS) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing came within ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** The name under which a notice is counted. */
function nameOf(notice, withSubscription) {
  const list = /^notifications\/(tools|prompts|resources)\/list_changed$/.exec(notice.method);
  let name = list ? list[1] : notice.method;
  if (notice.method === 'notifications/resources/updated') name = `updated ${notice.params?.uri}`;
  if (withSubscription) name += ` @${notice.params?._meta?.[SUBSCRIPTION_ID] ?? 'no subscription'}`;
  return name;
}

const tally = (names) => {
  const counts = {};
  for (const name of [...names].sort()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
};
const same = (a, b) => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
const sorted = (o) => Object.fromEntries(Object.entries(o).filter(([, n]) => n !== 0).sort());

/** Counts notices twice: as they come off the wire, and as the SDK's handlers hand them out. */
export class Ears {
  constructor(era) {
    this.modern = era === 'modern';
    this.wire = [];
    this.handed = [];
    this.log = [];
    this.errors = [];
    this.acked = new Set();
    this.listenIds = [];
    this.waiters = new Set();
  }

  /** Both directions of a transport pass through here, unchanged. */
  tap(transport) {
    let inner;
    Object.defineProperty(transport, 'onmessage', {
      configurable: true,
      get: () => inner,
      set: (handler) => {
        inner = handler && ((message, extra) => {
          this.fromServer(message);
          return handler(message, extra);
        });
      },
    });
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
      this.note('->', message);
      if (message.method === 'subscriptions/listen') this.listenIds.push(message.id);
      return send(message, options);
    };
    return transport;
  }

  note(arrow, what) {
    const text = typeof what === 'string' ? what : JSON.stringify(what);
    this.log.push(`${String(Date.now() - started).padStart(6)} ms ${arrow} ${text.slice(0, 240)}`);
  }

  error(error) {
    const text = String(error?.message ?? error);
    this.note('!!', text);
    this.errors.push(text);
  }

  fromServer(message) {
    this.note('<-', message);
    if (message.method === undefined || message.id !== undefined) return;
    const id = message.params?._meta?.[SUBSCRIPTION_ID];
    if (message.method === 'notifications/subscriptions/acknowledged') {
      if (this.acked.has(id)) this.errors.push(`a second acknowledgement of ${id}`);
      this.acked.add(id);
      return;
    }
    if (this.modern && id !== undefined && !this.acked.has(id)) {
      this.errors.push(`${message.method} came before the acknowledgement of ${id}`);
    }
    this.wire.push(nameOf(message, this.modern));
    this.wake();
  }

  fromHandler(notice) {
    this.handed.push(nameOf(notice, false));
    this.wake();
  }

  wake() {
    for (const waiter of [...this.waiters]) waiter();
  }

  mark() {
    return { wire: this.wire.length, handed: this.handed.length, log: this.log.length };
  }

  since(mark) {
    return { wire: tally(this.wire.slice(mark.wire)), handed: tally(this.handed.slice(mark.handed)) };
  }

  /** Resolves as soon as at least `expected` has come; false when it did not come in time. */
  arrived(mark, expected) {
    const enough = () => {
      const now = this.since(mark);
      const handed = withoutSubscriptions(expected);
      return (
        Object.entries(expected).every(([name, n]) => (now.wire[name] ?? 0) >= n) &&
        Object.entries(handed).every(([name, n]) => (now.handed[name] ?? 0) >= n)
      );
    };
    if (enough()) return Promise.resolve(true);
    return new Promise((resolve) => {
      const finish = (value) => {
        clearTimeout(timer);
        this.waiters.delete(waiter);
        resolve(value);
      };
      const waiter = () => enough() && finish(true);
      const timer = setTimeout(() => finish(false), ARRIVE_MS);
      this.waiters.add(waiter);
    });
  }
}

function withoutSubscriptions(expected) {
  const counts = {};
  for (const [name, n] of Object.entries(expected)) {
    const bare = name.replace(/ @.*$/, '');
    counts[bare] = (counts[bare] ?? 0) + n;
  }
  return counts;
}

/** A filter with everything that is not asked for left out. */
function plainFilter(filter) {
  const plain = {};
  for (const [key, value] of Object.entries(filter ?? {}).sort()) {
    if (Array.isArray(value)) {
      if (value.length) plain[key] = [...value].sort();
    } else if (value) plain[key] = value;
  }
  return plain;
}

const lastNumber = (text) => {
  const numbers = String(text).match(/\d+/g);
  return numbers ? Number(numbers.at(-1)) : undefined;
};

class Judge {
  constructor(adapter, era, transport) {
    this.adapter = adapter;
    this.era = era;
    this.transport = transport;
  }

  check(name, expected, got, ears, mark) {
    const ok = JSON.stringify(expected) === JSON.stringify(got);
    say({ check: name, ok, expected, got, log: ok ? undefined : ears?.log.slice(mark ? mark.log : -40).slice(-60) });
    return ok;
  }

  /** One step: what it throws is a failed check, and the steps after it still run. */
  async step(name, ears, body) {
    try {
      await body();
    } catch (error) {
      say({ check: name, ok: false, expected: 'no error', got: String(error?.stack ?? error), log: ears?.log.slice(-60) });
    }
  }

  /** Exactly `expected` since `mark`, then silence. */
  async exactly(name, ears, mark, expected, whenArrived) {
    await ears.arrived(mark, expected);
    const early = await whenArrived?.();
    await sleep(SILENCE_MS);
    const got = ears.since(mark);
    const handed = withoutSubscriptions(expected);
    const ok = same(got.wire, expected) && same(got.handed, handed);
    say({
      check: name,
      ok,
      expected: { wire: sorted(expected), handlers: sorted(handed) },
      got: { wire: got.wire, handlers: got.handed },
      log: ok ? undefined : ears.log.slice(mark.log).slice(-60),
    });
    return early;
  }

  async run() {
    const { era } = this;
    const modern = era === 'modern';
    const legacy = !modern;
    const http = this.transport === 'http';
    let peer;
    await this.step('1 connect', undefined, async () => {
      peer = await inTime('connect', this.adapter.connect());
    });
    if (!peer) return;
    const { ears } = peer;
    this.check('1 connect: negotiated version', VERSIONS[era], peer.version(), ears);

    // In the modern era nothing is heard without a listen; each listen has its own name in the counts.
    const at = (name, listen) => (modern ? `${name} @${listen?.id}` : name);
    const updated = (listen) => at(`updated ${WATCHED}`, listen);
    let lists;
    let watch;

    await this.step('1 start', ears, async () => {
      const mark = { wire: 0, handed: 0, log: 0 };
      if (modern) {
        const asked = { promptsListChanged: true, resourcesListChanged: true, toolsListChanged: true };
        lists = await peer.listen(asked);
        this.check('1 listen: acknowledged filter', asked, plainFilter(lists.honored), ears);
        await this.exactly('1 listen: no notice at the start', ears, mark, {});
      } else {
        await this.exactly('1 announce: one list_changed of each kind', ears, mark, { tools: 1, prompts: 1, resources: 1 });
      }
    });

    let second;
    let secondMark;
    const quiet = ears.mark();
    if (http) {
      await this.step('6 second client: connect', ears, async () => {
        second = await inTime('second connect', this.adapter.connect());
        if (modern) {
          secondMark = second.ears.mark();
          const listen = await second.listen({ resourceSubscriptions: [STATIC] });
          this.check('6 second client: acknowledged filter', { resourceSubscriptions: [STATIC] }, plainFilter(listen.honored), second.ears);
        } else {
          await this.exactly('6 second client: its own announce', second.ears, { wire: 0, handed: 0, log: 0 }, { tools: 1, prompts: 1, resources: 1 });
          secondMark = second.ears.mark();
          await second.subscribe(STATIC);
        }
      });
    }

    await this.step('1 tools/list', ears, async () => {
      const first = await peer.tools();
      this.check('1 tools/list: the tools needed are there', NEEDED_TOOLS, first.filter((name) => NEEDED_TOOLS.includes(name)).sort(), ears);
      const again = await peer.tools();
      this.check('1 tools/list: twice the same', first, again, ears);
      await this.exactly('1 tools/list: no notice for asking', ears, quiet, {});
    });

    let text;
    let counts = false; // whether the text holds a number that counts the changes
    const touch = (n, gap_ms) => peer.call('touch_watched', { n, gap_ms });

    await this.step('2 one change', ears, async () => {
      const mark = ears.mark();
      const before = await peer.read(WATCHED);
      if (modern) {
        watch = await peer.listen({ resourceSubscriptions: [WATCHED] });
        this.check('2 listen: acknowledged filter', { resourceSubscriptions: [WATCHED] }, plainFilter(watch.honored), ears);
      } else await peer.subscribe(WATCHED);
      await touch(1, 0);
      await this.exactly('2 one change: exactly one notice', ears, mark, { [updated(watch)]: 1 });
      text = await peer.read(WATCHED);
      this.check('2 one change: the text differs', true, text !== before, ears, mark);
      counts = lastNumber(text) === lastNumber(before) + 1;
    });

    await this.step('3 hundred changes', ears, async () => {
      const mark = ears.mark();
      const before = text ?? (await peer.read(WATCHED));
      await touch(100, 0);
      const early = await this.exactly('3 hundred changes: exactly one notice', ears, mark, { [updated(watch)]: 1 }, () => peer.read(WATCHED));
      text = await peer.read(WATCHED);
      this.check('3 hundred changes: the text differs', true, text !== before, ears, mark);
      this.check('3 hundred changes: at the notice the last text is there', text, early, ears, mark);
      if (counts) this.check('3 hundred changes: the text is the hundredth', lastNumber(before) + 100, lastNumber(text), ears, mark);
    });

    await this.step('4 two changes apart', ears, async () => {
      const mark = ears.mark();
      await touch(2, 400);
      const soon = ears.since(mark).handed[`updated ${WATCHED}`] ?? 0;
      await this.exactly('4 two changes 400 ms apart: exactly two notices', ears, mark, { [updated(watch)]: 2 });
      this.check('4 two changes 400 ms apart: the first notice did not wait for the call', true, soon >= 1, ears, mark);
    });

    const extras = async () => (await peer.tools()).filter((name) => name.startsWith('extra_')).sort();
    await this.step('5 tools', ears, async () => {
      let mark = ears.mark();
      await peer.call('add_tools', { n: 20, gap_ms: 0 });
      await this.exactly('5 add 20 tools: exactly one tools/list_changed', ears, mark, { [at('tools', lists)]: 1 });
      const names = Array.from({ length: 20 }, (_, i) => `extra_${i + 1}`).sort();
      this.check('5 add 20 tools: tools/list has the 20', names, await extras(), ears, mark);
      mark = ears.mark();
      await peer.call('remove_tools', {});
      await this.exactly('5 remove the tools: exactly one more', ears, mark, { [at('tools', lists)]: 1 });
      this.check('5 remove the tools: tools/list has none of them', [], await extras(), ears, mark);
    });

    await this.step('7 stop', ears, async () => {
      const mark = ears.mark();
      if (legacy) await peer.unsubscribe(WATCHED);
      else await watch.close();
      await touch(1, 0);
      await this.exactly(legacy ? '7 after unsubscribe: no notice' : '7 after closing the listen: no notice', ears, mark, {});
    });

    if (modern) await this.overlap(peer, ears, lists, touch);

    if (second?.ears && secondMark) {
      await this.step('6 second client', second.ears, async () => {
        // A legacy session cannot decline list notices: the two of step 5 are its due, and nothing else is.
        const name = modern ? '6 second client: heard nothing' : '6 second client: no update, only the two tool notices';
        await this.exactly(name, second.ears, secondMark, modern ? {} : { tools: 2 });
        this.check('6 second client: no error from the SDK', [], second.ears.errors, second.ears);
      });
      await this.step('6 second client: close', second.ears, () => inTime('close', second.close()));
    }
    this.check('9 no error from the SDK', [], ears.errors, ears);
    await this.step('9 close', ears, () => inTime('close', peer.close()));
  }

  async overlap(peer, ears, lists, touch) {
    await this.step('8 two listens', ears, async () => {
      let mark = ears.mark();
      await lists.close();
      const askedA = { resourceSubscriptions: [WATCHED], toolsListChanged: true };
      const askedB = { resourceSubscriptions: [STATIC, WATCHED] };
      const a = await peer.listen(askedA);
      const b = await peer.listen(askedB);
      this.check('8 two listens: acknowledged filters', [askedA, askedB], [plainFilter(a.honored), plainFilter(b.honored)], ears);
      await touch(1, 0);
      await this.exactly('8 two listens: each gets its own copy', ears, mark, { [`updated ${WATCHED} @${a.id}`]: 1, [`updated ${WATCHED} @${b.id}`]: 1 });
      mark = ears.mark();
      await peer.call('add_tools', { n: 3, gap_ms: 0 });
      await this.exactly('8 two listens: only the one that asked hears of tools', ears, mark, { [`tools @${a.id}`]: 1 });
      mark = ears.mark();
      await a.close();
      await touch(1, 0);
      await peer.call('remove_tools', {});
      await this.exactly('8 closing one leaves the other', ears, mark, { [`updated ${WATCHED} @${b.id}`]: 1 });

      mark = ears.mark();
      const c = await peer.listen({ resourceSubscriptions: [WATCHED, UNKNOWN], toolsListChanged: true });
      this.check('8 an unknown URI is not acknowledged, the rest is', askedA, plainFilter(c.honored), ears);
      await touch(1, 0);
      await this.exactly('8 the acknowledged rest is served', ears, mark, { [`updated ${WATCHED} @${b.id}`]: 1, [`updated ${WATCHED} @${c.id}`]: 1 });
      mark = ears.mark();
      await b.close();
      await c.close();
      await touch(1, 0);
      await this.exactly('8 after closing all: no notice', ears, mark, {});
    });
  }
}

/** Reads the command line, runs the scenario with the adapter the peer makes for it, and ends the process. */
export async function main(makeAdapter) {
  const options = {};
  for (let i = 2; i < process.argv.length; i += 2) options[process.argv[i].replace(/^--/, '')] = process.argv[i + 1];
  const { era, transport, server, url, token } = options;
  const words = options.words ? JSON.parse(options.words) : ['--stdio'];
  if (!VERSIONS[era] || !['stdio', 'http'].includes(transport) || !(transport === 'stdio' ? server : url)) {
    process.stderr.write('usage: --era legacy|modern --transport stdio --server BINARY\n       --era legacy|modern --transport http --url URL\n       [--obey yes] [--words JSON] [--token SECRET]\n');
    process.exit(2);
  }
  const requestInit = token ? { headers: { authorization: `Bearer ${token}` } } : undefined;
  const adapter = makeAdapter({ era, transport, server, words, url, requestInit });
  if (options.obey) {
    await obey(adapter, era);
    process.exit(0);
  }
  await new Judge(adapter, era, transport).run();
  await new Promise((resolve) => process.stdout.write(JSON.stringify({ done: true }) + '\n', resolve));
  process.exit(0);
}
