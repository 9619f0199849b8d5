// What a call gives back: the protocol's fields with their Texts read, and the short-cuts that people want.
'use strict';

const { bytesOfText, stringOfText, wholeOf } = require('./text.js');

/** A value, figure or display of the code: `data` by MIME type, images as base64. */
class Result {
  constructor(fields) { Object.assign(this, fields); }
  /** The MIME types that are there. */
  formats() { return Object.keys(this.data); }
  get text() { return this.data['text/plain']; }
  get html() { return this.data['text/html']; }
  get markdown() { return this.data['text/markdown']; }
  get latex() { return this.data['text/latex']; }
  get svg() { return this.data['image/svg+xml']; }
  get png() { return this.#image('image/png'); }
  get jpeg() { return this.#image('image/jpeg'); }
  get json() {
    const text = this.data['application/json'];
    return text === undefined ? undefined : JSON.parse(text);
  }
  #image(mime) {
    const base64 = this.data[mime];
    return base64 === undefined ? undefined : Buffer.from(base64, 'base64');
  }
}

/** Reads the Texts of a result or a display; images stay base64. */
async function resultOf(sidecar, fields) {
  const data = {};
  for (const [mime, text] of Object.entries(fields.data ?? {})) {
    const image = mime.startsWith('image/') && mime !== 'image/svg+xml';
    data[mime] = image ? await base64Of(sidecar, text) : await stringOfText(sidecar, text);
  }
  return new Result({ ...fields, data });
}

async function base64Of(sidecar, text) {
  if (typeof text === 'string') return text;
  return text.base64 !== undefined ? text.base64 : (await bytesOfText(sidecar, text)).toString('base64'); // a blob has the bytes
}

class ExecutionResult {
  constructor(fields) { Object.assign(this, fields); }
}

/** A result of the sidecar as an ExecutionResult. `stderr` is the notes about the box and then the code's own bytes. */
async function executionResult(sidecar, raw, encoding) {
  const read = encoding === 'buffer' ? bytesOfText : stringOfText;
  const notes = await wholeOf(sidecar, raw.runtimeNotes);
  const runtimeNotes = notes.map((note) => `kern: note: ${note.message}`);
  const codeStderr = await read(sidecar, raw.stderr);
  const above = runtimeNotes.map((line) => line + '\n').join('');
  const results = [];
  for (const one of await wholeOf(sidecar, raw.results)) results.push(await resultOf(sidecar, one));
  return new ExecutionResult({
    ...raw,
    stdout: await read(sidecar, raw.stdout),
    stderr: typeof codeStderr === 'string' ? above + codeStderr : Buffer.concat([Buffer.from(above), codeStderr]),
    codeStderr,
    runtimeNotes,
    notes,
    fault: raw.fault ?? null,
    error: raw.error === undefined ? null : await wholeOf(sidecar, raw.error),
    files: await wholeOf(sidecar, raw.files),
    results,
  });
}

module.exports = { Result, ExecutionResult, resultOf, executionResult };
