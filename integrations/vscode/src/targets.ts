// What a command means: which lines of the document are to run.
import * as vscode from 'vscode';
import { cellAt, cellsOf } from './cells';

export interface Target {
  kind: 'line' | 'selection' | 'cell' | 'file' | 'above';
  /** Lines, from 0, both inclusive. */
  first: number;
  last: number;
  code: string;
}

export const linesOf = (document: vscode.TextDocument): string[] => document.getText().split(/\r?\n/);

function lines(document: vscode.TextDocument, kind: Target['kind'], first: number, last: number): Target {
  return { kind, first, last, code: linesOf(document).slice(first, last + 1).join('\n') };
}

export function lineTarget(editor: vscode.TextEditor): Target {
  const { line } = editor.selection.active;
  return lines(editor.document, 'line', line, line);
}

/** The selection, from the beginning of its first line when only indentation stands before it; without one, the line. */
export function selectionTarget(editor: vscode.TextEditor): Target {
  const { document, selection } = editor;
  if (selection.isEmpty) return lineTarget(editor);
  const { start, end } = selection;
  const inIndent = document.lineAt(start.line).text.slice(0, start.character).trim() === '';
  const range = new vscode.Range(start.line, inIndent ? 0 : start.character, end.line, end.character);
  return { kind: 'selection', first: start.line, last: end.character === 0 && end.line > start.line ? end.line - 1 : end.line, code: document.getText(range) };
}

export function cellTarget(document: vscode.TextDocument, line: number): Target | undefined {
  const cell = cellAt(cellsOf(linesOf(document)), line);
  return cell && lines(document, 'cell', cell.start, cell.end);
}

/** All code cells before the one at `line`. */
export function aboveTargets(document: vscode.TextDocument, line: number): Target[] {
  return cellsOf(linesOf(document)).filter(({ end }) => end < line).map(({ start, end }) => lines(document, 'above', start, end));
}

export function fileTarget(document: vscode.TextDocument): Target {
  return lines(document, 'file', 0, document.lineCount - 1);
}
