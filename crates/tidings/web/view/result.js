// What came of calls: the result, what changed since the last one, and what it set off.
import { html, useEffect, useState } from '../vendor/preact.js';
import { get, remove } from '../api.js';
import { attempt, go, useThing } from '../store.js';
import { useAct } from '../keys.js';
import { clock, now, size, span } from '../words.js';
import { Diff } from '../part/diff.js';
import { Markdown } from '../part/markdown.js';
import { Tree } from '../part/tree.js';

const WORDS = { runs: 'runs', ok: 'ok', failed: 'the tool failed', error: 'no result', cancelled: 'cancelled' };

function Block({ block }) {
  const what = [block.role, block.kind, block.mime, block.uri, size(block.bytes)].filter(Boolean).join(' · ');
  return html`
    <div class="block"><div class="faint">${what}${block.cut ? ' · the beginning' : ''}</div>
      ${block.nodes ? html`<${Markdown} nodes=${block.nodes} />` : block.text !== null && html`<pre>${block.text}</pre>`}</div>`;
}

function Effects({ server, effects }) {
  if (!effects?.length) return html`<p class="hint">Nothing that was seen: no notice, no read, no change.</p>`;
  return html`<ul class="effects">${effects.map((row) => html`
    <li><button onClick=${() => go('timeline', { server, key: String(row.n) })}>
      <span class="lane-${row.lane}">${row.what}</span> ${row.of ?? ''} <span class="faint">${row.status ?? ''}</span></button></li>`)}</ul>`;
}

function Running({ server, run }) {
  const { done, total, message } = run.progress ?? {};
  const cancel = () => attempt(() => remove(`api/s/${server}/call/${run.n}`));
  useAct('cancel', cancel);
  return html`
    <div class="running">
      <progress aria-label="progress" max=${total ?? 1} value=${total ? done : undefined}></progress>
      <span>${message ?? ''} ${span(now.value - run.at)}</span>
      <button onClick=${cancel}>Cancel <kbd>x</kbd></button>
    </div>`;
}

function Shown({ server, run, result, tab }) {
  if (run.state === 'runs') return html`<${Running} server=${server} run=${run} />`;
  if (run.state === 'error') return html`<p class="problem" role="alert">${run.why}</p>`;
  if (run.state === 'cancelled') return html`<p class="hint">It was cancelled.</p>`;
  if (!result) return html`<p class="hint">Loading…</p>`;
  switch (tab) {
    case 'structured':
      return html`<${Tree} server=${server} of=${`result:${run.n}`} at="/structuredContent" label="structured result" />`;
    case 'raw':
      return html`<${Tree} server=${server} of=${`result:${run.n}`} label="result" />`;
    case 'changed':
      return html`<${Diff} diff=${result.changed} same=${result.changed ? 'the same as before' : 'there is no result before it'} />`;
    case 'set off':
      return html`<${Effects} server=${server} effects=${result.effects} />`;
    default:
      return html`${result.blocks?.map((block) => html`<${Block} block=${block} />`)}
        ${result.total > 100 && html`<p class="hint">${result.total - 100} more blocks: see raw</p>`}
        ${!result.blocks?.length && html`<p class="hint">The result has no content.</p>`}`;
  }
}

/** @param {{ server: number, name: string, wanted: number, reuse: (values: object) => void }} props */
export function Result({ server, name, wanted, reuse }) {
  const runs = useThing(`s/${server}/calls/${name}`)?.runs ?? [];
  const [chosen, setChosen] = useState(0);
  const [tab, setTab] = useState('');
  const [result, setResult] = useState(null);
  useEffect(() => setChosen(wanted), [wanted]);
  const run = runs.find((it) => it.n === chosen) ?? runs[0];
  useEffect(() => {
    setResult(null);
    if (!run || run.state === 'runs') return undefined;
    const load = () => get(`api/s/${server}/result/${run.n}`).then(setResult, () => undefined);
    load();
    // What a call sets off may come after its result.
    const later = setTimeout(load, 700);
    return () => clearTimeout(later);
  }, [run?.n, run?.state]);
  if (!run) {
    return html`<section class="column" aria-label="result"><header class="head"><h2>Result</h2></header>
      <p class="hint">The last twenty results are listed here.</p></section>`;
  }
  const tabs = [...(result?.structured ? ['structured'] : []), 'content', 'raw', 'changed', 'set off'];
  const current = tabs.includes(tab) ? tab : tabs[0];
  return html`
    <section class="column" aria-label="result">
      <header class="head"><h2>Result</h2>
        <span class="state-${run.state}" aria-live="polite">${WORDS[run.state]}</span>
        <span class="faint">${span(run.took)} ${size(run.bytes)}</span>
        <div class="tabs" role="group" aria-label="result view">${tabs.map((it) => html`
          <button class=${it === current ? 'on' : ''} aria-pressed=${it === current ? 'true' : 'false'} onClick=${() => setTab(it)}>${it}</button>`)}</div>
      </header>
      <div class="body" tabindex="0" role="region" aria-label="result content"><${Shown} server=${server} run=${run} result=${result} tab=${current} /></div>
      <header class="head"><h3>Last calls</h3></header>
      <div class="runs" tabindex="0" role="region" aria-label="last calls">${runs.map((it) => html`
        <div class="run ${it.n === run.n ? 'chosen' : ''}">
          <button onClick=${() => setChosen(it.n)}><span class="faint">${clock(it.at)}</span> <span class="given">${it.given}</span>
            <span class="state-${it.state}">${it.state}</span> <span class="faint">${span(it.took)} ${size(it.bytes)}</span></button>
          <button onClick=${() => reuse(it.arguments)}>again</button>
        </div>`)}</div>
    </section>`;
}
