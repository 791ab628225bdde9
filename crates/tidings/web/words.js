// Numbers and times as people read them.
import { signal } from './vendor/preact.js';

/** The time now, once a second while the page is shown. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

const two = (number) => String(number).padStart(2, '0');

/** `12:04:31.218` */
export function clock(ms) {
  const at = new Date(ms);
  const millis = String(at.getMilliseconds()).padStart(3, '0');
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${millis}`;
}

/** `1.2 s`, `18 ms`, `0.4 ms` */
export function span(ms) {
  if (ms === undefined || ms === null) return '';
  if (ms >= 10_000) return `${Math.round(ms / 1000)} s`;
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  return `${ms >= 10 ? Math.round(ms) : ms.toFixed(1)} ms`;
}

/** `96 B`, `4.2 KB`, `9.6 MB` */
export function size(bytes) {
  if (!bytes) return '';
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)} KB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/** `2 s`, `14 m`, `3 h` ago. */
export function age(ms, at = now.value) {
  if (!ms) return '';
  const seconds = Math.max(0, Math.round((at - ms) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m`;
  return `${Math.floor(seconds / 3600)} h`;
}

export const count = (number) => (number ?? 0).toLocaleString('en-US').replaceAll(',', ' ');

/** Whether a mark of that time is still shown: changes count as new for five minutes. */
export const isRecent = (at, within = 300_000) => Boolean(at) && now.value - at < within;
