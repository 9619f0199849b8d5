// The file methods of a sandbox: inside the workspace and its mounts, with the rights of the box's user. No box is started for them.
'use strict';

const path = require('node:path');
const { OptionError } = require('./errors.js');
const { bytesOfText, textOf, wholeOf } = require('./text.js');
const { shown } = require('./options.js');

const OPTIONS = {
  read: ['offset', 'length', 'lines', 'followLinks', 'encoding'],
  write: ['ifExists', 'ifMatch', 'mkdirs', 'mode', 'followLinks'],
  list: ['recursive', 'followLinks', 'limit'],
  stat: ['followLinks'],
  mkdir: ['parents', 'followLinks'],
  move: ['replace', 'followLinks'],
  remove: ['recursive', 'followLinks'],
  edit: ['ifMatch', 'followLinks'],
  glob: ['path', 'ignore', 'hidden', 'gitignore', 'limit'],
  search: ['regex', 'path', 'glob', 'ignoreCase', 'before', 'after', 'hidden', 'gitignore', 'limit'],
  snapshot: ['links'],
  restore: ['links'],
};

/** Options of a file method -> [params, signal]; values are checked by the sidecar, names here. */
function optionsOf(method, options = {}) {
  const { signal, ...params } = options;
  for (const name of Object.keys(params)) {
    if (!OPTIONS[method].includes(name))
      throw new OptionError('unknown_option', `${name}: ${method} has no such option; there are ${OPTIONS[method].join(', ')}, signal`, { option: name });
    if (params[name] === undefined) delete params[name];
  }
  return [params, signal];
}

/** A name that is not UTF-8 is given, and comes back, as a Buffer. */
function pathParam(name, field = 'path') {
  if (typeof name === 'string') return { [field]: name };
  if (name instanceof Uint8Array) return { [`${field}Base64`]: Buffer.from(name).toString('base64') };
  throw new OptionError('invalid_type', `${field}: a string or a Buffer wanted, not ${shown(name)}`, { option: field });
}

/** Methods for a class that has `request(method, params, signal)` and `sidecar()`. */
class Files {
  /** A file's bytes; a string with encoding 'utf8'. */
  async readFile(name, options) {
    const [{ encoding, ...params }, signal] = optionsOf('read', options);
    if (encoding !== undefined && encoding !== 'utf8') throw new OptionError('invalid_value', "encoding: 'utf8', or absent for bytes", { option: 'encoding' });
    const reply = await this.request('file/read', { ...pathParam(name), ...params }, signal);
    const bytes = await bytesOfText(await this.sidecar(), reply.text ?? reply);
    return encoding ? bytes.toString('utf8') : bytes;
  }

  async writeFile(name, data, options) {
    const [params, signal] = optionsOf('write', options);
    if (typeof data !== 'string' && !(data instanceof Uint8Array)) throw new OptionError('invalid_type', 'data: a string or bytes wanted', { option: 'data' });
    return this.request('file/write', { ...pathParam(name), content: await textOf(await this.sidecar(), data), ...params }, signal);
  }

  /** Everything in a directory, all pages of it. */
  async listFiles(directory = '.', options) {
    const [{ limit, ...params }, signal] = optionsOf('list', options);
    const entries = [];
    let cursor;
    do {
      const page = await this.request('file/list', { ...pathParam(directory || '.'), ...params, ...(cursor && { cursor }) }, signal);
      entries.push(...await wholeOf(await this.sidecar(), page.entries));
      cursor = page.nextCursor;
    } while (cursor !== undefined && !(entries.length >= limit));
    return limit === undefined ? entries : entries.slice(0, limit);
  }

  async stat(name, options) {
    const [params, signal] = optionsOf('stat', options);
    return this.request('file/stat', { ...pathParam(name), ...params }, signal);
  }

  async mkdir(name, options) {
    const [params, signal] = optionsOf('mkdir', options);
    await this.request('file/mkdir', { ...pathParam(name), ...params }, signal);
  }

  async move(from, to, options) {
    const [params, signal] = optionsOf('move', options);
    await this.request('file/move', { ...pathParam(from), ...pathParam(to, 'to'), ...params }, signal);
  }

  async remove(name, options) {
    const [params, signal] = optionsOf('remove', options);
    await this.request('file/remove', { ...pathParam(name), ...params }, signal);
  }

  /** Replacements, all or nothing: {oldText, newText, all} or several of them. */
  async editFile(name, edits, options) {
    const [params, signal] = optionsOf('edit', options);
    return this.request('file/edit', { ...pathParam(name), edits: [edits].flat(), ...params }, signal);
  }

  async glob(pattern, options) {
    const [params, signal] = optionsOf('glob', options);
    const reply = await this.request('file/glob', { pattern, ...params }, signal);
    return { ...reply, entries: await wholeOf(await this.sidecar(), reply.entries) };
  }

  async search(pattern, options) {
    const [params, signal] = optionsOf('search', options);
    const reply = await this.request('file/search', { pattern, ...params }, signal);
    return { ...reply, matches: await wholeOf(await this.sidecar(), reply.matches) };
  }

  /** Packs the workspace into a .tar.gz at a path of the host. */
  async snapshot(destination, options) {
    const [params, signal] = optionsOf('snapshot', options);
    return this.request('session/snapshot', { path: path.resolve(destination), ...params }, signal);
  }

  /** Replaces the workspace by an archive, whole or not at all. */
  async restore(source, options) {
    const [params, signal] = optionsOf('restore', options);
    return this.request('session/restore', { path: path.resolve(source), ...params }, signal);
  }
}

module.exports = { Files };
