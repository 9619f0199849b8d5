// Where an error of the code is in the user's files.
import * as path from 'node:path';
import type { protocol } from 'kern-sandbox';
import * as vscode from 'vscode';

export interface Ran {
  document: vscode.TextDocument;
  /** Lines that ran. */
  first: number;
  last: number;
  /** The document's name in messages. */
  filename: string;
  /** The project folder, on the host and in the box. */
  folder?: string;
  place?: string;
}

export interface Ending {
  error: protocol.CodeError | null;
  fault: protocol.Fault | null;
  exitCode: number;
  stderr: string;
}

function wholeLine(document: vscode.TextDocument, line: number): vscode.Range {
  const at = Math.max(0, Math.min(line, document.lineCount - 1));
  const { text } = document.lineAt(at);
  return new vscode.Range(at, text.length - text.trimStart().length, at, Math.max(text.length, 1));
}

/** Shells say it in text only: `NAME: line 12: foo: command not found`. */
function shellError(ran: Ran, { exitCode, stderr }: Ending): { line: number; message: string } | undefined {
  if (exitCode === 0) return undefined;
  const name = path.posix.basename(ran.filename);
  for (const text of stderr.split('\n').reverse()) {
    const found = /^(\S.*?): line (\d+): (.+)$/.exec(text);
    if (found && path.posix.basename(found[1]) === name) return { line: Number(found[2]) - 1, message: found[3] };
  }
  return undefined;
}

function relatedTo(ran: Ran, frames: readonly protocol.Frame[]): vscode.DiagnosticRelatedInformation[] {
  return frames.flatMap((frame) => {
    if (ran.folder === undefined || ran.place === undefined || !frame.file.startsWith(ran.place + '/')) return [];
    const uri = vscode.Uri.file(path.join(ran.folder, path.posix.relative(ran.place, frame.file)));
    const at = new vscode.Position(Math.max(0, frame.line - 1), Math.max(0, (frame.column ?? 1) - 1));
    return [new vscode.DiagnosticRelatedInformation(new vscode.Location(uri, at), `in ${frame.function || 'this file'}`)];
  });
}

export function diagnosticOf(ran: Ran, ending: Ending): vscode.Diagnostic | undefined {
  const { error, fault } = ending;
  const diagnose = (line: number, message: string): vscode.Diagnostic => {
    const made = new vscode.Diagnostic(wholeLine(ran.document, line), message, vscode.DiagnosticSeverity.Error);
    made.source = 'kern';
    return made;
  };
  if (error) {
    const frame = error.frames.findLast(({ file }) => file === ran.filename);
    const made = diagnose(frame ? frame.line - 1 : ran.first, error.message ? `${error.name}: ${error.message}` : error.name);
    made.relatedInformation = relatedTo(ran, error.frames.filter((one) => one !== frame));
    return made;
  }
  const said = shellError(ran, ending);
  if (said) return diagnose(said.line, said.message);
  if (!fault) return undefined;
  const made = diagnose(ran.first, `${fault.type}: ${fault.message}`);
  made.code = fault.type;
  return made;
}
