// Two panes with a divider that can be dragged; its place is kept.
import { html, useRef } from '../vendor/preact.js';
import { kept } from '../store.js';

const places = new Map();

/** The share of the first pane in percent. */
function share(name, initial) {
  if (!places.has(name)) places.set(name, kept(`pane-${name}`, initial));
  return places.get(name);
}

/** @param {{ name: string, label: string, across?: boolean, initial: number, children: [any, any] }} props */
export function Split({ name, label, across, initial, children }) {
  const box = useRef(null);
  const place = share(name, initial);
  const set = (value) => (place.value = Math.round(Math.min(85, Math.max(15, value)) * 10) / 10);
  const drag = (event) => {
    if (!event.buttons) return;
    const edge = box.current.getBoundingClientRect();
    set(across
      ? ((event.clientY - edge.top) / edge.height) * 100
      : ((event.clientX - edge.left) / edge.width) * 100);
  };
  const grab = (event) => event.currentTarget.setPointerCapture(event.pointerId);
  const press = (event) => {
    const step = { ArrowLeft: -2, ArrowUp: -2, ArrowRight: 2, ArrowDown: 2 }[event.key];
    if (step) set(place.value + step);
  };
  const [first, second] = children;
  return html`
    <div class="split ${across ? 'across' : 'along'}" ref=${box}>
      <div class="pane" style=${{ flexBasis: `${place.value}%` }}>${first}</div>
      <div class="divider" role="separator" tabindex="0" aria-label=${label}
        aria-orientation=${across ? 'horizontal' : 'vertical'} aria-valuemin="15" aria-valuemax="85"
        aria-valuenow=${Math.round(place.value)}
        onPointerDown=${grab} onPointerMove=${drag} onKeyDown=${press}></div>
      <div class="pane rest">${second}</div>
    </div>`;
}
