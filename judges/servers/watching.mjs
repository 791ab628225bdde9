// What `tidings watch` must tell of the servers of this folder: every change, once, whatever happens.

export const COUNTER = 'test://counter';
const CHANGES = ['tools_changed', 'resources_changed', 'templates_changed', 'prompts_changed', 'content_changed', 'updated'];

const isReady = (events) => events.some(({ event, state }) => event === 'connection' && state === 'ready');
export const isWatched = (uri) => (events) => events.some(({ event, uris }) => event === 'subscriptions_changed' && uris.includes(uri));

/** What changed, in the order it was told. A first reading is no change. */
export const told = (events) =>
  events
    .filter(({ event, cause }) => CHANGES.includes(event) && cause !== 'asked')
    .map(({ event, uri, contents, added, removed, changed }) =>
      uri === undefined ? { event, added, removed, changed } : { event, uri, text: contents?.map((part) => part.text).join('\n') },
    );

const touched = (count) => ({ event: 'content_changed', uri: COUNTER, text: `count ${count}` });
const grown = (...added) => ({ event: 'tools_changed', added, removed: [], changed: [] });
const causes = (events) => [...new Set(events.filter(({ event, cause }) => event === 'content_changed' && cause !== 'asked').map(({ cause }) => cause))];
const warnings = (events) => events.filter(({ event }) => event === 'warning').map(({ message }) => message);

/** Begins to watch, lets `body` go on once everything is in place, and leaves nothing behind. */
async function watch(bench, words, options, body) {
  const watching = bench.watch(words, options);
  try {
    const watched = words.includes(COUNTER) ? isWatched(COUNTER) : () => true;
    await watching.until('the connection and the subscription', (events) => isReady(events) && watched(events));
    await body(watching);
  } finally {
    watching.kill();
  }
}

/** How often the counter was touched before. */
async function counted(bench) {
  const { lines } = await bench.run('read', [COUNTER]);
  return Number(lines[0]?.contents?.[0]?.text.replace('count ', ''));
}

export async function changes(bench, judge) {
  await judge.step('watch', async () => {
    const base = await counted(bench);
    await watch(bench, [COUNTER, '--lists', '--until', '5'], {}, async (watching) => {
      // Each order waits for what came of the one before: what is told twice shows in the order.
      const orders = ['touch', 'grow', 'touch', 'grow', 'touch'];
      for (const [index, what] of orders.entries()) {
        await bench.order(watching, what);
        if (index + 1 < orders.length) await watching.until(`change ${index + 1}`, (events) => told(events).length > index);
      }
      const code = await watching.ended();
      const expected = [touched(base + 1), grown('extra_1'), touched(base + 2), grown('extra_2'), touched(base + 3)];
      judge.check('watch: every change once, in order', expected, told(watching.events()), watching.child.err);
      judge.check('watch: ends after --until', 0, code, watching.child.err);
      judge.check('watch: no warning', [], warnings(watching.events()));
      judge.check('watch: because the server said so', ['notice'], causes(watching.events()));
    });
  });
}

/** Many changes at once are few, the last is among them, and none goes backwards. */
export async function burst(bench, judge) {
  await judge.step('burst', async () => {
    const base = await counted(bench);
    await watch(bench, [COUNTER], {}, async (watching) => {
      await bench.order(watching, 'touch', 100);
      const last = touched(base + 100).text;
      await watching.until('the last of a hundred changes', (events) => told(events).at(-1)?.text === last);
      watching.child.kill('SIGINT');
      judge.check('burst: ends when it is interrupted', 0, await watching.ended(), watching.child.err);
      const counts = told(watching.events()).map(({ text }) => Number(text.replace('count ', '')));
      judge.check('burst: each is newer than the one before', [...new Set(counts)].sort((a, b) => a - b), counts);
      judge.check('burst: a hundred changes are few', true, counts.length < 50, String(counts.length));
    });
  });
}

/** Several programs may be told of the same change. */
export async function pair(bench, judge) {
  if (!bench.http) return;
  await judge.step('pair', () =>
    watch(bench, ['--until', '1'], {}, (one) =>
      watch(bench, ['--until', '1'], {}, async (other) => {
        await bench.order(one, 'grow');
        const codes = [await one.ended(), await other.ended()];
        const expected = [grown('extra_3')];
        judge.check('pair: both are told', [expected, expected], [told(one.events()), told(other.events())], one.child.err + other.child.err);
        judge.check('pair: both end', [0, 0], codes);
      }),
    ),
  );
}

