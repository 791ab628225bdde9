// A JSON tree over windows: the console sends the children of a node when it is opened.
import { html, useEffect, useState } from '../vendor/preact.js';
import { get } from '../api.js';
import { size } from '../words.js';

/** The children of a node that are asked for at once. */
const WINDOW = 200;
/** How many children a node may have to be opened by itself, and how deep. */
const FEW = 12;
const DEPTH = 2;

function useWindow(source, at) {
  const [state, setState] = useState({ nodes: [], total: 0 });
  const load = async (from) => {
    try {
      const { server, of } = source;
      const answer = await get(`api/s/${server}/value`, { of, at, from, count: WINDOW });
      setState((old) => ({ nodes: from ? [...old.nodes, ...answer.nodes] : answer.nodes, total: answer.total }));
    } catch (error) {
      setState({ nodes: [], total: 0, error: error.message });
    }
  };
  useEffect(() => void load(0), [source.server, source.of, at]);
  return [state, load];
}

function Scalar({ node }) {
  const more = node.length ? html` <span class="faint">… ${size(node.length)}</span>` : '';
  if (node.kind === 'string') return html`<span class="string">"${node.text}"</span>${more}`;
  return html`<span class=${node.kind}>${node.text}</span>`;
}

function Node({ source, node, depth }) {
  const isBranch = node.count !== undefined;
  const [isOpen, setOpen] = useState(isBranch && depth < DEPTH && node.count <= FEW);
  if (!isBranch || node.count === 0) {
    const empty = node.kind === 'array' ? '[]' : '{}';
    return html`<li><span class="leaf"><span class="key">${node.key}</span> ${isBranch ? empty : html`<${Scalar} node=${node} />`}</span></li>`;
  }
  const shape = node.kind === 'array' ? `[${node.count}]` : `{${node.count}}`;
  return html`
    <li>
      <button class="branch" aria-expanded=${isOpen ? 'true' : 'false'} onClick=${() => setOpen(!isOpen)}>
        <span class="turn" aria-hidden="true">${isOpen ? '▾' : '▸'}</span><span class="key">${node.key}</span>
        <span class="faint"> ${shape}</span>${!isOpen && html`<span class="faint"> ${node.text}</span>`}
      </button>
      ${isOpen && html`<${Branch} source=${source} at=${node.at} depth=${depth + 1} />`}
    </li>`;
}

function Branch({ source, at, depth }) {
  const [{ nodes, total, error }, load] = useWindow(source, at);
  if (error) return html`<p class="hint">${error}</p>`;
  return html`
    <ul>
      ${nodes.map((node) => html`<${Node} key=${node.at} source=${source} node=${node} depth=${depth} />`)}
      ${nodes.length < total && html`<li><button class="branch" onClick=${() => load(nodes.length)}>
        ${total - nodes.length} more…</button></li>`}
    </ul>`;
}

/** @param {{ server: number, of: string, at?: string, label: string }} props */
export function Tree({ server, of, at = '', label }) {
  const [word, setWord] = useState('');
  const [found, setFound] = useState(null);
  const search = async (event) => {
    const text = event.target.value;
    setWord(text);
    if (text.length < 2) return setFound(null);
    const answer = await get(`api/s/${server}/value`, { of, find: text });
    return setFound(answer.found);
  };
  const [shown, setShown] = useState('');
  return html`
    <div class="tree" tabindex="0" role="region" aria-label=${label}>
      <input class="find" type="search" placeholder="find" aria-label="find in ${label}" value=${word} onInput=${search} />
      ${found && html`<div class="found">${found.length === 0 ? 'not found' : `${found.length === 200 ? '200 or more' : found.length} places`}
        ${found.slice(0, 20).map((it) => html`<button onClick=${() => setShown(it)}>${it}</button>`)}</div>`}
      ${shown && html`<div class="found"><button onClick=${() => setShown('')}>whole value</button> ${shown}</div>`}
      <${Branch} key=${of + shown + at} source=${{ server, of }} at=${shown || at} depth=${0} />
    </div>`;
}
