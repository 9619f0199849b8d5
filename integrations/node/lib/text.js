// Bytes in both directions: the protocol's Text is a string, base64, or a blob that is read and written in pages.
'use strict';

const { SandboxError } = require('./errors.js');

const INLINE_BYTES = 1 << 20; // longer content goes by a blob: no line grows long, and $/cancel is not behind it
const PAGE_BYTES = 3 << 18;

const bytesOf = (part) => (part.base64 !== undefined ? Buffer.from(part.base64, 'base64') : Buffer.from(part.text ?? '', 'utf8'));

async function readBlob(sidecar, blob) {
  const parts = [];
  for (let offset = 0; ;) {
    const page = await sidecar.request('blob/read', { id: blob.id, offset });
    parts.push(bytesOf(page));
    if (page.eof) break;
    if (page.nextOffset <= offset) throw new SandboxError('internal', 'blob/read does not advance');
    offset = page.nextOffset;
  }
  sidecar.request('blob/free', { id: blob.id }).catch(() => {}); // the session's end frees it, too
  return Buffer.concat(parts);
}

/** A Text as a Buffer. */
async function bytesOfText(sidecar, text) {
  if (typeof text === 'string') return Buffer.from(text, 'utf8');
  if (text.base64 !== undefined) return Buffer.from(text.base64, 'base64');
  return readBlob(sidecar, text.blob);
}

/** A Text as a string; bytes that are not UTF-8 are replaced. */
async function stringOfText(sidecar, text) {
  return typeof text === 'string' ? text : (await bytesOfText(sidecar, text)).toString('utf8');
}

/** An array or object that may have travelled as a blob. */
async function wholeOf(sidecar, value) {
  return value?.blob?.id !== undefined ? JSON.parse((await readBlob(sidecar, value.blob)).toString('utf8')) : value;
}

/** A string or bytes as a Text. */
async function textOf(sidecar, data) {
  const bytes = typeof data === 'string' ? null : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if ((bytes ?? data).length <= INLINE_BYTES / 4) return bytes ? { base64: bytes.toString('base64') } : data;
  const all = bytes ?? Buffer.from(data, 'utf8');
  if (all.length <= INLINE_BYTES) return bytes ? { base64: all.toString('base64') } : data;
  let blob;
  for (let offset = 0; offset < all.length; offset += PAGE_BYTES)
    blob = await sidecar.request('blob/write', { ...(blob && { id: blob.id }), base64: all.toString('base64', offset, Math.min(all.length, offset + PAGE_BYTES)) });
  return { blob: { id: blob.id } };
}

module.exports = { bytesOf, bytesOfText, stringOfText, wholeOf, textOf };
