// The browser and the console under judgement: started for a run, ended with it.
import { createRequire } from 'node:module';
import { readFile } from 'node:fs/promises';
import { chromium } from 'playwright-core';
import { start } from '../process.mjs';

const FLAGS = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync',
];
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** Waits until `look` returns something true. */
export async function until(what, look, ms = 10_000) {
  const end = Date.now() + ms;
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    if (Date.now() > end) throw new Error(`${what}: not within ${ms} ms`);
    await pause(15);
  }
}

/** Starts `tidings open` with a server, and returns its process and link. */
export async function open(program, words) {
  const began = performance.now();
  const child = start(program, ['open', '--new', '--no-browser', '--json', ...words], { env: { ...process.env, TIDINGS_TOKEN: '' } });
  await until('the link', () => child.out.includes('\n'));
  return { child, link: JSON.parse(child.out).link, took: performance.now() - began };
}

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: FLAGS });

/** A tab that remembers everything that went wrong in it. */
export async function tab(context) {
  const page = await context.newPage();
  page.wrong = [];
  page.hosts = new Set();
  page.on('pageerror', (error) => page.wrong.push(error.message));
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && page.wrong.push(`${message.text()} ${message.location().url}`));
  page.on('request', (request) => page.hosts.add(new URL(request.url()).host));
  const tools = await context.newCDPSession(page);
  await tools.send('Performance.enable');
  page.collect = () => tools.send('HeapProfiler.collectGarbage');
  page.metric = async (name) => {
    const { metrics } = await tools.send('Performance.getMetrics');
    return metrics.find((it) => it.name === name).value;
  };
  return page;
}

/** What axe finds, of any impact. Under Trusted Types it has to be evaluated as source. */
export async function axe(page) {
  if (!axe.source) axe.source = await readFile(AXE, 'utf8');
  await page.evaluate(axe.source);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.map((it) => `${it.id} (${it.impact}): ${it.nodes.slice(0, 3).map((node) => node.target.join(' ')).join(', ')}`)));
  return found;
}

/** Where the page may go wrong sideways. */
export const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
