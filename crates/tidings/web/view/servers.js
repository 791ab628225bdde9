// All servers: their state, what they offer, why they are not connected, and how to add one.
import { html, useEffect, useState } from '../vendor/preact.js';
import { get, post, remove } from '../api.js';
import { attempt, go, useThing } from '../store.js';
import { age, count, isRecent, span } from '../words.js';
import { Doctor } from '../part/doctor.js';
import { Rate } from '../part/spark.js';

const LISTS = ['tools', 'resources', 'templates', 'prompts'];

/** The colour of a connection's state, and its words. */
export function state(server) {
  const { state: name, reason, after_ms: after, attempt: tries } = server.state;
  switch (name) {
    case 'ready':
      return server.loaded < server.offered ? ['fresh', `lists ${server.loaded} of ${server.offered}`] : ['good', 'connected'];
    case 'connecting':
      return ['fresh', server.over === 'stdio' ? 'starting, handshake' : 'handshake'];
    case 'retrying':
      return ['fresh', `again in ${span(after)}, try ${tries + 1}: ${reason}`];
    case 'lost':
      return ['bad', `lost: ${reason}`];
    default:
      return ['idle', reason ?? name];
  }
}

function Counts({ lists }) {
  const one = (name) => {
    const { count: number, new: added, changed, at } = lists[name];
    const isMarked = isRecent(at);
    return html`<span>${number} ${number === 1 ? name.slice(0, -1) : name}${isMarked && added ? html` <b class="good-text">+${added}</b>` : ''}${isMarked && changed ? html` <b class="fresh-text">~${changed}</b>` : ''}</span>`;
  };
  return html`${LISTS.map(one)}`;
}

function Server({ server, isClosed }) {
  const [colour, words] = state(server);
  const [isOpen, setOpen] = useState(null);
  const isOff = ['disconnected', 'closed'].includes(server.state.state);
  // What is not connected is examined without being asked.
  const isShown = isOpen ?? ['retrying', 'lost'].includes(server.state.state);
  const isSaved = server.state.state === 'saved';
  const act = (name) => attempt(() => post(`api/s/${server.id}/${name}`));
  const { product } = server;
  return html`
    <li class="server">
      <div class="first"><span class="dot ${colour}" aria-hidden="true"></span>
        <button class="name" onClick=${() => go('watched', { server: server.id })}>${server.name}</button>
        <span>${product ? `${product.title ?? product.name} ${product.version}` : ''}</span>
        <span class="faint">${[server.over, server.revision && `${server.revision} ${server.era}`, span(server.took)].filter(Boolean).join(' · ')}</span>
        <${Rate} rate=${server.rate} /></div>
      <div class="second ${colour === 'bad' ? 'bad-text' : ''}"><span>${words}</span> <code>${server.place}</code></div>
      <div class="second"><${Counts} lists=${server.lists} /> <span>${count(server.watched)} watched</span> <span>${count(server.rows)} rows</span>
        ${server.lost && html`<span class="bad-text">lost ${server.losses === 1 ? 'once' : `${server.losses} times`}, last ${age(server.lost.at)} ago: ${server.lost.why}</span>`}</div>
      <div class="acts">
        ${isSaved ? html`<code>${server.state.file}</code>` : isOff ? html`<button onClick=${() => act('connect')}>Connect</button>` : html`
          <button onClick=${() => act('connect')}>Connect again</button> <button onClick=${() => act('disconnect')}>Disconnect</button>`}
        ${!isSaved && html`<button aria-expanded=${isShown ? 'true' : 'false'} onClick=${() => setOpen(!isShown)}>Doctor</button>`}
        ${!isClosed && html`<button onClick=${() => attempt(() => remove(`api/s/${server.id}`))}>Remove</button>`}</div>
      ${isShown && html`<${Doctor} server=${server} />`}
    </li>`;
}

/** The servers that files name, by file. */
function Known({ known, add }) {
  const files = [...new Set(known.servers.map((it) => it.file))];
  const row = (it) => html`<li><button onClick=${() => add(it.name)} aria-label="connect to ${it.name}">Connect</button> <b>${it.name}</b> <span class="faint">${it.over}</span></li>`;
  return html`
    <h2>Known servers</h2>
    ${known.problems.map((problem) => html`<p class="problem">${problem}</p>`)}
    ${known.offers?.length > 0 && html`<p class="hint">Programs of the last time. A terminal starts them:</p>
      <ul class="known">${known.offers.map((line) => html`<li><code>${line}</code></li>`)}</ul>`}
    ${files.length === 0 && html`<p class="hint">No <code>mcp.json</code> of this machine names a server. <code>tidings open --demo</code> shows one that changes by itself.</p>`}
    ${files.map((file) => html`<h3 class="file">${file}</h3><ul class="known">${known.servers.filter((it) => it.file === file).map(row)}</ul>`)}`;
}

export function Servers() {
  const servers = useThing('servers');
  const [target, setTarget] = useState('');
  const [known, setKnown] = useState(null);
  useEffect(() => void get('api/known').then(setKnown, () => undefined), [servers?.length]);
  // The page beside an endpoint shows its hub only.
  const isClosed = known?.closed;
  const add = async (name) => {
    const answer = await attempt(() => post('api/s', { target: name }));
    if (answer) setTarget('');
  };
  const submit = (event) => {
    event.preventDefault();
    if (target.trim()) add(target);
  };
  return html`
    <section class="column page" aria-label="servers">
      <header class="head"><h1>Servers</h1> <span class="faint">${servers?.length ?? ''}</span></header>
      <div class="body" tabindex="0" role="region" aria-label="list of servers">
        <ul class="servers">${servers?.map((it) => html`<${Server} key=${it.id} server=${it} isClosed=${isClosed} />`)}</ul>
        ${isClosed ? html`<p class="hint">This page shows one hub. To see other servers: <code>tidings open TARGET</code></p>` : html`
          <h2>Add a server</h2>
          <form class="add" onSubmit=${submit}><input data-filter aria-label="URL or name of a server" placeholder="http://127.0.0.1:8484/mcp or a name of an mcp.json"
            value=${target} onInput=${(event) => setTarget(event.target.value)} /><button class="primary">Add</button></form>
          <p class="hint">A server that is a program is started from a terminal: <code>tidings open -- COMMAND</code></p>`}
        ${known && !isClosed && html`<${Known} known=${known} add=${add} />`}
      </div>
    </section>`;
}
