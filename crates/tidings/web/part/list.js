// A list of any length: only the rows in sight are in the page.
import { html, useEffect, useLayoutEffect, useRef, useState } from '../vendor/preact.js';
import { useAct } from '../keys.js';

/** Rows beyond the edges, so that scrolling shows no gap. */
const SPARE = 6;

/**
 * @param {{ items: any[], height: number, label: string, row: (item: any) => any,
 *   id: (item: any) => string|number, chosen?: string|number, choose: (item: any) => void,
 *   follow?: boolean, onTop?: () => void, onScroll?: (isAtEnd: boolean) => void,
 *   empty?: any, keys?: boolean, of?: (item: any) => string }} props
 */
export function List(props) {
  const { items, height, label, row, id, chosen, choose, follow, onTop, onScroll, empty } = props;
  const box = useRef(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const place = items.findIndex((item) => id(item) === chosen);

  const measure = () => {
    if (!box.current) return false;
    const { scrollTop, clientHeight, scrollHeight } = box.current;
    setView((old) => (old.top === scrollTop && old.height === clientHeight ? old : { top: scrollTop, height: clientHeight }));
    return scrollHeight - scrollTop - clientHeight < height;
  };
  const move = (by) => {
    if (items.length === 0) return;
    const next = place < 0 ? (by > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, place + by));
    choose(items[next]);
  };
  useEffect(() => {
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  // New rows keep the end in sight, or the place where the reader is.
  const first = items.length ? id(items[0]) : null;
  const before = useRef({ first, length: 0 });
  useLayoutEffect(() => {
    const { scrollTop } = box.current;
    const added = items.findIndex((item) => id(item) === before.current.first);
    if (follow) box.current.scrollTop = items.length * height;
    else if (added > 0) box.current.scrollTop = scrollTop + added * height;
    before.current = { first, length: items.length };
    measure();
  }, [items, follow]);
  useLayoutEffect(() => {
    if (place < 0 || follow) return;
    const { scrollTop, clientHeight } = box.current;
    if (place * height < scrollTop) box.current.scrollTop = place * height;
    if ((place + 1) * height > scrollTop + clientHeight) box.current.scrollTop = (place + 1) * height - clientHeight;
  }, [chosen]);
  useKeys(props.keys !== false, move);

  const scrolled = () => {
    if (!box.current) return;
    const isAtEnd = measure();
    onScroll?.(isAtEnd);
    if (box.current.scrollTop < height * 4) onTop?.();
  };
  const from = Math.max(0, Math.floor(view.top / height) - SPARE);
  const to = Math.min(items.length, Math.ceil((view.top + view.height) / height) + SPARE);
  const option = (item, index) => html`
    <div role="option" class="row ${id(item) === chosen ? 'chosen' : ''}" key=${id(item)}
      id=${`${label}-${id(item)}`} aria-selected=${id(item) === chosen ? 'true' : 'false'}
      aria-setsize=${items.length} aria-posinset=${from + index + 1}
      style=${{ transform: `translateY(${(from + index) * height}px)`, height: `${height}px` }}
      onClick=${() => choose(item)}>${row(item)}</div>`;
  return html`
    <div class="list" role="listbox" tabindex="0" aria-label=${label} ref=${box} onScroll=${scrolled}
      aria-activedescendant=${place >= from && place < to ? `${label}-${chosen}` : undefined}>
      ${items.length === 0
        ? html`<div class="empty" role="option" aria-selected="false" aria-disabled="true">${empty ?? 'nothing yet'}</div>`
        : html`<div class="all" role="presentation" style=${{ height: `${items.length * height}px` }}>
            ${items.slice(from, to).map(option)}</div>`}
    </div>`;
}

function useKeys(isActive, move) {
  useAct('down', isActive && (() => move(1)));
  useAct('up', isActive && (() => move(-1)));
}
