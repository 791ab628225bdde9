// The cache: every content and result that is kept, and how long it may be used.
import { html, useRef } from '../vendor/preact.js';
import { post } from '../api.js';
import { attempt, useThing } from '../store.js';
import { age, count, now, size, span } from '../words.js';

/** The time that an entry may still be used, which runs while it is shown. */
function Left({ row }) {
  const seen = useRef({ left: row.left, at: Date.now() });
  if (seen.current.left !== row.left) seen.current = { left: row.left, at: Date.now() };
  const left = Math.max(0, row.left - Math.max(0, now.value - seen.current.at));
  const whole = Math.max(1, seen.current.at + row.left - row.at);
  return left > 0 ? html`<progress class="left" aria-label="time left" max="1" value=${left / whole}></progress> for ${span(left)}` : 'no';
}

function Row({ server, row }) {
  const clear = () => attempt(() => post(`api/s/${server}/clear`, { kind: row.kind, key: row.key }));
  const isFresh = row.fresh !== 'no';
  return html`
    <tr><td>${row.kind}</td><td><code>${row.key}</code></td><td class="right">${size(row.bytes)}</td><td class="right">${age(row.at)} ago</td>
      <td><span class="dot ${isFresh ? 'good' : 'idle'}" aria-hidden="true"></span> ${row.fresh === 'for' ? html`<${Left} row=${row} />` : row.fresh}</td>
      <td><button onClick=${clear} aria-label="clear ${row.key}">Clear</button></td></tr>`;
}

/** @param {{ server: number }} props */
export function Cache({ server }) {
  const value = useThing(`s/${server}/cache`);
  const clear = () => attempt(() => post(`api/s/${server}/clear`, {}));
  return html`
    <section class="column page" aria-label="cache">
      <header class="head"><h1>Cache</h1>
        <span class="faint">${count(value?.entries)} entries, ${size(value?.bytes) || '0 B'} of ${size(value?.limits.bytes)}; ${count(value?.hits)} hits, ${count(value?.misses)} misses, ${count(value?.evictions)} evicted</span>
        <span class="space"></span><button onClick=${clear} disabled=${!value?.entries}>Clear all</button></header>
      <div class="body" tabindex="0" role="region" aria-label="entries">
        ${value?.rows.length === 0 && html`<p class="hint">Nothing is kept. Contents that were read and results of calls come here.</p>`}
        ${value?.rows.length > 0 && html`<table><thead><tr><th>kind</th><th>name</th><th class="right">size</th><th class="right">read</th><th>fresh</th><th><span class="hidden">act</span></th></tr></thead>
          <tbody>${value.rows.map((row) => html`<${Row} key=${row.kind + row.key} server=${server} row=${row} />`)}</tbody></table>`}
        ${value?.entries > value?.rows.length && html`<p class="hint">${value.entries - value.rows.length} more entries</p>`}
      </div>
    </section>`;
}
