// What the tests share: the bundled extension in the stand-in, a project, and the panel's page.
'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const vm = require('node:vm');
const vscode = require('vscode');

const home = process.env.KERN_EXTENSION ?? path.join(__dirname, '..');
const { editor } = vscode;
editor.manifest = JSON.parse(fs.readFileSync(path.join(home, 'package.json'), 'utf8'));
const extension = require(path.join(home, editor.manifest.main));

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'kern-vscode-test-'));
vscode.workspace.workspaceFolders.push({ uri: vscode.Uri.file(folder), name: 'project', index: 0 });

const context = { subscriptions: [], extensionUri: vscode.Uri.file(home), extension: { packageJSON: editor.manifest } };
const start = () => extension.activate(context);
async function stop() {
  for (const one of context.subscriptions.reverse()) await one.dispose();
  await extension.deactivate();
  fs.rmSync(folder, { recursive: true, force: true });
}

const run = (name, ...args) => vscode.commands.executeCommand(`kern.${name}`, ...args);

/** Opens a document of the project and runs a command with the cursor in `line`. */
function open(name, languageId, content) {
  fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
  fs.writeFileSync(path.join(folder, name), content);
  return editor.open(path.join(folder, name), languageId, content).document;
}

const diagnostics = (document) => editor.diagnostics.get(document.uri.toString()) ?? [];
const textOf = (entry) => entry.asText();

async function until(condition, what, seconds = 60) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = condition();
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what} did not come within ${seconds} s`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Pids of the sidecars that this process has started. */
const sidecars = () => fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).filter((pid) => {
  try {
    const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8');
    return new RegExp(`^PPid:\\s+${process.pid}$`, 'm').test(status) && !/^State:\s+Z/m.test(status);
  } catch {
    return false;
  }
}).map(Number);

/** Runs media/panel.js as the page of a panel, with as much of a document as it asks for; `sections` is what it shows. */
function pageOf(panel) {
  const sections = new Map();
  const listeners = {};
  const listen = (type, listener) => { listeners[type] = listener; };
  const element = () => ({ innerHTML: '', remove() { sections.delete(this.id); } });
  const entries = { append: (section) => sections.set(section.id, section), replaceChildren: () => sections.clear() };
  vm.runInNewContext(fs.readFileSync(path.join(home, 'media', 'panel.js'), 'utf8'), {
    acquireVsCodeApi: () => ({ postMessage: (sent) => panel.fromPage(sent) }),
    document: { getElementById: (id) => (id === 'entries' ? entries : sections.get(id)), createElement: element, addEventListener: listen, body: { scrollHeight: 0 } },
    window: { addEventListener: listen, innerHeight: 0, scrollY: 0, scrollTo() {} },
  }, { filename: 'panel.js' });
  panel.toPage = (data) => listeners.message({ data });
  panel.fromPage({ op: 'ready' }); // what was sent before we listened
  const click = (id, op, index) => listeners.click({ target: { closest: () => ({ dataset: { op, index: String(index) }, closest: () => ({ id }) }) } });
  return { sections, click };
}

module.exports = { vscode, editor, folder, home, start, stop, run, open, diagnostics, textOf, until, sidecars, pageOf };
