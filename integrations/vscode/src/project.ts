// The session of a project folder: one sandbox, a kernel a language, and the runs that are under way.
import * as kern from 'kern-sandbox';
import { sandboxOptions, type Settings } from './settings';

export type State = 'none' | 'starting' | 'idle' | 'busy' | 'dead';

export interface Call {
  code: string;
  language: string;
  where: 'kernel' | 'box';
  filename: string;
  onStdout: (chunk: Buffer) => void;
  onStderr: (chunk: Buffer) => void;
  onDisplay: (display: kern.Display) => void;
  /** Cells of a kernel only. */
  onInput?: kern.CellOptions['onInput'];
}

export type Outcome = Omit<kern.BinaryResult, 'signal'> & Partial<Pick<kern.CellResult, 'cellStatus' | 'executionCount' | 'stateKept'>>;

interface Running {
  kernel?: kern.Kernel;
  abort: AbortController;
  /** Asked to stop before: then the next time it is made to. */
  asked: boolean;
}

export class Project {
  #sandbox: kern.Sandbox | undefined;
  #kernels = new Map<string, Promise<kern.Kernel>>();
  #running = new Map<string, Running>();
  #starting = 0;
  #dead = false;
  /** The settings have changed since it began: a restart takes them. */
  stale = false;

  constructor(readonly folder: string | undefined, private readonly settings: () => Settings, private readonly changed: () => void) {}

  get state(): State {
    if (this.#starting > 0) return 'starting';
    if (this.#running.size > 0) return 'busy';
    if (this.#dead) return 'dead';
    return this.#sandbox ? 'idle' : 'none';
  }
  get busy(): boolean { return this.#running.size > 0; }

  async run(id: string, call: Call): Promise<Outcome> {
    const { code, language, where, filename, ...callbacks } = call;
    const running: Running = { abort: new AbortController(), asked: false };
    this.#running.set(id, running);
    this.changed();
    const options = { filename, encoding: 'buffer' as const, signal: running.abort.signal, ...callbacks };
    try {
      if (where === 'box') return await (await this.#open()).runCode(code, { language, ...options });
      running.kernel = await this.#kernel(language);
      running.abort.signal.throwIfAborted();
      // with encoding: 'buffer' a cell has Buffers, too
      const result = await running.kernel.runCode(code, options) as unknown as Outcome;
      if (result.cellStatus === 'dead') this.#dead = true;
      return result;
    } catch (error) {
      if (error instanceof kern.SandboxError && ['sidecar_lost', 'session_lost', 'unknown_handle'].includes(error.reason)) this.#forget();
      throw error;
    } finally {
      this.#running.delete(id);
      this.changed();
    }
  }

  /** Stops runs: a cell is interrupted first, and keeps its state; what is asked twice is made to stop. */
  async interrupt(id?: string): Promise<void> {
    for (const running of id === undefined ? [...this.#running.values()] : [this.#running.get(id)].filter((one) => one !== undefined)) {
      if (running.kernel && !running.asked) {
        running.asked = true;
        await running.kernel.interrupt();
      } else {
        running.abort.abort(new Error('interrupted before it began'));
      }
    }
  }

  /** Ends everything; the next run begins afresh, with the settings and the folder as they are then. */
  async restart(): Promise<void> {
    for (const running of this.#running.values()) running.abort.abort(new Error('the session was restarted'));
    await this.close();
  }

  async close(): Promise<void> {
    const sandbox = this.#sandbox;
    this.#forget();
    await sandbox?.close();
    this.changed();
  }

  #forget(): void {
    this.#sandbox = undefined;
    this.#kernels.clear();
    this.#dead = false;
    this.stale = false;
  }

  async #open(): Promise<kern.Sandbox> {
    this.#sandbox ??= new kern.Sandbox(sandboxOptions(this.settings(), this.folder));
    const sandbox = this.#sandbox;
    return this.#start(async () => {
      try {
        return await sandbox.open();
      } catch (error) {
        if (this.#sandbox === sandbox) this.#sandbox = undefined; // other settings may help
        throw error;
      }
    });
  }

  async #kernel(language: string): Promise<kern.Kernel> {
    let opening = this.#kernels.get(language);
    if (!opening) {
      opening = this.#start(async () => (await this.#open()).kernel({ language }));
      this.#kernels.set(language, opening);
      opening.catch(() => { if (this.#kernels.get(language) === opening) this.#kernels.delete(language); });
    }
    return opening;
  }

  async #start<T>(work: () => Promise<T>): Promise<T> {
    this.#starting++;
    this.changed();
    try {
      return await work();
    } finally {
      this.#starting--;
      this.changed();
    }
  }
}
