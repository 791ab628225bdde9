// The page of `tidings open` in a real browser: every screen in both themes, by keyboard, under
// bursts, with large results, across a killed server. What holds on a busy machine fails the run;
// times are printed.
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installNode } from '../install.mjs';
import { start } from '../process.mjs';
import { parse } from '../tally.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const options = parse(process.argv.slice(2), 'program');
await installNode(HERE);
await mkdir(join(HERE, 'pictures'), { recursive: true });
const { launch, open, tab, until, axe, overflow, pause } = await import('./browser.mjs');
const { parts } = await import('./parts.mjs');

/** The budget of the page. */
const FIRST = 45_000;
const REQUESTS = 24;
/** What a burst of 5,000 notices may cost: seconds of the page's processor, longest task in ms. */
const CPU = 1.6;
const LONG_TASK = 200;
const NODES = 1_200;

const SIZES = [[1440, 900], [1024, 768], [390, 844]];
const FIXTURE = ['--', process.execPath, join(HERE, 'fixture.mjs')];
const printed = [];
let passed = 0;
let failed = 0;

/** `ONLY='hub|tabs'` runs the checks whose names contain one of the words. */
async function check(name, run) {
  if (!(process.env.ONLY ?? '').split('|').some((word) => name.includes(word))) return;
  const began = Date.now();
  try {
    const words = await run();
    passed += 1;
    console.log(`ok   ${name}${words ? `: ${words}` : ''} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}: ${error.message}`);
  }
}

function must(isTrue, words) {
  if (!isTrue) throw new Error(words);
}

const console_ = await open(options.program, process.env.WEB_ROOT ? ['--web-root', process.env.WEB_ROOT, ...FIXTURE] : FIXTURE);
const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'dark' });
await context.addInitScript(() => {
  globalThis.longest = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) globalThis.longest = Math.max(globalThis.longest, entry.duration);
  }).observe({ type: 'longtask' });
});
const page = await tab(context);
const text = (selector) => page.evaluate((it) => document.querySelector(it)?.textContent ?? '', selector);
const has = (selector, words) => until(`${selector} with “${words}”`, async () => (await text(selector)).includes(words));
const go = (place) => page.evaluate((it) => (location.hash = it), `#/s/1/${place}`);
const picture = (name) => page.screenshot({ path: join(HERE, 'pictures', `${name}.png`) });

async function call(tool, values = {}) {
  await go(`tools/${tool}`);
  await until(`the form of ${tool}`, async () => (await text('.detail h2')) === tool);
  for (const [name, value] of Object.entries(values)) await page.fill(`#field_${name}`, String(value));
  const before = await page.evaluate(() => document.querySelectorAll('.run').length);
  await page.click('.acts .primary');
  return before;
}

async function called(tool, values) {
  const before = await call(tool, values);
  await until(`the result of ${tool}`, () => page.evaluate((it) =>
    document.querySelectorAll('.run').length > it && !document.querySelector('.run .state-runs'), before), 20_000);
}

await check('the page is small, whole and its own', async () => {
  const files = [];
  page.on('response', (answer) => {
    if (!new URL(answer.url()).pathname.startsWith('/api/')) files.push(answer.headerValue('content-length'));
  });
  await page.goto(console_.link);
  await has('.tab.on', 'fixture');
  await until('the first list', () => page.evaluate(() => document.querySelector('main h1') !== null));
  const requests = files.length;
  const bytes = (await Promise.all(files)).reduce((sum, length) => sum + Number(length), 0);
  must(page.hosts.size === 1, `asked ${[...page.hosts]}`);
  must(bytes > 5000 && bytes <= FIRST, `${bytes} bytes before the first view`);
  must(requests <= REQUESTS, `${requests} requests`);
  must(!page.url().includes('token'), 'the token stays in the address');
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime);
  printed.push(['link printed after', `${console_.took.toFixed(0)} ms`], ['first contentful paint', `${paint.toFixed(0)} ms`], ['page, compressed', `${bytes} bytes in ${requests} requests`]);
  return `${bytes} bytes, ${requests} requests`;
});

await check('a notice becomes new text without a reload', async () => {
  await go('watched');
  await page.fill('[aria-label="watch a URI"]', 'note:all');
  await page.click('form.add button');
  await has('.watch-row', 'note:all');
  await has('.content', 'the first line');
  await called('write', { text: 'a second line' });
  await go('watched/note%3Aall');
  await has('.diff', 'a second line');
  await has('.facts', 'notice to content');
  await until('the cause in the timeline', () => page.evaluate(() => [...document.querySelectorAll('.what')].some((it) => it.textContent.startsWith('content v1'))));
});

