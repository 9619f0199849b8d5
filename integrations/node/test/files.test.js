'use strict';

const test = require('node:test');
const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { kern, temporary } = require('./rig.js');

const box = new kern.Sandbox();
test.after(() => box.close());

test('write, read, stat, list, move, remove', async () => {
  assert.deepEqual(await box.writeFile('a/b.txt', 'one\ntwo\n'), { ...(await box.stat('a/b.txt')).etag && { etag: (await box.stat('a/b.txt')).etag }, size: 8, created: true });
  assert.equal(await box.readFile('a/b.txt', { encoding: 'utf8' }), 'one\ntwo\n');
  assert.ok((await box.readFile('a/b.txt')).equals(Buffer.from('one\ntwo\n')));
  assert.equal(await box.readFile('a/b.txt', { encoding: 'utf8', lines: { start: 2, count: 1 } }), 'two\n');
  assert.equal((await box.readFile('a/b.txt', { offset: 4, length: 2 })).toString(), 'tw');
  await box.mkdir('a/deep/er', { parents: true });
  await box.move('a/b.txt', 'a/deep/c.txt');
  assert.deepEqual((await box.listFiles('', { recursive: true })).map((e) => [e.path, e.type]),
    [['a', 'directory'], ['a/deep', 'directory'], ['a/deep/c.txt', 'file'], ['a/deep/er', 'directory']]);
  await box.remove('a', { recursive: true });
  assert.deepEqual(await box.listFiles(), []);
});

test('edit, search and glob', async () => {
  await box.writeFile('src/x.js', 'let a = 1;\nlet b = 2;\n');
  await box.writeFile('src/.hidden.js', 'let a = 3;\n');
  const { replacements, etag } = await box.editFile('src/x.js', { oldText: 'a = 1', newText: 'a = 10' });
  assert.deepEqual(replacements, [1]);
  await assert.rejects(box.editFile('src/x.js', [{ oldText: 'let', newText: 'var' }]), { reason: 'edit_not_unique' });
  await assert.rejects(box.editFile('src/x.js', { oldText: 'zzz', newText: '' }), { reason: 'edit_no_match' });
  await assert.rejects(box.writeFile('src/x.js', 'y', { ifMatch: 'other' }), { reason: 'changed' });
  await box.writeFile('src/x.js', '//\n', { ifMatch: etag, ifExists: 'append' });
  const found = await box.search('a = \\d+', { regex: true, after: 1 });
  assert.deepEqual(found.matches.map((m) => [m.path, m.line, m.text, m.after]), [['src/x.js', 1, 'let a = 10;', ['let b = 2;']]]);
  assert.deepEqual((await box.glob('*.js', { hidden: true })).entries.map((e) => e.path), ['src/.hidden.js', 'src/x.js']);
});

test('large files and names that are not UTF-8', async () => {
  const large = Buffer.alloc((9 << 20) + 5, 'abcé\0');
  await box.writeFile('large', large);
  assert.ok((await box.readFile('large')).equals(large));
  const text = 'é\n'.repeat(1 << 20);
  await box.writeFile('text', text);
  assert.equal(await box.readFile('text', { encoding: 'utf8' }), text);
  const name = Buffer.from([0x66, 0xff]);
  await box.writeFile(name, 'odd');
  const entry = (await box.listFiles()).find((e) => e.pathBase64 !== undefined);
  assert.equal((await box.readFile(Buffer.from(entry.pathBase64, 'base64'))).toString(), 'odd');
  await box.mkdir('many');
  await box.runCode('for i in range(2500): open(f"many/{i:04}", "w")');
  assert.equal((await box.listFiles('many')).length, 2500);
  assert.equal((await box.listFiles('many', { limit: 7 })).at(-1).path, 'many/0006');
});

test('nothing outside: links, dots, fifos, options that do not exist', async (t) => {
  await box.runCode('import os; os.symlink("/etc/passwd", "link"); os.mkfifo("fifo")');
  await assert.rejects(box.readFile('link'), { reason: 'path_escape' });
  await assert.rejects(box.readFile('../../etc/passwd'), { reason: 'path_escape' });
  await assert.rejects(box.readFile('/etc/passwd'), { reason: 'path_escape' });
  await assert.rejects(box.readFile('fifo'), { reason: 'not_regular' });
  await assert.rejects(box.readFile('nothing'), { reason: 'not_found' });
  await assert.rejects(box.readFile('a', { follow: true }), { reason: 'unknown_option', option: 'follow' });
  await assert.rejects(box.writeFile('a', 7), { reason: 'invalid_type', option: 'data' });
  await assert.rejects(box.readFile('a', { signal: AbortSignal.abort() }), { name: 'AbortError' });
});

test('snapshot and restore', async (t) => {
  const archive = path.join(temporary(t), 'w.tar.gz');
  await kern.withSandbox(async (one) => {
    await one.writeFile('keep/me', 'kept');
    const made = await one.snapshot(archive);
    assert.equal(made.bytes, fs.statSync(archive).size);
  });
  await kern.withSandbox(async (other) => {
    await other.writeFile('old', 'goes');
    await other.restore(archive);
    assert.equal(await other.readFile('keep/me', { encoding: 'utf8' }), 'kept');
    await assert.rejects(other.readFile('old'), { reason: 'not_found' });
    fs.writeFileSync(archive, 'no archive');
    await assert.rejects(other.restore(archive), { reason: 'archive_refused' });
  });
});
