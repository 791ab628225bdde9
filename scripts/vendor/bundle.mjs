// Bundles the libraries of the page into one module, with their licences in its head.
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const FOLDER = dirname(fileURLToPath(import.meta.url));
const PACKAGES = ['preact', '@preact/signals', '@preact/signals-core', 'htm'];

const ENTRY = `
import { h } from 'preact';
import htm from 'htm';
export { Fragment, render } from 'preact';
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
export { batch, computed, effect, signal } from '@preact/signals';
export const html = htm.bind(h);
`;

async function licence(name) {
  const folder = join(FOLDER, 'node_modules', name);
  const { version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const text = await readFile(join(folder, 'LICENSE'), 'utf8');
  // The text of the Apache licence is in LICENSE-APACHE of this project.
  const said = license === 'MIT' ? text.trim() : text.match(/Copyright \d.*/)?.[0] ?? '';
  return `${name} ${version}, ${license}\n${said}`;
}

const { outputFiles } = await build({
  stdin: { contents: ENTRY, resolveDir: FOLDER, sourcefile: 'entry.js' },
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  legalComments: 'none',
  write: false,
});
const licences = await Promise.all(PACKAGES.map(licence));
process.stdout.write(`/*\n${licences.join('\n\n')}\n*/\n${outputFiles[0].text}`);
