// Watched resources, and one resource with all its versions and their differences.
import { html, useEffect, useState } from '../vendor/preact.js';
import { get, post } from '../api.js';
import { attempt, go, route, say, useThing } from '../store.js';
import { useAct } from '../keys.js';
import { age, clock, now, size, span } from '../words.js';
import { Diff } from '../part/diff.js';
import { List } from '../part/list.js';
import { Markdown } from '../part/markdown.js';
import { Times } from '../part/spark.js';
import { Split } from '../part/split.js';
import { Tree } from '../part/tree.js';
import { Timeline } from './timeline.js';

/** How long a change is fresh. */
const FRESH = 4000;

const act = (server, name, uri) => attempt(() => post(`api/s/${server}/${name}`, { uri }));

/** Each version as a bar. Shift compares the chosen one with another that is not the one before. */
function Bars({ versions, chosen, against, choose, compare }) {
  const most = Math.max(1, ...versions.map((it) => it.added + it.removed));
  const bar = (it) => html`
    <button class="version ${it.n === chosen ? 'chosen' : ''} ${it.n === against ? 'against' : ''} ${it.removed > it.added ? 'less' : ''}"
      title="v${it.n}, ${clock(it.at)}; Shift compares it with v${chosen}" aria-label="version ${it.n}: ${it.added} lines added, ${it.removed} removed"
      aria-pressed=${it.n === chosen ? 'true' : 'false'} onClick=${(event) => (event.shiftKey ? compare(it.n) : choose(it.n))}>
      <span style=${{ height: `${Math.max(8, ((it.added + it.removed) / most) * 100)}%` }}></span></button>`;
  return html`<div class="versions" role="group" aria-label="versions">${versions.map(bar)}</div>`;
}

/** What the chosen tab shows; older versions are asked for. */
function Body({ server, uri, tab, value, chosen, against }) {
  const last = value.versions.at(-1)?.n ?? 0;
  const version = chosen ?? last;
  const [loaded, setLoaded] = useState(null);
  const isNewest = version === last && !against;
  const from = against ?? version - 1;
  useEffect(() => {
    setLoaded((old) => (old?.version === version && old.tab === tab && old.from === from ? old : null));
    if (tab === 'raw' || (tab === 'diff' && isNewest) || !version) return;
    const words = tab === 'diff' ? { uri, n: version, from } : { uri, n: version };
    get(`api/s/${server}/version`, words).then((it) => setLoaded({ ...it, version, tab, from }), () => setLoaded({ missing: true }));
  }, [tab, version, uri, from]);
  if (!version) return html`<p class="hint">Reading…</p>`;
  if (tab === 'raw') return html`<${Tree} key=${version} server=${server} of=${`version:${version}:${uri}`} label="raw result" />`;
  if (tab === 'diff') {
    const diff = isNewest ? value.diff : loaded?.diff;
    const first = version === 1 ? 'This is the first version; changes are shown here when they come.' : 'the version before it is not kept';
    return html`<${Diff} diff=${diff} same=${diff ? 'equal lines' : first} />`;
  }
  if (loaded?.missing) return html`<p class="hint">This version is not kept any more.</p>`;
  return html`${loaded?.nodes ? html`<div class="content" tabindex="0" role="region" aria-label="content"><${Markdown} nodes=${loaded.nodes} /></div>`
    : html`<pre class="content" tabindex="0" role="region" aria-label="content">${loaded?.text ?? ''}</pre>`}
    ${loaded?.cut && html`<p class="hint">The beginning of ${size(loaded.bytes)}.</p>`}`;
}

