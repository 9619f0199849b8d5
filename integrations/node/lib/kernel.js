// A kernel: one interpreter that keeps its state between cells. Cells run in order and share everything.
'use strict';

const { OptionError } = require('./errors.js');
const { parse, shown } = require('./options.js');
const { newHandle } = require('./sidecar.js');
const { bytesOf, textOf } = require('./text.js');
const { call } = require('./call.js');

class Kernel {
  #sidecar;
  #callbacks;
  #closed = false;

  constructor(to, opened, callbacks) {
    this.#sidecar = to;
    this.#callbacks = callbacks;
    this.kernelId = opened.kernelId;
    this.language = opened.language;
    this.interpreter = opened.interpreter;
    this.state = 'idle';
  }

  static async open(to, params, { onState, onOutput, signal }, callbacks) {
    const kernelId = newHandle('kernel');
    let kernel = null;
    to.listen('kernelId', kernelId, (method, facts) => {
      if (method === 'kernel/output') onOutput?.(bytesOf(facts), facts.stream);
      else {
        if (kernel) kernel.state = method === 'lost' ? 'dead' : facts.state;
        onState?.(method === 'lost' ? { state: 'dead' } : { state: facts.state, fault: facts.fault });
      }
    });
    try {
      kernel = new Kernel(to, await to.request('kernel/open', { ...params, kernelId }, signal), callbacks);
      return kernel;
    } catch (error) {
      to.unlisten('kernelId', kernelId);
      throw error;
    }
  }

  /** Runs a cell. The result has `cellStatus`, `executionCount` and `stateKept`, too. */
  async runCode(code, options) {
    if (typeof code !== 'string') throw new OptionError('invalid_type', `code: a string wanted, not ${shown(code)}`, { option: 'code' });
    const { params, extras } = parse('cell', options);
    return call(this.#sidecar, 'kernel/run', { ...params, kernelId: this.kernelId, code: await textOf(this.#sidecar, code) }, { ...this.#callbacks, ...extras });
  }

  /** Interrupts the running cell and keeps the state; true when there was one. */
  async interrupt() { return (await this.#sidecar.request('kernel/interrupt', { kernelId: this.kernelId })).running; }

  /** A new interpreter under the same name. */
  async restart() { await this.#sidecar.request('kernel/restart', { kernelId: this.kernelId }); }

  async close() {
    if (this.#closed) return;
    this.#closed = true;
    this.#sidecar.unlisten('kernelId', this.kernelId);
    this.state = 'dead';
    if (!this.#sidecar.lost)
      await this.#sidecar.request('kernel/close', { kernelId: this.kernelId }).catch((error) => {
        if (error.reason !== 'unknown_handle' && error.reason !== 'sidecar_lost') throw error;
      });
  }
}
if (Symbol.asyncDispose) Kernel.prototype[Symbol.asyncDispose] = Kernel.prototype.close;

module.exports = { Kernel };
