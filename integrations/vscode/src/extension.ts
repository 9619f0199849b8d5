// The extension: its commands, and what they share.
import * as kern from 'kern-sandbox';
import * as vscode from 'vscode';
import { cellsOf } from './cells';
import { doctorReport } from './doctor';
import type { Entry } from './entry';
import { Lenses } from './lenses';
import { Panel } from './panel';
import { Project } from './project';
import { forgetProgram, run, type Shows } from './runner';
import { settingsOf } from './settings';
import { aboveTargets, cellTarget, fileTarget, linesOf, lineTarget, selectionTarget, type Target } from './targets';

const LANGUAGES = ['python', 'javascript', 'typescript', 'shellscript'];

class Kern implements vscode.Disposable {
  readonly #projects = new Map<string, Project>();
  readonly #channel = vscode.window.createOutputChannel('Kern');
  readonly #diagnostics = vscode.languages.createDiagnosticCollection('kern');
  readonly #status = vscode.window.createStatusBarItem('kern.status', vscode.StatusBarAlignment.Right, 100);
  readonly #panel: Panel;
  readonly #lenses = new Lenses((document) => this.#projects.get(this.#keyOf(document.uri))?.busy ?? false);
  readonly #program = process.env.KERN_SIDECAR;
  /** Another program is named: the end of the one before. */
  #replacing = Promise.resolve();

  constructor(private readonly context: vscode.ExtensionContext) {
    this.#panel = new Panel(context.extensionUri, (id) => { for (const project of this.#projects.values()) void this.#trying(project.interrupt(id)); });
    this.#status.command = 'kern.menu';
    this.#useProgram();
    context.subscriptions.push(this, this.#channel, this.#diagnostics, this.#status, this.#panel,
      vscode.languages.registerCodeLensProvider(LANGUAGES, this.#lenses),
      vscode.window.onDidChangeActiveTextEditor(() => this.#changed()),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => { if (contentChanges.length) this.#diagnostics.delete(document.uri); }),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.#diagnostics.delete(uri)),
      vscode.workspace.onDidChangeWorkspaceFolders(({ removed }) => { for (const { uri } of removed) void this.#trying(this.#end(uri.toString())); }),
      vscode.workspace.onDidChangeConfiguration((event) => this.#configured(event)));
    for (const [name, command] of Object.entries(this.#commands())) context.subscriptions.push(vscode.commands.registerCommand(`kern.${name}`, command));
    this.#changed();
  }

  /** Ends the sidecar, and everything in its boxes. */
  async dispose(): Promise<void> { await kern.shutdown().catch(() => {}); }

  #commands(): Record<string, (...args: never[]) => unknown> {
    return {
      runLine: () => this.#onEditor((editor) => lineTarget(editor)),
      runSelection: () => this.#onEditor((editor) => selectionTarget(editor)),
      runFile: () => this.#onEditor(({ document }) => fileTarget(document)),
      runInBox: () => this.#onEditor((editor) => (editor.selection.isEmpty ? cellTarget(editor.document, editor.selection.active.line) : selectionTarget(editor)), true),
      runCell: (uri?: vscode.Uri, line?: number) => this.#runCell(uri, line),
      runCellAndAdvance: () => this.#runAndAdvance(),
      runAbove: (uri?: vscode.Uri, line?: number) => this.#runAbove(uri, line),
      interrupt: (uri?: vscode.Uri) => this.#trying(this.#current(uri)?.interrupt()),
      restart: (uri?: vscode.Uri) => this.#trying(this.#current(uri)?.restart()),
      showOutput: () => this.#show(true),
      clearOutput: () => { this.#panel.clear(); this.#channel.clear(); },
      doctor: () => this.#doctor(),
      menu: () => this.#menu(),
    };
  }

  #keyOf(uri: vscode.Uri): string { return vscode.workspace.getWorkspaceFolder(uri)?.uri.toString() ?? ''; }

  /** The project of a document: its workspace folder's; documents outside of any have one with a private workspace. */
  #projectOf(uri: vscode.Uri): Project {
    const key = this.#keyOf(uri);
    let project = this.#projects.get(key);
    if (!project) {
      const folder = vscode.workspace.getWorkspaceFolder(uri)?.uri;
      project = new Project(folder?.fsPath, () => settingsOf(folder ?? uri), () => this.#changed());
      this.#projects.set(key, project);
    }
    return project;
  }

  #current(uri = vscode.window.activeTextEditor?.document.uri): Project | undefined {
    return uri && this.#projects.get(this.#keyOf(uri));
  }

  #shows(): Shows {
    return { entry: (entry) => this.#panel.put(entry), log: (text) => this.#channel.append(text), diagnostics: this.#diagnostics };
  }

  #show(force = false): void {
    if (vscode.workspace.getConfiguration('kern').get('output', 'panel') === 'panel') this.#panel.show();
    else if (force) this.#channel.show(true);
  }

  async #run(document: vscode.TextDocument, target: Target, inBox = false): Promise<Entry> {
    this.#show();
    await this.#replacing;
    return run(document, target, this.#projectOf(document.uri), this.#shows(), inBox);
  }

  async #onEditor(targetOf: (editor: vscode.TextEditor) => Target | undefined, inBox = false): Promise<Entry | undefined> {
    const editor = vscode.window.activeTextEditor;
    const target = editor && targetOf(editor);
    if (target) return this.#run(editor.document, target, inBox);
    void vscode.window.showInformationMessage('Kern: there is no code to run here');
    return undefined;
  }

  #place(uri?: vscode.Uri, line?: number): { document: vscode.TextDocument; line: number } | undefined {
    const editor = vscode.window.activeTextEditor;
    const document = uri ? vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri.toString()) : editor?.document;
    return document && { document, line: line ?? editor?.selection.active.line ?? 0 };
  }

  async #runCell(uri?: vscode.Uri, line?: number): Promise<Entry | undefined> {
    const place = this.#place(uri, line);
    const target = place && cellTarget(place.document, place.line);
    return target && this.#run(place.document, target);
  }

  /** Cells run one after another, and those after a failed one do not. */
  async #runAbove(uri?: vscode.Uri, line?: number): Promise<Entry[]> {
    const place = this.#place(uri, line);
    const entries: Entry[] = [];
    for (const target of place ? aboveTargets(place.document, place.line) : []) {
      const entry = await this.#run(place!.document, target);
      entries.push(entry);
      if (entry.failed) break;
    }
    return entries;
  }

  async #runAndAdvance(): Promise<Entry | undefined> {
    const editor = vscode.window.activeTextEditor;
    if (!editor) return undefined;
    const { line } = editor.selection.active;
    const running = this.#runCell(editor.document.uri, line);
    const next = cellsOf(linesOf(editor.document)).find(({ start }) => start > line);
    if (next) {
      const at = new vscode.Position(Math.min(next.start + (next.marked ? 1 : 0), next.end), 0);
      editor.selection = new vscode.Selection(at, at);
      editor.revealRange(new vscode.Range(at, at));
    }
    return running;
  }

