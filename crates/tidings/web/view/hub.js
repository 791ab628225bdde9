// A hub of this program: who listens to what, and what became of every change.
import { html } from '../vendor/preact.js';
import { useThing } from '../store.js';
import { age, clock, count, span } from '../words.js';

const Number_ = ({ value, words }) => html`<div><b>${count(value)}</b><span>${words}</span></div>`;

/** What became of a change, in words, and its colour. */
function became({ became: outcome, listeners, merged, times }) {
  const all = {
    announced: ['good-text', `announced to ${listeners}`],
    equal: ['faint', 'equal content, not sent'],
    unfollowed: ['faint', 'nobody follows it'],
    withheld: ['fresh-text', `not for the revision of ${listeners}`],
  };
  const [colour, words] = all[outcome] ?? ['', outcome];
  return [colour, `${words}${merged ? `, ${merged} merged` : ''}${times > 1 ? `, ${times} times` : ''}`];
}

function Pane({ title, about, columns, rows, row, empty }) {
  return html`
    <section class="column" aria-label=${title}>
      <header class="head"><h2>${title}</h2> <span class="faint">${about}</span></header>
      <div class="body" tabindex="0" role="region" aria-label="${title}, rows">
        ${rows.length === 0 ? html`<p class="hint">${empty}</p>` : html`
          <table><thead><tr>${columns.map(([name, kind]) => html`<th class=${kind ?? ''}>${name}</th>`)}</tr></thead>
            <tbody>${rows.map(row)}</tbody></table>`}
      </div>
    </section>`;
}

const right = (value) => html`<td class="right">${value}</td>`;

function Listener(it) {
  const more = it.uris - it.follows.length;
  const follows = html`<details class="follows"><summary aria-label="follows ${it.lists.length + it.uris}">${count(it.lists.length + it.uris)}</summary>
    <ul>${[...it.lists, ...it.follows].map((what) => html`<li>${what}</li>`)}${more > 0 && html`<li>and ${count(more)} more</li>`}</ul></details>`;
  const isSelf = it.over === 'stdio' && it.client?.startsWith('tidings ');
  return html`<tr key=${it.id}><td><code>${it.client ?? 'unnamed client'}</code>${isSelf && html` <span class="faint">this console</span>`}${it.labels && html` <span class="faint">${it.labels}</span>`}</td>
    <td class="less">${it.era}</td><td class="less">${isSelf ? 'memory' : it.over}</td>${right(age(it.since))}
    ${right(follows)}${right(count(it.told))}
    <td class="right ${it.waiting ? 'fresh-text' : ''}">${count(it.waiting)}</td></tr>`;
}

function Source(it) {
  const colour = { good: 'good-text', degraded: 'fresh-text', failing: 'bad-text' }[it.state];
  return html`<tr key=${it.name}><td><code>${it.name}</code></td><td class=${colour}>${it.state}</td>${right(count(it.items))}
    <td>${it.words ?? ''}${it.again ? ` again in ${span(it.again)}` : ''}</td></tr>`;
}

const Watched = (it) => html`<tr key=${it.uri}><td><code>${it.uri}</code></td>${right(count(it.listeners))}${right(count(it.changes))}</tr>`;

function Change(it) {
  const [colour, words] = became(it);
  return html`<tr key=${it.n}><td class="faint">${clock(it.at)}</td><td><code>${it.what}</code></td><td class=${colour}>${words}</td></tr>`;
}

export function Hub() {
  const value = useThing('hub');
  if (value === undefined) return html`<p class="hint">Loading…</p>`;
  if (!value) return html`<p class="hint">None of these servers is a hub of this program.</p>`;
  const { totals } = value;
  return html`
    <div class="hub">
      <h1 class="hidden">Hub</h1>
      <div class="numbers">
        <${Number_} value=${value.listening} words="listeners" /><${Number_} value=${value.subscriptions} words="subscriptions" />
        <${Number_} value=${totals.changes} words="changes" /><${Number_} value=${totals.notices} words="notices" />
        <${Number_} value=${totals.merged} words="merged" /><${Number_} value=${totals.equal} words="equal, not sent" />
        ${totals.missed > 0 && html`<${Number_} value=${totals.missed} words="events not seen" />`}
      </div>
      <div class="census"><${Pane} title="Listeners" about="${value.listening - value.modern} legacy, ${value.modern} modern"
        columns=${[['client'], ['era', 'less'], ['over', 'less'], ['since', 'right'], ['follows', 'right'], ['sent', 'right'], ['waiting', 'right']]}
        rows=${value.listeners} row=${Listener} empty="Nobody listens. Connect an MCP client to the endpoint that \`tidings serve\` printed, for example with \`tidings watch URL\`." />
      <${Pane} title="Watched resources" about=${`${count(value.uris)} ${value.uris === 1 ? 'URI' : 'URIs'}`} columns=${[['URI'], ['listeners', 'right'], ['changes', 'right']]}
        rows=${value.watched} row=${Watched} empty="No client watches a resource." />
      <${Pane} title="Sources" about=${count(value.sources.length)} columns=${[['source'], ['state'], ['items', 'right'], ['reason']]}
        rows=${value.sources} row=${Source} empty="The hub has no sources." /></div>
      <${Pane} title="Changes" about="and what became of each, the newest first" columns=${[['time'], ['what'], ['became']]}
        rows=${value.ledger} row=${Change} empty="Nothing changed yet." />
    </div>`;
}