/** @param {{ server: number, uri: string }} props */
export function Resource({ server, uri }) {
  const value = useThing(`s/${server}/watched/${uri}`);
  const servers = useThing('servers');
  const [tab, setTab] = useState('');
  const [chosen, setChosen] = useState(null);
  const [against, setAgainst] = useState(null);
  useEffect(() => {
    setChosen(null);
    setAgainst(null);
    if (value === null) act(server, 'read', uri);
  }, [uri, value === null]);
  const place = servers?.find((it) => it.id === server)?.place ?? '';
  const copy = () => {
    const line = `tidings watch ${place} ${uri}`;
    navigator.clipboard.writeText(line).then(() => say(`copied: ${line}`), () => say(line));
  };
  const read = () => act(server, 'read', uri);
  const watch = () => act(server, value?.watched ? 'unwatch' : 'watch', uri);
  useAct('read', read);
  useAct('watch', watch);
  useAct('copy', copy);
  useAct('copy-value', async () => {
    const content = await attempt(() => get(`api/s/${server}/version`, { uri, n: chosen ?? 0 }));
    if (content) navigator.clipboard.writeText(content.text).then(() => say('copied the content'), () => say('the browser refused to copy', true));
  });
  const last = value?.versions?.at(-1);
  const compare = (n) => {
    const other = chosen ?? last.n;
    if (n === other) return;
    setAgainst(Math.min(n, other));
    setChosen(Math.max(n, other));
    setTab('diff');
  };
  const current = tab || (value?.watched && value.versions.length > 1 ? 'diff' : 'content');
  const delay = last?.delay;
  const state = () => {
    if (!value) return 'reading';
    if (value.gone) return `gone: ${value.gone}`;
    if (!value.watched) return 'not watched';
    return value.fresh ? 'fresh until a notice' : 'stale: not connected';
  };
  return html`
    <section class="column" aria-label=${uri}>
      <header class="head"><h2 class="data">${uri}</h2>
        <div class="tabs" role="group" aria-label="view">${['diff', 'content', 'raw'].map((it) => html`
          <button class=${it === current ? 'on' : ''} aria-pressed=${it === current ? 'true' : 'false'} onClick=${() => setTab(it)}>${it}</button>`)}</div>
        <span class="space"></span>
        <span class="deeds"><button onClick=${read}>Read <kbd>r</kbd></button>
          <button onClick=${watch}>${value?.watched ? 'Stop' : 'Watch'} <kbd>w</kbd></button>
          <button class="wide-only" onClick=${copy}>Copy as command <kbd>y</kbd></button></span></header>
      <div class="facts">
        <span class="dot ${value?.fresh ? 'good' : 'idle'}" aria-hidden="true"></span><span>${state()}</span>
        ${delay !== null && delay !== undefined && html`<span>notice to content <b>${span(delay)}</b></span>`}
        <span>${value?.mime ?? ''} <b>${size(value?.bytes)}</b></span>
        ${value?.watched && html`<span>changes <b>${value.changes}</b>, merged <b>${value.merged}</b>, spurious <b>${value.spurious}</b></span>`}
      </div>
      ${value?.versions?.length > 0 && html`<div class="history">
        <${Bars} versions=${value.versions} chosen=${chosen ?? last.n} against=${against} choose=${(n) => { setChosen(n === last.n ? null : n); setAgainst(null); }} compare=${compare} />
        ${against ? html`<button class="chip on" onClick=${() => setAgainst(null)}>v${against} → v${chosen ?? last.n} ×</button>` : html`
          <span class="faint">v${chosen ?? last.n} · ${clock((value.versions.find((it) => it.n === chosen) ?? last).at)}</span>`}</div>`}
      <div class="body">${value?.versions && html`<${Body} server=${server} uri=${uri} tab=${current} value=${value} chosen=${chosen} against=${against} />`}</div>
    </section>`;
}

function Row({ item }) {
  const isFresh = now.value - item.at < FRESH;
  return html`
    <div class="watch-row">
      <span class="dot ${item.gone ? 'bad' : !item.version ? 'idle' : isFresh ? 'fresh' : 'good'}" aria-hidden="true"></span>
      <code>${item.uri}</code>
      <${Times} times=${item.times} label="changes of the last five minutes" />
      <span class="number">${item.version > 0 ? item.version - 1 : ''}</span>
      <span class="age ${isFresh ? 'fresh-text' : ''}">${item.gone ? 'gone' : age(item.at)}</span>
    </div>`;
}

function Add({ server }) {
  const [uri, setUri] = useState('');
  const offered = useThing(`s/${server}/resources`)?.rows ?? [];
  const add = (event) => {
    event.preventDefault();
    if (uri.trim()) act(server, 'watch', uri.trim()).then(() => setUri(''));
  };
  return html`
    <form class="add" onSubmit=${add}>
      <input list="offered" placeholder="watch a URI" aria-label="watch a URI" value=${uri} onInput=${(event) => setUri(event.target.value)} />
      <datalist id="offered">${offered.slice(0, 100).map((it) => html`<option value=${it.key} />`)}</datalist>
      <button>Watch</button></form>`;
}

/** What could be watched, if nothing is. */
function Candidates({ server }) {
  const rows = useThing(`s/${server}/resources`)?.rows ?? [];
  return html`
    <div class="body"><p class="hint">Nothing is watched. <kbd>w</kbd> watches the chosen resource.</p>
      <ul class="known">${rows.slice(0, 12).map((it) => html`<li><button onClick=${() => act(server, 'watch', it.key)} aria-label="watch ${it.key}">Watch</button> <code>${it.key}</code></li>`)}</ul></div>`;
}

/** The watched resources above the timeline: what changes, and the messages that say so. */
export function Watched({ server }) {
  const value = useThing(`s/${server}/watched`);
  const items = value?.rows ?? [];
  const { key } = route.value;
  const uri = key || items[0]?.uri;
  const changes = items.reduce((sum, it) => sum + Math.max(0, it.version - 1), 0);
  return html`
    <${Split} name="live" label="size of the watched resources" across initial=${46}>
      <${Split} name="watched" label="size of the list" initial=${36}>
        <section class="column" aria-label="watched">
          <header class="head"><h1>Watched</h1> <span class="faint">${items.length} resources, ${changes} changes</span></header>
          ${value?.refused?.map((it) => html`<p class="problem">${it.uri}: ${it.why}</p>`)}
          ${value && items.length === 0 ? html`<${Candidates} server=${server} />` : html`<${List} items=${items} height=${30} label="watched" id=${(it) => it.uri} chosen=${uri}
            choose=${(it) => go('watched', { key: it.uri })} row=${(it) => html`<${Row} item=${it} />`}
            empty="Loading…" />`}
          <${Add} server=${server} />
        </section>
        ${uri ? html`<${Resource} key=${uri} server=${server} uri=${uri} />` : html`<p class="hint">Each version of a watched resource is shown here, with its difference.</p>`}
      <//>
      <${Timeline} server=${server} isBelow />
    <//>`;
}
