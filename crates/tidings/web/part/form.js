// A form out of the fields that the console describes. A field that is left out is not sent.
import { html, useState } from '../vendor/preact.js';

/** The values a form begins with: what is required, and defaults. */
export function initial(fields) {
  const values = {};
  for (const field of fields ?? []) {
    if (field.default !== undefined && field.default !== null) values[field.name] = field.default;
    else if (field.required && field.input === 'object') values[field.name] = initial(field.fields);
    else if (field.required && field.input === 'text') values[field.name] = '';
    else if (field.required && field.input === 'choice') values[field.name] = field.choices[0];
  }
  return values;
}

const escaped = (name) => name.replaceAll('~', '~0').replaceAll('/', '~1');

function Segments({ label, options, value, set }) {
  const segment = ([name, it]) => html`
    <button type="button" class=${it === value ? 'on' : ''} aria-pressed=${it === value ? 'true' : 'false'}
      onClick=${() => set(it)}>${name}</button>`;
  return html`<div class="segments" role="group" aria-label=${label}>${options.map(segment)}</div>`;
}

function Choice({ field, id, value, set }) {
  const names = field.choices.map((it, index) => [field.names?.[index] ?? String(it), it]);
  const options = field.required ? names : [...names, ['leave out', undefined]];
  const letters = options.reduce((sum, [name]) => sum + name.length, 0);
  if (letters < 40) return html`<${Segments} label=${field.name} options=${options} value=${value} set=${set} />`;
  const pick = (event) => set(options[Number(event.target.value)][1]);
  return html`
    <select id=${id} onChange=${pick}>
      ${options.map(([name, it], index) => html`<option value=${index} selected=${it === value}>${name}</option>`)}
    </select>`;
}

/** A text whose value is not a text: what cannot be parsed stays as it is, and is a problem. */
function Parsed({ field, id, value, set, parse, show, rows }) {
  const [text, setText] = useState(value === undefined ? '' : show(value));
  const write = (event) => {
    setText(event.target.value);
    set(event.target.value.trim() === '' ? undefined : parse(event.target.value));
  };
  const shared = { id, value: text, onInput: write, placeholder: field.required ? '' : 'not sent', spellcheck: false };
  return rows ? html`<textarea rows=${rows} ...${shared}></textarea>` : html`<input inputmode="decimal" ...${shared} />`;
}

function number(text) {
  const value = Number(text);
  return Number.isFinite(value) ? value : text;
}

function json(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function Text({ field, id, value, set, complete }) {
  const [options, setOptions] = useState([]);
  const write = async (event) => {
    const text = event.target.value;
    set(text === '' && !field.required ? undefined : text);
    if (field.completes && complete) setOptions(await complete(field.name, text));
  };
  const offer = async () => field.completes && complete && setOptions(await complete(field.name, value ?? ''));
  return html`
    <input id=${id} type=${field.secret ? 'password' : 'text'} autocomplete="off" spellcheck="false"
      list=${options.length ? `${id}-list` : undefined} value=${value ?? ''} onInput=${write} onFocus=${offer}
      placeholder=${field.example ?? (field.required ? '' : 'not sent')} />
    ${options.length > 0 && html`<datalist id="${id}-list">${options.map((it) => html`<option value=${it} />`)}</datalist>`}`;
}

function Choices({ field, value, set }) {
  const all = value ?? [];
  const toggle = (it) => set(all.includes(it) ? all.filter((other) => other !== it) : [...all, it]);
  return html`
    <div class="segments" role="group" aria-label=${field.name}>
      ${field.choices.map((it) => html`<button type="button" class=${all.includes(it) ? 'on' : ''}
        aria-pressed=${all.includes(it) ? 'true' : 'false'} onClick=${() => toggle(it)}>${String(it)}</button>`)}
    </div>`;
}

function Input(props) {
  const { field, value, set } = props;
  if (value === null && field.nullable) {
    return html`<button type="button" class="null" onClick=${() => set(undefined)}>null, press to fill in</button>`;
  }
  switch (field.input) {
    case 'boolean': {
      const options = [['true', true], ['false', false], ...(field.required ? [] : [['leave out', undefined]])];
      return html`<${Segments} label=${field.name} options=${options} value=${value} set=${set} />`;
    }
    case 'integer':
    case 'number':
      return html`<${Parsed} ...${props} parse=${number} show=${String} />`;
    case 'choice':
      return html`<${Choice} ...${props} />`;
    case 'choices':
      return html`<${Choices} ...${props} />`;
    case 'texts':
      return html`<${Parsed} ...${props} rows="2" parse=${(text) => text.split('\n').filter(Boolean)} show=${(all) => [].concat(all).join('\n')} />`;
    case 'json':
      return html`<${Parsed} ...${props} rows="4" parse=${json} show=${(it) => JSON.stringify(it, null, 2)} />`;
    default:
      return html`<${Text} ...${props} />`;
  }
}

function Field(props) {
  const { field, value, set, problems, at, complete } = props;
  const here = `${at}/${escaped(field.name)}`;
  const id = `field${here.replace(/[^\w-]/g, '_')}`;
  const own = problems.filter((problem) => problem.at === here);
  const isPlain = !['boolean', 'choice', 'choices', 'object'].includes(field.input);
  const name = field.title ?? field.name;
  const head = html`<code>${name}</code>
    ${field.required && html`<span class="required">required</span>`} <span class="faint">${field.type}</span>`;
  if (field.input === 'object') {
    return html`
      <fieldset><legend>${head}</legend>
        ${field.about && html`<p class="about">${field.about}</p>`}
        <${Fields} fields=${field.fields} values=${value ?? {}} set=${set} problems=${problems} at=${here} complete=${complete} />
      </fieldset>`;
  }
  return html`
    <div class="field ${own.length ? 'wrong' : ''}">
      ${isPlain ? html`<label for=${id}>${head}</label>` : html`<div class="label">${head}</div>`}
      <${Input} field=${field} id=${id} value=${value} set=${set} complete=${complete} />
      ${field.nullable && value !== null && html`<button type="button" class="null" onClick=${() => set(null)}>null</button>`}
      ${own.map((problem) => html`<p class="problem" role="alert">${problem.text}</p>`)}
      ${field.about && html`<p class="about">${field.about}</p>`}
    </div>`;
}

/** @param {{ fields: any[], values: object, set: (values: object) => void, problems?: any[],
 *   at?: string, complete?: (name: string, text: string) => Promise<string[]> }} props */
export function Fields({ fields, values, set, problems = [], at = '', complete }) {
  const change = (name, value) => {
    const next = { ...values, [name]: value };
    if (value === undefined) delete next[name];
    set(next);
  };
  return html`
    ${fields.map((field) => html`<${Field} key=${field.name} field=${field} value=${values[field.name]}
      set=${(value) => change(field.name, value)} problems=${problems} at=${at} complete=${complete} />`)}`;
}
