// Lanes: what passed, on an axis of time. A part of the axis can be chosen with the pointer or with
// the arrow keys; the rows below are then those of that time.
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { get } from '../api.js';
import { following, kept } from '../store.js';
import { clock, now } from '../words.js';

/** The spans of the axis in seconds. */
const SPANS = [60, 180, 600, 3600];
const TOP = 14;
const ROW = 10;
const COLOURS = { calls: '--sent', reads: '--sent', notices: '--fresh', asked: '--asked', log: '--faint' };

const span = kept('lanes', 180);

/** A time without fractions. */
const brief = (at) => clock(at).slice(0, 8);

function useLanes(server, total, end) {
  const [data, setData] = useState(null);
  const asked = useRef('');
  useEffect(() => {
    // Nothing is asked while nothing passes, unless a request waits: its mark grows.
    const waits = data && Object.values(data.lanes).flat().some((mark) => mark[2] === 2);
    const now_ = `${server} ${total} ${span.value} ${waits ? end : ''}`;
    if (asked.current === now_) return;
    asked.current = now_;
    get(`api/s/${server}/lanes`, { from: end - span.value * 1000, to: end }).then(setData, () => undefined);
  }, [server, span.value, end]);
  return data;
}

function ticks(context, width, begin, ms, colour) {
  const step = [5, 10, 30, 60, 120, 300, 600].find((it) => (it * 1000 * width) / ms > 90) ?? 600;
  context.fillStyle = colour('--faint');
  for (let at = Math.ceil(begin / step / 1000) * step * 1000; at < begin + ms; at += step * 1000) {
    const x = ((at - begin) / ms) * width;
    if (x > 24 && x < width - 24) context.fillText(brief(at), x, 10);
  }
}

/** Draws everything anew: it is a few hundred rectangles, once a second. */
function draw(canvas, data, end, range) {
  const style = getComputedStyle(canvas);
  const colour = (name) => style.getPropertyValue(name);
  const { clientWidth: width, clientHeight: height } = canvas;
  const scale = devicePixelRatio;
  if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
  if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
  const context = canvas.getContext('2d');
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = `10px ${style.getPropertyValue('--sans')}`;
  context.textAlign = 'center';
  const ms = span.value * 1000;
  const begin = end - ms;
  const place = (at) => ((at - begin) / ms) * width;
  ticks(context, width, begin, ms, colour);
  if (!data) return;
  const cell = (data.to - data.from) / data.cells;
  const rect = (first, last, y, tall) => {
    const x = place(data.from + first * cell);
    context.fillRect(x, y, Math.max(2, place(data.from + (last + 1) * cell) - x - 0.5), tall);
  };
  context.fillStyle = colour('--bad-ground');
  for (const lost of data.lost) rect(lost, lost, TOP, data.order.length * ROW);
  data.order.forEach((lane, index) => {
    const y = TOP + index * ROW;
    context.fillStyle = colour('--line');
    context.fillRect(0, y + ROW / 2, width, 1);
    for (const [first, last, kind] of data.lanes[lane]) {
      context.fillStyle = colour(kind === 1 ? '--bad' : kind === 2 && lane !== 'asked' ? '--fresh' : COLOURS[lane]);
      rect(first, last, y + 2, ROW - 3);
    }
  });
  if (range) {
    const [from, to] = range.map(place);
    context.strokeStyle = colour('--accent');
    context.strokeRect(from + 0.5, 0.5, Math.max(3, to - from), height - 1);
    context.globalAlpha = 0.12;
    context.fillStyle = colour('--accent');
    context.fillRect(from, 0, Math.max(3, to - from), height);
    context.globalAlpha = 1;
  }
}

/**
 * @param {{ server: number, total: number, range: [number, number]|null,
 *   choose: (range: [number, number]|null) => void }} props
 */
export function Lanes({ server, total, range, choose }) {
  const canvas = useRef(null);
  const frozen = useRef(0);
  // The axis stands still while somebody looks at a part of it.
  if ((following.value && !range) || !frozen.current) frozen.current = now.value;
  const end = frozen.current;
  const data = useLanes(server, total, end);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(entry.contentRect.width));
    observer.observe(canvas.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => draw(canvas.current, data, end, range), [data, end, range, width]);

  const ms = span.value * 1000;
  const at = (event) => {
    const box = canvas.current.getBoundingClientRect();
    return end - ms + (Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * ms);
  };
  const grabbed = useRef(null);
  const grab = (event) => {
    event.currentTarget.setPointerCapture(event.pointerId);
    grabbed.current = at(event);
    choose(null);
  };
  const drag = (event) => {
    if (!event.buttons || grabbed.current === null) return;
    const other = at(event);
    if (Math.abs(other - grabbed.current) * width > ms * 3) choose([Math.min(grabbed.current, other), Math.max(grabbed.current, other)]);
  };
  const press = (event) => {
    if (event.key === 'Escape' && range) {
      event.stopPropagation();
      choose(null);
    }
    const sign = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!sign) return;
    event.preventDefault();
    const [from, to] = range ?? [end - ms / 6, end];
    const by = (sign * ms) / 24;
    if (event.shiftKey) choose([from, Math.max(from + ms / 60, to + by)]);
    else choose([from + by, to + by]);
  };
  const wider = () => (span.value = SPANS[(SPANS.indexOf(span.value) + 1) % SPANS.length]);
  const words = range ? `${brief(range[0])} to ${brief(range[1])}` : 'all of it';
  return html`
    <div class="lane-chart">
      <div class="lane-names"><button title="length of the axis" onClick=${wider}>${span.value < 3600 ? `${span.value / 60} min` : '1 h'}</button>
        ${(data?.order ?? Object.keys(COLOURS)).map((lane) => html`<span>${lane}</span>`)}</div>
      <canvas ref=${canvas} role="slider" tabindex="0" aria-label="time on the axis that is shown" aria-valuetext=${words}
        aria-valuemin="0" aria-valuemax="100" aria-valuenow=${range ? Math.round(((range[0] - end + ms) / ms) * 100) : 100}
        onPointerDown=${grab} onPointerMove=${drag} onKeyDown=${press}></canvas>
    </div>`;
}
