// The panel beside the editor: the last entries, sent again whenever its page is made anew.
import { randomBytes } from 'node:crypto';
import * as path from 'node:path';
import * as vscode from 'vscode';
import type { Entry } from './entry';
import { entryHtml, imageOf, pageHtml } from './html';

const KEPT_ENTRIES = 50;
const REFRESH_MS = 100;

export class Panel implements vscode.Disposable {
  #panel: vscode.WebviewPanel | undefined;
  #entries = new Map<string, Entry>();
  #changed = new Set<Entry>();
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly home: vscode.Uri, private readonly interrupt: (id: string) => void) {}

  show(): void {
    if (this.#panel) return this.#panel.reveal(undefined, true);
    const media = vscode.Uri.joinPath(this.home, 'media');
    const panel = vscode.window.createWebviewPanel('kern.output', 'Kern', { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
      { enableScripts: true, localResourceRoots: [media] });
    this.#panel = panel;
    panel.onDidDispose(() => { this.#panel = undefined; });
    panel.webview.onDidReceiveMessage((message) => this.#told(message));
    const uri = (name: string): string => panel.webview.asWebviewUri(vscode.Uri.joinPath(media, name)).toString();
    panel.webview.html = pageHtml({ nonce: randomBytes(16).toString('hex'), source: panel.webview.cspSource, script: uri('panel.js'), style: uri('panel.css') });
  }

  /** A new entry, or one that has changed. */
  put(entry: Entry): void {
    this.#entries.set(entry.id, entry);
    this.#changed.add(entry);
    if (!entry.running) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), REFRESH_MS);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size <= KEPT_ENTRIES) return;
    this.#entries.delete(oldest);
    void this.#panel?.webview.postMessage({ op: 'drop', id: oldest });
  }

  clear(): void {
    for (const [id, entry] of this.#entries) if (!entry.running) this.#entries.delete(id);
    void this.#panel?.webview.postMessage({ op: 'clear' });
    this.#all();
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.#panel?.dispose();
  }

  #all(): void {
    for (const entry of this.#entries.values()) this.#changed.add(entry);
    this.#flush();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const entry of this.#changed)
      if (this.#entries.has(entry.id)) void this.#panel?.webview.postMessage({ op: 'put', id: entry.id, html: entryHtml(entry) });
    this.#changed.clear();
  }

  #told(message: { op?: unknown; id?: unknown; index?: unknown }): void {
    if (message.op === 'ready') return this.#all();
    const entry = typeof message.id === 'string' ? this.#entries.get(message.id) : undefined;
    if (!entry) return;
    if (message.op === 'interrupt') this.interrupt(entry.id);
    else if (message.op === 'copy') void vscode.env.clipboard.writeText(entry.asText());
    else if (message.op === 'open') void vscode.workspace.openTextDocument({ content: entry.asText() }).then((text) => vscode.window.showTextDocument(text));
    else if (message.op === 'save' && typeof message.index === 'number') void this.#save(entry, message.index);
  }

  async #save(entry: Entry, index: number): Promise<void> {
    const piece = entry.pieces[index];
    const image = piece && 'rich' in piece ? imageOf(piece.rich) : undefined;
    if (!image) return;
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
    const defaultUri = folder === undefined ? undefined : vscode.Uri.file(path.join(folder, `output.${image.suffix}`));
    const to = await vscode.window.showSaveDialog({ defaultUri, filters: { Image: [image.suffix] } });
    if (to) await vscode.workspace.fs.writeFile(to, image.bytes);
  }
}
