// What servers ask: who, out of which call, and the form of the answer.
import { html, useState } from '../vendor/preact.js';
import { post, remove } from '../api.js';
import { attempt, useThing } from '../store.js';
import { age, clock } from '../words.js';
import { Fields, initial } from '../part/form.js';

function During({ during }) {
  if (!during) return html`<span class="faint">out of no known request</span>`;
  const what = during.tool ?? during.uri ?? during.name ?? during.method;
  return html`<span class="faint">out of ${during.request}</span> <code>${what}</code>`;
}

function Said({ question }) {
  const text = (message) => message.content?.text ?? JSON.stringify(message.content);
  return html`${question.system && html`<p class="faint">${question.system}</p>`}
    ${question.messages?.map((message) => html`<p class="text"><b>${message.role}</b> ${text(message)}</p>`)}`;
}

function Open({ question }) {
  const isSample = question.kind === 'sampling';
  const fields = isSample
    ? [{ name: 'text', title: 'answer', type: 'text', input: 'text', required: true },
      { name: 'model', title: 'model', type: 'text', input: 'text', about: 'What the server is told has answered.' }]
    : question.fields ?? [];
  const [values, setValues] = useState(initial(fields));
  const [isAlways, setAlways] = useState(false);
  const answer = (action) => attempt(() => post(`api/inbox/${question.n}`, { action, content: values, always: isAlways }));
  const submit = (event) => {
    event.preventDefault();
    answer('accept');
  };
  return html`
    <form onSubmit=${submit}>
      <${Fields} fields=${fields} values=${values} set=${setValues} />
      <div class="acts"><button class="primary">Answer</button>
        <button type="button" onClick=${() => answer('decline')}>Decline</button>
        ${!isSample && html`<button type="button" onClick=${() => answer('cancel')}>Cancel</button>`}
        <label class="always"><input type="checkbox" checked=${isAlways} onChange=${(event) => setAlways(event.target.checked)} /> always answer this server so</label></div>
    </form>`;
}

function Question({ question, servers }) {
  const server = servers?.find((it) => it.id === question.server);
  const isOpen = question.fate === 'waits';
  return html`
    <li class="question ${isOpen ? 'open' : ''}">
      <div class="first"><b>${server?.name ?? 'a server that was removed'}</b> <span class="asked-text">${question.kind}</span>
        <${During} during=${question.during} /> <span class="faint">${clock(question.at)}${isOpen ? `, waits ${age(question.at)}` : ''}</span></div>
      ${question.message && html`<p class="text">${question.message}</p>`}
      ${question.url && html`<p class="text">It asks you to open <b>${URL.parse(question.url)?.host}</b>: <code>${question.url}</code></p>`}
      <${Said} question=${question} />
      ${isOpen ? html`<${Open} question=${question} />` : html`<p class="hint">${question.fate === 'late' ? 'The asker is gone: there was no answer in time.' : question.words}</p>`}
    </li>`;
}

/** Answers that a server gets without a question to anybody. */
function Rules({ rules, servers }) {
  const row = (it) => html`<li><b>${servers?.find((server) => server.id === it.server)?.name}</b> ${it.kind}: ${it.action} <code>${it.action === 'accept' ? it.content : ''}</code>
    <button onClick=${() => attempt(() => remove(`api/inbox/rules/${it.server}/${it.kind}`))}>End this rule</button></li>`;
  return html`<h2>Rules</h2><ul class="known">${rules.map(row)}</ul>`;
}

export function Inbox() {
  const { questions = [], rules = [] } = useThing('inbox') ?? {};
  const servers = useThing('servers');
  return html`
    <section class="column page" aria-label="inbox">
      <header class="head"><h1>Inbox</h1> <span class="faint">${questions.filter((it) => it.fate === 'waits').length} open</span></header>
      <div class="body" tabindex="0" role="region" aria-label="questions">
        ${rules.length > 0 && html`<${Rules} rules=${rules} servers=${servers} />`}
        ${questions.length === 0 && html`<p class="hint">Nobody asks. Servers are told that they may ask for input and for samples of a model; both come here.</p>`}
        <ul class="questions">${questions.map((it) => html`<${Question} key=${it.n} question=${it} servers=${servers} />`)}</ul>
      </div>
    </section>`;
}
