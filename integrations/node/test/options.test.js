'use strict';

const test = require('node:test');
const assert = require('node:assert/strict');
const { kern, temporary } = require('./rig.js');

const WRONG = [
  [{ memoryMB: 64 }, 'unknown_option', 'memoryMB', /did you mean memoryMb/],
  [{ timeoutMs: 64 }, 'unknown_option', 'timeoutMs', /did you mean timeoutS/],
  [{ readOnly: true }, 'unknown_option', 'readOnly'],
  [{ memoryMb: '64' }, 'invalid_type', 'memoryMb'],
  [{ memoryMb: 3 }, 'out_of_range', 'memoryMb', /4 to 1048576/],
  [{ memoryMb: 1048577 }, 'out_of_range', 'memoryMb'],
  [{ memoryMb: 64.5 }, 'invalid_type', 'memoryMb'],
  [{ cpus: 0 }, 'invalid_type', 'cpus'],
  [{ cpus: 0.009 }, 'out_of_range', 'cpus'],
  [{ pids: true }, 'invalid_type', 'pids'],
  [{ timeoutS: 0 }, 'invalid_type', 'timeoutS'],
  [{ timeoutS: null }, 'invalid_type', 'timeoutS'],
  [{ timeoutS: NaN }, 'invalid_type', 'timeoutS'],
  [{ timeoutS: 86401 }, 'out_of_range', 'timeoutS'],
  [{ network: 'yes' }, 'invalid_type', 'network'],
  [{ mounts: ['/a'] }, 'invalid_type', 'mounts'],
  [{ mounts: { '/a': 7 } }, 'invalid_type', 'mounts'],
  [{ mounts: { '/a': ['/b', 'rx'] } }, 'invalid_value', 'mounts'],
  [{ mounts: { '/a': 'b' } }, 'mount_refused', 'mounts'],
  [{ tmpfs: { '/t': '64' } }, 'invalid_value', 'tmpfs'],
  [{ tmpfs: '/t' }, 'invalid_type', 'tmpfs'],
  [{ env: { 'A B': '1' } }, 'invalid_value', 'env'],
  [{ env: { A: 1 } }, 'invalid_type', 'env'],
  [{ env: { A: 'a\nb' } }, 'invalid_value', 'env'],
  [{ env: 'A=1' }, 'invalid_type', 'env'],
  [{ capDrop: 'ALL' }, 'invalid_type', 'capDrop'],
  [{ setup: ['pip install x'] }, 'invalid_type', 'setup'],
  [{ workspace: '' }, 'invalid_value', 'workspace'],
  [{ workspace: 7 }, 'invalid_type', 'workspace'],
  [{ image: 'a\0b' }, 'invalid_value', 'image'],
  [{ start: 'warm' }, 'invalid_value', 'start'],
  [{ onStdout: 'print' }, 'invalid_type', 'onStdout'],
  [{ prewarm: 65 }, 'out_of_range', 'prewarm'],
  ['python', 'invalid_type', 'options'],
];

test('what is wrong is named at construction', () => {
  for (const [options, reason, option, message = /./] of WRONG)
    assert.throws(() => new kern.Sandbox(options), (error) => {
      assert.ok(error instanceof kern.SandboxError);
      assert.deepEqual([error.reason, error.option], [reason, option], `${JSON.stringify(options)}: ${error.message}`);
      assert.match(error.message, message);
      return true;
    });
  for (const right of [{}, undefined, { memoryMb: null }, { memoryMb: 4 }, { cpus: 0.01 }, { timeoutS: 86400 }, { mounts: { 'rel/ative': '/b' } }, { user: 1000 }, { tmpfs: {} }, { onStdout: null }])
    new kern.Sandbox(right);
});

test('and for a call, before anything runs', async () => {
  const box = new kern.Sandbox();
  await assert.rejects(box.runCode('1', { timeout: 5 }), { reason: 'unknown_option', option: 'timeout' });
  await assert.rejects(box.runCode('1', { network: true }), { reason: 'unknown_option', option: 'network' });
  await assert.rejects(box.runCode(7), { reason: 'invalid_type', option: 'code' });
  await assert.rejects(box.run('ls -l'), { reason: 'invalid_type', option: 'argv' });
  await assert.rejects(box.run([]), { reason: 'invalid_type', option: 'argv' });
  await assert.rejects(box.runCode('1', { signal: {} }), { reason: 'invalid_type', option: 'signal' });
  await assert.rejects(kern.runCode('1', { imag: 'host' }), { reason: 'unknown_option', message: /did you mean image/ });
  assert.equal(box.sessionId, undefined, 'nothing was started for them');
  await box.close();
});

test('what only the sidecar knows comes with the option and the cure', async (t) => {
  await assert.rejects(new kern.Sandbox({ mounts: { [temporary(t)]: '/ok', '/etc': '/x' } }).open(), (error) => {
    assert.deepEqual([error instanceof kern.MountRefused, error.reason, error.pointer], [true, 'mount_refused', '/mounts/1/source']);
    return true;
  });
  await assert.rejects(new kern.Sandbox({ mounts: { [temporary(t)]: '/proc' } }).open(), kern.MountRefused);
  await assert.rejects(new kern.Sandbox({ image: 'dir:/no/such/directory' }).open(), { reason: 'image_not_found' });
  await assert.rejects(kern.runCode('1', { language: 'cobol' }), { reason: 'unknown_language' });
  await assert.rejects(kern.runCode('1', { securityProfile: 'untrusted', network: true }), { name: 'OptionError' });
});
