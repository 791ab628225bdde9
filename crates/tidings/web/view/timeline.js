// Every message with its answer, what caused it and what followed.
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { get, save } from '../api.js';
import { addOlder, attempt, following, go, kept, narrow, route, useThing } from '../store.js';
import { clock, count, size, span } from '../words.js';
import { Lanes } from '../part/lanes.js';
import { List } from '../part/list.js';
import { Split } from '../part/split.js';
import { Tree } from '../part/tree.js';

const LANES = ['calls', 'reads', 'notices', 'changes', 'asked', 'log', 'other', 'stderr', 'transport'];
const SIGNS = { out: '→', in: '←', here: '≈' };

const filter = kept('filter', '');
const hidden = kept('hidden-lanes', ['stderr', 'transport']);

/** The filter as the console reads it: the written one, for each alternative the lanes and the time. */
function whole(text, without, range) {
  const also = [];
  if (without.length > 0) also.push(`lane:${LANES.filter((lane) => !without.includes(lane)).join(',') || 'none'}`);
  if (range) also.push(`between:${range.map(Math.round).join('-')}`);
  if (also.length === 0) return text.trim();
  return text.split(/\sor\s/i).map((part) => [part.trim(), ...also].join(' ').trim()).join(' or ');
}

function Row({ row, before }) {
  const after = before ? Math.max(0, row.at - before.at) : 0;
  const isInside = row.cause && (row.what === 'progress' || row.lane === 'asked');
  const isBad = row.status && !['ok', 'waits'].includes(row.status);
  return html`
    <div class="log-row lane-${row.lane} way-${row.way} ${row.what === 'connection lost' ? 'loss' : ''}">
      <span class="time">${clock(row.at)}</span>
      <span class="after">${before ? `+${count(Math.round(after))}` : ''}</span>
      <span class="sign" aria-label=${{ out: 'sent', in: 'received', here: 'changed' }[row.way]} role="img">${SIGNS[row.way]}</span>
      <span class="what">${isInside ? '└ ' : ''}${row.what}</span>
      <span class="of">${row.by && html`<span class="faint">by ${row.by}</span> `}${row.of ?? ''}</span>
      <span class="status ${isBad ? 'bad' : row.status === 'waits' ? 'fresh-text' : ''}">${row.status === 'waits' && row.lane === 'asked' ? 'asks you' : row.status ?? ''}</span>
      <span class="took">${span(row.took)}</span>
      <span class="size">${size(row.bytes)}</span>
    </div>`;
}

/** The names of the columns. */
const Columns = () => html`
  <div class="log-row columns" aria-hidden="true"><span class="time">time</span><span class="after">after ms</span><span class="sign"></span>
    <span class="what">what</span><span class="of">of what</span><span class="status">status</span><span class="took">took</span><span class="size">size</span></div>`;

function Link({ server, row, words }) {
  return html`<button class="cause" onClick=${() => go('timeline', { server, key: String(row.n) })}>
    ${words} <span class="lane-${row.lane}">${row.what}</span> ${row.of ?? ''}</button>`;
}

function Inspector({ server, number, status, close }) {
  const [row, setRow] = useState(null);
  useEffect(() => {
    get(`api/s/${server}/log/${number}`).then(setRow, () => setRow({ missing: true }));
  }, [server, number, status]);
  if (!row) return html`<section class="column inspector" aria-label="message"></section>`;
  if (row.missing) return html`<section class="column inspector" aria-label="message"><p class="hint">This row is not kept any more.</p></section>`;
  const body = (of, message, label) => message && html`
    <h3>${label} <span class="faint">${size(message.bytes)}${message.cut ? ', too long to show' : ''}</span></h3>
    ${!message.cut && html`<${Tree} key=${of} server=${server} of=${of} label=${label} />`}`;
  return html`
    <section class="column inspector" aria-label="message">
      <header class="head"><h2 class="data">${row.what}</h2> <span class="faint">${row.of ?? ''}</span><span class="space"></span>
        <button title="show only this row and later ones" onClick=${() => (filter.value = `after:${row.n}`)}>From here</button>
        <button onClick=${close} aria-label="close the message">×</button></header>
      <div class="body" tabindex="0" role="region" aria-label="parts of the message">
        ${row.cause && html`<${Link} server=${server} row=${row.cause} words="because of" />`}
        ${row.effects.map((it) => html`<${Link} server=${server} row=${it} words="led to" />`)}
        ${body(`row:${number}`, row.message, row.way === 'out' ? 'sent' : row.way === 'in' ? 'received' : 'message')}
        ${body(`answer:${number}`, row.answer, 'answer')}
        ${!row.message && html`<p>${row.of}</p>`}
      </div>
    </section>`;
}

