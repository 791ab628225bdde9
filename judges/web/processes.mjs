// The processes of `tidings open`: one console a user, servers handed over, sessions that commands
// use, nothing left behind; and the page with the reference server as its second server.
import { mkdir, mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installNode } from '../install.mjs';
import { killGroup, start } from '../process.mjs';
import { parse } from '../tally.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const SERVERS = join(HERE, '..', 'servers', 'typescript');
const options = parse(process.argv.slice(2), 'program');
await installNode(HERE);
await installNode(SERVERS);
await mkdir(join(HERE, 'pictures'), { recursive: true });
const { launch, tab, until, axe, overflow, pause } = await import('./browser.mjs');

const FIXTURE = ['--', process.execPath, join(HERE, 'fixture.mjs')];
const EVERYTHING = ['--', process.execPath, join(SERVERS, 'node_modules', '@modelcontextprotocol', 'server-everything', 'dist', 'index.js'), 'stdio'];
/** A warm call with a debug build on a busy machine; the goal of a release build is 30 ms. */
const WARM = 300;

let passed = 0;
let failed = 0;

async function check(name, run) {
  if (!name.includes(options.only)) return;
  const began = Date.now();
  const home = await mkdtemp(join(tmpdir(), 'tidings-web-'));
  const env = { ...process.env, TIDINGS_TOKEN: '', XDG_RUNTIME_DIR: join(home, 'run'), XDG_DATA_HOME: join(home, 'data'), HOME: home };
  const user = new User(env);
  try {
    const words = await run(user);
    passed += 1;
    console.log(`ok   ${name}${words ? `: ${words}` : ''} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}: ${error.message}`);
  }
  for (const child of user.children) killGroup(child);
  await rm(home, { recursive: true, force: true });
}

function must(isTrue, words) {
  if (!isTrue) throw new Error(words);
}

/** A user with a runtime directory of their own. */
class User {
  constructor(env) {
    this.env = env;
    this.children = [];
  }

  start(words) {
    const child = start(options.program, words, { env: this.env });
    this.children.push(child);
    return child;
  }

  /** Starts the console. */
  async console(words) {
    const child = this.start(['open', '--no-browser', '--json', ...words]);
    await until('the link', () => child.out.includes('\n') || child.exitCode !== null);
    return { child, link: JSON.parse(child.out).link };
  }

  /** Runs a command to its end. */
  async run(words) {
    const child = this.start(words);
    const { code } = await child.ended;
    await child.drained;
    return { code, out: child.out, err: child.err };
  }
}

/** The children of all processes, without those that ended and wait to be collected. */
async function processes() {
  const found = new Map();
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '');
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (stat && state !== 'Z') found.set(Number(name), Number(parent));
  }
  return found;
}

async function descendants(pid) {
  const all = await processes();
  const found = [];
  for (let next = [pid]; next.length > 0;) {
    next = [...all].filter(([, parent]) => next.includes(parent)).map(([child]) => child);
    found.push(...next);
  }
  return found;
}

async function gone(pids) {
  await until(`the end of ${pids}`, async () => {
    const all = await processes();
    return pids.every((pid) => !all.has(pid));
  });
}

const browser = await launch();

/** A page with its own storage. */
async function visit(link, place = '') {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'dark' });
  const page = await tab(context);
  await page.goto(link);
  await until('a server', () => page.evaluate(() => document.querySelector('.tab.on .dot.good') !== null), 20_000);
  if (place) await page.evaluate((it) => (location.hash = it), place);
  return { context, page };
}

await check('a second open hands its server over, and its page shows it', async (user) => {
  const { link } = await user.console(FIXTURE);
  const { context, page } = await visit(link);
  const second = await user.run(['open', '--no-browser', '--json', ...EVERYTHING]);
  must(second.code === 0, second.err);
  const opened = JSON.parse(second.out);
  must(opened.link === link, 'it has another link');
  await until('two connected servers', () => page.evaluate(() => document.querySelectorAll('.tab .dot.good').length === 2), 20_000);
  await context.close();
});

await check('a command uses the session, and the page shows that it did', async (user) => {
  const { link } = await user.console(FIXTURE);
  const { context, page } = await visit(link);
  const own = (await user.run(['call', '@fixture.mjs', 'pid'])).out;
  const times = [];
  for (let number = 0; number < 20; number += 1) {
    const began = performance.now();
    const { code, out, err } = await user.run(['call', '@fixture.mjs', 'pid']);
    times.push(performance.now() - began);
    must(code === 0 && out === own, `${code} ${out} ${err}`);
  }
  times.sort((a, b) => a - b);
  must(times[10] <= WARM, `half of the calls took more than ${times[10].toFixed(0)} ms`);
  await page.evaluate(() => (location.hash = '#/s/1/timeline'));
  await until('a row by the command', () => page.evaluate(() => [...document.querySelectorAll('.log-row')].some((it) => it.textContent.includes('by cli'))));
  await context.close();
  return `${times[10].toFixed(0)} ms, with the start of the command`;
});

await check('fifty reloads and twenty closed pages start and leave nothing', async (user) => {
  const { child, link } = await user.console(FIXTURE);
  await user.run(['open', '--no-browser', ...EVERYTHING]);
  const { context, page } = await visit(link);
  const before = await descendants(child.pid);
  must(before.length >= 2, `${before.length} processes serve`);
  for (let number = 0; number < 50; number += 1) await page.reload({ waitUntil: 'domcontentloaded' });
  for (let number = 0; number < 20; number += 1) {
    const other = await tab(context);
    await other.goto(page.url(), { waitUntil: 'domcontentloaded' });
    await other.close();
  }
  await until('the page', () => page.evaluate(() => document.querySelector('.tab.on .dot.good') !== null));
  const after = await descendants(child.pid);
  must(`${after}` === `${before}`, `${before} became ${after}`);
  await context.close();
  child.kill('SIGHUP');
  const { code } = await child.ended;
  must(code === 0, `exit code ${code}`);
  await gone([child.pid, ...before]);
});