await check('a form names what does not fit, and sends what does', async () => {
  await go('tools/write');
  await until('the form', () => page.evaluate(() => document.querySelector('#field_at_line') !== null));
  await page.fill('#field_at_line', '9');
  await has('.field.wrong .problem', '6');
  await page.fill('#field_at_line', '3');
  await page.fill('#field_text', 'three');
  await page.fill('#field_password', 'hunter2');
  await until('no problem', () => page.evaluate(() => document.querySelector('.problem') === null));
  must(!(await text('.command')).includes('hunter2'), 'the command line shows a secret');
  await page.keyboard.press('Control+Enter');
  await has('.column[aria-label="result"]', 'written');
  must(!(await text('.runs')).includes('hunter2'), 'the last calls show a secret');
  await page.getByRole('button', { name: 'set off' }).click();
  await has('.effects', 'resources/updated');
});

await check('a destructive tool asks first', async () => {
  await call('wipe');
  await has('.acts .primary', 'destructive');
  await page.click('.acts .primary');
  await has('.column[aria-label="result"]', 'empty');
});

await check('a question is answered from the inbox, and belongs to its call', async () => {
  await call('ask');
  await has('.asks', '1 question');
  await page.keyboard.press('Escape');
  await page.keyboard.press('7');
  await has('.question', 'Which port');
  await has('.question .first', 'ask');
  await picture('inbox');
  must((await axe(page)).length === 0, `axe: ${await axe(page)}`);
  await page.fill('.question #field_port', '4');
  await page.click('.question .primary');
  await has('.question', 'accepted');
  await go('tools/ask');
  await has('.column[aria-label="result"]', 'port 4');
});

await check('progress is shown, and a call can be cancelled', async () => {
  await call('slow');
  await has('.running', 'step');
  await page.click('.running button');
  await has('.column[aria-label="result"]', 'cancelled');
});

await check('every screen in both themes passes axe, and none is wider than its window', async () => {
  const screens = ['watched/note%3Aall', 'timeline', 'tools', 'tools/write', 'resources/note%3Aall', 'templates/note%3Aline%2F%7Bnumber%7D', 'prompts/review', 'overview', 'cache', '/servers', '/inbox'];
  const wrong = [];
  for (const theme of ['dark', 'light']) {
    await page.emulateMedia({ colorScheme: theme });
    for (const screen of screens) {
      if (screen.startsWith('/')) await page.evaluate((it) => (location.hash = `#${it}`), screen);
      else await go(screen);
      await until(screen, () => page.evaluate(() => document.querySelector('main h1, main h2') !== null));
      await pause(250);
      for (const found of await axe(page)) wrong.push(`${theme} ${screen}: ${found}`);
      const name = screen.replace(/\W+/g, '-').replace(/^-/, '');
      for (const [width, height] of theme === 'light' ? [...SIZES, [3840, 2160]] : SIZES.slice(0, 1)) {
        await page.setViewportSize({ width, height });
        await pause(60);
        const over = await overflow(page);
        if (over > 0) wrong.push(`${screen} is ${over} px wider than ${width}`);
        if (width < 3000) await picture(`${theme}-${width}-${name}`);
      }
      await page.setViewportSize({ width: 1440, height: 900 });
    }
  }
  await page.setViewportSize({ width: 390, height: 844 });
  await go('watched/note%3Aall');
  await pause(250);
  for (const found of await axe(page)) wrong.push(`phone: ${found}`);
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.emulateMedia({ colorScheme: 'dark' });
  must(wrong.length === 0, `\n  ${wrong.join('\n  ')}`);
});

await check('the keyboard reaches every part', async () => {
  await go('watched');
  for (const [key, words] of [['0', 'Fixture'], ['1', 'tools'], ['2', 'resources'], ['3', 'templates'], ['4', 'prompts'], ['5', 'Watched'], ['6', 'Timeline'], ['7', 'Inbox'], ['8', 'Cache'], ['s', 'Servers']]) {
    await page.keyboard.press(key);
    await has('main h1', words);
  }
  await page.keyboard.press('1');
  await has('main h1', 'tools');
  await page.keyboard.press('/');
  await page.keyboard.type('wri');
  await until('one row', () => page.evaluate(() => document.querySelectorAll('.list .row').length === 1));
  await page.keyboard.press('Escape');
  await page.keyboard.press('j');
  await has('.detail h2', 'write');
  await page.keyboard.press('?');
  await has('dialog', 'Keys');
  must((await axe(page)).length === 0, `axe: ${await axe(page)}`);
  await page.keyboard.press('Escape');
  await until('no help', () => page.evaluate(() => document.querySelector('dialog') === null));
});

