// The process rules: one sidecar, restarted, drained, gone with its host.
'use strict';

const test = require('node:test');
const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { kern, until, alive, withArgument, temporary, host, impostor } = require('./rig.js');

const START = `
const kern = require('kern-sandbox');
const say = (...words) => console.log(...words);
`;

test('one sidecar for CommonJS, ES modules and all sandboxes', async () => {
  const run = host(`${START}
    import('kern-sandbox').then(async (esm) => {
      const a = new kern.Sandbox(), b = new esm.Sandbox();
      await a.open(); await b.open();
      say((await kern.info()).server.pid === (await esm.default.info()).server.pid, esm.Sandbox === kern.Sandbox);
    })`);
  assert.deepEqual(await run.ended, { code: 0, signal: null }, run.err); // it ends by itself, with two sandboxes open
  assert.equal(run.out, 'true true\n');
});

test('an idle sidecar holds no event loop, a call in flight does', async () => {
  const run = host(`${START} kern.runCode('import time; time.sleep(0.5); print(7)').then((r) => say(r.stdout.trim()))`);
  assert.deepEqual([await run.ended, run.out], [{ code: 0, signal: null }, '7\n']);
});

const IN_FLIGHT = `${START}
  const word = process.argv[1];
  kern.info().then(async (info) => {
    const box = await new kern.Sandbox({ timeoutS: 600 }).open();
    box.run(['sh', '-c', 'echo up; sleep 600 & sleep 600', word], { onStdout: () => say(info.server.pid, box.workspace) });
  });`;

for (const [how, end] of [
  ['SIGKILL', (run) => run.child.kill('SIGKILL')],
  ['Ctrl-C', (run) => process.kill(-run.child.pid, 'SIGINT')],
  ['process.exit', (run) => run.child.kill('SIGUSR2')],
  ['an exception', (run) => run.child.kill('SIGUSR1')],
]) {
  test(`a host that ends by ${how} in the middle of a call leaves nothing`, async () => {
    const word = `kern-node-${process.pid}-${how.replace(/\W/g, '')}`;
    const run = host(`process.on('SIGUSR2', () => process.exit(3)); process.on('SIGUSR1', () => { throw new Error('x') });${IN_FLIGHT}`,
      { words: [word], options: { detached: true } });
    await until(() => run.out.includes('\n') || run.child.exitCode !== null, 'the call');
    const [pid, workspace] = run.out.trim().split(' ');
    assert.ok(alive(Number(pid)), run.err);
    end(run);
    await run.ended;
    await until(() => !alive(Number(pid)), 'the end of the sidecar');
    await until(() => !fs.existsSync(workspace), 'the end of the workspace');
    assert.deepEqual(withArgument(word), []);
  });
}

test('a worker thread that ends takes its sidecar along', async () => {
  const run = host(`const { Worker } = require('node:worker_threads');
    const worker = new Worker(\`const { parentPort } = require('node:worker_threads'); const kern = require('kern-sandbox');
      kern.info().then((i) => parentPort.postMessage(i.server.pid)); setInterval(() => {}, 1000);\`, { eval: true });
    worker.on('message', async (pid) => { console.log(pid); await worker.terminate();
      const gone = () => { try { return /^State:\\s+Z/m.test(require('node:fs').readFileSync('/proc/' + pid + '/status', 'utf8')); } catch { return true; } };
      for (let i = 0; i < 3000 && !gone(); i++) await new Promise((r) => setTimeout(r, 10));
      console.log(gone()); });`);
  await run.ended;
  assert.match(run.out, /^\d+\ntrue\n$/, run.err);
});

