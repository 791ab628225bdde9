// The frame of the page: bar, parts, the view that is chosen, foot.
import { effect, html, render, signal, useEffect } from './vendor/preact.js';
import { takeToken } from './api.js';
import { go, link, notice, pull, route, useThing } from './store.js';
import { helpShown, keys, paletteShown, run, startKeys, theme, toggleTheme } from './keys.js';
import { Rate } from './part/spark.js';
import { age, count, isRecent } from './words.js';

const OFFERED = [['overview', 'Overview'], ['tools', 'Tools'], ['resources', 'Resources'], ['templates', 'Templates'], ['prompts', 'Prompts']];
const LIVE = [['watched', 'Watched'], ['timeline', 'Timeline'], ['inbox', 'Inbox'], ['cache', 'Cache']];
/** The parts of the dock, each with a path in a square of 20. */
const DOCK = [
  ['watched', 'Live', 'M2 11h4l2-7 4 13 2-6h4'], ['tools', 'Items', 'M4 5h12M4 10h12M4 15h12'], ['timeline', 'Timeline', 'M3 5h6M7 10h7M11 15h6'],
  ['inbox', 'Inbox', 'M3 11l3-7h8l3 7v5H3zM3 11h4l1 2h4l1-2h4'], ['servers', 'Servers', 'M3 4h14v5H3zM3 11h14v5H3zM6 6.5h.01M6 13.5h.01'],
];

/** Views are loaded when they are first shown. */
const VIEWS = {
  servers: () => import('./view/servers.js').then((it) => it.Servers),
  overview: () => import('./view/overview.js').then((it) => it.Overview),
  watched: () => import('./view/watched.js').then((it) => it.Watched),
  timeline: () => import('./view/timeline.js').then((it) => it.Timeline),
  inbox: () => import('./view/inbox.js').then((it) => it.Inbox),
  cache: () => import('./view/cache.js').then((it) => it.Cache),
  palette: () => import('./view/palette.js').then((it) => it.Palette),
  hub: () => import('./view/hub.js').then((it) => it.Hub),
  help: () => import('./view/help.js').then((it) => it.Help),
  items: () => import('./view/items.js').then((it) => it.Items),
};
const loaded = signal({});

function useView(name) {
  useEffect(() => {
    if (name && !loaded.value[name]) VIEWS[name]().then((view) => (loaded.value = { ...loaded.value, [name]: view }));
  }, [name]);
  return loaded.value[name];
}

const COLOURS = { ready: 'good', connecting: 'fresh', retrying: 'fresh', lost: 'bad' };

function Bar({ servers, server, questions }) {
  const tab = (it) => html`
    <a href="#/s/${it.id}/watched" data-server=${it.id} class="tab ${it.id === route.value.server ? 'on' : ''}"
      aria-current=${it.id === route.value.server ? 'page' : undefined}
      onClick=${(event) => { event.preventDefault(); go(['servers', 'inbox', 'hub', ''].includes(route.value.part) ? 'watched' : route.value.part, { server: it.id }); }}>
      <span class="dot ${COLOURS[it.state.state] ?? 'idle'}" aria-hidden="true"></span>${it.name}
      ${it.state.state !== 'ready' && html`<span class="faint"> ${it.state.state}</span>`}</a>`;
  return html`
    <header class="bar">
      <a class="brand" href="#/servers"><svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true"><circle cx="4" cy="10" r="2"/><path d="M8 5a7 7 0 0 1 0 10M11 3a10 10 0 0 1 0 14M14 1a13 13 0 0 1 0 18"/></svg>tidings</a>
      <nav class="servers-nav" aria-label="servers">${servers.map(tab)}
        <a href="#/servers" class="tab add-tab" aria-label="add a server">+</a></nav>
      <span class="space"></span>
      <button class="find-button" onClick=${() => run('find')}>Find or run… <kbd>Ctrl K</kbd></button>
      ${server && html`<${Rate} rate=${server.rate} />`}
      ${questions > 0 && html`<a class="asks" href="#/inbox">${questions} ${questions === 1 ? 'question' : 'questions'}</a>`}
      <span class="link-state ${link.value}" role="status">${{ loading: 'connecting', live: 'live', gone: 'the console ended', locked: 'locked' }[link.value]}</span>
      <button onClick=${toggleTheme} aria-label="light or dark">◐</button>
    </header>`;
}

