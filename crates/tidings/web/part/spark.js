// Small bars: how often something changed.
import { html } from '../vendor/preact.js';
import { now } from '../words.js';

const BARS = 24;

/** Bars of equal width for counts. */
export function Bars({ counts, label }) {
  const most = Math.max(1, ...counts);
  const bar = (value, index) => html`
    <rect x=${index * 4} width="3" y=${16 - Math.max(1, (value / most) * 16)}
      height=${Math.max(1, (value / most) * 16)} class=${value ? 'on' : 'off'} />`;
  return html`
    <svg class="spark" role="img" aria-label=${label} viewBox="0 0 ${counts.length * 4} 16" preserveAspectRatio="none">
      ${counts.map(bar)}</svg>`;
}

/** Times as bars of the last minutes, the newest at the right. */
export function Times({ times, label, within = 300_000 }) {
  const counts = Array(BARS).fill(0);
  for (const at of times) {
    const place = BARS - 1 - Math.floor(((now.value - at) / within) * BARS);
    if (place >= 0 && place < BARS) counts[place] += 1;
  }
  return html`<${Bars} counts=${counts} label=${label} />`;
}

/** Notices of each of the last seconds. */
export function Rate({ rate }) {
  const second = Math.floor(now.value / 1000);
  const counts = Array.from({ length: BARS }, (_, index) => rate?.[second - BARS + 1 + index] ?? 0);
  const last = counts.slice(-6, -1).reduce((sum, value) => sum + value, 0) / 5;
  const words = `${last >= 10 || last === 0 ? Math.round(last) : last.toFixed(1)}/s`;
  return html`<span class="rate"><${Bars} counts=${counts} label="notices of the last seconds" /> ${words}</span>`;
}
