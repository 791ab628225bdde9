// The page of `tidings open` beside the Inspector, measured in one run with the same browser and the
// same fixture. Outside the gate: it prints a table and fails only if something cannot be measured.
//
//   node judges/web/compare.mjs --program target/release/tidings
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installNode } from '../install.mjs';
import { killGroup, start } from '../process.mjs';
import { parse } from '../tally.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const options = parse(process.argv.slice(2), 'program');
await installNode(HERE);
await installNode(join(HERE, 'compare'));
const { launch, pause, until } = await import('./browser.mjs');

const INSPECTOR = join(HERE, 'compare', 'node_modules', '@modelcontextprotocol', 'inspector');
const LAUNCHER = join(INSPECTOR, 'clients', 'launcher', 'build', 'index.js');
const MCPDO = join(INSPECTOR, 'clients', 'mcpdo', 'build', 'mcp-bin.js');
/** Reloads after which processes are counted. */
const RELOADS = 10;
/** Warm calls of which the middle one counts. */
const CALLS = 11;
/** The longest that a burst may take to settle. */
const PATIENCE = 45_000;

const home = await mkdtemp(join(tmpdir(), 'tidings-compare-'));
/** The fixture with a word of this run, so that fixtures of other runs are not counted. */
const FIXTURE = [process.execPath, join(HERE, 'fixture.mjs'), home];
const isFixture = ({ line }) => /^[^\0]*node\0[^\0]*fixture\.mjs\0/.test(line) && line.includes(home);
const env = {
  ...process.env, HOME: home, TIDINGS_TOKEN: '', XDG_RUNTIME_DIR: join(home, 'run'), XDG_DATA_HOME: join(home, 'data'),
  MCP_AUTO_OPEN_ENABLED: 'false', MCP_INSPECTOR_SECRET_STORE: 'memory',
};
const children = [];

function run(command, words) {
  const child = start(command, words, { env });
  children.push(child);
  return child;
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** All processes: their parents, their memory and their command lines. */
async function processes() {
  const found = new Map();
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const [stat, status, line] = await Promise.all(['stat', 'status', 'cmdline'].map((it) => readFile(`/proc/${name}/${it}`, 'utf8').catch(() => '')));
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (stat && state !== 'Z') found.set(Number(name), { parent: Number(parent), memory: Number(status.match(/VmRSS:\s+(\d+)/)?.[1] ?? 0) / 1024, line });
  }
  return found;
}

async function tree(pid) {
  const all = await processes();
  const found = new Map([[pid, all.get(pid)]]);
  for (let next = [pid]; next.length > 0;) {
    next = [...all].filter(([, it]) => next.includes(it.parent)).map(([child]) => child);
    for (const child of next) found.set(child, all.get(child));
  }
  return found;
}

/** Megabytes of a program without the servers that it started. */
async function memory(pid) {
  const own = [...(await tree(pid)).values()].filter((it) => it && !isFixture(it));
  return own.reduce((sum, it) => sum + it.memory, 0);
}

const servers = async () => [...(await processes()).values()].filter(isFixture).length;

let browser = await launch();

/** What a first visit costs. */
async function visit(link) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  await context.addInitScript(() => {
    globalThis.longest = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) globalThis.longest = Math.max(globalThis.longest, entry.duration);
    }).observe({ type: 'longtask' });
  });
  const page = await context.newPage();
  const tools = await context.newCDPSession(page);
  await tools.send('Network.enable');
  await tools.send('Performance.enable');
  const own = new URL(link).host;
  const cost = { bytes: 0, requests: 0, foreign: new Set() };
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (!url.protocol.startsWith('http')) return;
    if (url.host === own) cost.requests += 1;
    else cost.foreign.add(url.host);
  });
  tools.on('Network.loadingFinished', ({ encodedDataLength }) => (cost.bytes += encodedDataLength));
  // Hosts elsewhere are refused, so that a slow or missing network is not measured.
  await page.route((url) => url.host !== own, (route) => route.abort());
  await page.goto(link);
  const paint = await until('the first paint', () => page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime));
  await pause(1500);
  const metric = async (name) => (await tools.send('Performance.getMetrics')).metrics.find((it) => it.name === name).value;
  return { context, page, metric, cost: { ...cost, paint } };
}

