// What the judges share: their options, and a run of combinations of checks, several at once, that
// prints what came of each and ends with a verdict.

/** The options of a judge of the file that `--judged` names: that file, `--only` and `--jobs`. */
export function parse(argv, judged) {
  const usage = () => {
    console.error(`usage: node run.mjs --${judged} FILE [--only TEXT] [--jobs N]`);
    process.exit(2);
  };
  const options = { only: '', jobs: 1 };
  for (let i = 0; i < argv.length; i += 2) {
    const name = argv[i]?.replace(/^--/, '');
    if (![judged, 'only', 'jobs'].includes(name) || argv[i + 1] === undefined) usage();
    options[name] = argv[i + 1];
  }
  options.jobs = Number(options.jobs);
  if (!options[judged] || !Number.isInteger(options.jobs) || options.jobs < 1) usage();
  return options;
}

/**
 * @param {string} title what the last line begins with
 * @param {{ combinations: {name: string}[], jobs: number, setUp: () => Promise<void>,
 *   run: (combination: object) => Promise<{ok: boolean}[]>,
 *   print: (name: string, checks: object[], seconds: number) => void }} plan
 */
export async function judge(title, { combinations, jobs, setUp, run, print }) {
  let passed = 0;
  let failed = 0;
  try {
    await setUp();
  } catch (error) {
    console.log(`FAIL set up\n${error.message}`);
    console.log(`${title}: 0 passed, 1 failed`);
    process.exit(1);
  }
  const queue = [...combinations];
  const worker = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const began = Date.now();
      const checks = await run(next);
      print(next.name, checks, (Date.now() - began) / 1000);
      const bad = checks.filter(({ ok }) => !ok).length;
      failed += bad;
      passed += checks.length - bad;
    }
  };
  await Promise.all(Array.from({ length: jobs }, worker));
  console.log(`${title}: ${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}
