// One server: who it is, what it announces, what went wrong. It stays readable after a loss.
import { html } from '../vendor/preact.js';
import { useThing } from '../store.js';
import { clock, count, span } from '../words.js';
import { Doctor } from '../part/doctor.js';
import { Markdown } from '../part/markdown.js';
import { Bars } from '../part/spark.js';
import { state } from './servers.js';

const TELLS = { tools: 'changes of its tools', resources: 'changes of its resources', contents: 'changes of watched contents', prompts: 'changes of its prompts' };
/** What this console declares to servers. */
const WE = ['answers requests for input', 'answers requests for samples of a model'];

function Tells({ tells }) {
  const line = ([name, words]) => {
    if (tells[name] === null) return html`<li class="faint"><span class="sign">–</span> does not offer ${name === 'contents' ? 'resources' : name}</li>`;
    return html`<li><span class="sign ${tells[name] ? 'good-text' : 'fresh-text'}">${tells[name] ? '✓' : '✕'}</span> ${tells[name] ? 'will announce' : 'will not announce'} ${words}</li>`;
  };
  const other = (has, yes, no) => html`<li class=${has ? '' : 'faint'}><span class="sign ${has ? 'good-text' : ''}">${has ? '✓' : '–'}</span> ${has ? yes : no}</li>`;
  return html`<ul>${Object.entries(TELLS).map(line)}
    ${other(tells.log, 'sends log messages', 'sends no log messages')}${other(tells.completions, 'completes arguments', 'completes no arguments')}</ul>`;
}

const Told = ({ items, none }) => html`
  ${items.length === 0 && html`<p class="none">${none}</p>`}
  <ul>${items.map((it) => html`<li><span class="faint mono">${clock(it.at)}</span> ${it.text}</li>`)}</ul>`;

/** The times of the last answers, as bars. */
function Latency({ times }) {
  if (!times?.length) return html`<dd>no answer yet</dd>`;
  const sorted = [...times].sort((one, other) => one - other);
  return html`<dd class="latency">${span(times.at(-1))} <${Bars} counts=${times} label="times of the last ${times.length} answers" />
    <span class="faint">median ${span(sorted[sorted.length >> 1])}, longest ${span(sorted.at(-1))}</span></dd>`;
}

/** @param {{ server: number }} props */
export function Overview({ server }) {
  const value = useThing(`s/${server}`);
  const took = useThing(`s/${server}/latency`);
  const row = useThing('servers')?.find((it) => it.id === server);
  if (!value || !row) return html`<p class="hint">Loading…</p>`;
  const [colour, words] = state(row);
  const { product } = row;
  return html`
    <section class="column page ${value.ready ? '' : 'off'}" aria-label="overview">
      <header class="head"><h1>${product?.title ?? product?.name ?? row.name}</h1>
        <span class="dot ${colour}" aria-hidden="true"></span> <span>${words}</span>
        ${row.since && html`<span class="faint">since ${clock(row.since)}</span>`}</header>
      <div class="body cards" tabindex="0" role="region" aria-label="facts">
        ${!value.ready && html`<div class="wide"><h2>Connection</h2><${Doctor} server=${row} /></div>`}
        <div><h2>Identity</h2>
          <dl><dt>name</dt><dd>${product?.name ?? ''} ${product?.version ?? ''}</dd>
            <dt>protocol</dt><dd>${row.revision ?? ''} ${row.era ?? ''}</dd><dt>over</dt><dd>${row.over}</dd>
            <dt>place</dt><dd><code>${row.place}</code></dd><dt>answers in</dt><${Latency} times=${took} />
            <dt>notices</dt><dd>${value.stream ?? 'no stream of notices'}</dd>
            <dt>messages</dt><dd>${count(row.rows)} rows</dd></dl></div>
        <div><h2>The server</h2>${value.tells ? html`<${Tells} tells=${value.tells} />` : html`<p class="none">It was not connected yet.</p>`}
          <h2>This console</h2><ul>${WE.map((it) => html`<li><span class="sign good-text">✓</span> ${it}</li>`)}<li class="faint"><span class="sign">–</span> offers no roots</li></ul></div>
        <div><h2>Losses</h2><${Told} items=${value.losses} none="The connection was never lost." />
          <h2>Warnings</h2><${Told} items=${value.warnings} none="Nothing is odd about this server so far." /></div>
        ${value.instructions && html`<div class="wide"><h2>Instructions</h2><${Markdown} nodes=${value.instructions} /></div>`}
        ${value.stderr.length > 0 && html`<div class="wide"><h2>Standard error</h2>
          <pre tabindex="0" role="region" aria-label="standard error">${value.stderr.join('\n')}</pre></div>`}
      </div>
    </section>`;
}
