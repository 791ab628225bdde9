// The lists of a server: rows that update by themselves, and the item that is chosen.
import { html, useMemo, useState } from '../vendor/preact.js';
import { post } from '../api.js';
import { attempt, go, route, useThing } from '../store.js';
import { useAct } from '../keys.js';
import { isRecent, now } from '../words.js';
import { List } from '../part/list.js';
import { Split } from '../part/split.js';
import { Call } from './call.js';
import { Resource } from './watched.js';

/** How long a removed item is shown struck out. */
const GONE = 10_000;

function Row({ item }) {
  const mark = item.isGone ? 'gone' : isRecent(item.at) ? item.mark : '';
  return html`
    <div class="item ${item.isGone ? 'gone' : ''}">
      <div class="first"><code>${item.key}</code>
        ${mark && html`<span class="badge ${{ new: 'good', changed: 'fresh', gone: 'bad' }[mark]}">${mark}</span>`}
        ${item.notes?.map((note) => html`<span class="note ${note === 'destructive' ? 'bad' : ''}">${note}</span>`)}</div>
      <div class="about">${item.title ? `${item.title}. ` : ''}${item.about ?? ''}</div>
    </div>`;
}

function Empty({ value, list }) {
  if (!value) return 'Loading…';
  if (value.error) return `Could not be listed: ${value.error}`;
  if (!value.loaded) return 'Not listed yet.';
  if (value.offered === false) return `The server does not say that it offers ${list}.`;
  return `The server offers ${list}, and has none now.`;
}

function shown(value, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const gone = (value?.gone ?? []).filter((item) => now.value - item.at < GONE).map((item) => ({ ...item, isGone: true }));
  const all = [...gone, ...(value?.rows ?? [])];
  if (words.length === 0) return all;
  return all.filter((item) => {
    const said = `${item.key} ${item.title ?? ''} ${item.about ?? ''}`.toLowerCase();
    return words.every((word) => said.includes(word));
  });
}

/** @param {{ server: number, list: string }} props */
export function Items({ server, list }) {
  const value = useThing(`s/${server}/${list}`);
  const [text, setText] = useState('');
  const { key } = route.value;
  // Ages matter only while something is about to vanish.
  const tick = value?.gone?.some((item) => now.value - item.at < GONE + 1500) ? now.value : 0;
  const items = useMemo(() => shown(value, text), [value, text, tick]);
  const choose = (item) => !item.isGone && go(list, { key: item.key });
  const refresh = () => attempt(() => post(`api/s/${server}/refresh`, { list }));
  useAct('read', refresh);
  const detail = () => {
    if (!key) return html`<p class="hint">Choose one with <kbd>j</kbd> and <kbd>k</kbd>, or press it.</p>`;
    if (list === 'resources') return html`<${Resource} key=${key} server=${server} uri=${key} />`;
    return html`<${Call} key=${list + key} server=${server} list=${list} name=${key} />`;
  };
  return html`
    <div class=${key ? 'has-detail' : ''}>
      <${Split} name="items" label="size of the list" initial=${26}>
        <section class="column" aria-label=${list}>
          <header class="head"><h1>${list}</h1> <span class="faint">${value?.rows?.length ?? ''}</span>
            <input type="search" data-filter class="filter" placeholder="filter  /" aria-label="filter ${list}"
              value=${text} onInput=${(event) => setText(event.target.value)} />
            <button onClick=${refresh} aria-label="list again">↻</button></header>
          ${value?.error && html`<p class="problem" role="alert">${value.error}</p>`}
          ${value?.cut && html`<p class="problem">Incomplete: ${value.cut}</p>`}
          ${value?.odd?.map((words) => html`<p class="problem">Not as the protocol says: ${words}</p>`)}
          <${List} items=${items} height=${44} label=${list} id=${(item) => item.key} chosen=${key}
            choose=${choose} row=${(item) => html`<${Row} item=${item} />`} empty=${Empty({ value, list })} />
        </section>
        <div class="detail">${key && html`<button class="to-list" onClick=${() => go(list)}>‹ ${list}</button>`}${detail()}</div>
      <//>
    </div>`;
}
