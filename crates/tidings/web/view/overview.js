// One server: who it is, what it announces, what went wrong. It stays readable after a loss.
import { html } from '../vendor/preact.js';
import { useThing } from '../store.js';
import { clock, span } from '../words.js';
import { state } from './servers.js';

const TELLS = {
  tools: 'changes of its tools',
  resources: 'changes of its resources',
  contents: 'changes of watched contents',
  prompts: 'changes of its prompts',
};

function Tells({ tells }) {
  const line = ([name, words]) => {
    if (tells[name] === null) return html`<li class="faint">does not offer ${name === 'contents' ? 'resources' : name}</li>`;
    return html`<li><span class=${tells[name] ? 'good-text' : 'fresh-text'}>${tells[name] ? 'will announce' : 'will not announce'}</span> ${words}</li>`;
  };
  return html`<ul>${Object.entries(TELLS).map(line)}
    <li class=${tells.log ? '' : 'faint'}>${tells.log ? 'sends log messages' : 'sends no log messages'}</li>
    <li class=${tells.completions ? '' : 'faint'}>${tells.completions ? 'completes arguments' : 'completes no arguments'}</li></ul>`;
}

const Told = ({ items, none }) => html`
  ${items.length === 0 && html`<p class="hint">${none}</p>`}
  <ul>${items.map((it) => html`<li><span class="faint">${clock(it.at)}</span> ${it.text}</li>`)}</ul>`;

/** @param {{ server: number }} props */
export function Overview({ server }) {
  const value = useThing(`s/${server}`);
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
        <div><h2>Identity</h2>
          <dl><dt>name</dt><dd>${product?.name ?? ''} ${product?.version ?? ''}</dd>
            <dt>protocol</dt><dd>${row.revision ?? ''} ${row.era ?? ''}</dd><dt>over</dt><dd>${row.over}</dd>
            <dt>place</dt><dd><code>${row.place}</code></dd><dt>last answer</dt><dd>${span(row.took)}</dd></dl></div>
        <div><h2>Announces</h2>${value.tells && html`<${Tells} tells=${value.tells} />`}</div>
        ${value.instructions && html`<div class="wide"><h2>Instructions</h2><p class="text">${value.instructions}</p></div>`}
        <div><h2>Losses</h2><${Told} items=${value.losses} none="The connection was never lost." /></div>
        <div><h2>Warnings</h2><${Told} items=${value.warnings} none="Nothing is odd about this server so far." /></div>
        ${value.stderr.length > 0 && html`<div class="wide"><h2>Standard error</h2>
          <pre tabindex="0" role="region" aria-label="standard error">${value.stderr.join('\n')}</pre></div>`}
      </div>
    </section>`;
}
