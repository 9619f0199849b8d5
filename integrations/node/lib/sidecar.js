// The sidecar process: one for this process, shared by all sandboxes, started at the first call. It holds the event loop only
// while a call is on its way, and it goes when this process goes, however that happens: its stdin ends, and it watches our pid.
'use strict';

const { spawn } = require('node:child_process');
const { SandboxError, ProgramNotFound, SidecarLost, fromReply } = require('./errors.js');
const { findProgram } = require('./program.js');
const { lineSplitter } = require('./lines.js');
const { VERSION } = require('./protocol.js');
const { version } = require('../package.json');

const MAX_LINE_BYTES = 1 << 20;
const KEPT_STDERR = 8192;

class Sidecar {
  #child;
  #pending = new Map(); // id -> { resolve, reject }
  #listeners = new Map(); // 'runId x' or 'kernelId x' or 'shellId x' -> function of a notification
  #nextId = 1;
  #stderr = '';
  #lost = null;

  constructor(program) {
    this.program = program;
    // A session of its own: Ctrl-C is for the host, which may want to live on; a host that ends takes the sidecar with it.
    this.#child = spawn(program, ['--stdio'], { stdio: 'pipe', detached: true, cwd: '/' });
    const { stdin, stdout, stderr } = this.#child;
    this.#child.on('error', (cause) => this.#end(this.#child.pid === undefined
      ? new ProgramNotFound('program_not_found', `${program} cannot be started: ${cause.message}`, { cause })
      : this.#lostError(cause.message)));
    stdin.on('error', () => {}); // the end of stdout tells it
    stdout.on('error', () => {});
    stderr.on('error', () => {});
    stdout.on('data', lineSplitter((line) => this.#message(line)));
    stderr.on('data', (chunk) => { this.#stderr = (this.#stderr + chunk.toString('latin1')).slice(-KEPT_STDERR); });
    stdout.on('close', () => this.#gone());
    this.#hold(false);
    this.ready = this.#request('initialize', {
      protocolVersion: VERSION,
      client: { name: 'kern-sandbox (node)', version },
      processId: process.pid,
      capabilities: { maxLineBytes: MAX_LINE_BYTES, credits: true },
    });
    this.ready.catch(() => {}); // whoever calls gets it
  }

  get lost() { return this.#lost !== null; }
  get pid() { return this.#child.pid; }

  /** One request. With `signal`, an abort sends $/cancel; the reply then says what became of it. */
  async request(method, params, signal) {
    signal?.throwIfAborted();
    await this.ready;
    return this.#request(method, params, signal);
  }

  notify(method, params) {
    if (!this.#lost) this.#send({ jsonrpc: '2.0', method, params });
  }

  /** `listener` gets the notifications whose params have this handle. */
  listen(kind, handle, listener) { this.#listeners.set(`${kind} ${handle}`, listener); }
  unlisten(kind, handle) { this.#listeners.delete(`${kind} ${handle}`); }

  #request(method, params, signal) {
    if (this.#lost) return Promise.reject(this.#lost);
    if (signal?.aborted) return Promise.reject(signal.reason);
    const id = this.#nextId++;
    const cancel = () => this.notify('$/cancel', { id });
    signal?.addEventListener('abort', cancel, { once: true });
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#hold(true);
      this.#send({ jsonrpc: '2.0', id, method, params });
    }).finally(() => signal?.removeEventListener('abort', cancel));
  }

  #send(message) { this.#child.stdin.write(JSON.stringify(message) + '\n'); }

  #message(line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch (cause) {
      this.#child.kill('SIGKILL');
      this.#end(new SidecarLost('sidecar_lost', 'the sidecar wrote what is not JSON and was ended', { cause }));
      return;
    }
    if (message.method !== undefined) {
      const { runId, kernelId, shellId } = message.params ?? {};
      const listener = this.#listeners.get(`runId ${runId}`) ?? this.#listeners.get(`kernelId ${kernelId}`) ??
        this.#listeners.get(`shellId ${shellId}`);
      listener?.(message.method, message.params);
      return;
    }
    const waiting = this.#pending.get(message.id);
    if (!waiting) return;
    this.#pending.delete(message.id);
    if (this.#pending.size === 0) this.#hold(false);
    if (message.error) waiting.reject(fromReply(message.error));
    else waiting.resolve(message.result);
  }

  /** Its stdout has ended; how it ended is known a moment later, or it is made to end. */
  #gone() {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) {
      this.#end(this.#lostError(child.signalCode ? `signal ${child.signalCode}` : `exit status ${child.exitCode}`));
      return;
    }
    child.once('exit', (code, signal) => this.#end(this.#lostError(signal ? `signal ${signal}` : `exit status ${code}`)));
    setTimeout(() => child.kill('SIGKILL'), 2000).unref();
  }

  #lostError(how) {
    const said = this.#stderr.trim().split('\n').slice(-5).join('\n');
    return new SidecarLost('sidecar_lost', `kern-sidecar ended (${how}) before it answered; everything in its boxes ended with it` +
      (said && `. Its last words: ${said}`));
  }

  #end(error) {
    if (this.#lost) return;
    this.#lost = error;
    this.#child.stdin.destroy();
    const waiting = [...this.#pending.values()];
    this.#pending.clear();
    this.#hold(false);
    for (const one of waiting) one.reject(error);
    for (const listener of [...this.#listeners.values()]) listener('lost', {});
    this.#listeners.clear();
  }

  #hold(yes) {
    for (const handle of [this.#child, this.#child.stdout]) handle[yes ? 'ref' : 'unref']();
    if (!yes) for (const handle of [this.#child.stdin, this.#child.stderr]) handle.unref?.();
  }
}

let current = null;

/** The sidecar of this process; a lost one is replaced. */
function sidecar() {
  if (!current || current.lost) current = new Sidecar(findProgram());
  return current;
}

/** Ends the sidecar, and with it everything in its boxes. mode drain: what runs may end first. */
async function shutdown(mode = 'kill') {
  const ending = current;
  if (!ending || ending.lost) return;
  if (mode !== 'kill' && mode !== 'drain') throw new SandboxError('invalid_value', 'mode is kill or drain');
  await ending.request('shutdown', { mode });
  ending.notify('exit', {});
  if (current === ending) current = null;
}

let handles = 0;
/** A handle that nobody else in this sidecar has. */
const newHandle = (kind) => `${kind}-${++handles}`;

module.exports = { sidecar, shutdown, newHandle };
