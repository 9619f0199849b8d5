// An entry as HTML. Everything in it is a claim of the code that ran: text is escaped, HTML goes into a frame without scripts, an
// SVG into an image, where it has none either.
import { plain, type Entry, type Piece, type Shown } from './entry';

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
export const escaped = (text: string): string => text.replace(/[&<>"']/g, (one) => ENTITIES[one]);

/** Best first. */
const IMAGES: readonly (readonly [mime: string, suffix: string])[] = [['image/png', 'png'], ['image/jpeg', 'jpg'], ['image/svg+xml', 'svg']];
const TEXTS = ['text/markdown', 'text/latex', 'application/json', 'text/plain'];

/** The image of a rich result, as bytes and a suffix for its file. */
export function imageOf({ data }: Shown): { bytes: Buffer; mime: string; suffix: string } | undefined {
  for (const [mime, suffix] of IMAGES)
    if (data[mime] !== undefined) return { bytes: Buffer.from(data[mime], mime === 'image/svg+xml' ? 'utf8' : 'base64'), mime, suffix };
  return undefined;
}

function richHtml(rich: Shown, index: number): string {
  const image = imageOf(rich);
  if (image)
    return `<figure><img alt="${escaped(rich.data['text/plain'] ?? 'image')}" src="data:${image.mime};base64,${image.bytes.toString('base64')}">` +
      `<button data-op="save" data-index="${index}">Save image</button></figure>`;
  const html = rich.data['text/html'];
  if (html !== undefined) return `<iframe sandbox srcdoc="${escaped(html)}"></iframe>`;
  const mime = TEXTS.find((one) => rich.data[one] !== undefined);
  return `<pre class="value">${escaped(plain(mime === undefined ? `[${Object.keys(rich.data).join(', ')}]` : rich.data[mime]))}</pre>`;
}

function pieceHtml(piece: Piece, index: number): string {
  return 'stream' in piece ? `<pre class="${piece.stream}">${escaped(plain(piece.text))}</pre>` : richHtml(piece.rich, index);
}

export function entryHtml(entry: Entry): string {
  const buttons = entry.running ? '<button data-op="interrupt">Interrupt</button>' : '<button data-op="copy">Copy text</button><button data-op="open">Open as text</button>';
  const notes = entry.notes.map((note) => `<p class="note">${escaped(note)}</p>`).join('');
  return `<header>${escaped(entry.title)} ${buttons}</header>${entry.pieces.map(pieceHtml).join('')}${notes}` +
    `<footer class="${entry.failed ? 'failed' : 'ok'}">${escaped(entry.running ? 'running …' : entry.footer)}</footer>`;
}

/** The page around the entries. Nothing is loaded but our script and style; images only from the page itself. */
export function pageHtml(facts: { nonce: string; script: string; style: string; source: string }): string {
  const policy = `default-src 'none'; img-src data:; style-src ${facts.source} 'unsafe-inline'; script-src 'nonce-${facts.nonce}'`;
  return `<!DOCTYPE html><html><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${escaped(policy)}">` +
    `<link rel="stylesheet" href="${escaped(facts.style)}"></head><body><main id="entries"></main>` +
    `<script nonce="${facts.nonce}" src="${escaped(facts.script)}"></script></body></html>`;
}
