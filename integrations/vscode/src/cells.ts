// Text to what can run: cells between lines of `# %%` (or `// %%`), and code whose lines keep their numbers.

/** Lines from 0, both inclusive. `marked` when its first line is a marker. */
export interface Cell {
  start: number;
  end: number;
  marked: boolean;
}

const MARKER = /^\s*(?:#|\/\/)\s*%%/;
const PROSE = /^\s*(?:#|\/\/)\s*%%[^[]*\[(?:markdown|raw)\]/;

/** The cells that hold code. What stands before the first marker is one, too, and a text without markers is one cell. */
export function cellsOf(lines: readonly string[]): Cell[] {
  const markers = lines.flatMap((line, i) => (MARKER.test(line) ? [i] : []));
  const starts = markers[0] === 0 ? markers : [0, ...markers];
  return starts
    .map((start, i) => ({ start, end: (starts[i + 1] ?? lines.length) - 1, marked: MARKER.test(lines[start] ?? '') }))
    .filter(({ start, end, marked }) => (marked ? !PROSE.test(lines[start]) : lines.slice(start, end + 1).some((line) => line.trim() !== '')));
}

export function cellAt(cells: readonly Cell[], line: number): Cell | undefined {
  return cells.find(({ start, end }) => start <= line && line <= end);
}

/** Takes off the indentation that all lines share, so that a selection from inside of a block runs. */
export function dedent(code: string): string {
  const lines = code.split('\n');
  const indents = lines.filter((line) => line.trim() !== '').map((line) => /^[ \t]*/.exec(line)![0]);
  let shared = indents[0] ?? '';
  for (const indent of indents) while (!indent.startsWith(shared)) shared = shared.slice(0, -1);
  return shared === '' ? code : lines.map((line) => (line.startsWith(shared) ? line.slice(shared.length) : line.trimStart())).join('\n');
}

/** `code`, which stands at line `first` of its document, moved to that line: then every message names the right one. */
export function placed(code: string, first: number): string {
  return '\n'.repeat(first) + dedent(code.replaceAll('\r\n', '\n'));
}
