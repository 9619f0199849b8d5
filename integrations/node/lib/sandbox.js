// A sandbox: one session of the sidecar, opened at its first use. Its workspace stays between calls; each call has a fresh box.
'use strict';

const { SandboxError, OptionError, SidecarLost } = require('./errors.js');
const { parse, split, shown } = require('./options.js');
const { sidecar } = require('./sidecar.js');
const { textOf } = require('./text.js');
const { call } = require('./call.js');
const { Files } = require('./files.js');
const { Kernel } = require('./kernel.js');
const { Shell } = require('./shell.js');

const SETUP_WORDS = 400;

function checkCode(code) {
  if (typeof code !== 'string' && !(code instanceof Uint8Array)) throw new OptionError('invalid_type', `code: a string or bytes wanted, not ${shown(code)}`, { option: 'code' });
}

class Sandbox extends Files {
  #params;
  #extras;
  #opening = null; // a promise of { sidecar, sessionId, … } once somebody needs it
  #opened = null;
  #closed = false;

  /** Checks every option now; starts nothing. */
  constructor(options) {
    super();
    ({ params: this.#params, extras: this.#extras } = parse('session', options));
  }

  /** Opens it now instead of at the first call, and runs `setup`. */
  async open() {
    await this.#session();
    return this;
  }

  get sessionId() { return this.#opened?.sessionId; }
  /** The workspace's path on the host. */
  get workspace() { return this.#opened?.workspace; }
  get workspaceTarget() { return this.#opened?.workspaceTarget; }
  /** The limits in force, and who holds them. */
  get effective() { return this.#opened?.effective; }
  /** What turned out differently than one might think. */
  get notes() { return this.#opened?.notes; }
  get image() { return this.#opened?.image; }

  /** Runs code in a fresh box. */
  async runCode(code, options) {
    checkCode(code);
    const { params, extras } = parse('code', options);
    const { sidecar: to, sessionId } = await this.#session();
    return call(to, 'run/code', { ...params, sessionId, code: await textOf(to, code) }, { ...this.#callbacks(), ...extras });
  }

  /** Runs a program in a fresh box: its name and arguments, no shell. */
  async run(argv, options) {
    if (!Array.isArray(argv) || argv.length === 0 || !argv.every((word) => typeof word === 'string' && !word.includes('\0')))
      throw new OptionError('invalid_type', `argv: a list of strings wanted, not ${shown(argv)}; for a shell line: runCode(line, {language: 'sh'})`, { option: 'argv' });
    const { params, extras } = parse('argv', options);
    const { sidecar: to, sessionId } = await this.#session();
    return call(to, 'run/argv', { ...params, sessionId, argv }, { ...this.#callbacks(), ...extras });
  }

  /** Runs a command with the network on, to install packages. A non-zero exit is a result. */
  async setup(command, options) {
    const { params, extras } = parse('setup', options);
    if (typeof command !== 'string' || !command) throw new OptionError('invalid_type', 'command: one shell command wanted, as a string', { option: 'command' });
    const { sidecar: to, sessionId } = await this.#session();
    return call(to, 'session/setup', { ...params, sessionId, command }, extras);
  }

  /** An interpreter that keeps its state between cells. */
  async kernel(options) {
    const { params, extras } = parse('kernel', options);
    const { sidecar: to, sessionId } = await this.#session();
    return Kernel.open(to, { ...params, sessionId }, extras, this.#callbacks());
  }

  /** A shell that keeps its state between commands. */
  async shell(options) {
    const { params, extras } = parse('shell', options);
    const { sidecar: to, sessionId } = await this.#session();
    return Shell.open(to, { ...params, sessionId }, extras, this.#callbacks());
  }

  /** Ends it: running calls answer `cancelled`, a private workspace goes. */
  async close() {
    if (this.#closed) return;
    this.#closed = true;
    const session = await this.#opening?.catch(() => null);
    if (session && !session.sidecar.lost)
      await session.sidecar.request('session/close', { sessionId: session.sessionId }).catch((error) => {
        if (error.reason !== 'unknown_handle' && !(error instanceof SidecarLost)) throw error;
      });
  }

  /** For Files. */
  async sidecar() { return (await this.#session()).sidecar; }
  async request(method, params, signal) {
    const session = await this.#session();
    try {
      return await session.sidecar.request(method, { sessionId: session.sessionId, ...params }, signal);
    } catch (error) {
      if (error.reason === 'cancelled' && signal?.aborted) throw signal.reason;
      throw error;
    }
  }

  #callbacks() {
    const { onStdout, onStderr, onDisplay } = this.#extras;
    return { onStdout, onStderr, onDisplay };
  }

  /** The session, opened now when it is not. After a loss of the sidecar a named workspace is opened anew; a private one is gone. */
  async #session() {
    if (this.#closed) throw new SandboxError('closed', 'the sandbox is closed');
    if (this.#opened?.sidecar.lost) {
      if (this.#params.workspace === undefined)
        throw new SidecarLost('session_lost', 'the sidecar of this sandbox ended, and the private workspace with it; make a new Sandbox');
      this.#opening = this.#opened = null;
    }
    this.#opening ??= this.#open();
    const opening = this.#opening;
    try {
      return await opening;
    } catch (error) {
      if (this.#opening === opening) this.#opening = null; // the next call tries again
      throw error;
    }
  }

  async #open() {
    const to = sidecar();
    const session = { sidecar: to, ...await to.request('session/open', this.#params) };
    const { setup, setupTimeoutS } = this.#extras;
    if (setup !== undefined) {
      const result = await call(to, 'session/setup', { sessionId: session.sessionId, command: setup, ...(setupTimeoutS && { timeoutMs: Math.round(setupTimeoutS * 1000) }) }, {});
      if (!result.success) {
        await to.request('session/close', { sessionId: session.sessionId });
        const said = (result.codeStderr.trim() || result.stdout.trim()).slice(-SETUP_WORDS);
        throw new SandboxError('setup_failed', `setup failed (${result.fault ? result.fault.message : `exit ${result.exitCode}`}): ${said}`, { details: result });
      }
    }
    this.#opened = session;
    return session;
  }
}
if (Symbol.asyncDispose) Sandbox.prototype[Symbol.asyncDispose] = Sandbox.prototype.close;

/** Opens a sandbox, calls `use` with it, and closes it whatever happens. */
async function withSandbox(options, use) {
  if (typeof options === 'function') [options, use] = [undefined, options];
  const sandbox = new Sandbox(options);
  try {
    await sandbox.open();
    return await use(sandbox);
  } finally {
    await sandbox.close();
  }
}

/** One call in a sandbox of its own, which takes the options of both. */
async function runCode(code, options) {
  checkCode(code);
  const { call: callOptions, session: sessionOptions } = split(options);
  const session = parse('session', sessionOptions);
  const { params, extras } = parse('code', callOptions);
  if (session.extras.setup !== undefined) return withSandbox(sessionOptions, (sandbox) => sandbox.runCode(code, callOptions));
  const to = sidecar();
  return call(to, 'run/code', { ...params, code: await textOf(to, code), session: session.params }, extras);
}

module.exports = { Sandbox, withSandbox, runCode };
