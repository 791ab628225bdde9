// Installs what the judges need, each below its own folder, and only when what is pinned changed.
import { createHash } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WINDOWS, start } from './process.mjs';

const PYTHON_DIR = join(dirname(fileURLToPath(import.meta.url)), 'peers', 'python');

/** The Python of a folder, once `installPython` is done. */
export const venvPython = (folder) => join(folder, '.venv', WINDOWS ? 'Scripts/python.exe' : 'bin/python');

/** The Python that has the SDK, once `installPython` is done. */
export const VENV_PYTHON = venvPython(PYTHON_DIR);

async function must(what, command, args, cwd) {
  const child = start(command, args, { cwd, shell: WINDOWS });
  const { code, why } = await child.ended;
  if (code !== 0) throw new Error(`${what}: ${why}\n${child.out}${child.err}`);
}

/** Does `make` unless it was done for exactly these files before. */
async function keepFresh(stamp, files, make) {
  const hash = createHash('sha256');
  for (const file of files) hash.update(await readFile(file));
  const wanted = hash.digest('hex');
  const have = await readFile(stamp, 'utf8').catch(() => '');
  if (have === wanted) return;
  await make();
  await writeFile(stamp, wanted);
}

/** PYTHON names the interpreter that makes the environment: python3 unless set, 3.11 or newer. */
export async function installPython(folder = PYTHON_DIR) {
  const requirements = join(folder, 'requirements.txt');
  await keepFresh(join(folder, '.venv', '.stamp'), [requirements], async () => {
    console.log('# setting up Python packages');
    await rm(join(folder, '.venv'), { recursive: true, force: true });
    await must('venv', process.env.PYTHON ?? 'python3', ['-m', 'venv', '.venv'], folder);
    await must('pip', venvPython(folder), ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', requirements], folder);
  });
}

/** Installs the Node packages that a folder pins. */
export async function installNode(folder) {
  const files = ['package.json', 'package-lock.json'].map((name) => join(folder, name));
  await keepFresh(join(folder, 'node_modules', '.stamp'), files, async () => {
    console.log('# setting up the TypeScript SDKs');
    await must('npm ci', 'npm', ['ci', '--no-audit', '--no-fund'], folder);
  });
}