test('a sidecar that is killed: calls in flight fail clearly, the next ones have a new one', async (t) => {
  const named = new kern.Sandbox({ workspace: temporary(t) });
  const hidden = new kern.Sandbox();
  await named.writeFile('here', 'still');
  await hidden.open();
  const kernel = await named.kernel();
  const { pid } = (await kern.info()).server;
  const call = named.runCode('print(1, flush=True)\nimport time; time.sleep(600)', { timeoutS: 600, onStdout: () => process.kill(pid, 'SIGKILL') });
  await assert.rejects(call, (error) => error instanceof kern.SidecarLost && /signal KILL|SIGKILL/.test(error.message));
  await until(() => kernel.state === 'dead', 'the kernel knows');
  assert.equal((await named.runCode('print(open("here").read())')).stdout, 'still\n');
  assert.notEqual((await kern.info()).server.pid, pid);
  await assert.rejects(hidden.runCode('1'), { name: 'SidecarLost', reason: 'session_lost' });
  await assert.rejects(kernel.runCode('1'), { name: 'SidecarLost' });
  await Promise.all([named.close(), hidden.close(), kernel.close()]);
});

test('shutdown ends it; the next call starts another', async () => {
  const { pid } = (await kern.info()).server;
  await kern.shutdown('drain');
  await until(() => !alive(pid), 'its end');
  assert.equal((await kern.runCode('print(1)')).stdout, '1\n');
  await assert.rejects(kern.shutdown('slowly'), { reason: 'invalid_value' });
});

test('which program: a wrong KERN_SIDECAR is an error, a missing one too, and no other is taken instead', async (t) => {
  const failed = async (env) => {
    const run = host(`${START} kern.runCode('1').catch((e) => say(e.name, e.reason, e.message))`, { env });
    assert.equal((await run.ended).code, 0, run.err);
    return run.out;
  };
  assert.match(await failed({ KERN_SIDECAR: '/no/such/program' }), /^ProgramNotFound program_not_found .*KERN_SIDECAR is "\/no\/such/);
  assert.match(await failed({ KERN_SIDECAR: 'kern-sidecar' }), /not the absolute path/);
  const notOne = path.join(temporary(t), 'text');
  fs.writeFileSync(notOne, 'not a program', { mode: 0o755 });
  assert.match(await failed({ KERN_SIDECAR: notOne }), /^(ProgramNotFound|SidecarLost) /);
  assert.match(await failed({ KERN_SIDECAR: '/bin/true' }), /^SidecarLost sidecar_lost .*exit status 0/);
  const { findProgram } = require(path.join(path.dirname(require.resolve('kern-sandbox')), 'program.js'));
  assert.throws(() => findProgram({}, 'darwin'), { reason: 'host_unsupported', message: /Lima/ });
  assert.match(findProgram({ PATH: '' }), /kern-sandbox\/program\/kern-sidecar$/);
});

test('a sidecar that misbehaves', async (t) => {
  const directory = temporary(t);
  const told = async (body, script) => {
    const run = host(`${START} ${script}`, { env: { KERN_SIDECAR: impostor(directory, body) } });
    assert.equal((await run.ended).code, 0, run.err);
    return run.out;
  };
  const ask = `kern.doctor().then((r) => say(JSON.stringify(r.checks[0].found)), (e) => say(e.name, e.message))`;
  // characters that some line splitters end lines at, written a byte at a time
  assert.equal(await told(`const line = Buffer.from(JSON.stringify({ id: request.id, result: { checks: [{ found: 'a\\u2028\\u2029\\u0085é' }] } }) + '\\r\\n');
    let i = 0; const next = () => { if (i < line.length) process.stdout.write(line.subarray(i, ++i), () => setImmediate(next)); }; next();`, ask), `${JSON.stringify('a\u2028\u2029\u0085é')}\n`);
  // a flood on stderr: who does not read it would hang
  assert.equal(await told(`process.stderr.write('e'.repeat(1 << 22) + '\\n', () => reply(request.id, { checks: [{ found: 'drained' }] }));`, ask), '"drained"\n');
  assert.match(await told(`console.log('no json');`, ask), /^SidecarLost .*not JSON/);
  assert.match(await told(`console.error('my last words'); process.exitCode = 4; process.stdin.destroy(); process.stdout.end(); setTimeout(() => process.exit(4), 50);`, ask), /^SidecarLost .*exit status 4.*my last words/s);
});
