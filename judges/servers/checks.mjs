// What is checked of each kind of server. `bench` drives the program, `judge` takes the findings.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { COUNTER, burst, changes, cut, isWatched, noise, pair, restart, silence, told } from './watching.mjs';

const PROTOCOLS = { legacy: '2025-11-25', modern: '2026-07-28' };
const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const byKey = (lines, key) => lines.map((line) => line[key]).sort();
const textOf = (result) => result?.content?.map((part) => part.text).join('\n');

/** What every server must give: who it is, in the era that was asked for. */
async function who(bench, judge, { name, version, counts }) {
  await judge.step('info', async () => {
    const { code, lines, err } = await bench.run('info');
    const [info] = lines;
    judge.check('info: exit code', 0, code, err);
    judge.check(
      'info: who it is',
      { lines: 1, name, version, era: bench.era, protocol: PROTOCOLS[bench.era] },
      { lines: lines.length, name: info?.name, version: info?.version, era: info?.era, protocol: info?.protocol },
    );
    if (counts) judge.check('info: counts', counts, info?.counts);
    judge.check('info: capabilities, instructions and latency', ['object', 'string', 'number'], [typeof info?.capabilities, typeof info?.instructions, typeof info?.latency_ms]);
  });
  await judge.step('auto', async () => {
    const { code, lines, err } = await bench.run('info', [], { protocol: 'auto' });
    const best = bench.server.eras.includes('modern') ? 'modern' : 'legacy';
    judge.check('auto: the newest era the server speaks', { code: 0, era: best }, { code, era: lines[0]?.era }, err);
  });
  if (!bench.server.eras.includes('modern')) {
    await judge.step('modern only', async () => {
      const { code } = await bench.run('info', [], { protocol: 'modern' });
      judge.check('modern or nothing: exit code', 1, code);
    });
  }
}

async function lists(bench, judge, expected) {
  for (const [command, key] of [['tools', 'name'], ['resources', 'uri'], ['templates', 'uriTemplate'], ['prompts', 'name']]) {
    await judge.step(command, async () => {
      const { code, lines, err } = await bench.run(command);
      judge.check(`${command}: what there is`, { code: 0, keys: [...expected[command]].sort() }, { code, keys: byKey(lines, key) }, err);
    });
  }
}

/** The servers of this folder: everything they offer, and every change they make. */
export async function shelf(bench, judge) {
  await who(bench, judge, { name: bench.server.name, version: '1.0.0', counts: { tools: 8, resources: 2, templates: 1, prompts: 1 } });
  await lists(bench, judge, {
    tools: ['echo', 'add', 'grow', 'touch', 'fail', 'slow', 'cut', 'hang'],
    resources: [COUNTER, 'test://picture'],
    templates: ['test://item/{id}'],
    prompts: ['greet'],
  });
  await judge.step('show', async () => {
    const tool = await bench.run('show', ['add']);
    judge.check('show: a tool with its schemas', { code: 0, name: 'add', input: ['a', 'b'], output: ['sum'] }, {
      code: tool.code,
      name: tool.lines[0]?.name,
      input: Object.keys(tool.lines[0]?.inputSchema?.properties ?? {}).sort(),
      output: Object.keys(tool.lines[0]?.outputSchema?.properties ?? {}),
    }, tool.err);
    const prompt = await bench.run('show', ['greet']);
    judge.check('show: a prompt', { code: 0, arguments: ['name'] }, { code: prompt.code, arguments: prompt.lines[0]?.arguments?.map(({ name }) => name) }, prompt.err);
    const resource = await bench.run('show', ['test://picture']);
    judge.check('show: a resource', { code: 0, mimeType: 'image/png' }, { code: resource.code, mimeType: resource.lines[0]?.mimeType }, resource.err);
    const nothing = await bench.run('show', ['nothing']);
    judge.check('show: what is not there', 1, nothing.code);
  });
  await calls(bench, judge);
  await reads(bench, judge);
  await judge.step('prompt', async () => {
    const { code, lines, err } = await bench.run('prompt', ['greet', 'name=Ada']);
    judge.check('prompt: filled in', { code: 0, prompt: 'greet', arguments: { name: 'Ada' }, text: 'Hello, Ada' }, {
      code,
      prompt: lines[0]?.prompt,
      arguments: lines[0]?.arguments,
      text: lines[0]?.result?.messages?.[0]?.content?.text,
    }, err);
    const none = await bench.run('prompt', ['nothing']);
    judge.check('prompt: what is not there', 1, none.code);
  });
  await judge.step('complete', async () => {
    const name = await bench.run('complete', ['prompt', 'greet', 'name=A']);
    judge.check('complete: an argument of a prompt', { code: 0, lines: [{ values: ['Ada', 'Alan'], total: 2, has_more: false }] }, { code: name.code, lines: name.lines }, name.err);
    const id = await bench.run('complete', ['template', 'test://item/{id}', 'id=1']);
    judge.check('complete: a value of a template', { code: 0, values: ['1', '10'] }, { code: id.code, values: id.lines[0]?.values }, id.err);
  });
  await giveUp(bench, judge);
  await changes(bench, judge);
  await burst(bench, judge);
  await pair(bench, judge);
  await restart(bench, judge);
  await cut(bench, judge);
  await noise(bench, judge);
}

