// A difference as the console computed it: lines, numbers, changed words.
import { html } from '../vendor/preact.js';

/** @param {{ diff: { hunks: any[], cut: number }|null, same?: string }} props */
export function Diff({ diff, same = 'no difference' }) {
  if (!diff || diff.hunks.length === 0) return html`<p class="hint">${same}</p>`;
  const part = ([isChanged, text]) => (isChanged ? html`<mark>${text}</mark>` : text);
  const line = (it) => html`
    <div class="line ${{ '+': 'added', '-': 'removed' }[it.sign] ?? ''}">
      <span class="number">${it.old ?? ''}</span><span class="number">${it.new ?? ''}</span>
      <span class="sign">${it.sign === '-' ? '−' : it.sign}</span><span class="text">${it.parts.map(part)}</span>
    </div>`;
  const hunk = (it) => html`<div class="hunk-head">@@ ${it.head}</div>${it.lines.map(line)}`;
  return html`
    <div class="diff" tabindex="0" role="region" aria-label="difference">
      ${diff.hunks.map(hunk)}
      ${diff.cut > 0 && html`<p class="hint">${diff.cut} more lines</p>`}
    </div>`;
}