/** The processor of the page and its longest task from an act until it rests for two seconds. */
async function burden({ page, metric }, act) {
  await page.evaluate(() => (globalThis.longest = 0));
  const before = await metric('TaskDuration');
  const end = Date.now() + PATIENCE;
  // A page that is busy answers nothing, so nothing is waited for without an end.
  const within = (what) => Promise.race([what, pause(Math.max(0, end - Date.now()))]);
  await within(act());
  let last = before;
  let rests = 0;
  while (rests < 4 && Date.now() < end) {
    await pause(500);
    const now = await within(metric('TaskDuration'));
    if (now === undefined) break;
    rests = now - last < 0.05 ? rests + 1 : 0;
    last = now;
  }
  if (rests < 4) return `not at rest after ${PATIENCE / 1000} s`;
  const longest = await page.evaluate(() => globalThis.longest);
  const nodes = await page.evaluate(() => document.querySelectorAll('*').length);
  return `${(last - before).toFixed(1)} s, ${longest.toFixed(0)} ms, ${nodes.toLocaleString('en')}`;
}

/** Starts a program and polls its page until the first byte of it is there. */
async function firstByte(begin) {
  const began = performance.now();
  const started = await begin();
  await until('the page', () => fetch(started.link().split('#')[0]).then((answer) => answer.ok, () => false), 30_000);
  return { ...started, took: performance.now() - began };
}

const rows = new Map();
const put = (what, side, value) => {
  rows.set(what, { ...rows.get(what), [side]: value });
  console.error(`# ${side}: ${what}: ${value}`);
};

async function measure(side, { begin, connect, burst, warm, end }) {
  const starts = [];
  for (let number = 0; number < 3; number += 1) {
    const tried = await firstByte(begin);
    starts.push(tried.took);
    tried.child.kill('SIGTERM');
    await tried.child.ended;
  }
  const started = await firstByte(begin);
  starts.push(started.took);
  put('start to the first byte of the page, best of 4', side, `${Math.min(...starts).toFixed(0)} ms`);
  put('memory, nothing opened yet', side, `${(await memory(started.child.pid)).toFixed(0)} MB`);
  const visited = await visit(started.link());
  const { bytes, requests, foreign, paint } = visited.cost;
  put('first contentful paint, new profile', side, `${paint.toFixed(0)} ms`);
  put('bytes of the first visit', side, bytes.toLocaleString('en'));
  put('requests of the first visit', side, requests);
  put('other hosts that are asked', side, foreign.size === 0 ? 'none' : [...foreign].join(', '));
  await connect(visited.page);
  put('memory with one server and a page', side, `${(await memory(started.child.pid)).toFixed(0)} MB`);
  for (const count of [200, 5000]) {
    const cost = await burden(visited, () => burst(visited.page, count));
    put(`${count.toLocaleString('en')} notices: processor of the page, longest task, nodes`, side, cost);
    // What a page that is frozen shows later is no measure of the next burst.
    if (cost.startsWith('not')) break;
  }
  // A frozen page would slow the rest down.
  await Promise.race([browser.close(), pause(5000)]);
  browser = await launch();
  const again = await visit(started.link());
  const before = await servers();
  for (let number = 0; number < RELOADS; number += 1) {
    await again.page.reload({ waitUntil: 'domcontentloaded' });
    await connect(again.page);
  }
  put(`servers that run after ${RELOADS} reloads`, side, `${await servers()} (${before} before)`);
  await again.context.close();
  await warm();
  started.child.kill('SIGTERM');
  await started.child.ended;
  await pause(2000);
  put('servers left after the end', side, await servers());
  await end?.();
}

