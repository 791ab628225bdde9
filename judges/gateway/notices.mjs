// Notices through the gateway: exactly one for a change, and none without one.
const COUNTER = 'test://counter';
/** server-everything says every 5 s that its resources were updated; nothing is. */
const QUIET_MS = 11_000;
const ARRIVE_MS = 10_000;
/** How long a second notice is waited for. */
const SILENCE_MS = 700;
/** The same after a restart, when everything is compared. */
const RESTART_MS = 3_000;
const BURST = 200;
const CLIENTS = 20;

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const text = async (client, uri) => (await client.read(uri)).contents[0].text;

async function until(satisfied) {
  const late = Date.now() + ARRIVE_MS;
  while (!satisfied() && Date.now() < late) await sleep(10);
}

/** All clients, with what each has heard since the last look. */
class Audience {
  constructor(clients, tally) {
    Object.assign(this, { clients, tally });
  }

  /** Does something, after which everybody hears of this URI so many times, and of nothing else. */
  async hears(what, act, uri, counts = [1]) {
    for (const { heard } of this.clients) heard.updated.length = 0;
    await act();
    await until(() => this.clients.every(({ heard }) => heard.count(uri) >= counts[0]));
    await sleep(SILENCE_MS);
    for (const { name, heard } of this.clients) {
      const others = heard.updated.filter((it) => it !== uri);
      this.tally.is(`${name}: ${what}: notices are ${counts.join(' or ')}`, counts.includes(heard.count(uri)), heard.updated);
      this.tally.equal(`${name}: ${what}: nothing else`, others, []);
    }
  }
}

async function gather(stage, list) {
  return Promise.all(list.map(async (how) => Object.assign(await stage.connect(how), { name: how.name })));
}

export async function notices(stage, list, tally) {
  const { setting, direct } = stage;
  const clients = await gather(stage, list);
  const audience = new Audience(clients, tally);
  const [first, , , last] = clients;
  const [{ uri: document }] = direct.everything.resources;
  const [{ uri: graph }] = direct.memory.resources;
  const counters = { python: COUNTER, 'ts-one': `ts-one+${COUNTER}`, 'ts-two': `ts-two+${COUNTER}`, 'python-http': `python-http+${COUNTER}`, 'ts-http': `ts-http+${COUNTER}` };
  await Promise.all(clients.map((client) => client.watch([document, graph, ...Object.values(counters)])));
  await first.call('everything__toggle-subscriber-updates', {});

  for (const { heard } of clients) heard.updated.length = 0;
  await sleep(QUIET_MS);
  for (const { name, heard } of clients) tally.equal(`${name}: nothing changed, and no notice came`, heard.updated, []);
  tally.equal('everything was asked once to announce its document', setting.asked('everything', `resources/subscribe ${document}`).length, 1);

  const entities = [{ name: 'judge', entityType: 'test', observations: [] }];
  await audience.hears('a write of memory', () => last.call('memory__create_entities', { entities }), graph);
  for (const [at, [server, uri]] of Object.entries(counters).entries()) {
    const client = clients[at % clients.length];
    await audience.hears(`a change in ${server}`, () => client.call(`${server}__touch`, {}), uri);
    for (const reader of clients) tally.equal(`${reader.name}: ${server} is read as it is`, await text(reader, uri), 'count 1');
  }
  await audience.hears(`${BURST} changes at once`, () => last.call('ts-two__touch', { times: BURST }), counters['ts-two'], [1, 2]);
  tally.equal('the last change is what is read', await text(first, counters['ts-two']), `count ${BURST + 1}`);

  // The counter begins anew, which is a change. The document does not.
  await audience.hears('ts-one was killed', () => kill(setting, 'ts-one'), counters['ts-one']);
  tally.equal('ts-one is read as it is', await text(first, counters['ts-one']), 'count 0');
  for (const { heard } of clients) heard.updated.length = 0;
  await kill(setting, 'everything');
  await sleep(RESTART_MS);
  for (const { name, heard } of clients) tally.equal(`${name}: everything was killed, and no notice came`, heard.updated, []);
  await grown(clients, tally);
  await Promise.all(clients.map((client) => client.close()));
}

/** Kills the process of a tapped server, and waits until it was started again and asked for its lists. */
async function kill(setting, server) {
  const starts = setting.asked(server, 'start');
  process.kill(Number(starts.at(-1).split(' ')[1]), 'SIGKILL');
  const listings = setting.asked(server, 'resources/list').length;
  await until(() => setting.asked(server, 'start').length > starts.length && setting.asked(server, 'resources/list').length > listings);
}

/** A list that grows is announced once, whatever else happened. */
async function grown(clients, { equal, is }) {
  for (const { heard } of clients) heard.changed.length = 0;
  await clients[0].call('ts-two__grow', {});
  await until(() => clients.every(({ heard }) => heard.changed.includes('tools')));
  await sleep(SILENCE_MS);
  for (const client of clients) {
    equal(`${client.name}: a new tool is announced once`, client.heard.changed, ['tools']);
    is(`${client.name}: it is listed`, (await client.tools()).some(({ name }) => name === 'ts-two__extra_1'));
  }
}

/** Many clients of one server: one process, one subscription, one notice each. */
export async function manyClients(stage, tally) {
  const { setting } = stage;
  const uri = `many+${COUNTER}`;
  const list = Array.from({ length: CLIENTS }, (_, at) => ({ sdk: 'typescript', era: at % 2 ? 'modern' : 'legacy', name: `client ${at + 1}` }));
  const clients = await gather(stage, list);
  await Promise.all(clients.map((client) => client.watch([uri])));
  await until(() => setting.asked('many', 'resources/subscribe').length > 0);
  const before = setting.asked('many', 'resources/read').length;
  await new Audience(clients, tally).hears('a change', () => clients[0].call('many__touch', {}), uri);
  tally.equal('one process serves all', setting.asked('many', 'start').length, 1);
  tally.equal('the server was asked once to announce', setting.asked('many', 'resources/subscribe'), [`resources/subscribe ${COUNTER}`]);
  const reads = setting.asked('many', 'resources/read').length - before;
  tally.is('the change was read for all at once', reads >= 1 && reads <= 3, reads);
  await Promise.all(clients.map((client) => client.close()));
  await until(() => setting.asked('many', 'resources/unsubscribe').length > 0);
  tally.equal('the last who leaves ends the subscription', setting.asked('many', 'resources/unsubscribe'), [`resources/unsubscribe ${COUNTER}`]);
}
