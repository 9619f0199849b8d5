// One run as it is shown: pieces of text and rich results, in the order in which they came.
import type { Display, Result } from 'kern-sandbox';

/** Text that an entry shows; of more, its end. */
export const SHOWN_CHARS = 200_000;

export type Shown = Pick<Result, 'data' | 'displayId'>;
export type Piece = { stream: 'stdout' | 'stderr'; text: string } | { rich: Shown };

/** What the sidecar hands back, with the output as bytes: the places of rich results are counted in bytes. */
export interface Finished {
  stdout: Buffer;
  codeStderr: Buffer;
  stdoutBytes: number;
  stderrBytes: number;
  results: Result[];
}

/** Escape sequences and other controls of a terminal, which are no text. */
export function plain(text: string): string {
  return text.replace(/\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]/g, '').replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g, '');
}

export class Entry {
  pieces: Piece[] = [];
  running = true;
  /** How it ended, in a few words. */
  footer = '';
  failed = false;
  notes: string[] = [];
  #liveBytes = 0;
  #chars = 0;
  #clearNext = false;

  constructor(readonly id: string, readonly title: string, readonly started = Date.now()) {}

  text(stream: 'stdout' | 'stderr', text: string, bytes = 0): void {
    this.#clear();
    this.#liveBytes += bytes;
    this.#chars += text.length;
    const last = this.pieces.at(-1);
    if (last && 'stream' in last && last.stream === stream) last.text += text;
    else this.pieces.push({ stream, text });
    for (let i = 0; this.#chars > SHOWN_CHARS && i < this.pieces.length; i++) {
      const piece = this.pieces[i];
      if (!('stream' in piece)) continue;
      const cut = Math.min(piece.text.length, this.#chars - SHOWN_CHARS);
      piece.text = piece.text.slice(cut);
      this.#chars -= cut;
    }
  }

  rich(display: Shown & { op?: Display['op']; wait?: boolean }): void {
    if (display.op === 'clear') {
      this.#clearNext = true;
      if (!display.wait) this.#clear();
      return;
    }
    this.#clear();
    if (display.op === 'update') {
      for (const piece of this.pieces) if ('rich' in piece && piece.rich.displayId === display.displayId) piece.rich = display;
    } else {
      this.pieces.push({ rich: display });
    }
  }

  /** The result has everything. What was missed while it ran makes the pieces anew, by the places of the rich results. */
  finish(result: Finished): void {
    this.running = false;
    const shown = this.pieces.filter((piece) => 'rich' in piece).length;
    if (this.#liveBytes === result.stdoutBytes + result.stderrBytes && shown === result.results.length) return;
    this.pieces = [];
    this.#chars = 0;
    let [out, err] = [0, 0];
    const upTo = (stdout: number, stderr: number): void => {
      if (stdout > out) this.text('stdout', result.stdout.toString('utf8', out, stdout));
      if (stderr > err) this.text('stderr', result.codeStderr.toString('utf8', err, stderr));
      [out, err] = [Math.max(out, stdout), Math.max(err, stderr)];
    };
    for (const one of result.results) {
      upTo(one.at.stdout, one.at.stderr);
      this.rich({ data: one.data, displayId: one.displayId });
    }
    upTo(result.stdout.length, result.codeStderr.length);
  }

  /** Everything that is text, for the clipboard and for an editor. */
  asText(): string {
    return this.pieces.map((piece) => ('stream' in piece ? plain(piece.text) : (piece.rich.data['text/plain'] ?? '') + '\n')).join('');
  }

  #clear(): void {
    if (!this.#clearNext) return;
    this.#clearNext = false;
    this.pieces = this.pieces.filter((piece) => 'stream' in piece && piece.stream === 'stderr');
    this.#chars = this.pieces.reduce((sum, piece) => sum + ('stream' in piece ? piece.text.length : 0), 0);
  }
}
