// Servers of others behind `tidings serve`: what they offer arrives, and notices come for changes only.
//
//   node judges/gateway/run.mjs --program /path/to/tidings [--only TEXT] [--jobs N]
//
// All servers are behind one gateway, and clients of both SDKs and both eras use it at once.
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { judge, parse } from '../tally.mjs';
import { connect } from './client.mjs';
import { direct } from './direct.mjs';
import { Setting } from './setting.mjs';
import { manyClients, notices } from './notices.mjs';
import { offers } from './offers.mjs';

const options = parse(process.argv.slice(2), 'program');
const setting = new Setting(resolve(options.program));
const stage = { setting, connect: (how) => connect(stage.url, how) };

const CLIENTS = ['typescript', 'python'].flatMap((sdk) => ['legacy', 'modern'].map((era) => ({ sdk, era, name: `${sdk} ${era}` })));

/** Starts the gateway, and asks the servers without it. */
async function setUp() {
  await Setting.install();
  stage.url = await setting.open();
  const asked = Object.entries(setting.servers()).map(async ([name, server]) => [name, await direct(server)]);
  stage.direct = Object.fromEntries(await Promise.all(asked));
}

const combinations = [
  { name: 'notices for all clients at once', run: (tally) => notices(stage, CLIENTS, tally) },
  ...CLIENTS.map((client) => ({ name: `${client.name} offers`, run: (tally) => offers(stage, client, tally) })),
  { name: 'twenty clients, one process', run: (tally) => manyClients(stage, tally) },
];

/** Collects the checks of one combination; what it throws is a failed one. */
async function run(combination) {
  const checks = [];
  const tally = {
    equal: (name, got, expected) => checks.push({ name, ok: isDeepStrictEqual(got, expected), got, expected }),
    is: (name, ok, got) => checks.push({ name, ok, got, expected: true }),
  };
  await combination.run(tally).catch((error) => checks.push({ name: 'no error', ok: false, got: error.stack }));
  return checks;
}

await judge('gateway', {
  combinations: combinations.filter(({ name }) => name.includes(options.only)),
  jobs: options.jobs,
  setUp,
  run,
  print(name, checks, seconds) {
    const failed = checks.filter(({ ok }) => !ok);
    console.log(`${failed.length === 0 ? 'ok  ' : 'FAIL'} ${name} (${checks.length} checks, ${seconds.toFixed(1)} s)`);
    for (const { name: what, got, expected } of failed) {
      console.log(`  ${what}\n    expected: ${JSON.stringify(expected)}\n    came:     ${JSON.stringify(got)}`);
    }
  },
});