  async #doctor(): Promise<string> {
    const uri = vscode.window.activeTextEditor?.document.uri ?? vscode.workspace.workspaceFolders?.[0]?.uri ?? this.context.extensionUri;
    const version = (this.context.extension.packageJSON as { version: string }).version;
    const content = await doctorReport(version, settingsOf(uri));
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language: 'markdown', content }));
    return content;
  }

  async #menu(): Promise<void> {
    const items = ([['Interrupt', 'interrupt'], ['Restart', 'restart'], ['Show output', 'showOutput'], ['Doctor', 'doctor']] as const)
      .map(([label, command]) => ({ label, command }));
    const chosen = await vscode.window.showQuickPick(items, { placeHolder: 'Kern' });
    if (chosen) await vscode.commands.executeCommand(`kern.${chosen.command}`);
  }

  #changed(): void {
    const project = this.#current();
    const state = project?.state ?? 'none';
    const busy = state === 'busy' || state === 'starting';
    this.#status.text = `$(${busy ? 'sync~spin' : state === 'dead' ? 'error' : 'vm'}) kern: ${state === 'none' ? 'ready' : state}${project?.stale ? ', restart to apply settings' : ''}`;
    this.#status.tooltip = 'Code runs in a sandbox. Click to interrupt, to restart, or to see what this machine enforces.';
    this.#status.show();
    void vscode.commands.executeCommand('setContext', 'kern.busy', busy);
    this.#lenses.refresh();
  }

  #configured(event: vscode.ConfigurationChangeEvent): void {
    if (!event.affectsConfiguration('kern')) return;
    for (const project of this.#projects.values()) project.stale = project.state !== 'none';
    if (event.affectsConfiguration('kern.program')) {
      this.#useProgram();
      forgetProgram();
      this.#replacing = this.#trying(this.#endAll());
    }
    this.#changed();
  }

  /** The package asks the environment; the setting goes before it. */
  #useProgram(): void {
    const program = vscode.workspace.getConfiguration('kern').get('program', '') || this.#program;
    if (program === undefined) delete process.env.KERN_SIDECAR;
    else process.env.KERN_SIDECAR = program;
  }

  async #endAll(): Promise<void> {
    await Promise.all([...this.#projects.values()].map((project) => project.restart()));
    await kern.shutdown();
  }

  async #end(key: string): Promise<void> {
    const project = this.#projects.get(key);
    this.#projects.delete(key);
    await project?.close();
  }

  async #trying(work: Promise<unknown> | undefined): Promise<void> {
    try {
      await work;
    } catch (error) {
      void vscode.window.showErrorMessage(`Kern: ${(error as Error).message}`);
    }
  }
}

export function activate(context: vscode.ExtensionContext): void {
  new Kern(context);
}

export async function deactivate(): Promise<void> {
  await kern.shutdown().catch(() => {});
}