/** A server that keeps no sessions: all can be used, and that nothing will be told is said. */
export async function stateless(bench, judge) {
  await who(bench, judge, { name: bench.server.name, version: '1.0.0' });
  await calls(bench, judge);
  await reads(bench, judge);
  await silence(bench, judge);
}

async function calls(bench, judge) {
  await judge.step('call', async () => {
    const echo = await bench.run('call', ['echo', 'message=five words with = and ü']);
    judge.check('call: echo', { code: 0, tool: 'echo', text: 'five words with = and ü', took: 'number' }, {
      code: echo.code,
      tool: echo.lines[0]?.tool,
      text: textOf(echo.lines[0]?.result),
      took: typeof echo.lines[0]?.took_ms,
    }, echo.err);
    const add = await bench.run('call', ['add', 'a=2', 'b=3.5']);
    judge.check('call: numbers in, structured content out', { code: 0, structured: { sum: 5.5 } }, { code: add.code, structured: add.lines[0]?.result?.structuredContent }, add.err);
    const json = await bench.run('call', ['add', '--args', '{"a":-1,"b":1e3}']);
    judge.check('call: arguments as JSON', { code: 0, structured: { sum: 999 } }, { code: json.code, structured: json.lines[0]?.result?.structuredContent }, json.err);
    const folder = mkdtempSync(join(tmpdir(), 'tidings-judge-'));
    try {
      const message = 'ü€𝄞 '.repeat(30_000);
      writeFileSync(join(folder, 'long.json'), JSON.stringify({ message }));
      const long = await bench.run('call', ['echo', '--args', `@${join(folder, 'long.json')}`]);
      judge.check('call: a long text of many bytes a letter comes back whole', { code: 0, same: true }, { code: long.code, same: textOf(long.lines[0]?.result) === message }, long.err);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    const slow = await bench.run('call', ['slow', 'steps=3']);
    judge.check('call: with progress', { code: 0, text: '3 steps' }, { code: slow.code, text: textOf(slow.lines.at(-1)?.result) }, slow.err);
    const fail = await bench.run('call', ['fail']);
    judge.check('call: a tool that fails', { code: 1, isError: true, text: 'it did not work' }, { code: fail.code, isError: fail.lines[0]?.result?.isError, text: textOf(fail.lines[0]?.result) }, fail.err);
    const nothing = await bench.run('call', ['nothing']);
    judge.check('call: a tool that is not there', 1, nothing.code);
  });
}

/** A request that nobody waits for any longer is called off. Over stdio the server goes as well. */
async function giveUp(bench, judge) {
  await judge.step('give up', async () => {
    const hang = await bench.run('call', ['hang', '--timeout', '2s']);
    judge.check('give up: exit code', 1, hang.code, hang.err);
    if (bench.http) await bench.heard('hang was cancelled');
  });
}

async function reads(bench, judge) {
  await judge.step('read', async () => {
    const text = await bench.run('read', [COUNTER]);
    judge.check('read: text', { code: 0, lines: [{ uri: COUNTER, contents: [{ uri: COUNTER, mimeType: 'text/plain', text: 'count 0' }] }] }, { code: text.code, lines: text.lines }, text.err);
    const blob = await bench.run('read', ['test://picture']);
    judge.check('read: binary', { code: 0, contents: [{ uri: 'test://picture', mimeType: 'image/png', blob: PICTURE }] }, { code: blob.code, contents: blob.lines[0]?.contents }, blob.err);
    const item = await bench.run('read', ['test://item/{id}', 'id=7']);
    judge.check('read: a template', { code: 0, template: 'test://item/{id}', values: { id: '7' }, uri: 'test://item/7', text: 'item 7' }, {
      code: item.code,
      template: item.lines[0]?.template,
      values: item.lines[0]?.values,
      uri: item.lines[0]?.uri,
      text: item.lines[0]?.contents?.[0]?.text,
    }, item.err);
    const nothing = await bench.run('read', ['test://nothing']);
    judge.check('read: what is not there', 1, nothing.code);
  });
}

/** The reference server, as it is installed. */
export async function everything(bench, judge) {
  await who(bench, judge, { name: 'mcp-servers/everything', version: '2.0.0' });
  const document = 'demo://resource/static/document/features.md';
  await judge.step('lists', async () => {
    const tools = await bench.run('tools');
    judge.check('tools: those every client gets', { code: 0, missing: [] }, {
      code: tools.code,
      missing: ['echo', 'get-structured-content', 'get-sum', 'get-tiny-image', 'trigger-long-running-operation'].filter((name) => !tools.lines.some((tool) => tool.name === name)),
    }, tools.err);
    const resources = await bench.run('resources');
    judge.check('resources: seven documents', { code: 0, count: 7 }, { code: resources.code, count: resources.lines.length }, resources.err);
    const templates = await bench.run('templates');
    judge.check('templates: two', { code: 0, keys: ['demo://resource/dynamic/blob/{resourceId}', 'demo://resource/dynamic/text/{resourceId}'] }, { code: templates.code, keys: byKey(templates.lines, 'uriTemplate') }, templates.err);
    const prompts = await bench.run('prompts');
    judge.check('prompts: four', { code: 0, keys: ['args-prompt', 'completable-prompt', 'resource-prompt', 'simple-prompt'] }, { code: prompts.code, keys: byKey(prompts.lines, 'name') }, prompts.err);
  });
  await judge.step('use', async () => {
    const echo = await bench.run('call', ['echo', 'message=hi']);
    judge.check('call: echo', { code: 0, text: 'Echo: hi' }, { code: echo.code, text: textOf(echo.lines[0]?.result) }, echo.err);
    const weather = await bench.run('call', ['get-structured-content', 'location=New York']);
    judge.check('call: structured content', { code: 0, keys: ['conditions', 'humidity', 'temperature'] }, { code: weather.code, keys: Object.keys(weather.lines[0]?.result?.structuredContent ?? {}).sort() }, weather.err);
    const image = await bench.run('call', ['get-tiny-image']);
    judge.check('call: an image', { code: 0, types: ['text', 'image', 'text'] }, { code: image.code, types: image.lines[0]?.result?.content?.map(({ type }) => type) }, image.err);
    const long = await bench.run('call', ['trigger-long-running-operation', 'duration=0.2', 'steps=4']);
    judge.check('call: with progress', 0, long.code, long.err);
    const read = await bench.run('read', [document]);
    judge.check('read: a document', { code: 0, mimeType: 'text/markdown', filled: true }, { code: read.code, mimeType: read.lines[0]?.contents?.[0]?.mimeType, filled: read.lines[0]?.contents?.[0]?.text.length > 100 }, read.err);
    const blob = await bench.run('read', ['demo://resource/dynamic/blob/{resourceId}', 'resourceId=3']);
    judge.check('read: a template', { code: 0, blob: 'string' }, { code: blob.code, blob: typeof blob.lines[0]?.contents?.[0]?.blob }, blob.err);
    const prompt = await bench.run('prompt', ['args-prompt', 'city=Oslo']);
    judge.check('prompt: filled in', { code: 0, text: "What's weather in Oslo?" }, { code: prompt.code, text: prompt.lines[0]?.result?.messages?.[0]?.content?.text }, prompt.err);
    const complete = await bench.run('complete', ['prompt', 'completable-prompt', 'department=E']);
    judge.check('complete: an argument', { code: 0, values: ['Engineering'] }, { code: complete.code, values: complete.lines[0]?.values }, complete.err);
  });
  await judge.step('watch', async () => {
    const watching = bench.watch([document, '--for', '1s']);
    try {
      await watching.until('the subscription', isWatched(document));
      judge.check('watch: ends after --for', 0, await watching.ended(), watching.child.err);
      judge.check('watch: nothing changed', [], told(watching.events()));
    } finally {
      watching.kill();
    }
  });
}

/** Our own hub, with the station that changes by itself. */
export async function station(bench, judge) {
  const log = 'station://log';
  await who(bench, judge, { name: 'tidings', version: bench.server.version });
  await judge.step('lists', async () => {
    // A full station has nothing to dock, an empty one nothing to undock.
    const tools = await bench.run('tools');
    const unknown = tools.lines.filter(({ name }) => !['dock_module', 'login', 'undock_module'].includes(name));
    judge.check('tools: one or both', { code: 0, some: true, unknown: [] }, { code: tools.code, some: tools.lines.length > 0, unknown }, tools.err);
    const resources = await bench.run('resources');
    judge.check('resources: those that stay', { code: 0, missing: [] }, { code: resources.code, missing: [log, 'station://ports', 'station://status'].filter((uri) => !resources.lines.some((line) => line.uri === uri)) }, resources.err);
    const templates = await bench.run('templates');
    judge.check('templates', { code: 0, keys: ['station://module/{name}'] }, { code: templates.code, keys: byKey(templates.lines, 'uriTemplate') }, templates.err);
    const prompts = await bench.run('prompts');
    judge.check('prompts', { code: 0, keys: ['station_report'] }, { code: prompts.code, keys: byKey(prompts.lines, 'name') }, prompts.err);
  });
  await judge.step('use', async () => {
    const read = await bench.run('read', [log]);
    judge.check('read: the log', { code: 0, mimeType: 'text/plain' }, { code: read.code, mimeType: read.lines[0]?.contents?.[0]?.mimeType }, read.err);
    const show = await bench.run('show', ['station_report']);
    judge.check('show: a prompt', { code: 0, name: 'station_report' }, { code: show.code, name: show.lines[0]?.name }, show.err);
    const prompt = await bench.run('prompt', ['station_report']);
    judge.check('prompt: without its argument', { code: 0, some: true }, { code: prompt.code, some: prompt.lines[0]?.result?.messages?.length > 0 }, prompt.err);
    const none = await bench.run('call', ['dock_module', 'module=nowhere']);
    judge.check('call: a module that does not exist', 1, none.code);
  });
  await judge.step('watch', async () => {
    const watching = bench.watch([log, '--lists', '--until', '20']);
    try {
      const code = await watching.ended();
      const events = told(watching.events());
      judge.check('watch: twenty changes, then the end', { code: 0, count: 20 }, { code, count: events.length }, watching.child.err);
      const texts = events.filter(({ uri }) => uri === log).map(({ text }) => text);
      judge.check('watch: the log is told of, each time with another text', { some: true, twice: 0 }, { some: texts.length > 1, twice: texts.length - new Set(texts).size }, texts);
      judge.check('watch: lists are told of with what moved', [], events.filter(({ uri, added, removed, changed }) => uri === undefined && [added, removed, changed].flat().length === 0));
      judge.check('watch: no warning', [], watching.events().filter(({ event }) => event === 'warning'));
    } finally {
      watching.kill();
    }
  });
}
