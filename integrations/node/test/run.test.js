'use strict';

const test = require('node:test');
const assert = require('node:assert/strict');
const { kern, until, temporary } = require('./rig.js');

const box = new kern.Sandbox({ memoryMb: 128, timeoutS: 60 });
test.after(() => box.close());

test('a call has every field of its result', async () => {
  const r = await kern.runCode('import sys\nprint("out")\nprint("err", file=sys.stderr)\nopen("made", "w").write("x")\n6 * 7', { memoryMb: 200 });
  assert.ok(r instanceof kern.ExecutionResult);
  assert.deepEqual([r.stdout, r.codeStderr, r.exitCode, r.success, r.fault, r.error, r.truncated], ['out\n', 'err\n', 0, true, null, null, false]);
  assert.equal(r.stderr, r.runtimeNotes.map((line) => line + '\n').join('') + 'err\n');
  assert.equal(r.results[0].text, '42');
  assert.deepEqual(r.files.map((f) => [f.path, f.change, f.size]), [['made', 'created', 1]]);
  assert.ok(Number.isInteger(r.durationMs) && r.usage.wallUs > 0);
});

test('an exception is no fault, and its line is known', async () => {
  const r = await box.runCode('x = 1\nraise KeyError("k")', { filename: 'cell.py', firstLine: 10 });
  assert.deepEqual([r.fault, r.success, r.exitCode], [null, false, 1]);
  assert.equal(r.error.name, 'KeyError');
  assert.equal(r.error.frames.at(-1).line, 11);
  assert.match(r.codeStderr, /KeyError/);
});

test('each fault has its type', async () => {
  assert.equal((await box.runCode('while True: pass', { timeoutS: 0.3 })).fault.type, 'timeout');
  const oom = await box.runCode('x = bytearray(400 << 20)');
  assert.ok(['oom', null].includes(oom.fault?.type ?? null)); // without a cgroup a limit is polled, or malloc fails
  assert.equal(oom.success, false);
  const blocked = await box.run(['mount', '-t', 'tmpfs', 'none', '/tmp']);
  assert.deepEqual([blocked.fault.type, blocked.fault.syscall], ['escape_blocked', 'mount']);
  const absent = await box.run(['no-such-program']);
  assert.deepEqual([absent.fault.type, absent.exitCode], ['exec_failed', 127]);
});

test('languages, arguments, environment, stdin, merged output', async () => {
  assert.equal((await box.runCode('echo "$A" ${B[1]:-no}', { language: 'bash', env: { A: 'x y' } })).stdout, 'x y no\n');
  assert.equal((await box.runCode('console.log(process.argv.slice(2))', { language: 'node', args: ['a', 'b'] })).stdout, "[ 'a', 'b' ]\n");
  assert.equal((await box.run(['cat'], { stdin: Buffer.from([0x68, 0xff, 0x0a]), encoding: 'buffer' })).stdout.toString('hex'), '68ff0a');
  assert.equal((await box.runCode('echo 1; echo 2 >&2; echo 3', { language: 'sh', merge: true })).stdout, '1\n2\n3\n');
  assert.equal((await box.run(['pwd'], { cwd: '/tmp' })).stdout, '/tmp\n');
});

test('rich results: images as bytes, json parsed, large ones whole', async () => {
  const r = await box.runCode(`
import base64, os, struct, zlib
def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
pixels = zlib.compress(b"".join(b"\\0" + os.urandom(3000) for _ in range(600)), 0)
png = b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1000, 600, 8, 2, 0, 0, 0)) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
class P:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/png": base64.b64encode(png).decode(), "text/html": "<b>" + "h" * 1500000,
                "application/json": {"a": [1, 2]}, "text/plain": "p"}
display(P())`, { memoryMb: 300 });
  assert.equal(r.success, true, r.stderr);
  const [one] = r.results;
  assert.equal(one.png.toString('latin1', 1, 4), 'PNG');
  assert.ok(one.png.length > 1_800_000, String(one.png.length));
  assert.equal(one.html.length, 1500003);
  assert.deepEqual(one.json, { a: [1, 2] });
  assert.deepEqual(one.formats().includes('text/plain'), true);
});

