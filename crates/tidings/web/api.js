// Requests to the console, with the token of the link.

const KEPT = 'tidings-token';
let token = '';

/** Takes the token out of the address, so that it is in no history, and keeps it for a reload. */
export function takeToken() {
  const given = location.hash.match(/^#token=([\w-]+)$/);
  if (given) {
    localStorage.setItem(KEPT, given[1]);
    history.replaceState(null, '', location.pathname);
  }
  token = localStorage.getItem(KEPT) ?? '';
}

/** The link of a console that started again, in a page of the last one: only the fragment differs. */
addEventListener('hashchange', () => {
  if (location.hash.startsWith('#token=')) location.reload();
});

/** A request that was answered with an error. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function request(method, path, body, signal, take = (answer) => answer.json()) {
  const headers = { authorization: `Bearer ${token}` };
  if (body !== undefined) headers['content-type'] = 'application/json';
  const answer = await fetch(path, {
    method,
    headers,
    signal,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (answer.ok) return take(answer);
  const said = await answer.text();
  let words = said;
  try {
    words = JSON.parse(said).error ?? said;
  } catch {
    // A plain text.
  }
  throw new Refused(answer.status, words);
}

/** @param {string} path @param {Record<string, string|number>|[string, string][]} [words] */
export function get(path, words = {}, signal) {
  const query = new URLSearchParams(words).toString();
  return request('GET', query ? `${path}?${query}` : path, undefined, signal);
}

/** Saves an answer as a file of this name. */
export async function save(path, name) {
  const file = await request('GET', path, undefined, undefined, (answer) => answer.blob());
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export const post = (path, body = {}) => request('POST', path, body);
export const remove = (path) => request('DELETE', path);