/** A server that dies and comes back as another: what is different is told, and nothing else. */
export async function restart(bench, judge) {
  await judge.step('restart', async () => {
    if (bench.http) await bench.replace();
    const until = bench.http ? '3' : '4';
    await watch(bench, [COUNTER, '--lists', '--until', until], {}, async (watching) => {
      await bench.order(watching, 'touch');
      await watching.until('the first change', (events) => told(events).length > 0);
      const before = watching.events().length;
      let expected = [touched(0), grown('extra_1', 'extra_2')];
      if (bench.http) await bench.replace('--extra', '2');
      else {
        // The program starts it again, and it counts from nothing. It is watched as before.
        await bench.order(watching, 'die');
        await watching.until('the second change', (events) => told(events).length > 1);
        await bench.order(watching, 'touch');
        await watching.until('the third change', (events) => told(events).length > 2);
        await bench.order(watching, 'grow');
        expected = [touched(0), touched(1), grown('extra_1')];
      }
      const code = await watching.ended();
      const after = watching.events().slice(before);
      const order = ({ event }) => (event === 'content_changed' ? 0 : 1);
      judge.check('restart: what is different is told', expected, told(after).sort((a, b) => order(a) - order(b)), watching.child.err);
      judge.check('restart: the first of it because something may have been missed', 'resync', causes(after)[0]);
      const states = after.filter(({ event }) => event === 'connection').map(({ state }) => state);
      judge.check('restart: lost, then ready again', ['lost', 'ready'], [...new Set(states.filter((state) => state === 'lost' || state === 'ready'))]);
      judge.check('restart: ends after --until', 0, code, watching.child.err);
    });
  });
}

/** A stream that breaks, and a change that nobody heard of: it is told all the same, and so is the next. */
export async function cut(bench, judge) {
  if (!bench.server.cuts?.(bench)) return;
  await judge.step('cut', async () => {
    const base = await counted(bench);
    const { lines } = await bench.run('tools');
    const next = `extra_${lines.filter(({ name }) => name.startsWith('extra_')).length + 1}`;
    await watch(bench, [COUNTER, '--lists', '--until', '2'], {}, async (watching) => {
      await bench.order(watching, 'cut');
      await watching.until('what was missed', (events) => told(events).length > 0);
      await bench.order(watching, 'grow');
      const code = await watching.ended();
      judge.check('cut: what was missed is told, and what came after', [touched(base + 1), grown(next)], told(watching.events()), watching.child.err);
      judge.check('cut: because something may have been missed', ['resync'], causes(watching.events()));
      judge.check('cut: ends after --until', 0, code, watching.child.err);
    });
  });
}

/** A server that says it would tell of changes, and has no way to. */
export async function silence(bench, judge) {
  await judge.step('silence', async () => {
    const watching = bench.watch([COUNTER, '--lists'], {});
    try {
      await watching.until('two warnings', (events) => warnings(events).length > 1);
      const said = ['cannot announce changes', 'does not offer a stream'];
      judge.check('silence: it is said', said.map(() => true), said.map((words) => warnings(watching.events()).some((message) => message.includes(words))));
      watching.child.kill('SIGINT');
      judge.check('silence: ends when it is interrupted', 0, await watching.ended(), watching.child.err);
    } finally {
      watching.kill();
    }
    const alone = await bench.run('watch', [COUNTER]);
    judge.check('silence: nothing that could be watched is a failure', 1, alone.code, alone.err);
  });
}

/** A server over stdio that prints something else as well. */
export async function noise(bench, judge) {
  if (bench.http || !bench.server.noisy) return;
  await judge.step('noise', () =>
    watch(bench, ['--until', '1'], { more: ['--noisy'] }, async (watching) => {
      await bench.order(watching, 'grow');
      judge.check('noise: it goes on', 0, await watching.ended(), watching.child.err);
      judge.check('noise: the change is told', [grown('extra_1')], told(watching.events()));
      judge.check('noise: and so is the noise', [true], warnings(watching.events()).map((message) => message.includes('debug: about to begin')));
    }),
  );
}