test('output is whole beyond any line: 5 MiB of text and of bytes', async () => {
  const text = await box.runCode('import sys; sys.stdout.write("é\\u2028" * (1 << 20))', { timeoutS: 60 });
  assert.equal(text.stdout.length, 2 << 20);
  assert.equal(text.stdout, 'é\u2028'.repeat(1 << 20));
  const bytes = await box.runCode('import sys; sys.stdout.buffer.write(bytes(range(256)) * 8192)', { encoding: 'buffer' });
  assert.ok(bytes.stdout.equals(Buffer.alloc(2 << 20, Buffer.from(Array.from({ length: 256 }, (_, i) => i)))));
  const capped = await box.runCode('print("x" * 5000)', { maxOutputBytes: 1000 });
  assert.deepEqual([capped.stdout.length, capped.truncated, capped.exitCode], [1000, true, 0]);
});

test('callbacks get output as it comes and are done when the call is', async () => {
  const seen = [];
  let first;
  const r = await box.runCode('import time\nprint(1, flush=True)\nimport os\nwhile not os.path.exists("go"): time.sleep(0.01)\nprint(2)\ndisplay("d")', {
    onStdout: (chunk) => {
      seen.push(chunk.toString());
      first ??= box.writeFile('go', ''); // the call goes on only because this came while it ran
    },
    onDisplay: (display) => seen.push(display.op, display.text),
  });
  await first;
  assert.equal(r.stdout, '1\n2\n');
  assert.deepEqual(seen.filter((one) => one !== 'display').join(''), "1\n2\n'd'");
});

test('lossless: a slow reader gets every byte, and the box waits for it', async () => {
  let got = 0;
  let slowest = 0;
  const r = await box.runCode('import sys\nfor i in range(64): sys.stdout.write("x" * 32768)', {
    lossless: true,
    onStdout: async (chunk, facts) => {
      assert.equal(facts.offset, got);
      got += chunk.length;
      if (slowest++ < 20) await new Promise((resolve) => setTimeout(resolve, 5));
    },
  });
  assert.equal(r.success, true);
  assert.equal(got, 64 * 32768);
});

test('a callback that throws ends the call with what it threw', async () => {
  const boom = new Error('boom');
  await assert.rejects(box.runCode('print(1, flush=True)\nimport time; time.sleep(600)', { timeoutS: 600, onStdout: () => { throw boom; } }), boom);
  await assert.rejects(box.runCode('print(1, flush=True)\nimport time; time.sleep(600)', { timeoutS: 600, onStdout: async () => { throw boom; } }), boom);
});

test('an abort before, while it runs, and after', async () => {
  const before = new AbortController();
  before.abort();
  await assert.rejects(box.runCode('1', { signal: before.signal }), { name: 'AbortError' });
  const during = new AbortController();
  const r = await box.runCode('print("had", flush=True)\nwhile True: pass', { timeoutS: 600, signal: during.signal, onStdout: () => during.abort() });
  assert.deepEqual([r.fault.type, r.stdout, r.success], ['cancelled', 'had\n', false]);
  const after = new AbortController();
  assert.equal((await box.runCode('print(1)', { signal: after.signal })).stdout, '1\n');
  after.abort();
  assert.equal((await box.runCode('print(2)')).stdout, '2\n');
});

test('a hundred calls at once, none lost', async () => {
  const all = await Promise.all(Array.from({ length: 100 }, (_, i) => box.runCode(`echo ${i}`, { language: 'sh' })));
  assert.deepEqual(all.map((r) => r.stdout), Array.from({ length: 100 }, (_, i) => `${i}\n`));
});

test('setup: what it installs is there; a failing one says its last words', async (t) => {
  await kern.withSandbox({ setup: 'mkdir -p "$KERN_DEPS" && echo "v = 7" > "$KERN_DEPS/made.py"' }, async (sandbox) => {
    assert.equal((await sandbox.runCode('import made; print(made.v)')).stdout, '7\n');
    const again = await sandbox.setup('exit 3');
    assert.deepEqual([again.exitCode, again.cached], [3, false]);
  });
  await assert.rejects(kern.runCode('1', { setup: 'echo no such thing >&2; exit 9' }), { reason: 'setup_failed', message: /exit 9.*no such thing/s });
});

test('a named workspace stays, a private one goes', async (t) => {
  const fs = require('node:fs');
  const directory = temporary(t);
  const kept = new kern.Sandbox({ workspace: directory });
  await kept.runCode('open("kept", "w").write("1")');
  assert.equal(kept.workspace, directory);
  await kept.close();
  await kept.close(); // twice is fine
  assert.equal(fs.readFileSync(`${directory}/kept`, 'utf8'), '1');
  await assert.rejects(kept.runCode('1'), { reason: 'closed' });
  const gone = await new kern.Sandbox({}).open();
  assert.ok(fs.existsSync(gone.workspace) && gone.effective.pids.value === 256);
  await gone.close();
  await until(() => !fs.existsSync(gone.workspace), 'the end of the private workspace');
});
