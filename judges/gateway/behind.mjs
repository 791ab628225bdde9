#!/usr/bin/env node
// Starts a server behind `tidings serve` and looks like that server: `behind.mjs --http ADDRESS`.
//
// BEHIND_PROGRAM is `tidings`, BEHIND_SERVER the program of the server, started with `--stdio` or, if
// BEHIND_OVER is `http`, with `--http`. "listening on URL" is said on standard error when the server
// behind is ready.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { killGroup, start } from '../process.mjs';

const { BEHIND_PROGRAM: program, BEHIND_SERVER: server, BEHIND_OVER: over = 'stdio' } = process.env;
const address = process.argv[process.argv.indexOf('--http') + 1];
const folder = mkdtempSync(join(tmpdir(), 'tidings-behind-'));
const children = [];

function end(code) {
  for (const child of children) killGroup(child);
  rmSync(folder, { recursive: true, force: true });
  process.exit(code);
}
process.on('SIGTERM', () => end(0));
process.on('SIGINT', () => end(0));

/** The first match in what a program says on one of its outputs. */
function said(child, output, pattern) {
  return new Promise((done, failed) => {
    createInterface({ input: child[output] }).on('line', (line) => {
      const found = pattern.exec(line);
      if (found) done(found[1]);
    });
    child.ended.then(({ why }) => failed(new Error(`a server ended: ${why}\n${child.err}`)));
  });
}

async function target() {
  if (over === 'stdio') return `command = [${JSON.stringify(server)}, "--stdio"]`;
  const child = start(server, ['--http', '127.0.0.1:0']);
  children.push(child);
  return `url = "${await said(child, 'stderr', /listening on (\S+)/)}"`;
}

try {
  // Names are kept, so that the server looks as it does without us.
  writeFileSync(join(folder, 'tidings.toml'), `[upstream.server]\n${await target()}\nprefix = ""\n`);
  const gateway = start(program, ['serve', '--config', 'tidings.toml', '--http', address], {
    cwd: folder,
    env: { ...process.env, XDG_RUNTIME_DIR: folder, XDG_DATA_HOME: folder },
  });
  children.push(gateway);
  gateway.stderr.on('data', (text) => process.stderr.write(text));
  const [url] = await Promise.all([
    said(gateway, 'stdout', /listening on (\S+)/),
    said(gateway, 'stdout', /upstream {2}server: (ready)/),
  ]);
  console.error(`listening on ${url}`);
  const { why } = await gateway.ended;
  console.error(`the gateway ended: ${why}`);
  end(1);
} catch (error) {
  console.error(error.message);
  end(1);
}