await check('a few letters find a tool, and the cache can be cleared', async () => {
  await page.keyboard.press('Control+k');
  await until('the palette', () => page.evaluate(() => document.querySelector('dialog.palette[open]') !== null));
  await page.keyboard.type('wrt');
  await has('.place.chosen', 'write');
  must((await axe(page)).length === 0, `axe: ${await axe(page)}`);
  await page.keyboard.press('Enter');
  await has('.detail h2', 'write');
  await go('cache');
  await has('table', 'note:all');
  await has('table', 'until a notice');
  await page.getByRole('button', { name: 'Clear all' }).click();
  await has('main', 'Nothing is kept');
});

await check('5,000 notices within a second do not freeze the page, and all are counted', async () => {
  await go('timeline');
  await has('main h1', 'Timeline');
  await pause(300);
  const before = await page.metric('TaskDuration');
  await page.evaluate(() => (globalThis.longest = 0));
  const post = (path, body) => page.evaluate(([at, it]) => fetch(at, { method: 'POST', headers: { 'content-type': 'application/json', authorization: `Bearer ${localStorage.getItem('tidings-token')}` }, body: JSON.stringify(it) }).then((answer) => answer.json()), [path, body]);
  const notices = () => page.evaluate(() => Number([...document.querySelectorAll('.chip')].find((it) => it.textContent === 'notices').title.replace(/\D/g, '')));
  const had = await notices();
  await post('api/s/1/call', { list: 'tools', key: 'burst', values: { count: 5000 } });
  await until('all notices', async () => (await notices()) >= had + 5000, 20_000);
  const cpu = (await page.metric('TaskDuration')) - before;
  const longest = await page.evaluate(() => globalThis.longest);
  const nodes = await page.evaluate(() => document.querySelectorAll('*').length);
  printed.push(['5,000 notices: processor of the page', `${cpu.toFixed(2)} s`], ['5,000 notices: longest task', `${longest.toFixed(0)} ms`], ['5,000 notices: nodes', nodes]);
  must((await notices()) === had + 5000, `${(await notices()) - had} counted`);
  must(cpu <= CPU, `${cpu.toFixed(2)} s of processor`);
  must(longest <= LONG_TASK, `a task of ${longest.toFixed(0)} ms`);
  must(nodes <= NODES, `${nodes} nodes`);
  return `${cpu.toFixed(2)} s, longest task ${longest.toFixed(0)} ms`;
});

await check('a result of ten megabytes is shown in windows', async () => {
  await called('big');
  await page.evaluate(() => (globalThis.longest = 0));
  await has('.column[aria-label="result"] .tree', 'needle');
  const nodes = await page.evaluate(() => document.querySelectorAll('*').length);
  await page.fill('.column[aria-label="result"] .find', 'haystack');
  await has('.found', '1 places');
  const longest = await page.evaluate(() => globalThis.longest);
  await page.collect();
  printed.push(['10 MB result: heap of the page', `${((await page.metric('JSHeapUsedSize')) / 1e6).toFixed(1)} MB`], ['10 MB result: nodes', nodes], ['10 MB result: longest task', `${longest.toFixed(0)} ms`]);
  must(nodes <= NODES, `${nodes} nodes`);
  must(longest <= LONG_TASK, `a task of ${longest.toFixed(0)} ms`);
});

await check('ten thousand tools are a list like any other', async () => {
  await called('many');
  await go('tools');
  await until('all tools', async () => (await text('.head .faint')).includes('10008'), 20_000);
  const nodes = await page.evaluate(() => document.querySelectorAll('*').length);
  await page.fill('[aria-label="filter tools"]', 'extra_9999');
  await until('one row', () => page.evaluate(() => document.querySelectorAll('.list .row').length === 1));
  must(nodes <= NODES, `${nodes} nodes`);
  printed.push(['10,000 tools: nodes', nodes]);
  return `${nodes} nodes`;
});

await check('a reload and seven tabs show the same', async () => {
  await go('watched/note%3Aall');
  await has('.facts', 'changes');
  await page.reload();
  await has('.column h2', 'note:all');
  const tabs = [];
  for (let number = 0; number < 6; number += 1) {
    const other = await tab(context);
    await other.goto(page.url());
    tabs.push(other);
  }
  for (const other of tabs) {
    await until('a tab', () => other.evaluate(() => (document.querySelector('.facts')?.textContent ?? '').includes('changes')), 20_000);
    must(other.wrong.length === 0, other.wrong.join(', '));
    await other.close();
  }
});

