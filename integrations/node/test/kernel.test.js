'use strict';

const test = require('node:test');
const assert = require('node:assert/strict');
const { kern, until } = require('./rig.js');

const box = new kern.Sandbox({ timeoutS: 60 });
test.after(() => box.close());

test('state stays between cells, in both languages; results and errors as in a call', async () => {
  const python = await box.kernel();
  await python.runCode('x = 20');
  const r = await python.runCode('x * 2 + 2');
  assert.deepEqual([r.results[0].text, r.cellStatus, r.stateKept, r.executionCount], ['42', 'ok', true, 2]);
  const bad = await python.runCode('1 / 0');
  assert.deepEqual([bad.cellStatus, bad.error.name, bad.success], ['error', 'ZeroDivisionError', false]);
  assert.equal((await python.runCode('x')).results[0].text, '20');
  await python.restart();
  assert.equal((await python.runCode('x')).error.name, 'NameError');
  await python.close();
  await python.close();
  await assert.rejects(python.runCode('1'), { reason: 'unknown_handle' });
  const node = await box.kernel({ language: 'node' });
  await node.runCode('const y = 3');
  assert.equal((await node.runCode('y + 1')).results[0].text, '4');
  await node.close();
});

test('interrupt, abort and deadline keep the state', async () => {
  const states = [];
  const kernel = await box.kernel({ onState: (facts) => states.push(facts.state) });
  await kernel.runCode('x = 1');
  const forever = 'print("on", flush=True)\nwhile True: pass';
  const interrupted = await kernel.runCode(forever, { onStdout: () => kernel.interrupt() });
  assert.deepEqual([interrupted.cellStatus, interrupted.stateKept, interrupted.stdout], ['interrupted', true, 'on\n']);
  const controller = new AbortController();
  const aborted = await kernel.runCode(forever, { signal: controller.signal, onStdout: () => controller.abort() });
  assert.deepEqual([aborted.fault.type, aborted.stateKept], ['cancelled', true]);
  const late = await kernel.runCode('while True: pass', { timeoutS: 0.3 });
  assert.deepEqual([late.fault.type, late.stateKept], ['timeout', true]);
  assert.equal((await kernel.runCode('x')).results[0].text, '1');
  assert.equal(await kernel.interrupt(), false);
  await until(() => states.includes('busy') && states.at(-1) === 'idle', 'the states');
  await kernel.close();
});

test('a cell asks: answers, none, too late, wrong', async () => {
  const kernel = await box.kernel();
  const asked = [];
  const answers = ['Ada', 'ü'.repeat(3_000_000), null];
  const onInput = async (prompt, { password }) => { asked.push([prompt, password]); return answers.shift(); };
  const r = await kernel.runCode('import getpass\nx = input("name? "), len(getpass.getpass("word: "))\nprint(x)\ntry: input()\nexcept EOFError: input()', { onInput });
  assert.deepEqual([r.stdout, r.error.name], ["('Ada', 3000000)\n", 'EOFError']);
  assert.deepEqual(asked, [['name? ', false], ['word: ', true], ['', false]]);
  assert.equal((await kernel.runCode('input()')).error.name, 'EOFError');
  let told;
  const never = (prompt, { signal }) => {
    setImmediate(() => kernel.interrupt());
    return new Promise((resolve) => { signal.addEventListener('abort', () => { told = true; resolve('late'); }); });
  };
  const interrupted = await kernel.runCode('input()', { onInput: never });
  assert.deepEqual([interrupted.cellStatus, told], ['interrupted', true]);
  await assert.rejects(kernel.runCode('input()', { onInput: () => { throw new Error('no screen'); } }), /no screen/);
  await assert.rejects(kernel.runCode('input()', { onInput: () => 5 }), { option: 'onInput' });
  await assert.rejects(kernel.runCode('1', { onInput: 'x' }), { option: 'onInput' });
  await assert.rejects(box.runCode('1', { onInput }), { reason: 'unknown_option' });
  assert.equal((await kernel.runCode('x[0]')).results[0].text, "'Ada'");
  await kernel.close();
});

test('a cell of node asks', async () => {
  const kernel = await box.kernel({ language: 'node' });
  const code = "const lines = require('readline').createInterface(process.stdin)\nlines.question('name? ', (name) => { console.log(name); lines.close() })";
  const r = await kernel.runCode(code, { onInput: async (prompt) => prompt + 'Ada' });
  assert.deepEqual([r.stdout, r.cellStatus], ['name? Ada\n', 'ok']);
  assert.match((await kernel.runCode("fs = require('fs'); fs.readFileSync(0, 'utf8') + '!'", { onInput: () => null })).results[0].text, /^'!'$/);
  await kernel.close();
});

test('a kernel that dies says so, and what comes after is refused', async () => {
  const kernel = await box.kernel();
  const dead = await kernel.runCode('import os; os.kill(os.getpid(), 9)');
  assert.deepEqual([dead.cellStatus, dead.stateKept], ['dead', false]);
  await until(() => kernel.state === 'dead', 'the state dead');
  await assert.rejects(kernel.runCode('1'), { reason: 'kernel_dead' });
  await kernel.restart();
  assert.equal((await kernel.runCode('1')).results[0].text, '1');
  await kernel.close();
});
