// Calling: the form of a tool, prompt or template, its JSON, its definition, and the command line.
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { get, post } from '../api.js';
import { attempt, say, useThing } from '../store.js';
import { useAct } from '../keys.js';
import { Diff } from '../part/diff.js';
import { Fields, initial } from '../part/form.js';
import { Markdown } from '../part/markdown.js';
import { Split } from '../part/split.js';
import { Tree } from '../part/tree.js';
import { Result } from './result.js';

/** What stands in place of a secret; it is not sent again. */
const DOTS = '••••••';

/** How long the form is quiet before it is checked. */
const QUIET = 120;
const ACTS = { tools: 'Call', prompts: 'Fill in', templates: 'Read' };

/** What the console says about the values: problems, command line. */
function useChecked(server, list, item, values, text) {
  const [checked, setChecked] = useState({ problems: [], command: '' });
  useEffect(() => {
    if (!item) return undefined;
    const timer = setTimeout(async () => {
      const body = { list, key: item.key, values, ...(text === null ? {} : { text }) };
      const answer = await attempt(() => post(`api/s/${server}/form`, body));
      if (answer) setChecked(answer);
    }, QUIET);
    return () => clearTimeout(timer);
  }, [server, list, item, values, text]);
  return checked;
}

/** An item, loaded again when its list changes. */
function useItem(server, list, name) {
  const rows = useThing(`s/${server}/${list}`)?.rows;
  const at = rows?.find((row) => row.key === name)?.at ?? 0;
  const isThere = rows?.some((row) => row.key === name);
  const [item, setItem] = useState(null);
  useEffect(() => {
    if (!isThere) return;
    get(`api/s/${server}/item`, { list, key: name }).then(setItem, () => undefined);
  }, [server, list, name, at, isThere]);
  return [item?.key === name ? item : null, isThere];
}

function Note({ item, isThere }) {
  const annotations = item.raw.annotations ?? {};
  return html`
    ${isThere === false && html`<span class="badge bad">gone</span>`}
    ${annotations.readOnlyHint && html`<span class="badge">read-only</span>`}
    ${annotations.destructiveHint && !annotations.readOnlyHint && html`<span class="badge bad">destructive</span>`}
    ${item.changed && html`<span class="badge fresh">changed</span>`}`;
}

/** @param {{ server: number, list: string, name: string }} props */
export function Call({ server, list, name }) {
  const [item, isThere] = useItem(server, list, name);
  const [values, showValues] = useState({});
  // What was typed last is sent, drawn or not.
  const latest = useRef({});
  const setValues = (next) => {
    latest.current = next;
    showValues(next);
  };
  const [text, setText] = useState(null);
  const [tab, setTab] = useState('form');
  const [wanted, setWanted] = useState(0);
  const [isSure, setSure] = useState(false);
  // Counts what is filled in from outside, so that the inputs are made anew.
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (item && Object.keys(latest.current).length === 0) setValues(initial(item.fields));
  }, [item]);
  const checked = useChecked(server, list, item, values, tab === 'json' ? text : null);
  const isDestructive = item?.raw.annotations?.destructiveHint === true && !item.raw.annotations.readOnlyHint;

  const call = async () => {
    if (!item) return;
    if (isDestructive && !isSure) {
      setSure(true);
      return;
    }
    setSure(false);
    const sent = tab === 'json' && text !== null ? checked.values : latest.current;
    if (!sent) return;
    const answer = await attempt(() => post(`api/s/${server}/call`, { list, key: name, values: sent }));
    if (answer) setWanted(answer.call);
  };
  const copy = () => navigator.clipboard.writeText(checked.command).then(() => say('copied'), () => say(checked.command));
  const complete = async (argument, value) => {
    const given = Object.fromEntries(Object.entries(values).filter(([key, it]) => key !== argument && typeof it === 'string'));
    const answer = await post(`api/s/${server}/complete`, { list, key: name, argument, value, given }).catch(() => null);
    return answer?.values ?? [];
  };
  const reuse = (given) => {
    setValues(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== DOTS)));
    setTab('form');
    setRound(round + 1);
  };
  useAct('call', call);
  useAct('copy', copy);
  const show = (next) => {
    if (next === 'json') setText(JSON.stringify(values, null, 2));
    else if (tab === 'json' && checked.values) setValues(checked.values);
    setTab(next);
  };
  if (!item) return html`<p class="hint">${isThere === false ? 'It is not in the list any more.' : 'Loading…'}</p>`;
  const tabs = ['form', 'json', 'definition', ...(item.changed ? ['changed'] : [])];
  const loose = checked.problems.filter((problem) => tab === 'json' || problem.at === '');
  return html`
    <${Split} name="call" label="size of the form" initial=${45}>
      <section class="column" aria-label=${name}>
        <header class="head"><h2 class="data">${name}</h2> <${Note} item=${item} isThere=${isThere} />
          <div class="tabs" role="group" aria-label="view">${tabs.map((it) => html`
            <button class=${it === tab ? 'on' : ''} aria-pressed=${it === tab ? 'true' : 'false'} onClick=${() => show(it)}>${it}</button>`)}</div>
        </header>
        <div class="body">
          ${tab === 'form' && html`${item.about && html`<div class="description"><${Markdown} nodes=${item.about} /></div>`}
            ${item.fields?.length ? html`<${Fields} key=${name + round} fields=${item.fields} values=${values} set=${setValues} problems=${checked.problems} complete=${complete} />`
            : html`<p class="hint">It takes no arguments.</p>`}`}
          ${tab === 'json' && html`<textarea class="json" rows="14" spellcheck="false" aria-label="arguments as JSON"
            value=${text} onInput=${(event) => setText(event.target.value)}></textarea>`}
          ${tab === 'definition' && html`<${Tree} server=${server} of=${`item:${list}:${name}`} label="definition" />`}
          ${tab === 'changed' && html`<${Diff} diff=${item.changed} />`}
          ${loose.map((problem) => html`<p class="problem" role="alert">${problem.at} ${problem.text}</p>`)}
        </div>
        <pre class="command" tabindex="0" role="region" aria-label="as a command">${checked.command}</pre>
        <footer class="acts">
          <button class="primary ${isSure ? 'sure' : ''}" onClick=${call} disabled=${isThere === false}>
            ${isSure ? 'It is destructive: call it' : ACTS[list]} <kbd>Ctrl+Enter</kbd></button>
          <button onClick=${copy}>Copy <kbd>y</kbd></button>
        </footer>
      </section>
      <${Result} server=${server} name=${name} wanted=${wanted} reuse=${reuse} />
    <//>`;
}
