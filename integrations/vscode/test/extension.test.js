'use strict';

const test = require('node:test');
const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { vscode, editor, folder, start, stop, run, open, diagnostics, textOf, until, sidecars, pageOf } = require('./rig.js');

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

test.before(start);
test.after(async () => {
  await stop();
  await until(() => sidecars().length === 0, 'the end of the sidecar');
});

test('the manifest and the extension have the same commands', () => {
  const contributed = editor.manifest.contributes.commands.map(({ command }) => command).sort();
  assert.deepEqual([...editor.commands.keys()].sort(), contributed);
  const safety = ['network', 'workspace', 'protect', 'memoryMb', 'cpus', 'timeoutS'].map((name) => `kern.${name}`);
  assert.deepEqual(editor.manifest.capabilities.untrustedWorkspaces.restrictedConfigurations, safety);
  assert.equal(editor.manifest.contributes.configuration.properties['kern.program'].scope, 'machine');
});

test('cells share a kernel; lenses, cursor, values, status', async () => {
  const document = open('cells.py', 'python', 'x = 20\n# %% [markdown]\n# words\n# %% one\nprint("got", x)\nx += 1\n# %% two\nx * 2');
  editor.select(0);
  assert.equal((await run('runCell')).failed, false);
  editor.select(4);
  const one = await run('runCellAndAdvance');
  assert.equal(textOf(one), 'got 20\n');
  assert.match(one.footer, /^python \[2\]: ok, \d+\.\d\d s$/);
  assert.deepEqual({ ...vscode.window.activeTextEditor.selection.active }, { line: 7, character: 0 });
  const two = await run('runCell', document.uri, 6);
  assert.equal(textOf(two), '42\n');
  editor.select(0);
  assert.equal(textOf(await run('runAbove', document.uri, 6).then((all) => all.at(-1))), 'got 20\n');
  assert.deepEqual(diagnostics(document), []);
  const lenses = editor.lensProviders[0].provideCodeLenses(document).map(({ range, command }) => [range.start.line, command.title]);
  assert.deepEqual(lenses, [[3, 'Run Cell'], [6, 'Run Cell'], [6, 'Run Above']]);
  assert.equal(editor.statusItems[0].text, '$(vm) kern: idle');
  assert.match(editor.channels.Kern.text, /--- cells\.py, lines 4 to 6\ngot 20\n--- python \[2\]: ok/);
});

test('an error is marked at its line: exception, in a function, syntax, related files, shell, node', async () => {
  open('helper.py', 'python', 'def half(x):\n    return x / 0\n');
  const document = open('err.py', 'python', '# %%\nok = 1\n# %%\nimport helper\nif ok:\n    helper.half(3)\n    y = 5; y\n# %%\nx = = 1\n# %%\nok');
  const python = await run('runCell', document.uri, 2);
  assert.equal(python.failed, true);
  const [one] = diagnostics(document);
  assert.equal(one.message, 'NameError: name \'ok\' is not defined');
  assert.deepEqual([one.range.start.line, one.range.start.character, one.range.end.character], [4, 0, 6]);
  editor.select(1);
  await run('runLine');
  await run('runCell', document.uri, 4);
  const [two] = diagnostics(document);
  assert.deepEqual([two.message, two.range.start.line, two.source], ['ZeroDivisionError: division by zero', 5, 'kern']);
  assert.deepEqual(two.relatedInformation.map(({ location }) => [location.uri.fsPath, location.range.start.line]), [[path.join(folder, 'helper.py'), 1]]);
  await run('runCell', document.uri, 7);
  assert.deepEqual(diagnostics(document).map(({ range }) => range.start.line), [5, 8]); // the other cell's stays
  editor.select(6, 4, 6, 12);
  assert.equal(textOf(await run('runSelection')), '5\n'); // indented
  editor.edit(document, document.content + '\n');
  assert.deepEqual(diagnostics(document), []);
  const shell = open('err.sh', 'shellscript', 'echo fine\r\n# %%\r\necho on\r\nno-such-program\r\n');
  await run('runCell', shell.uri, 1);
  assert.deepEqual(diagnostics(shell).map(({ range, message }) => [range.start.line, message]), [[3, 'no-such-program: command not found']]);
  const script = open('err.js', 'javascript', 'let a = 1;\n// %%\nnull.x;\n');
  editor.select(2);
  await run('runLine');
  assert.equal(diagnostics(script)[0].range.start.line, 2);
  await run('runFile'); // in a box
  assert.deepEqual([diagnostics(script)[0].range.start.line, diagnostics(script).length], [2, 1]);
});