function Parts({ server, questions }) {
  const marks = (name) => {
    const list = server?.lists[name];
    if (!list || !isRecent(list.at)) return '';
    return html`${list.new > 0 && html`<span class="badge good">+${list.new}</span>`}${list.changed > 0 && html`<span class="badge fresh">~${list.changed}</span>`}`;
  };
  const number = (name) => {
    if (name === 'inbox') return questions || '';
    if (!server) return '';
    if (name === 'watched') return server.watched || '';
    if (name === 'timeline') return count(server.rows);
    return server.lists[name]?.count ?? '';
  };
  const part = ([name, words]) => html`
    <a href=${server && !['inbox', 'servers'].includes(name) ? `#/s/${server.id}/${name}` : `#/${name}`} class=${`${name === route.value.part ? 'on' : ''} ${name === 'servers' ? 'last' : ''}`} aria-current=${name === route.value.part ? 'page' : undefined}>
      ${words} ${name === 'inbox' && questions > 0 ? html`<span class="badge fresh">asks</span>` : marks(name)}<span class="number">${number(name)}</span></a>`;
  const { product } = server ?? {};
  return html`
    <nav class="parts" aria-label="parts">
      ${server && html`<div class="identity"><b>${server.name}</b><span>${product ? `${product.name} ${product.version}` : ''} · ${server.over}</span>
        <span>${server.revision ?? ''} ${server.era ?? ''}</span>
        <span>${server.state.state === 'ready' ? `up ${age(server.since)}` : server.state.state} · ${server.losses} ${server.losses === 1 ? 'loss' : 'losses'}</span></div>${OFFERED.map(part)}`}
      ${server ? html`<h2>Live</h2>${LIVE.map(part)}` : part(['inbox', 'Inbox'])}
      ${server?.hub && html`<h2>This hub</h2>${part(['hub', 'Hub'])}`}
      ${part(['servers', 'Servers'])}
    </nav>`;
}

function Foot() {
  const shown = keys.value.filter((it) => it.shown);
  return html`
    <footer class="foot">${shown.map((it) => html`<button tabindex="-1" onClick=${() => run(it.act)}><kbd>${it.key}</kbd> ${it.words}</button>`)}
      <span class="space"></span>${notice.value && html`<span class=${notice.value.isBad ? 'bad-text' : ''} role="status">${notice.value.text}</span>`}</footer>`;
}

function Dock({ server, questions }) {
  const to = ([name, words, path]) => html`
    <a href=${server && !['inbox', 'servers'].includes(name) ? `#/s/${server.id}/${name}` : `#/${name}`} class=${route.value.part === name ? 'on' : ''}>
      <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true"><path d=${path} /></svg>
      <span>${words}${name === 'inbox' && questions > 0 ? html` <span class="badge fresh">${questions}</span>` : ''}</span></a>`;
  return html`<nav class="dock" aria-label="dock">${DOCK.map(to)}</nav>`;
}

function Locked() {
  return html`<main class="locked"><h1>This page needs its link</h1>
    <p>Open the link that <code>tidings open</code> printed. It ends with <code>#token=…</code>, which this browser does not have.</p></main>`;
}

function App() {
  const servers = useThing('servers') ?? [];
  useEffect(() => {
    const { server, part } = route.value;
    const isKnown = servers.some((it) => it.id === server);
    if (!part && servers.length > 0) go('watched', { server: servers[0].id });
    else if (server && servers.length > 0 && !isKnown) go('servers', { server: null });
  }, [servers, route.value]);
  const { part, server: id } = route.value;
  const isItems = ['tools', 'resources', 'templates', 'prompts'].includes(part);
  const name = isItems ? 'items' : VIEWS[part] ? part : link.value === 'live' && servers.length === 0 ? 'servers' : '';
  const View = useView(name);
  const Help = useView(helpShown.value ? 'help' : '');
  const Palette = useView(paletteShown.value ? 'palette' : '');
  if (link.value === 'locked') return html`<${Locked} />`;
  const server = servers.find((it) => it.id === id) ?? servers[0];
  const questions = servers.reduce((sum, it) => sum + it.questions, 0);
  const isReady = View && (['servers', 'inbox'].includes(name) || servers.some((it) => it.id === id));
  return html`
    <${Bar} servers=${servers} server=${server} questions=${questions} />
    <${Parts} server=${server} questions=${questions} />
    <main>${isReady && html`<${View} key=${`${name}${id}${isItems ? part : ''}`} server=${id} list=${part} />`}</main>
    <${Foot} />
    <${Dock} server=${server} questions=${questions} />
    ${helpShown.value && Help && html`<${Help} />`}
    ${paletteShown.value && Palette && html`<${Palette} />`}`;
}

takeToken();
effect(() => {
  if (theme.value) document.documentElement.dataset.theme = theme.value;
});
render(html`<${App} />`, document.getElementById('app'));
pull();
startKeys().catch(() => undefined);
