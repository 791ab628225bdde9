// The palette: go to a server, a part or an item by a few letters.
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { get } from '../api.js';
import { go } from '../store.js';
import { paletteShown, run } from '../keys.js';

export function Palette() {
  const box = useRef(null);
  const [text, setText] = useState('');
  const [places, setPlaces] = useState([]);
  const [chosen, setChosen] = useState(0);
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.focus?.();
  }, []);
  useEffect(() => {
    let isOld = false;
    get('api/find', { q: text }).then((answer) => {
      if (isOld) return;
      setPlaces(answer.places);
      setChosen(0);
    }, () => undefined);
    return () => (isOld = true);
  }, [text]);
  const close = () => (paletteShown.value = false);
  const open = (place) => {
    close();
    if (place?.act) run(place.act);
    else if (place) go(place.part, { server: place.server || undefined, key: place.key });
  };
  const press = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setChosen((old) => Math.min(places.length - 1, Math.max(0, old + step)));
    }
    if (event.key === 'Enter') open(places[chosen]);
  };
  useEffect(() => document.getElementById(`place-${chosen}`)?.scrollIntoView({ block: 'nearest' }), [chosen]);
  return html`
    <dialog class="palette" ref=${box} onClose=${close} aria-label="find">
      <input type="search" role="combobox" aria-label="find a server, a part or an item, or run something" aria-expanded="true" aria-controls="places"
        aria-activedescendant=${places.length ? `place-${chosen}` : undefined} autofocus spellcheck="false" placeholder="Find or run…"
        value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${press} />
      <div id="places" role="listbox" aria-label="places" tabindex="-1">
        ${places.map((place, index) => html`<div role="option" id="place-${index}" aria-selected=${index === chosen ? 'true' : 'false'}
          class="place ${index === chosen ? 'chosen' : ''}" onClick=${() => open(place)}><code>${place.name}</code> <span class="faint">${place.about}</span></div>`)}
        ${places.length === 0 && html`<div role="option" aria-selected="false" aria-disabled="true" class="place faint">nothing fits</div>`}
      </div>
    </dialog>`;
}
