// The keys, each of which can be pressed here too.
import { html, useEffect, useRef } from '../vendor/preact.js';
import { helpShown, keys, run } from '../keys.js';

export function Help() {
  const box = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.focus?.();
  }, []);
  const close = () => (helpShown.value = false);
  const press = (act) => {
    close();
    if (act !== 'help') run(act);
  };
  return html`
    <dialog class="help" ref=${box} onClose=${close} aria-label="keys">
      <header class="head"><h2>Keys</h2><span class="space"></span><button onClick=${close}>Close</button></header>
      <ul>${keys.value.map((it) => html`<li><button onClick=${() => press(it.act)}><kbd>${it.key}</kbd> ${it.words}</button></li>`)}</ul>
    </dialog>`;
}