await check('a killed server leaves its evidence and comes back', async () => {
  await called('pid');
  await until('the process', async () => /\d+/.test(await text('.block pre')));
  process.kill(Number((await text('.block pre')).match(/\d+/)[0]), 'SIGKILL');
  await go('overview');
  await until('the loss', async () => /Losses\d/.test(await text('.cards')));
  await go('watched/note%3Aall');
  await until('its versions', () => page.evaluate(() => document.querySelectorAll('.version').length > 2));
  await until('connected again', () => page.evaluate(() => document.querySelector('.tab.on .dot.good') !== null), 20_000);
  await go('tools');
  await until('the tools', async () => Number((await text('.head .faint')) || 0) >= 8);
});

await check('the page of a server shows who listens and what became of each change', async () => {
  const server = start(options.program, ['serve', '--demo', '--every', '0.2', '--console', '--json', '--http', '127.0.0.1:0'], { env: { ...process.env, TIDINGS_TOKEN: undefined } });
  await until('the link', () => server.out.includes('\n'));
  const { console: link } = JSON.parse(server.out.split('\n')[0]);
  const apart = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'dark' });
  const other = await tab(apart);
  await other.goto(link.replace('/console/', '/console'));
  const shows = (words) => until(words, () => other.evaluate((it) => document.querySelector('main')?.textContent.includes(it), words));
  await until('the hub among the servers', () => other.evaluate(() => document.querySelector('.tab.on .dot.good') !== null));
  must(!other.url().includes('token') && new URL(other.url()).pathname === '/console/', other.url());
  await other.fill('[aria-label="watch a URI"]', 'station://log');
  await other.click('form.add button');
  await shows('station://log');
  await other.keyboard.press('Escape');
  await other.keyboard.press('h');
  await shows('announced to 1');
  await shows('Listeners');
  const wrong = [];
  for (const theme of ['dark', 'light']) {
    await other.emulateMedia({ colorScheme: theme });
    for (const [width, height] of SIZES) {
      await other.setViewportSize({ width, height });
      await pause(250);
      for (const found of await axe(other)) wrong.push(`${theme} ${width}: ${found}`);
      if ((await overflow(other)) > 0) wrong.push(`wider than ${width}`);
      await other.screenshot({ path: join(HERE, 'pictures', `${theme}-${width}-hub.png`) });
    }
  }
  await other.keyboard.press('s');
  await shows('one hub');
  must((await other.evaluate(() => document.querySelector('form.add'))) === null, 'a server could be added');
  server.kill('SIGTERM');
  const { code } = await server.ended;
  must(code === 0, `exit code ${code}`);
  must(other.hosts.size === 1, `asked ${[...other.hosts]}`);
  must(wrong.length === 0, `\n  ${wrong.join('\n  ')}`);
  await apart.close();
});

await parts({ check, must, page, context, text, has, go, called, picture, link: console_.link });

await check('without its link the page says what to do, and shows nothing', async () => {
  const stranger = await browser.newContext();
  const other = await tab(stranger);
  await other.goto(console_.link.split('#')[0]);
  await until('the words', () => other.evaluate(() => document.body.textContent.includes('tidings open')));
  must((await axe(other)).length === 0, 'axe');
  await stranger.close();
});

await check('fifty reloads and the end leave no process', async () => {
  for (let number = 0; number < 50; number += 1) await page.reload({ waitUntil: 'domcontentloaded' });
  await has('.tab.on', 'fixture');
  const pid = console_.child.pid;
  console_.child.kill('SIGTERM');
  const { code } = await console_.child.ended;
  must(code === 0, `exit code ${code}`);
  let isLeft = true;
  try {
    process.kill(-pid, 0);
  } catch {
    isLeft = false;
  }
  must(!isLeft, 'its process group has members');
  await has('.link-state', 'ended');
});

await check('nothing went wrong in the page', async () => {
  const wrong = page.wrong.filter((it) => !/ERR_CONNECTION_REFUSED|Failed to fetch|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|ERR_INCOMPLETE/.test(it));
  must(wrong.length === 0, wrong.slice(0, 5).join('\n'));
});

await browser.close();
for (const [what, number] of printed) console.log(`     ${what}: ${number}`);
console.log(`page: ${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