test('the panel shows images, frames HTML, escapes text, and gives things away', async () => {
  const document = open('rich.py', 'python', `import base64, sys
print('<script>alert(1)</script> \\x1b[31mred\\x1b[0m')
class Both:
    def _repr_html_(self): return '<b onclick="x">&amp;</b>'
class Png:
    def _repr_png_(self): return base64.b64decode('${PNG}')
display(Both())
print('between')
Png()
`);
  const entry = await run('runCell', document.uri, 0);
  const panel = editor.panels[0];
  const policy = /Content-Security-Policy" content="([^"]+)"/.exec(panel.webview.html)[1];
  assert.match(policy, /^default-src &#39;none&#39;; img-src data:; style-src \S+ &#39;unsafe-inline&#39;; script-src &#39;nonce-[0-9a-f]{32}&#39;$/);
  const page = pageOf(panel);
  const html = page.sections.get(entry.id).innerHTML;
  assert.ok(html.includes('<pre class="stdout">&lt;script&gt;alert(1)&lt;/script&gt; red\n</pre>'));
  assert.ok(html.includes('<iframe sandbox srcdoc="&lt;b onclick=&quot;x&quot;&gt;&amp;amp;&lt;/b&gt;"></iframe><pre class="stdout">between\n</pre><figure><img '));
  const index = entry.pieces.findIndex((piece) => piece.rich?.data['image/png']);
  const shown = entry.pieces[index].rich.data['image/png']; // not what the code made: the sidecar wrote it anew
  assert.match(shown, /^iVBORw0KGgo/);
  assert.ok(html.includes(`src="data:image/png;base64,${shown}"`));
  page.click(entry.id, 'copy');
  assert.match(editor.clipboard, /^<script>alert\(1\)<\/script> red\n/);
  const file = path.join(folder, 'saved.png');
  editor.answers.push(vscode.Uri.file(file));
  page.click(entry.id, 'save', index);
  await until(() => fs.existsSync(file) && fs.readFileSync(file).toString('base64') === shown, 'the image');
  page.click(entry.id, 'open');
  await until(() => editor.shown.some((one) => one.content === entry.asText()), 'the text');
  const missed = new entry.constructor('missed', 'what was not seen while it ran');
  missed.text('stdout', 'a', 1);
  const value = { kind: 'display', data: { 'text/plain': 'V' }, at: { stdout: 3, stderr: 1 } };
  missed.finish({ stdout: Buffer.from('aäb'), codeStderr: Buffer.from('ef'), stdoutBytes: 4, stderrBytes: 2, results: [value] });
  assert.deepEqual(missed.pieces.map((piece) => piece.text ?? piece.rich.data['text/plain']), ['aä', 'e', 'V', 'b', 'f']);
  const counted = open('count.py', 'python', 'from IPython.display import clear_output\nfor i in range(3):\n    clear_output(wait=True)\n    print(i)\n');
  assert.equal(textOf(await run('runCell', counted.uri, 0)), '2\n');
  for (const bad of [{}, { op: 'save', id: entry.id, index: 1e9 }, { op: 'copy', id: 7 }, { op: 'save', id: 'nobody', index: 0 }]) panel.fromPage(bad);
  await run('clearOutput');
  assert.equal(page.sections.size, 0);
});

test('output comes while it runs; interrupt keeps the state, a second one ends it; restart is fresh', async () => {
  const document = open('slow.py', 'python', 'kept = 7\n# %%\nimport time\nprint("on", flush=True)\nwhile True: time.sleep(0.01)\n# %%\nkept\n# %%\nprint("deaf", flush=True)\nwhile True:\n    try: time.sleep(1)\n    except BaseException: pass\n');
  await run('runCell', document.uri, 0);
  let channel = editor.channels.Kern;
  channel.clear();
  const running = run('runCell', document.uri, 1);
  await until(() => channel.text.includes('\non\n'), 'its output');
  await until(() => editor.statusItems[0].text === '$(sync~spin) kern: busy', 'busy');
  assert.equal(editor.context['kern.busy'], true);
  assert.ok(editor.lensProviders[0].provideCodeLenses(document).some(({ command }) => command.title === 'Interrupt'));
  await run('interrupt');
  const interrupted = await running;
  assert.match(interrupted.footer, /interrupted/);
  assert.equal(textOf(await run('runCell', document.uri, 5)), '7\n');
  channel.clear();
  const deaf = run('runCell', document.uri, 7);
  await until(() => channel.text.includes('\ndeaf\n'), 'its output');
  await run('interrupt');
  await run('interrupt');
  assert.match((await deaf).footer, /cancelled.*the state is lost/);
  assert.equal(editor.statusItems[0].text, '$(error) kern: dead');
  editor.answers.push('Restart'); // what the message offers
  assert.match((await run('runCell', document.uri, 5)).footer, /^not run: /);
  await until(() => editor.statusItems[0].text === '$(vm) kern: ready', 'the restart');
  assert.equal(diagnostics(document).length, 0);
  await run('runCell', document.uri, 5);
  assert.equal(diagnostics(document)[0].message, 'NameError: name \'kept\' is not defined');
  editor.set('runIn', 'box');
  channel.clear();
  const boxed = run('runCell', document.uri, 1);
  await until(() => channel.text.includes('\non\n'), 'its output');
  await run('interrupt');
  assert.match((await boxed).footer, /^python box: cancelled/);
  editor.set('runIn', 'auto');
});

test('a cell asks for a line: answered, hidden, escaped; a question ends with its cell; a box has no input', async () => {
  const document = open('ask.py', 'python', 'import getpass\nprint(input("\\x1b[1mname? "), getpass.getpass("word? "))\ninput()\n# %%\nx = input("never ")\n');
  editor.answers.push('Ada', 'geheim', undefined);
  const asked = await run('runCell', document.uri, 0);
  assert.match(textOf(asked), /^Ada geheim\n/);
  assert.match(asked.footer, /EOFError/);
  assert.deepEqual(editor.questions.map(({ prompt, password }) => [prompt, password]), [['name? ', false], ['word? ', true], ['', false]]);
  editor.answers.push(() => run('interrupt'));
  assert.match((await run('runCell', document.uri, 3)).footer, /interrupted/);
  assert.match((await run('runFile')).footer, /EOFError/);
  assert.equal(editor.questions.length, 4);
  const shell = open('ask.sh', 'shellscript', '# %%\nread x; echo "got $?"');
  assert.equal(textOf(await run('runCell', shell.uri, 0)), 'got 1\n');
});

test('what the code can reach: the project, but not its .git, no network, no other file, no variable of ours', async () => {
  fs.mkdirSync(path.join(folder, '.git'), { recursive: true });
  await run('restart');
  process.env.KERN_TEST_SECRET = 'hunter2';
  const outside = fs.mkdtempSync(path.join(os.tmpdir(), 'kern-vscode-test-'));
  const probe = `import os, socket
def can(f):
    try: f(); return True
    except OSError: return False
print(can(lambda: open('made', 'w')), can(lambda: open('.git/hook', 'w')), os.path.exists('${outside}'), 'KERN_TEST_SECRET' in os.environ,
      can(lambda: socket.create_connection(('127.0.0.1', 1)) ), len(os.listdir('/sys/class/net')) if os.path.exists('/sys/class/net') else 0, os.getcwd())
`;
  const document = open('probe.py', 'python', probe);
  const reach = async () => textOf(await run('runCell', document.uri, 0)).split(' ').slice(0, 5).join(' ') + ' ' + textOf(await run('runCell', document.uri, 0)).trim().split(' ').at(-1);
  assert.equal(await reach(), 'True False False False False /workspace');
  assert.equal(fs.existsSync(path.join(folder, 'made')), true);
  fs.rmSync(path.join(folder, 'made'));
  editor.set('workspace', 'readonly');
  assert.match(editor.statusItems[0].text, /restart to apply settings/);
  await run('restart');
  assert.equal(await reach(), 'False False False False False /project');
  editor.set('workspace', 'private');
  await run('restart');
  assert.equal(await reach(), 'True False False False False /workspace');
  assert.equal(fs.existsSync(path.join(folder, 'made')), false);
  for (const [name, value, said] of [['workspace', 'Readonly', /^not run: kern\.workspace: "Readonly" is not one of folder, /],
    ['protect', '.git', /^not run: kern\.protect: a list /], ['network', 'no', /^not run: network: boolean wanted/], ['memoryMb', 1, /^not run: memoryMb: 1 is not within /]]) {
    editor.set(name, value);
    await run('restart');
    assert.match((await run('runCell', document.uri, 0)).footer, said);
    editor.set(name, undefined);
  }
  await run('restart');
  fs.rmSync(outside, { recursive: true });
});

test('faults are marked; long output is cut at both caps, and says so', async () => {
  editor.set('timeoutS', 0.5);
  await run('restart');
  const document = open('fault.py', 'python', '# %%\nwhile True: pass\n# %%\nprint("y" * 150000)\n# %%\nprint("z" * 3000000 + "end")');
  editor.select(1);
  const late = await run('runInBox');
  assert.match(late.footer, /^python box: timeout: /);
  assert.deepEqual(diagnostics(document).map(({ range, code }) => [range.start.line, code]), [[0, 'timeout']]);
  editor.set('timeoutS', 60);
  await run('restart');
  const below = await run('runCell', document.uri, 2);
  assert.equal(textOf(below).length, 150001);
  const above = await run('runCell', document.uri, 4);
  assert.match(above.footer, /output cut at 1 MiB$/);
  assert.equal(textOf(above).length, 200000);
});

test('doctor tells; a wrong program or language is an error and runs nothing; a lost sidecar is replaced', async () => {
  const document = open('last.py', 'python', '1 + 1');
  await run('runCell');
  assert.match(await run('doctor'), /## Boxes start here\n[^]*languages: |languages: [^]*## Boxes start here/);
  assert.equal(editor.shown.at(-1).languageId, 'markdown');
  for (const pid of sidecars()) process.kill(pid, 'SIGKILL');
  const lost = await until(() => sidecars().length === 0, 'its end').then(() => run('runCell', document.uri, 0));
  if (lost.failed) assert.match(lost.footer, /^not run: kern-sidecar ended/);
  assert.equal(textOf(await run('runCell', document.uri, 0)), '2\n');
  editor.set('program', '/nonexistent/kern-sidecar');
  await run('restart');
  const none = await run('runCell', document.uri, 0);
  assert.match(none.footer, /^not run: KERN_SIDECAR is "\/nonexistent\/kern-sidecar"/);
  assert.match(await run('doctor'), /## There is no sidecar to ask\n\nprogram_not_found: /);
  editor.set('program', undefined);
  await run('restart');
  const words = open('words.md', 'markdown', 'words');
  assert.equal((await run('runCell', words.uri, 0)).footer, 'not run: nothing here runs markdown: set kern.language');
  editor.set('language', 'typescript');
  editor.set('runIn', 'kernel');
  assert.equal((await run('runCell', words.uri, 0)).footer, 'not run: typescript has no kernel: set kern.runIn to auto or box');
});
