// Parts of the page that are more than one screen: the connection doctor, the axis of the timeline,
// Markdown, marks of lists, versions side by side, what a hidden tab asks.
import { createServer } from 'node:http';
import { axe, pause, tab, until } from './browser.mjs';

/** A port with an HTTP server that answers everything with one status. */
async function answering(status) {
  const server = createServer((_, answer) => answer.writeHead(status).end());
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return server;
}

/**
 * Runs the checks of the parts.
 * @param {{ check: Function, must: Function, page: any, context: any, text: Function, has: Function,
 *   go: Function, called: Function, picture: Function, link: string }} judge
 */
export async function parts({ check, must, page, context, text, has, go, called, picture, link }) {
  const token = link.split('#token=')[1];
  const base = link.split('#')[0];
  const ask = async (method, path, body) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const answer = await fetch(`${base}api/${path}`, { method, headers, body: body && JSON.stringify(body) });
    must(answer.ok, `${path}: ${answer.status}`);
    return answer.json();
  };
  const count = (selector) => page.evaluate((it) => document.querySelectorAll(it).length, selector);

  await check('the doctor says where a connection stopped, and what to do', async () => {
    const closed = await answering(200);
    const nobody = closed.address().port;
    await new Promise((done) => closed.close(done));
    const locked = await answering(401);
    const ids = [];
    await page.evaluate(() => (location.hash = '#/servers'));
    for (const [port, step, advice] of [[nobody, 'connect', 'running'], [locked.address().port, 'authorisation', 'token']]) {
      await has('main h1', 'Servers');
      await page.fill('[aria-label="URL or name of a server"]', `http://127.0.0.1:${port}/mcp`);
      await page.keyboard.press('Enter');
      const failed = `li.server:nth-child(${ids.length + 2}) .doctor`;
      await until(`the step ${step}`, async () => (await text(`${failed} li.failed b`)) === step, 20_000);
      await has(`${failed} .advice`, advice);
      ids.push((await ask('GET', 'state?also=servers')).things.servers.at(-1).id);
    }
    await picture('doctor');
    for (const theme of ['dark', 'light']) {
      await page.emulateMedia({ colorScheme: theme });
      const found = await axe(page);
      must(found.length === 0, `axe, ${theme}: ${found}`);
    }
    await page.emulateMedia({ colorScheme: 'dark' });
    for (const id of ids) await ask('DELETE', `s/${id}`);
    await until('one server', async () => (await count('li.server')) === 1);
    // The page may have asked about a server at the moment that it was removed.
    page.wrong = page.wrong.filter((it) => !it.endsWith('/doctor'));
    locked.closeAllConnections();
    locked.close();
    const program = await ask('GET', 's/1/doctor');
    must(program.steps.every((step) => step.state === 'good'), JSON.stringify(program.steps));
    must(program.steps.map((step) => step.name).join(' ') === 'found starts speaks handshake', 'the steps of a program');
  });

  await check('a part of the axis limits the rows, with the keys and with the pointer', async () => {
    await called('pid');
    await go('timeline');
    await has('main h1', 'Timeline');
    const shown = async () => (await text('[aria-label="rows"]')).replace(/(\d) (?=\d)/g, '$1').split(' of ').map(Number);
    const chosen = '.timeline .head button.chip.on[title="show all times"]';
    const isDrawn = () => page.evaluate(() => {
      const canvas = document.querySelector('.lane-chart canvas');
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const bytes = copy.getImageData(0, 14, canvas.width, canvas.height - 14).data;
      const colours = new Set();
      for (let at = 0; at < bytes.length; at += 4) if (bytes[at + 3] === 255) colours.add(`${bytes[at]} ${bytes[at + 1]} ${bytes[at + 2]}`);
      return colours.size >= 3;
    });
    await until('the marks', isDrawn);
    await until('all rows', async () => (await shown())[0] > 5);
    const [before] = await shown();
    await page.focus('.lane-chart canvas');
    for (let step = 0; step < 30; step += 1) await page.keyboard.press('ArrowLeft');
    await until('fewer rows', async () => (await shown())[0] < before && (await count(chosen)) === 1);
    await page.keyboard.press('Escape');
    await until('all rows', async () => (await count(chosen)) === 0);
    const box = await page.locator('.lane-chart canvas').boundingBox();
    await page.mouse.move(box.x + 10, box.y + 30);
    await page.mouse.down();
    await page.mouse.move(box.x + 40, box.y + 30, { steps: 4 });
    await page.mouse.up();
    await until('a chosen time', async () => (await count(chosen)) === 1);
    await page.click(chosen);
    await until('all rows', async () => (await shown())[0] >= before);
    await page.keyboard.press('f');
  });

  await check('Markdown is drawn, and HTML in it is text', async () => {
    await go('overview');
    await has('.markdown strong', 'note');
    await has('.markdown', '<b onclick=');
    must((await page.getAttribute('.markdown a', 'href')) === 'http://127.0.0.1/help', 'the link');
    must((await page.getAttribute('.markdown a', 'rel')) === 'noreferrer', 'the link tells where it comes from');
    must((await count('.markdown b, .markdown script')) === 0, 'a text became markup');
    await go('prompts/review');
    await until('the form', async () => (await count('#field_what')) === 1);
    await page.fill('#field_what', 'the *whole* note');
    await page.click('.acts .primary');
    await has('.block .markdown em', 'whole');
  });

  await check('what was added is marked, and what is gone is struck out for a while', async () => {
    await go('tools');
    await ask('POST', 's/1/call', { list: 'tools', key: 'many', values: { count: 2 } });
    await has('.item .badge.good', 'new');
    await ask('POST', 's/1/call', { list: 'tools', key: 'many', values: { count: 1 } });
    await has('.item.gone', 'extra_1');
    await picture('marks');
    await until('nothing struck out', async () => (await count('.item.gone')) === 0, 15_000);
    await ask('POST', 's/1/call', { list: 'tools', key: 'many', values: { count: 0 } });
  });

  await check('any two versions can be compared', async () => {
    await ask('POST', 's/1/watch', { uri: 'note:all' });
    for (const line of ['compared a', 'compared b', 'compared c']) {
      await ask('POST', 's/1/call', { list: 'tools', key: 'write', values: { text: line } });
      await pause(150);
    }
    await go('watched/note%3Aall');
    await has('.diff', 'compared c');
    await until('four versions', async () => (await count('button.version')) >= 4);
    const bars = page.locator('button.version');
    await bars.nth((await bars.count()) - 4).click({ modifiers: ['Shift'] });
    await until('all three lines', async () => /compared a.*compared b.*compared c/s.test(await text('.diff')));
    must((await page.locator('.line.added').count()) === 3, 'three lines were added between them');
    await bars.last().click();
    await until('the last one', async () => (await page.locator('.line.added').count()) === 1);
  });

  await check('a rule answers the next question of the same server', async () => {
    await ask('POST', 's/1/call', { list: 'tools', key: 'ask', values: {} });
    await page.evaluate(() => (location.hash = '#/inbox'));
    await until('the question', async () => (await count('.question.open #field_port')) === 1);
    await page.fill('.question.open #field_port', '5');
    await page.check('.question.open .always input');
    await page.click('.question.open .primary');
    await has('.known', 'accept');
    const found = await axe(page);
    must(found.length === 0, `axe: ${found}`);
    await ask('POST', 's/1/call', { list: 'tools', key: 'ask', values: {} });
    await has('.question', 'accepted by rule');
    await page.getByRole('button', { name: 'End this rule' }).click();
    await until('no rule', async () => (await count('.known')) === 0);
  });

  await check('a screen of 1440 by 900 has room for the list, a difference and fourteen rows', async () => {
    await page.setViewportSize({ width: 1440, height: 900 });
    await go('watched/note%3Aall');
    await until('the difference', async () => (await count('.diff .line')) > 0);
    const rows = () => page.evaluate(() => {
      const box = document.querySelector('.timeline .list').getBoundingClientRect();
      const isInside = (it) => it.getBoundingClientRect().top >= box.top - 1 && it.getBoundingClientRect().bottom <= box.bottom + 1;
      return [...document.querySelectorAll('.timeline .list .row')].filter(isInside).length;
    });
    await until('the rows', async () => (await rows()) >= 14);
    const room = await page.evaluate(() => Math.floor(document.querySelector('.column[aria-label="watched"] .list').clientHeight / 30));
    must(room >= 7, `room for ${room} watched resources`);
    return `${await rows()} rows, ${room} watched`;
  });

  await check('a pane keeps its size, and the palette runs what it finds', async () => {
    await go('watched');
    const divider = page.locator('[role="separator"]').first();
    await divider.focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    const place = await divider.getAttribute('aria-valuenow');
    await page.reload();
    await until('the divider', async () => (await page.locator('[role="separator"]').count()) > 0);
    must((await page.locator('[role="separator"]').first().getAttribute('aria-valuenow')) === place, 'the pane forgot its size');
    await page.keyboard.press('Control+k');
    await until('the palette', async () => (await count('dialog.palette[open]')) === 1);
    await page.keyboard.type('theme');
    await has('.place.chosen', 'light or dark');
    await page.keyboard.press('Enter');
    await until('the other theme', () => page.evaluate(() => document.documentElement.dataset.theme === 'light'));
    await page.keyboard.press('t');
    await until('the first theme', () => page.evaluate(() => document.documentElement.dataset.theme === 'dark'));
  });

  await check('a hidden tab asks nothing, and catches up when it is shown', async () => {
    const other = await tab(context);
    await other.goto(base);
    await other.evaluate(() => (location.hash = '#/s/1/watched/note%3Aall'));
    const shows = (words) => until(words, () => other.evaluate((it) => document.querySelector('.diff')?.textContent.includes(it), words));
    await shows('compared c');
    const hide = (isHidden) => other.evaluate((it) => {
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => it });
      document.dispatchEvent(new Event('visibilitychange'));
    }, isHidden);
    await hide(true);
    // The request that waits is dropped, and no other one follows.
    await pause(300);
    let asked = 0;
    other.on('request', () => (asked += 1));
    await ask('POST', 's/1/call', { list: 'tools', key: 'write', values: { text: 'and once more' } });
    await pause(2500);
    must(asked === 0, `${asked} requests while it was hidden`);
    await hide(false);
    await shows('and once more');
    const numbers = (it) => it.evaluate(() => document.querySelector('.facts').textContent.match(/changes \d+, merged \d+/)[0]);
    await go('watched/note%3Aall');
    await until('the same numbers in both tabs', async () => (await numbers(page)) === (await numbers(other)));
    await other.close();
  });
}