function Chips({ counts }) {
  const toggle = (lane) => {
    hidden.value = hidden.value.includes(lane) ? hidden.value.filter((it) => it !== lane) : [...hidden.value, lane];
  };
  return html`<div class="lanes" role="group" aria-label="lanes">${LANES.map((lane) => html`
    <button class="chip ${hidden.value.includes(lane) ? '' : 'on'}" aria-pressed=${hidden.value.includes(lane) ? 'false' : 'true'}
      title="${count(counts?.[lane])} rows" onClick=${() => toggle(lane)}>${lane}</button>`)}</div>`;
}

/** @param {{ server: number, isBelow?: boolean }} props */
export function Timeline({ server, isBelow }) {
  const [range, setRange] = useState(null);
  const text = whole(filter.value, hidden.value, range);
  const key = `s/${server}/log${text ? `?${text}` : ''}`;
  const value = useThing(key);
  const servers = useThing('servers') ?? [];
  const good = useRef(null);
  if (value?.rows) good.current = value;
  const shown = value?.problem ? good.current : value;
  const rows = shown?.rows ?? [];
  const own = isBelow ? 0 : Number(route.value.key);
  const [picked, setPicked] = useState(0);
  const chosen = own || picked;
  const choose = (row) => {
    following.value = false;
    if (isBelow) setPicked(row.n);
    else go('timeline', { key: String(row.n) });
  };
  const loading = useRef(false);
  const older = async () => {
    if (loading.current || rows.length === 0) return;
    loading.current = true;
    const answer = await attempt(() => get(`api/s/${server}/log`, { before: rows[0].n, filter: text }));
    if (answer?.rows.length) addOlder(key, answer.rows);
    loading.current = answer?.rows.length === 0;
  };
  useEffect(() => void (loading.current = false), [key]);
  const places = new Map(rows.map((row, index) => [row.n, index]));
  const list = html`
    <${List} items=${rows} height=${narrow.value ? 40 : 22} label="timeline" id=${(row) => row.n} chosen=${chosen}
      choose=${choose} follow=${following.value} onTop=${older} keys=${!isBelow}
      onScroll=${(isAtEnd) => { if (!isAtEnd && following.value && rows.length > 20) following.value = false; }}
      row=${(row) => html`<${Row} row=${row} before=${rows[places.get(row.n) - 1]} />`}
      empty=${shown?.total ? 'No row fits the filter.' : 'Nothing passed yet.'} />`;
  const table = html`<div class="rows"><${Columns} />${list}</div>`;
  const limit = (next) => {
    if (next) following.value = false;
    setRange(next);
  };
  const keep = () => attempt(() => save(`api/s/${server}/session`, `${servers.find((it) => it.id === server)?.name ?? 'session'}.tidings`));
  const status = rows[places.get(chosen)]?.status;
  const close = () => (isBelow ? setPicked(0) : go('timeline'));
  return html`
    <section class="column timeline" aria-label="timeline">
      <header class="head">${isBelow ? html`<h2>Timeline</h2>` : html`<h1>Timeline</h1>`}
        <input type="search" data-filter class="filter wide" placeholder="-method:ping took:>5ms  /" aria-label="filter the timeline"
          spellcheck="false" value=${filter.value} onInput=${(event) => (filter.value = event.target.value)} />
        <${Chips} counts=${shown?.lanes} />
        <span class="space"></span>
        ${range && html`<button class="chip on" onClick=${() => setRange(null)} title="show all times">${clock(range[0]).slice(0, 8)} – ${clock(range[1]).slice(0, 8)} ×</button>`}
        <span class="faint" aria-label="rows">${count(shown?.matched)} of ${count(shown?.total)}</span>
        <button title="save this session to a file" onClick=${keep}>save</button>
        <button class=${following.value ? 'on' : 'paused'} aria-pressed=${following.value ? 'true' : 'false'}
          onClick=${() => (following.value = !following.value)}>${following.value ? 'following' : 'follow'} <kbd>f</kbd></button></header>
      ${!narrow.value && html`<${Lanes} server=${server} total=${shown?.total} range=${range} choose=${limit} />`}
      ${value?.problem && html`<p class="problem" role="alert">${value.problem}</p>`}
      ${shown?.missed > 0 && html`<p class="problem">${count(shown.missed)} messages passed too fast to be kept.</p>`}
      ${chosen ? html`<${Split} name="message" label="size of the rows" initial=${72}>${table}
        <${Inspector} key=${chosen} server=${server} number=${chosen} status=${status} close=${close} /><//>` : table}
    </section>`;
}
