// The servers that the judge puts behind one gateway, and the gateway.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { VENV_PYTHON, installNode, installPython, venvPython } from '../install.mjs';
import { killGroup, start } from '../process.mjs';
import { inTime } from '../servers/program.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const SERVERS = join(HERE, 'servers');
const JUDGES = join(HERE, '..', 'servers');
const READY_MS = 60_000;

/** A match in what a program says, on either output. */
const said = (what, child, pattern) =>
  inTime(
    what,
    READY_MS,
    new Promise((done, failed) => {
      const look = () => {
        const found = pattern.exec(child.out + child.err);
        if (found) done(found[1]);
      };
      child.stdout.on('data', look);
      child.stderr.on('data', look);
      child.ended.then(({ why }) => failed(new Error(`${what}: ${why}\n${child.err}`)));
    }),
  ).catch((error) => {
    throw new Error(`${error.message}\n${child.out}${child.err}`);
  });

export class Setting {
  folder = mkdtempSync(join(tmpdir(), 'tidings-gateway-'));
  files = join(this.folder, 'files');
  repository = join(this.folder, 'repository');
  children = [];

  constructor(program) {
    this.program = program;
    process.on('exit', () => this.end());
  }

  end() {
    for (const child of this.children) killGroup(child);
    rmSync(this.folder, { recursive: true, force: true });
  }

  static async install() {
    await Promise.all([installNode(SERVERS), installNode(join(HERE, '..', 'peers', 'typescript')), installNode(join(JUDGES, 'typescript'))]);
    await installPython(SERVERS);
    await installPython();
  }

  /** Every server over stdio; those of `tapped` log what they are asked. In order: the first has a URI that several offer. */
  servers() {
    const node = (name, ...words) => [process.execPath, join(SERVERS, 'node_modules', '@modelcontextprotocol', `server-${name}`, 'dist', 'index.js'), ...words];
    const module = (name, ...words) => [venvPython(SERVERS), '-m', `mcp_server_${name}`, ...words];
    const typescript = (name) => [process.execPath, join(JUDGES, 'typescript', name)];
    return {
      everything: { command: node('everything', 'stdio'), tapped: true },
      memory: { command: node('memory'), env: { MEMORY_FILE_PATH: join(this.folder, 'memory.jsonl') } },
      files: { command: node('filesystem', this.files) },
      git: { command: module('git', '--repository', this.repository) },
      time: { command: module('time', '--local-timezone', 'UTC') },
      python: { command: this.python() },
      'ts-one': { command: typescript('server-v1.mjs'), tapped: true },
      'ts-two': { command: typescript('server-v2.mjs') },
      many: { command: typescript('server-v1.mjs'), tapped: true },
    };
  }

  python(...words) {
    return [VENV_PYTHON, '-u', join(JUDGES, 'python', 'server.py'), ...words];
  }

  /** Servers over HTTP: a modern one and one with sessions. */
  remote() {
    return { 'python-http': this.python('--http'), 'ts-http': [process.execPath, join(JUDGES, 'typescript', 'server-v1.mjs'), '--http'] };
  }

  log = (name) => join(this.folder, `${name}.log`);

  /** What a tapped server was asked: the lines that begin with this. */
  asked(name, what) {
    const lines = readFileSync(this.log(name), 'utf8').split('\n');
    return lines.filter((line) => line.startsWith(what));
  }

  begin(command, words, options) {
    const child = start(command, words, options);
    this.children.push(child);
    return child;
  }

  async prepare() {
    mkdirSync(this.files);
    writeFileSync(join(this.files, 'note.txt'), 'hello\n');
    const git = (...words) => execFileSync('git', ['-C', this.repository, '-c', 'user.name=judge', '-c', 'user.email=judge@localhost', ...words], { stdio: 'ignore' });
    mkdirSync(this.repository);
    git('init');
    writeFileSync(join(this.repository, 'one.txt'), 'one\n');
    git('add', '.');
    git('commit', '-m', 'the first commit');
  }

  /** The gateway in front of all servers, ready. */
  async open() {
    await this.prepare();
    const sections = Object.entries(this.servers()).map(([name, { command, env, tapped }]) => {
      const words = tapped ? [process.execPath, join(HERE, 'tap.mjs'), this.log(name), ...command] : command;
      const variables = Object.entries(env ?? {}).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
      return `[upstream.${name}]\ncommand = ${JSON.stringify(words)}\nenv = { ${variables.join(', ')} }\n`;
    });
    for (const [name, [command, ...words]] of Object.entries(this.remote())) {
      const url = await said(name, this.begin(command, words), /listening on (\S+)/);
      sections.push(`[upstream.${name}]\nurl = ${JSON.stringify(url)}\n`);
    }
    writeFileSync(join(this.folder, 'tidings.toml'), sections.join('\n'));
    const gateway = this.begin(this.program, ['serve', '--config', 'tidings.toml', '--http', '127.0.0.1:0'], {
      cwd: this.folder,
      env: { ...process.env, XDG_RUNTIME_DIR: this.folder, XDG_DATA_HOME: this.folder },
    });
    // One look for each server.
    for (const output of [gateway.stdout, gateway.stderr]) output.setMaxListeners(100);
    const names = [...Object.keys(this.servers()), ...Object.keys(this.remote())];
    const ready = names.map((name) => said(`${name} behind the gateway`, gateway, new RegExp(`upstream {2}(${name}): ready`)));
    const url = said('the gateway', gateway, /listening on (\S+)/);
    await Promise.all(ready);
    return url;
  }
}
