// What the tests share: the package as it is installed, processes, and a sidecar that misbehaves.
'use strict';

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const kern = require('kern-sandbox');

/** Polls until `condition` gives something truthy. */
async function until(condition, what, seconds = 30) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what} did not come within ${seconds} s`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Is it a process, and no zombie? */
function alive(pid) {
  try {
    return !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Pids of all processes whose arguments have this word. */
function withArgument(word) {
  return fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => {
    try {
      return pid !== process.pid && alive(pid) && fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(word);
    } catch {
      return false;
    }
  });
}

function temporary(t) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'kern-node-test-'));
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A host of its own: runs a script with this package, gives { child, out, ended }. */
function host(script, { env = {}, words = [], options = {} } = {}) {
  const child = spawn(process.execPath, ['-e', script, ...words], { cwd: __dirname, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'], ...options });
  const run = { child, out: '', err: '' };
  child.stdout.on('data', (chunk) => { run.out += chunk; });
  child.stderr.on('data', (chunk) => { run.err += chunk; });
  run.ended = new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal })));
  return run;
}

/** A program that answers `initialize` and then does what `body` says with each request; `reply(id, result)` writes. */
function impostor(directory, body) {
  const file = path.join(directory, 'impostor');
  fs.writeFileSync(file, `#!${process.execPath}
const reply = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
let rest = '';
process.stdin.on('data', (data) => {
  const lines = (rest + data).split('\\n');
  rest = lines.pop();
  for (const line of lines) {
    const request = JSON.parse(line);
    if (request.method === 'initialize') reply(request.id, {});
    else { ${body} }
  }
});
process.stdin.on('end', () => process.exit(0));
`);
  fs.chmodSync(file, 0o755);
  return file;
}

module.exports = { kern, until, alive, withArgument, temporary, host, impostor };
