// A shell that keeps its state between commands, or a terminal.
'use strict';

const { OptionError } = require('./errors.js');
const { parse, shown } = require('./options.js');
const { newHandle } = require('./sidecar.js');
const { bytesOf } = require('./text.js');
const { call } = require('./call.js');

class Shell {
  #sidecar;
  #callbacks;
  #closed = false;

  constructor(to, shellId, callbacks) {
    this.#sidecar = to;
    this.#callbacks = callbacks;
    this.shellId = shellId;
  }

  static async open(to, params, { onOutput, onExit, signal }, callbacks) {
    const shellId = newHandle('shell');
    to.listen('shellId', shellId, (method, facts) => {
      if (method === 'shell/output') onOutput?.(bytesOf(facts), facts.stream);
      else if (method === 'shell/exited') onExit?.({ exitCode: facts.exitCode, signal: facts.signal, lost: false });
      else if (method === 'lost') onExit?.({ lost: true });
    });
    try {
      await to.request('shell/open', { ...params, shellId }, signal);
      return new Shell(to, shellId, callbacks);
    } catch (error) {
      to.unlisten('shellId', shellId);
      throw error;
    }
  }

  /** Runs a command (mode pipes). The result has `stateKept`, too. */
  async run(command, options) {
    if (typeof command !== 'string') throw new OptionError('invalid_type', `command: a string wanted, not ${shown(command)}`, { option: 'command' });
    const { params, extras } = parse('command', options);
    return call(this.#sidecar, 'shell/run', { ...params, shellId: this.shellId, command }, { ...this.#callbacks, ...extras });
  }

  /** Types into the terminal (mode pty). */
  async write(data) {
    const what = typeof data === 'string' ? { text: data } : { base64: Buffer.from(data).toString('base64') };
    await this.#sidecar.request('shell/write', { shellId: this.shellId, ...what });
  }

  async resize(rows, cols) { await this.#sidecar.request('shell/resize', { shellId: this.shellId, rows, cols }); }

  /** A signal for the job in front: INT, TERM, … */
  async signal(name) { await this.#sidecar.request('shell/signal', { shellId: this.shellId, signal: name }); }

  async close() {
    if (this.#closed) return;
    this.#closed = true;
    if (!this.#sidecar.lost)
      await this.#sidecar.request('shell/close', { shellId: this.shellId }).catch((error) => {
        if (error.reason !== 'unknown_handle' && error.reason !== 'sidecar_lost') throw error;
      });
    this.#sidecar.unlisten('shellId', this.shellId);
  }
}
if (Symbol.asyncDispose) Shell.prototype[Symbol.asyncDispose] = Shell.prototype.close;

module.exports = { Shell };