async function median(call) {
  const times = [];
  for (let number = 0; number < CALLS; number += 1) {
    const began = performance.now();
    const child = call();
    const { code } = await child.ended;
    if (code !== 0) throw new Error(child.err);
    times.push(performance.now() - began);
  }
  return `${times.sort((a, b) => a - b)[CALLS >> 1].toFixed(0)} ms`;
}

/** The name of the server in the console: the last word of its command. */
const NAME = home.split('/').at(-1);
const WARM = 'call through a warm session, with the start of the command';

const ours = {
  async begin() {
    const child = run(options.program, ['open', '--no-browser', '--json', '--', ...FIXTURE]);
    await until('the link', () => child.out.includes('\n'), 30_000);
    return { child, link: () => JSON.parse(child.out).link };
  },
  connect: (page) => until('the server', () => page.evaluate(() => document.querySelector('.tab.on .dot.good') !== null), 20_000),
  async burst(page, count) {
    await page.evaluate(() => (location.hash = '#/s/1/timeline'));
    await pause(300);
    await page.evaluate((it) => fetch('api/s/1/call', {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${localStorage.getItem('tidings-token')}` },
      body: JSON.stringify({ list: 'tools', key: 'burst', values: { count: it } }),
    }), count);
  },
  async warm() {
    put(WARM, 'tidings', await median(() => run(options.program, ['call', `@${NAME}`, 'pid'])));
  },
};

const theirs = {
  async begin() {
    const port = await freePort();
    env.CLIENT_PORT = String(port);
    const child = run(process.execPath, [LAUNCHER, '--web', '--', ...FIXTURE]);
    const link = () => child.out.match(/http:\/\/127\.0\.0\.1:\d+\/?\?\S+/)?.[0] ?? `http://127.0.0.1:${port}/`;
    return { child, link };
  },
  async connect(page) {
    const toggle = page.locator('input[aria-label^="Connect or disconnect"]').first();
    await toggle.waitFor({ state: 'attached', timeout: 20_000 });
    if (!(await toggle.isChecked())) await toggle.click({ force: true });
    await until('the server', () => page.evaluate(() => document.querySelector('[aria-label="Disconnect from server"]') !== null), 30_000);
  },
  async burst(page, count) {
    await page.getByText('Tools', { exact: true }).first().click();
    // The result of the last call stands in place of the form until another tool is chosen.
    for (const tool of ['wipe', 'burst']) await page.getByRole('button', { name: tool, exact: true }).first().click({ timeout: 60_000 });
    const execute = page.getByRole('button', { name: 'Execute Tool' });
    await execute.waitFor({ timeout: 60_000 });
    const input = page.locator('input[type=text]').filter({ visible: true }).last();
    await input.fill(String(count), { timeout: 30_000 });
    // Clicked in the page: a click from outside waits until the page rests.
    await execute.evaluate((it) => void setTimeout(() => it.click(), 0));
  },
  async warm() {
    // A connection is named after the first word, which may be no path.
    const connected = run(process.execPath, [MCPDO, 'connect', 'node', ...FIXTURE.slice(1)]);
    const { code } = await connected.ended;
    await connected.drained;
    if (code !== 0) throw new Error(connected.err);
    put(WARM, 'inspector', await median(() => run(process.execPath, [MCPDO, '@node', 'tools/call', 'pid'])));
    await run(process.execPath, [MCPDO, 'daemon', 'stop']).ended;
  },
};

try {
  await measure('tidings', ours);
  await measure('inspector', theirs);
} finally {
  for (const child of children) killGroup(child);
  await browser.close();
  await rm(home, { recursive: true, force: true });
}
console.log('| | tidings | Inspector 2.12.0 |\n| --- | ---: | ---: |');
for (const [what, { tidings, inspector }] of rows) console.log(`| ${what} | ${tidings ?? '–'} | ${inspector ?? '–'} |`);
process.exit(0);
