// The connection doctor: the steps to a connection, where it stopped, and what to do.
import { html, useEffect, useState } from '../vendor/preact.js';
import { get } from '../api.js';
import { span } from '../words.js';
import { Markdown } from './markdown.js';

const SIGNS = { good: '✓', failed: '✕', unknown: '–' };
const WORDS = { good: 'good', failed: 'failed', unknown: 'not reached' };

/** @param {{ server: { id: number, state: any } }} props */
export function Doctor({ server }) {
  const [found, setFound] = useState(null);
  const [round, setRound] = useState(0);
  const { state, reason, attempt } = server.state;
  useEffect(() => {
    let isOld = false;
    get(`api/s/${server.id}/doctor`).then((it) => !isOld && setFound(it), () => undefined);
    return () => (isOld = true);
    // Each attempt to connect may have stopped elsewhere.
  }, [server.id, state, reason, attempt, round]);
  if (!found) return html`<p class="hint">Examining the connection…</p>`;
  const step = (it) => html`
    <li class=${it.state}><span class="sign" role="img" aria-label=${WORDS[it.state]}>${SIGNS[it.state]}</span>
      <b>${it.name}</b> <span class="said">${it.words}</span> <span class="took">${span(it.took)}</span></li>`;
  return html`
    <div class="doctor">
      <ol aria-label="steps to a connection">${found.steps.map(step)}</ol>
      ${found.advice && html`<div class="advice"><${Markdown} nodes=${found.advice} /></div>`}
      ${found.stderr.length > 0 && html`<pre tabindex="0" role="region" aria-label="last lines of standard error">${found.stderr.join('\n')}</pre>`}
      <button onClick=${() => setRound(round + 1)}>Examine again</button>
    </div>`;
}
