// What the user has set, as options of a sandbox.
import * as fs from 'node:fs';
import * as path from 'node:path';
import type { SandboxOptions } from 'kern-sandbox';
import * as vscode from 'vscode';

/** What one run keeps of its output. More belongs in a file. */
export const MAX_OUTPUT_BYTES = 1 << 20;

const BY_DOCUMENT: Record<string, string> = { python: 'python', javascript: 'node', typescript: 'typescript', shellscript: 'bash' };

export interface Settings {
  language: string;
  runIn: 'auto' | 'kernel' | 'box';
  workspace: 'folder' | 'readonly' | 'private';
  protect: string[];
  network: boolean;
  memoryMb: number;
  cpus: number | null;
  timeoutS: number;
}

const CHOICES = { runIn: ['auto', 'kernel', 'box'], workspace: ['folder', 'readonly', 'private'] } as const;

/** VS Code hands out what is written, whatever the manifest says. What is wrong must not be taken for something weaker. */
function checked(settings: Settings): Settings {
  for (const name of ['runIn', 'workspace'] as const)
    if (!(CHOICES[name] as readonly string[]).includes(settings[name]))
      throw new Error(`kern.${name}: ${JSON.stringify(settings[name])} is not one of ${CHOICES[name].join(', ')}`);
  const { protect } = settings;
  if (!Array.isArray(protect) || !protect.every((one) => typeof one === 'string')) throw new Error('kern.protect: a list of names wanted');
  return settings; // the others are checked by kern-sandbox
}

export function settingsOf(uri: vscode.Uri): Settings {
  const from = vscode.workspace.getConfiguration('kern', uri);
  return checked({
    language: from.get('language', 'auto'),
    runIn: from.get('runIn', 'auto'),
    workspace: from.get('workspace', 'folder'),
    protect: from.get('protect', ['.git', '.vscode']),
    network: from.get('network', false),
    memoryMb: from.get('memoryMb', 512),
    cpus: from.get('cpus', null),
    timeoutS: from.get('timeoutS', 30),
  });
}

/** The language that runs a document, or undefined. */
export function languageOf(document: vscode.TextDocument, settings: Settings): string | undefined {
  return settings.language === 'auto' ? BY_DOCUMENT[document.languageId] : settings.language;
}

/** Where the project folder is in a box, or undefined when it is not there. */
export function placeInBox(settings: Settings, folder: string | undefined): string | undefined {
  if (folder === undefined || settings.workspace === 'private') return undefined;
  return settings.workspace === 'folder' ? '/workspace' : '/project';
}

export function sandboxOptions(settings: Settings, folder: string | undefined): SandboxOptions {
  const { memoryMb, cpus, timeoutS, network } = settings;
  const options: SandboxOptions = { memoryMb, cpus, timeoutS, network, maxOutputBytes: MAX_OUTPUT_BYTES, trackFiles: false };
  const place = placeInBox(settings, folder);
  if (folder === undefined || place === undefined) return options;
  if (settings.workspace === 'readonly') return { ...options, mounts: { [folder]: [place, 'ro'] }, cwd: place };
  const mounts: Record<string, [string, 'ro']> = {};
  for (const name of settings.protect) {
    const source = path.resolve(folder, name);
    if (source.startsWith(folder + path.sep) && fs.existsSync(source)) mounts[source] = [path.posix.join(place, path.relative(folder, source)), 'ro'];
  }
  return { ...options, workspace: folder, mounts };
}
