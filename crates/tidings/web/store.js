// The one store: things by key, pulled with a cursor. What a view shows, it names; each thing that
// changed arrives once, at its newest value, and is drawn once.
import { batch, effect, signal, useEffect } from './vendor/preact.js';
import { Refused, get } from './api.js';

/** The shortest time between two answers. */
const PAUSE = 33;
/** The rows of a timeline that the page keeps. */
const ROWS = 3000;

/** `loading`, `live`, `locked` without a token, `gone` if the console ended. */
export const link = signal('loading');
/** Whether new rows are shown as they come. */
export const following = signal(true);

const things = new Map();
const viewers = new Map();
const have = new Set();
let since = 0;
let asking = null;

function slot(key) {
  if (!things.has(key)) things.set(key, signal(undefined));
  return things.get(key);
}

/** The value of a thing, kept current while the component is shown. */
export function useThing(key) {
  useEffect(() => {
    if (!key) return undefined;
    viewers.set(key, (viewers.get(key) ?? 0) + 1);
    if (!have.has(key)) asking?.abort();
    return () => {
      const left = viewers.get(key) - 1;
      if (left > 0) {
        viewers.set(key, left);
        return;
      }
      viewers.delete(key);
      have.delete(key);
    };
  }, [key]);
  return key ? slot(key).value : undefined;
}

/** Puts older rows before those of a timeline. */
export function addOlder(key, rows) {
  const known = slot(key).value;
  if (known?.rows) slot(key).value = { ...known, rows: [...rows, ...known.rows] };
}

/** The rows that came, with those that are known; after a gap, only the new ones. */
function merge(known, news, isWhole) {
  if (isWhole || !known?.rows || !news.rows) return news;
  const last = known.rows.at(-1)?.n ?? 0;
  const added = news.rows.filter((row) => row.n > last);
  if (added.length >= 200) return news;
  const changed = new Map(news.rows.map((row) => [row.n, row]));
  const rows = known.rows.map((row) => changed.get(row.n) ?? row).concat(added);
  return { ...news, rows: rows.slice(-ROWS) };
}

function take(answer, also) {
  batch(() => {
    for (const [key, value] of Object.entries(answer.things)) {
      const isWhole = answer.since === 0 || also.includes(key);
      slot(key).value = /^s\/\d+\/log/.test(key) ? merge(slot(key).value, value, isWhole) : value;
    }
    for (const key of answer.gone) slot(key).value = null;
    // What nobody looks at any more is asked for anew by whoever looks at it next.
    for (const key of [...Object.keys(answer.things), ...answer.gone]) if (viewers.has(key)) have.add(key);
    link.value = 'live';
  });
  since = answer.rev;
}

async function ask() {
  const keys = [...viewers.keys()];
  const also = keys.filter((key) => !have.has(key));
  const words = [['since', since], ['wait', document.hasFocus() ? 20 : 3]];
  for (const key of keys) words.push([have.has(key) ? 'see' : 'also', key]);
  asking = new AbortController();
  take(await get('api/state', words, asking.signal), also);
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** A hidden page asks nothing, and catches up from its cursor when it is shown. */
function shown() {
  if (!document.hidden) return undefined;
  return new Promise((done) => document.addEventListener('visibilitychange', done, { once: true }));
}

/** Pulls as long as the page lives. A page that is hidden holds no connection. */
export async function pull() {
  document.addEventListener('visibilitychange', () => document.hidden && asking?.abort());
  for (;;) {
    await shown();
    if (viewers.size === 0) {
      await pause(PAUSE);
      continue;
    }
    try {
      await ask();
      await pause(PAUSE);
    } catch (error) {
      if (error.name === 'AbortError') continue;
      const isLocked = error instanceof Refused && error.status === 401;
      link.value = isLocked ? 'locked' : 'gone';
      await pause(1000);
    }
  }
}

/** A message to the person, for a while. */
export const notice = signal(null);
let fading = 0;

export function say(text, isBad = false) {
  notice.value = { text, isBad };
  clearTimeout(fading);
  fading = setTimeout(() => (notice.value = null), 6000);
}

/** Runs an act and says why it failed. */
export async function attempt(act) {
  try {
    return await act();
  } catch (error) {
    say(error.message, true);
    return undefined;
  }
}

// Where we are: `#/s/1/tools/NAME`.
function parse() {
  const [, server, part, key] = location.hash.match(/^#\/(?:s\/(\d+)\/)?(\w+)(?:\/(.*))?$/) ?? [];
  return { server: server ? Number(server) : null, part: part ?? '', key: key ? decodeURIComponent(key) : '' };
}

export const route = signal(parse());
addEventListener('hashchange', () => (route.value = parse()));

/** The server that was shown last; parts of no server lead back to it. */
let last = route.value.server;
effect(() => (last = route.value.server ?? last));

/** Goes to a part of a server. */
export function go(part, { server = last ?? slot('servers').value?.[0]?.id, key = '' } = {}) {
  const place = server && !['servers', 'inbox'].includes(part) ? `s/${server}/` : '';
  location.hash = `#/${place}${part}${key ? `/${encodeURIComponent(key)}` : ''}`;
}

/** Whether there is room for one column only. */
const media = matchMedia('(max-width: 759px)');
export const narrow = signal(media.matches);
media.addEventListener('change', () => (narrow.value = media.matches));

/** A value that survives a reload. */
export function kept(name, initial) {
  const text = localStorage.getItem(`tidings-${name}`);
  const value = signal(text === null ? initial : JSON.parse(text));
  effect(() => localStorage.setItem(`tidings-${name}`, JSON.stringify(value.value)));
  return value;
}
