// From a target in a document to an entry: runs it in its project, shows what comes, and marks what went wrong.
import * as path from 'node:path';
import * as kern from 'kern-sandbox';
import * as vscode from 'vscode';
import { placed } from './cells';
import { diagnosticOf, type Ran } from './diagnostics';
import { Entry, plain, SHOWN_CHARS } from './entry';
import type { Outcome, Project } from './project';
import { languageOf, placeInBox, settingsOf, type Settings } from './settings';
import type { Target } from './targets';

export interface Shows {
  /** An entry is new or has changed. */
  entry(entry: Entry): void;
  /** Text for the output channel. */
  log(text: string): void;
  diagnostics: vscode.DiagnosticCollection;
}

let runs = 0;
type Language = kern.protocol.Language;
let languages: Promise<Map<string, Language>> | undefined;

/** What the program can do with a language; asked once, and again after it could not tell. */
async function abilities(language: string): Promise<Language | undefined> {
  languages ??= kern.info().then(({ capabilities }) => new Map(capabilities.languages.map((one) => [one.name, one])));
  try {
    return (await languages).get(language);
  } catch (error) {
    languages = undefined;
    throw error;
  }
}
const canBeKernel = async (language: string): Promise<boolean> => Boolean((await abilities(language))?.kernel);

/** Another program may know other languages. */
export function forgetProgram(): void { languages = undefined; }

async function whereToRun(language: string, target: Target, settings: Settings, inBox: boolean): Promise<'kernel' | 'box'> {
  if (inBox || settings.runIn === 'box') return 'box';
  if (settings.runIn === 'auto') return target.kind !== 'file' && await canBeKernel(language) ? 'kernel' : 'box';
  if (await canBeKernel(language)) return 'kernel';
  throw new Error(`${language} has no kernel: set kern.runIn to auto or box`);
}

/** Escape, and the end of the cell, are the end of input. */
async function ask(prompt: string, { password, signal }: { password: boolean; signal: AbortSignal }): Promise<string | undefined> {
  const cancelled = new vscode.CancellationTokenSource();
  signal.addEventListener('abort', () => cancelled.cancel());
  return vscode.window.showInputBox({ title: 'Kern: the code asks', prompt: plain(prompt), password, ignoreFocusOut: true }, cancelled.token);
}

function footerOf(result: Outcome): string {
  const how = result.fault ? `${result.fault.type}: ${result.fault.message}` :
    result.cellStatus === 'interrupted' ? 'interrupted' : result.exitCode === 0 ? 'ok' : result.error ? result.error.name : `exit ${result.exitCode}`;
  const state = result.stateKept === false ? ', the state is lost' : '';
  const cut = result.truncated ? ', output cut at 1 MiB' : '';
  return `${how}, ${(result.durationMs / 1000).toFixed(2)} s${state}${cut}`;
}

function ranOf(document: vscode.TextDocument, target: Target, project: Project, settings: Settings): Ran {
  const { folder } = project;
  const place = placeInBox(settings, folder);
  const filename = folder !== undefined && place !== undefined
    ? path.posix.join(place, path.relative(folder, document.uri.fsPath)) : path.basename(document.uri.fsPath);
  return { document, first: target.first, last: target.last, filename, folder, place };
}

function mark(ran: Ran, result: Outcome, shows: Shows): void {
  const { error, fault, exitCode } = result;
  const stopped = result.cellStatus === 'interrupted' || fault?.type === 'cancelled'; // by the user, who need not be told where
  const found = stopped ? undefined : diagnosticOf(ran, { error, fault, exitCode, stderr: result.codeStderr.toString('utf8') });
  const others = (shows.diagnostics.get(ran.document.uri) ?? []).filter(({ range }) => range.start.line < ran.first || range.start.line > ran.last);
  shows.diagnostics.set(ran.document.uri, found ? [...others, found] : others);
}

/** Runs it; the entry tells what happened, also when nothing ran. */
export async function run(document: vscode.TextDocument, target: Target, project: Project, shows: Shows, inBox = false): Promise<Entry> {
  const lines = target.first === target.last ? `line ${target.first + 1}` : `lines ${target.first + 1} to ${target.last + 1}`;
  const entry = new Entry(`run-${++runs}`, `${path.basename(document.uri.fsPath)}, ${lines}`);
  let logged = 0;
  shows.log(`--- ${entry.title}\n`);
  shows.entry(entry);
  const take = (stream: 'stdout' | 'stderr') => (chunk: Buffer): void => {
    const text = chunk.toString('utf8');
    entry.text(stream, text, chunk.length);
    if (logged < SHOWN_CHARS) shows.log(plain(text));
    logged += text.length;
    shows.entry(entry);
  };
  try {
    const settings = settingsOf(document.uri);
    const language = languageOf(document, settings);
    if (language === undefined) throw new Error(`nothing here runs ${document.languageId}: set kern.language`);
    const where = await whereToRun(language, target, settings, inBox);
    const ran = ranOf(document, target, project, settings);
    const result = await project.run(entry.id, {
      code: placed(target.code, target.first), language, where, filename: ran.filename, onStdout: take('stdout'), onStderr: take('stderr'),
      ...(where === 'kernel' && (await abilities(language))?.input && { onInput: ask }),
      onDisplay: (display) => { entry.rich(display); shows.entry(entry); },
    });
    entry.finish(result);
    entry.notes = result.runtimeNotes;
    entry.failed = !result.success;
    entry.footer = `${language} ${where === 'box' ? 'box' : `[${result.executionCount ?? ' '}]`}: ${footerOf(result)}`;
    for (const one of result.results) shows.log(`${one.text ?? `[${one.formats().join(', ')}]`}\n`);
    mark(ran, result, shows);
  } catch (error) {
    entry.running = false;
    entry.failed = true;
    entry.footer = `not run: ${(error as Error).message}`;
    void offerCure(error as Error);
  }
  shows.log(`--- ${entry.footer}\n`);
  shows.entry(entry);
  return entry;
}

async function offerCure(error: Error): Promise<void> {
  const reason = error instanceof kern.SandboxError ? error.reason : '';
  if (!reason) return;
  const cures: [string, string][] = reason === 'kernel_dead' ? [['Restart', 'kern.restart']] : [['Doctor', 'kern.doctor']];
  const chosen = await vscode.window.showErrorMessage(`Kern: ${error.message}`, ...cures.map(([title]) => title));
  const cure = cures.find(([title]) => title === chosen);
  if (cure) await vscode.commands.executeCommand(cure[1]);
}
