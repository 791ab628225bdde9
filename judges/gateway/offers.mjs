// What one client finds behind the gateway, against what the servers say without it.
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

const names = (items) => items.map(({ name }) => name).sort();
/** The notices are judged elsewhere, at the same time, with a tool that adds tools. */
const isGrown = ({ name }) => name.startsWith('extra_');
const said = ({ result }) => result.content.map((block) => block.text).join('\n');

/** What a server defines of a tool. SDKs read these members in an order of their own, and drop others. */
const definition = ({ description, inputSchema, outputSchema, annotations }) => ({ description, inputSchema, outputSchema, annotations });
const differs = (tool, as) => !as || !isDeepStrictEqual(definition(tool), definition(as));

export async function offers(stage, how, tally) {
  const client = await stage.connect(how);
  await lists(stage, client, tally);
  await calls(stage, client, tally);
  await reads(stage, client, tally);
  await client.close();
}

async function lists({ direct }, client, { equal }) {
  const tools = await client.tools();
  const prompts = await client.prompts();
  for (const [server, offered] of Object.entries(direct)) {
    const own = (items) => items.filter(({ name }) => name.startsWith(`${server}__`)).map((item) => ({ ...item, name: item.name.slice(server.length + 2) }));
    const here = own(tools).filter((tool) => !isGrown(tool));
    equal(`the tools of ${server} are there`, names(here), names(offered.tools));
    const others = here.filter((tool) => differs(tool, offered.tools.find(({ name }) => name === tool.name)));
    equal(`the tools of ${server} are defined as it defines them`, names(others), []);
    equal(`the prompts of ${server} are there`, names(own(prompts)), names(offered.prompts));
  }
  // The earlier server has a URI that several offer; of the later ones it is listed under their names.
  const listed = (items, field) => items.map((item) => item[field]).sort();
  for (const [kind, field] of [['resources', 'uri'], ['templates', 'uriTemplate']]) {
    const taken = new Set();
    const expected = Object.entries(direct).flatMap(([server, offered]) =>
      offered[kind].map((item) => {
        const address = taken.has(item[field]) ? `${server}+${item[field]}` : item[field];
        taken.add(item[field]);
        return address;
      }),
    );
    const isOurs = (address) => !/^(tidings:|python-http\+|ts-http\+)/.test(address);
    equal(`all ${kind} are there, each with an address of its own`, listed(await client[kind](), field).filter(isOurs), expected.sort());
  }
}

async function calls({ setting }, client, { equal, is }) {
  const call = async (name, values) => said(await client.call(name, values));
  equal('everything: echo', await call('everything__echo', { message: 'hi' }), 'Echo: hi');
  const weather = await client.call('everything__get-structured-content', { location: 'New York' });
  is('everything: structured content', typeof weather.result.structuredContent?.temperature === 'number', weather.result);
  const image = await client.call('everything__get-tiny-image', {});
  is('everything: an image', image.result.content.some(({ type, data }) => type === 'image' && data.length > 100), image.result);
  is('memory: the graph', (await call('memory__read_graph', {})).includes('entities'));
  const path = join(setting.files, 'note.txt');
  equal('files: a file', await call('files__read_text_file', { path }), 'hello\n');
  const outside = await client.call('files__read_text_file', { path: '/etc/hostname' });
  is('files: what is outside is refused', outside.result.isError === true, outside.result);
  is('git: the log', (await call('git__git_log', { repo_path: setting.repository })).includes('the first commit'));
  is('git: the status', (await call('git__git_status', { repo_path: setting.repository })).includes('nothing to commit'));
  const time = { source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Tokyo' };
  is('time: noon in UTC is 21:00 in Tokyo', (await call('time__convert_time', time)).includes('T21:00:00'));
  for (const server of ['python', 'ts-one', 'ts-two', 'python-http', 'ts-http']) {
    const sum = await client.call(`${server}__add`, { a: 2, b: 3 });
    equal(`${server}: structured content`, sum.result.structuredContent, { sum: 5 });
    equal(`${server}: a tool that fails`, (await client.call(`${server}__fail`, {})).result.isError, true);
    const slow = await client.call(`${server}__slow`, { steps: 3 });
    equal(`${server}: the result of a slow tool`, said(slow), '3 steps');
    equal(`${server}: its progress`, slow.progress, [1, 2, 3]);
  }
  await client.call('ts-two__no-such-tool', {}).then(
    ({ result }) => is('a tool that is not there is refused', result.isError === true, result),
    () => is('a tool that is not there is refused', true),
  );
}

async function reads(stage, client, { equal }) {
  const text = async (uri) => (await client.read(uri)).contents[0].text;
  // `python` is the first of those with this URI.
  for (const address of ['test://item/10', 'ts-one+test://item/10', 'ts-http+test://item/10']) equal(`${address} is read`, await text(address), 'item 10');
  equal('a picture is read', (await client.read('test://picture')).contents[0].mimeType, 'image/png');
  const [{ uri }] = stage.direct.everything.resources;
  equal('a document of everything is read at its own address', (await client.read(uri)).contents[0].uri, uri);
  for (const server of ['python', 'ts-two', 'python-http']) {
    const { messages } = await client.prompt(`${server}__greet`, { name: 'Ada' });
    equal(`${server}: a prompt`, messages[0].content.text, 'Hello, Ada');
    const ref = { type: 'ref/prompt', name: `${server}__greet` };
    equal(`${server}: a completion`, (await client.complete(ref, { name: 'name', value: 'A' })).sort(), ['Ada', 'Alan']);
  }
}
