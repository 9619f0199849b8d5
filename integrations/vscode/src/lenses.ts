// The words above each cell.
import * as vscode from 'vscode';
import { cellsOf } from './cells';
import { linesOf } from './targets';

export class Lenses implements vscode.CodeLensProvider {
  #changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.#changed.event;

  constructor(private readonly busy: (document: vscode.TextDocument) => boolean) {}

  refresh(): void { this.#changed.fire(); }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const busy = this.busy(document);
    return cellsOf(linesOf(document)).filter(({ marked }) => marked).flatMap(({ start }, i) => {
      const range = new vscode.Range(start, 0, start, 0);
      const lens = (title: string, command: string): vscode.CodeLens => new vscode.CodeLens(range, { title, command, arguments: [document.uri, start] });
      return [lens('Run Cell', 'kern.runCell'), ...(i > 0 ? [lens('Run Above', 'kern.runAbove')] : []), ...(busy ? [lens('Interrupt', 'kern.interrupt')] : [])];
    });
  }
}
