// A stand-in for the module that VS Code gives to extensions: as much of its API as this extension uses, written for these tests.
// It is no editor. What it checks by itself: a command must be in the manifest to be registered, a setting to be read.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

class Position {
  constructor(line, character) { Object.assign(this, { line, character }); }
}
class Range {
  constructor(a, b, c, d) {
    [this.start, this.end] = typeof a === 'number' ? [new Position(a, b), new Position(c, d)] : [a, b];
  }
  get isEmpty() { return this.start.line === this.end.line && this.start.character === this.end.character; }
}
class Selection extends Range {
  get active() { return this.end; }
}
class Uri {
  constructor(fsPath, scheme = 'file') { Object.assign(this, { fsPath, scheme }); }
  static file(fsPath) { return new Uri(path.resolve(fsPath)); }
  static joinPath(uri, ...parts) { return new Uri(path.join(uri.fsPath, ...parts), uri.scheme); }
  toString() { return `${this.scheme}://${this.fsPath}`; }
}
class Location {
  constructor(uri, position) { Object.assign(this, { uri, range: new Range(position, position) }); }
}
class Diagnostic {
  constructor(range, message, severity) { Object.assign(this, { range, message, severity }); }
}
class DiagnosticRelatedInformation {
  constructor(location, message) { Object.assign(this, { location, message }); }
}
class CodeLens {
  constructor(range, command) { Object.assign(this, { range, command }); }
}
class CancellationTokenSource {
  #emitter = new EventEmitter();
  token = { isCancellationRequested: false, onCancellationRequested: this.#emitter.event };
  cancel() {
    this.token.isCancellationRequested = true;
    this.#emitter.fire();
  }
}
class EventEmitter {
  #listeners = new Set();
  event = (listener) => {
    this.#listeners.add(listener);
    return { dispose: () => this.#listeners.delete(listener) };
  };
  fire(value) { for (const listener of [...this.#listeners]) listener(value); }
}

class TextDocument {
  constructor(uri, languageId, content) { Object.assign(this, { uri, languageId, content }); }
  get lines() { return this.content.split('\n'); }
  get lineCount() { return this.lines.length; }
  lineAt(line) { return { text: this.lines[line] }; }
  getText(range) {
    if (!range) return this.content;
    const lines = this.lines.slice(range.start.line, range.end.line + 1);
    lines[lines.length - 1] = lines.at(-1).slice(0, range.end.character);
    lines[0] = lines[0].slice(range.start.character);
    return lines.join('\n');
  }
}

const events = Object.fromEntries(['editor', 'text', 'closed', 'folders', 'configuration'].map((name) => [name, new EventEmitter()]));

/** What a test sees of the "editor", and does to it. */
const editor = {
  manifest: null, settings: {}, messages: [], questions: [], answers: [], panels: [], channels: {}, statusItems: [], lensProviders: [], clipboard: '', shown: [], commands: new Map(), context: {}, untitled: 0,
  open(file, languageId, content) {
    const document = new TextDocument(Uri.file(file), languageId, content);
    workspace.textDocuments.push(document);
    const revealed = [];
    window.activeTextEditor = { document, selection: new Selection(0, 0, 0, 0), revealed, revealRange: (range) => revealed.push(range) };
    events.editor.fire(window.activeTextEditor);
    return window.activeTextEditor;
  },
  select(...numbers) { window.activeTextEditor.selection = numbers.length === 1 ? new Selection(numbers[0], 0, numbers[0], 0) : new Selection(...numbers); },
  set(name, value) {
    editor.settings[name] = value;
    events.configuration.fire({ affectsConfiguration: (section) => `kern.${name}`.startsWith(section) });
  },
  edit(document, content) {
    document.content = content;
    events.text.fire({ document, contentChanges: [{}] });
  },
  diagnostics: new Map(),
};

const workspace = {
  workspaceFolders: [],
  textDocuments: [],
  getWorkspaceFolder: (uri) => workspace.workspaceFolders.find((one) => uri.fsPath.startsWith(one.uri.fsPath + path.sep)),
  getConfiguration: (section) => ({
    get(name, fallback) {
      const known = editor.manifest.contributes.configuration.properties[`${section}.${name}`];
      if (!known) throw new Error(`${section}.${name} is not in the manifest`);
      if (fallback !== undefined && JSON.stringify(fallback) !== JSON.stringify(known.default)) throw new Error(`${section}.${name}: two defaults`);
      return editor.settings[name] ?? known.default;
    },
  }),
  async openTextDocument({ content, language = 'plaintext' }) { return new TextDocument(new Uri(`Untitled-${++editor.untitled}`, 'untitled'), language, content); },
  fs: { async writeFile(uri, bytes) { fs.writeFileSync(uri.fsPath, bytes); } },
  onDidChangeTextDocument: events.text.event,
  onDidCloseTextDocument: events.closed.event,
  onDidChangeWorkspaceFolders: events.folders.event,
  onDidChangeConfiguration: events.configuration.event,
};

async function message(text, ...choices) {
  editor.messages.push(text);
  const answer = editor.answers.shift();
  return choices.includes(answer) ? answer : undefined;
}

const window = {
  activeTextEditor: undefined,
  onDidChangeActiveTextEditor: events.editor.event,
  showErrorMessage: message,
  showInformationMessage: message,
  showQuickPick: async (items) => items.find(({ label }) => label === editor.answers[0]) && items.find(({ label }) => label === editor.answers.shift()),
  /** A function in `answers` is called instead of an answer, as somebody who does not answer. */
  showInputBox: (options, token) => new Promise((resolve) => {
    editor.questions.push(options);
    token.onCancellationRequested(() => resolve(undefined));
    const answer = editor.answers.shift();
    if (typeof answer === 'function') answer();
    else resolve(answer);
  }),
  showSaveDialog: async () => editor.answers.shift(),
  showTextDocument: async (document) => { editor.shown.push(document); },
  createOutputChannel(name) {
    const channel = { text: '', append: (text) => { channel.text += text; }, clear: () => { channel.text = ''; }, show: () => { channel.visible = true; }, dispose() {} };
    editor.channels[name] = channel;
    return channel;
  },
  createStatusBarItem() {
    const item = { show() { item.visible = true; }, dispose() {} };
    editor.statusItems.push(item);
    return item;
  },
  createWebviewPanel(viewType, title, where, options) {
    const [disposed, received] = [new EventEmitter(), new EventEmitter()];
    const panel = {
      viewType, title, options, reveal() {}, onDidDispose: disposed.event, dispose: () => disposed.fire(), fromPage: (sent) => received.fire(sent), toPage: () => {},
      webview: {
        html: '', cspSource: 'https://webview.test', asWebviewUri: (uri) => uri, onDidReceiveMessage: received.event,
        async postMessage(sent) { panel.toPage(structuredClone(sent)); return true; },
      },
    };
    editor.panels.push(panel);
    return panel;
  },
};

const languages = {
  createDiagnosticCollection: () => ({
    get: (uri) => editor.diagnostics.get(uri.toString()), set: (uri, list) => { editor.diagnostics.set(uri.toString(), list); },
    delete: (uri) => { editor.diagnostics.delete(uri.toString()); }, dispose() {},
  }),
  registerCodeLensProvider(selector, provider) {
    editor.lensProviders.push(provider);
    return { dispose() {} };
  },
};

const commands = {
  registerCommand(name, command) {
    if (!editor.manifest.contributes.commands.some((one) => one.command === name)) throw new Error(`${name} is not in the manifest`);
    editor.commands.set(name, command);
    return { dispose: () => editor.commands.delete(name) };
  },
  async executeCommand(name, ...args) {
    if (name === 'setContext') {
      editor.context[args[0]] = args[1];
      return undefined;
    }
    return editor.commands.get(name)(...args);
  },
};

module.exports = {
  Position, Range, Selection, Uri, Location, Diagnostic, DiagnosticRelatedInformation, CodeLens, CancellationTokenSource, EventEmitter, workspace, window, languages, commands,
  env: { clipboard: { async writeText(text) { editor.clipboard = text; } } },
  DiagnosticSeverity: { Error: 0 }, StatusBarAlignment: { Right: 2 }, ViewColumn: { Beside: -2 }, editor,
};
