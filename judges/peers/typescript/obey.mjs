// A TypeScript peer that does what it is told: one JSON object a line in, {"id", "value"} or
// {"id", "error"} a line out. In the modern era watching is a listen of its own.
import { createInterface } from 'node:readline';

function tally(names) {
  const counts = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

export async function obey(adapter, era) {
  const peer = await adapter.connect();
  const listens = new Map();
  const orders = {
    watch: async ({ uri }) => {
      if (era === 'modern') listens.set(uri, await peer.listen({ resourceSubscriptions: [uri] }));
      else await peer.subscribe(uri);
    },
    unwatch: async ({ uri }) => {
      if (era === 'modern') await listens.get(uri).close();
      else await peer.unsubscribe(uri);
    },
    // The lists of tools and resources, which a legacy session follows by itself.
    follow: async () => {
      if (era === 'modern') await peer.listen({ toolsListChanged: true, resourcesListChanged: true });
    },
    heard: async () => tally(peer.ears.wire.map((name) => name.split(' @')[0])),
    tools: () => peer.tools(),
    count: async ({ uri }) => peer.ears.wire.filter((name) => name.split(' @')[0] === `updated ${uri}`).length,
    read: async ({ uri }) => JSON.parse(await peer.read(uri)),
    call: async ({ name, args }) => (await peer.call(name, args)).structuredContent,
    errors: async () => peer.ears.errors,
    close: () => peer.close(),
  };
  const say = (what) => process.stdout.write(JSON.stringify(what) + '\n');
  say({ id: 0 });
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, order, ...rest } = JSON.parse(line);
    try {
      say({ id, value: (await orders[order](rest)) ?? null });
    } catch (error) {
      say({ id, error: String(error?.stack ?? error) });
    }
  }
}