await check('each signal ends the console and what it started', async (user) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    const { child, link } = await user.console(FIXTURE);
    const { context } = await visit(link);
    const pids = await descendants(child.pid);
    child.kill(signal);
    const { code } = await child.ended;
    must(code === 0 && pids.length > 0, `${signal}: exit code ${code}, ${pids.length} processes`);
    await gone(pids);
    await context.close();
  }
});

await check('a killed console leaves no server, and the next one starts as usual', async (user) => {
  const { child, link } = await user.console(FIXTURE);
  const { context } = await visit(link);
  const pids = await descendants(child.pid);
  child.kill('SIGKILL');
  await child.ended;
  await gone(pids);
  const next = await user.console(FIXTURE);
  must((await user.run(['tools', '@fixture.mjs'])).code === 0, 'its session is not found');
  next.child.kill('SIGTERM');
  must((await next.child.ended).code === 0, 'it did not end');
  await context.close();
});

await check('a session that is killed and started again is one process, with its evidence', async (user) => {
  const { child, link } = await user.console(FIXTURE);
  const { context, page } = await visit(link, '#/s/1/overview');
  const before = await descendants(child.pid);
  for (const pid of before) process.kill(pid, 'SIGKILL');
  await until('the loss', () => page.evaluate(() => /Losses\d/.test(document.querySelector('.cards')?.textContent ?? '')));
  await until('the next process', async () => (await descendants(child.pid)).length === before.length, 20_000);
  await until('connected again', () => page.evaluate(() => document.querySelector('.tab.on .dot.good') !== null), 20_000);
  must(!(await descendants(child.pid)).some((pid) => before.includes(pid)), 'a killed process lives');
  await context.close();
});

await check('a saved session is opened without its server', async (user) => {
  const { child, link } = await user.console(FIXTURE);
  const { context, page } = await visit(link, '#/s/1/timeline');
  const saving = page.waitForEvent('download');
  await page.getByRole('button', { name: 'save' }).click();
  const file = join(user.env.HOME, (await saving).suggestedFilename());
  await (await saving).saveAs(file);
  child.kill('SIGTERM');
  await child.ended;
  const again = await user.console([file]);
  // The same port, so only the fragment differs: the page loads itself again.
  await page.goto(again.link);
  await until('the saved server', () => page.evaluate(() => document.querySelector('.tab.on')?.textContent.includes('saved')).catch(() => false), 20_000);
  await page.evaluate(() => (location.hash = '#/s/1/timeline'));
  await until('its rows', () => page.evaluate(() => document.querySelectorAll('.log-row').length > 3));
  await page.evaluate(() => (location.hash = '#/s/1/tools/write'));
  await until('a tool', () => page.evaluate(() => document.querySelector('.detail h2')?.textContent === 'write'));
  await page.evaluate(() => (location.hash = '#/servers'));
  await until('its state', () => page.evaluate(() => document.querySelector('.servers')?.textContent.includes('saved session')));
  must((await axe(page)).length === 0, `axe: ${await axe(page)}`);
  await context.close();
});

await check('every screen works with the reference server', async (user) => {
  const { link } = await user.console(EVERYTHING);
  const { context, page } = await visit(link);
  const has = (words) => until(words, () => page.evaluate((it) => document.querySelector('main')?.textContent.includes(it), words), 20_000);
  const screens = [
    ['overview', 'Losses'], ['tools', 'tools'], ['tools/echo', 'echo'], ['tools/get-sum', 'get-sum'], ['resources', 'resources'],
    ['templates', 'templates'], ['prompts', 'prompts'], ['prompts/simple-prompt', 'simple-prompt'],
    ['watched', 'Watched'], ['timeline', 'Timeline'], ['cache', 'Cache'],
  ];
  const wrong = [];
  for (const theme of ['dark', 'light']) {
    await page.emulateMedia({ colorScheme: theme });
    for (const [screen, words] of screens) {
      await page.evaluate((it) => (location.hash = `#/s/1/${it}`), screen);
      await has(words);
      await pause(150);
      for (const found of await axe(page)) wrong.push(`${theme} ${screen}: ${found}`);
      if ((await overflow(page)) > 0) wrong.push(`${screen} is too wide`);
    }
  }
  await page.evaluate(() => (location.hash = '#/s/1/tools/echo'));
  await until('the form', () => page.evaluate(() => document.querySelector('#field_message') !== null));
  await page.fill('#field_message', 'hello there');
  await page.keyboard.press('Control+Enter');
  await has('Echo: hello there');
  await page.evaluate(() => (location.hash = '#/s/1/resources'));
  await until('resources', () => page.evaluate(() => document.querySelectorAll('.list .row').length > 0));
  await page.keyboard.press('j');
  await until('a content', () => page.evaluate(() => document.querySelector('.detail h2') !== null));
  await page.screenshot({ path: join(HERE, 'pictures', 'everything.png') });
  const problems = page.wrong.filter((it) => !/Failed to fetch|ERR_/.test(it));
  must(wrong.length === 0 && problems.length === 0, `\n  ${[...wrong, ...problems].join('\n  ')}`);
  await context.close();
});

await browser.close();
console.log(`processes: ${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
