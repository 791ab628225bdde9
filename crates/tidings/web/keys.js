// Keys: the table comes from the console; views say what the acts on their rows are.
import { signal, useEffect } from './vendor/preact.js';
import { get } from './api.js';
import { following, go, kept, route } from './store.js';

/** The table of keys: `{ key, act, words, shown }`. */
export const keys = signal([]);
export const helpShown = signal(false);
export const paletteShown = signal(false);
export const theme = kept('theme', '');

const acts = new Map();
const PARTS = ['servers', 'overview', 'tools', 'resources', 'templates', 'prompts', 'watched', 'timeline', 'inbox', 'cache', 'hub'];
const GENERAL = {
  help: () => (helpShown.value = !helpShown.value),
  back: () => {
    if (helpShown.value) helpShown.value = false;
    else if (document.activeElement?.matches('input, textarea, select')) document.activeElement.blur();
    else if (route.value.key) go(route.value.part);
  },
  find: () => (paletteShown.value = !paletteShown.value),
  open: () => document.querySelector('.detail input, .detail textarea, .inspector button')?.focus(),
  filter: () => document.querySelector('[data-filter]')?.focus(),
  follow: () => (following.value = !following.value),
  theme: toggleTheme,
  answer: () => {
    go('inbox');
    setTimeout(() => document.querySelector('.question.open input, .question.open textarea, .question.open button')?.focus(), 60);
  },
  'previous-server': () => step(-1),
  'next-server': () => step(1),
};
for (const part of PARTS) GENERAL[part] = () => go(part);

/** Light or dark, against what the system says. */
export function toggleTheme() {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const current = theme.value || (dark ? 'dark' : 'light');
  theme.value = current === 'dark' ? 'light' : 'dark';
}

function step(by) {
  const tabs = [...document.querySelectorAll('[data-server]')];
  const at = tabs.findIndex((tab) => tab.dataset.server === String(route.value.server));
  tabs.at((at + by + tabs.length) % tabs.length)?.click();
}

/** Registers what an act does while the component is shown, unless that is nothing; the last one wins. */
export function useAct(act, run) {
  useEffect(() => {
    if (!run) return undefined;
    const all = acts.get(act) ?? [];
    all.push(run);
    acts.set(act, all);
    return () => all.splice(all.indexOf(run), 1);
  });
}

/** Runs an act by its name. */
export function run(act) {
  const own = acts.get(act)?.at(-1);
  if (own) return own();
  return GENERAL[act]?.();
}

function onKey(event) {
  const isWriting = event.target.matches?.('input, textarea, select');
  const name = event.ctrlKey || event.metaKey ? `Ctrl+${event.key}` : event.key;
  if (isWriting && !['Escape', 'Ctrl+Enter', 'Ctrl+k'].includes(name)) return;
  // A button or a link has its own Enter; so have a tab and a list their arrows.
  const has = event.target.closest?.('button, a, summary, [role=separator], [role=slider], [role=treeitem]');
  if (has && (name === 'Enter' || name.startsWith('Arrow'))) return;
  const found = keys.value.find((key) => key.key === name);
  if (!found || event.altKey) return;
  event.preventDefault();
  run(found.act);
}

export async function startKeys() {
  addEventListener('keydown', onKey);
  keys.value = await get('api/keys');
}
