import type * as protocol from './protocol';

export type { protocol };
export type ErrorReason = protocol.ErrorReason | 'sidecar_lost' | 'session_lost' | 'program_not_found' | 'closed';

/** Nothing ran (or nobody can know: SidecarLost). What the sandbox did to code that ran is `fault` in a result. */
export class SandboxError extends Error {
  readonly reason: ErrorReason;
  readonly retryable: boolean;
  /** The option that is wrong. */
  readonly option?: string;
  /** Where in the params, as a JSON pointer: /mounts/2/source. */
  readonly pointer?: string;
  readonly hint?: string;
  /** The number of the JSON-RPC error. */
  readonly code?: number;
  readonly errno?: unknown;
  readonly step?: string;
  readonly details?: unknown;
}
export class OptionError extends SandboxError {}
export class MountRefused extends SandboxError {}
export class ProgramNotFound extends SandboxError {}
export class SidecarLost extends SandboxError {}

export interface Callbacks {
  /** Output as it comes. Best effort: what a slow reader misses shows as a gap in `offset`; the result has it all. */
  onStdout?: ((chunk: Buffer, facts: protocol.RunOutput) => void | Promise<void>) | null;
  onStderr?: ((chunk: Buffer, facts: protocol.RunOutput) => void | Promise<void>) | null;
  /** Rich results as they are shown. */
  onDisplay?: ((display: Display) => void | Promise<void>) | null;
}

export type Mounts = Record<string, string | readonly [target: string] | readonly [target: string, mode: 'ro' | 'rw']>;

type Renamed = 'timeoutMs' | 'cpusMilli' | 'memoryMb' | 'mounts' | 'user' | 'sessionId';

/** What the boxes of a sandbox are like. Each relaxation has a name. */
export interface SandboxOptions extends Omit<protocol.SessionParams, Renamed>, Callbacks {
  /** Deadline of each call in seconds; 30. */
  timeoutS?: number;
  /** CPU cap in cores; none. */
  cpus?: number | null;
  /** Memory cap in MiB; a profile's, else 512. */
  memoryMb?: number | null;
  /** Source on the host: target in the box, or [target, 'ro']. */
  mounts?: Mounts;
  user?: string | number;
  /** One shell command that runs once, with the network on. */
  setup?: string;
  setupTimeoutS?: number;
}

interface Call extends Callbacks {
  /** Deadline in seconds. */
  timeoutS?: number;
  /** Cancels the call: what had begun resolves with the fault `cancelled`, what had not rejects with the reason. */
  signal?: AbortSignal;
  /** Nothing is dropped: the box waits for the callbacks, and for the promises that they return. */
  lossless?: boolean;
}

interface BoxCall extends Call {
  env?: Record<string, string>;
  cwd?: string;
  stdin?: string | Uint8Array;
  memoryMb?: number | null;
  cpus?: number | null;
  pids?: number;
  maxOutputBytes?: number;
  trackFiles?: boolean;
  /** stdout and stderr as one stream, in true order, in `stdout`. */
  merge?: boolean;
  /** 'buffer': stdout and stderr of the result are Buffers, byte for byte. */
  encoding?: 'utf8' | 'buffer';
}

export type RunOptions = BoxCall;

export interface RunCodeOptions extends BoxCall {
  /** python, node, typescript, bash, sh; python. */
  language?: string;
  args?: string[];
  filename?: string;
  firstLine?: number;
}

export interface CellOptions extends Call {
  filename?: string;
  /** The code asks for a line (Python and node): resolves with it, or with null or undefined for the end of input. `signal` is aborted when
   * the cell ends without having got one. Without it the code has no input. */
  onInput?: (prompt: string, facts: { password: boolean; signal: AbortSignal }) => string | null | undefined | Promise<string | null | undefined>;
  encoding?: 'utf8' | 'buffer';
}

export interface ShellCommandOptions extends Call {
  stdin?: string | Uint8Array;
  merge?: boolean;
}

/** A value, figure or display of the code; a claim of the code. */
export class Result {
  readonly kind: protocol.RichResult['kind'];
  /** By MIME type; images are base64. */
  readonly data: Record<string, string>;
  readonly metadata?: Record<string, unknown>;
  readonly displayId?: string;
  readonly seq: number;
  readonly at: protocol.ResultPlace;
  readonly dropped?: protocol.DroppedData[];
  formats(): string[];
  readonly text?: string;
  readonly html?: string;
  readonly markdown?: string;
  readonly latex?: string;
  readonly svg?: string;
  readonly json?: unknown;
  readonly png?: Buffer;
  readonly jpeg?: Buffer;
}

/** A rich result while the code runs. */
export type Display = Omit<Result, 'kind' | 'at' | 'dropped'> & Pick<protocol.RunDisplay, 'op' | 'wait'>;

type Read = 'stdout' | 'stderr' | 'runtimeNotes' | 'fault' | 'error' | 'files' | 'results';

export interface ResultFields<Output> extends Omit<protocol.ExecutionResult, Read> {
  stdout: Output;
  /** The notes about the box, then the code's own bytes. */
  stderr: Output;
  /** The code's own bytes only. */
  codeStderr: Output;
  /** What the sandbox says about itself, a line each. */
  runtimeNotes: string[];
  notes: protocol.RuntimeNote[];
  /** Set only when the sandbox acted. An exception of the code is none. */
  fault: protocol.Fault | null;
  /** The exception that ended the code. */
  error: protocol.CodeError | null;
  files: protocol.ChangedFile[];
  results: Result[];
}
export class ExecutionResult {}
export interface ExecutionResult extends ResultFields<string> {}
export interface BinaryResult extends ResultFields<Buffer> {}
export interface CellResult extends ExecutionResult, Pick<protocol.KernelRunResult, 'cellStatus' | 'executionCount' | 'stateKept'> {}
export interface CommandResult extends ExecutionResult, Pick<protocol.ShellRunResult, 'stateKept'> {}

type Path = string | Uint8Array;
interface Abortable { signal?: AbortSignal }
type FileOptions<Params, Names extends keyof Params> = Pick<Params, Names> & Abortable;

export interface SnapshotOptions extends Abortable { links?: 'refuse' | 'inside' }

export class Sandbox {
  /** Checks every option; starts nothing. */
  constructor(options?: SandboxOptions);
  open(): Promise<this>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
  readonly sessionId?: string;
  readonly workspace?: string;
  readonly workspaceTarget?: string;
  readonly effective?: protocol.Effective;
  readonly notes?: protocol.Note[];
  readonly image?: protocol.SessionImage;

  runCode(code: string | Uint8Array, options: RunCodeOptions & { encoding: 'buffer' }): Promise<BinaryResult>;
  runCode(code: string | Uint8Array, options?: RunCodeOptions): Promise<ExecutionResult>;
  run(argv: readonly string[], options: RunOptions & { encoding: 'buffer' }): Promise<BinaryResult>;
  run(argv: readonly string[], options?: RunOptions): Promise<ExecutionResult>;
  setup(command: string, options?: { timeoutS?: number } & Abortable): Promise<ExecutionResult & { cached: boolean }>;
  kernel(options?: KernelOptions): Promise<Kernel>;
  shell(options?: ShellOptions): Promise<Shell>;

  readFile(path: Path, options: FileOptions<protocol.FileReadParams, 'offset' | 'length' | 'lines' | 'followLinks'> & { encoding: 'utf8' }): Promise<string>;
  readFile(path: Path, options?: FileOptions<protocol.FileReadParams, 'offset' | 'length' | 'lines' | 'followLinks'>): Promise<Buffer>;
  writeFile(path: Path, data: string | Uint8Array, options?: FileOptions<protocol.FileWriteParams, 'ifExists' | 'ifMatch' | 'mkdirs' | 'mode' | 'followLinks'>): Promise<protocol.FileWriteResult>;
  listFiles(directory?: Path, options?: FileOptions<protocol.FileListParams, 'recursive' | 'followLinks' | 'limit'>): Promise<protocol.FileEntry[]>;
  stat(path: Path, options?: FileOptions<protocol.FilePathParams, 'followLinks'>): Promise<protocol.FileStatResult>;
  mkdir(path: Path, options?: FileOptions<protocol.FileMkdirParams, 'parents' | 'followLinks'>): Promise<void>;
  move(from: Path, to: Path, options?: FileOptions<protocol.FileMoveParams, 'replace' | 'followLinks'>): Promise<void>;
  remove(path: Path, options?: FileOptions<protocol.FileRemoveParams, 'recursive' | 'followLinks'>): Promise<void>;
  editFile(path: Path, edits: protocol.Edit | protocol.Edit[], options?: FileOptions<protocol.FileEditParams, 'ifMatch' | 'followLinks'>): Promise<protocol.FileEditResult>;
  glob(pattern: string, options?: FileOptions<protocol.FileGlobParams, 'path' | 'ignore' | 'hidden' | 'gitignore' | 'limit'>): Promise<Omit<protocol.FileGlobResult, 'entries'> & { entries: protocol.FileEntry[] }>;
  search(pattern: string, options?: FileOptions<protocol.FileSearchParams, 'regex' | 'path' | 'glob' | 'ignoreCase' | 'before' | 'after' | 'hidden' | 'gitignore' | 'limit'>): Promise<Omit<protocol.FileSearchResult, 'matches'> & { matches: protocol.FileMatch[] }>;
  snapshot(destination: string, options?: SnapshotOptions): Promise<protocol.SessionSnapshotResult>;
  restore(source: string, options?: SnapshotOptions): Promise<protocol.SessionRestoreResult>;
  /** Any request of the protocol, in this session. */
  request<M extends keyof protocol.Requests>(method: M, params?: Record<string, unknown>, signal?: AbortSignal): Promise<protocol.Requests[M]['result']>;
}

export interface KernelOptions extends Abortable {
  language?: string;
  timeoutS?: number;
  env?: Record<string, string>;
  cwd?: string;
  memoryMb?: number | null;
  onState?: (facts: { state: protocol.KernelState['state']; fault?: protocol.Fault }) => void;
  /** Bytes between cells. */
  onOutput?: (chunk: Buffer, stream: string) => void;
}

export class Kernel {
  private constructor();
  readonly kernelId: string;
  readonly language: string;
  readonly interpreter: string;
  readonly state: protocol.KernelState['state'];
  runCode(code: string, options?: CellOptions): Promise<CellResult>;
  interrupt(): Promise<boolean>;
  restart(): Promise<void>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface ShellOptions extends Abortable {
  argv?: string[];
  mode?: 'pipes' | 'pty';
  rows?: number;
  cols?: number;
  env?: Record<string, string>;
  cwd?: string;
  onOutput?: (chunk: Buffer, stream: string) => void;
  onExit?: (facts: { exitCode?: number; signal?: string; lost: boolean }) => void;
}

export class Shell {
  private constructor();
  readonly shellId: string;
  run(command: string, options?: ShellCommandOptions): Promise<CommandResult>;
  write(data: string | Uint8Array): Promise<void>;
  resize(rows: number, cols: number): Promise<void>;
  signal(name: string): Promise<void>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** One call in a sandbox of its own. */
export function runCode(code: string | Uint8Array, options: Omit<SandboxOptions, keyof Callbacks> & RunCodeOptions & { encoding: 'buffer' }): Promise<BinaryResult>;
export function runCode(code: string | Uint8Array, options?: Omit<SandboxOptions, keyof Callbacks> & RunCodeOptions): Promise<ExecutionResult>;

export function withSandbox<T>(use: (sandbox: Sandbox) => T | Promise<T>): Promise<T>;
export function withSandbox<T>(options: SandboxOptions | undefined, use: (sandbox: Sandbox) => T | Promise<T>): Promise<T>;

export function doctor(): Promise<Omit<protocol.DoctorResult, 'checks'> & { checks: protocol.Check[] }>;
export function info(): Promise<protocol.InitializeResult & { program: string }>;
export function shutdown(mode?: 'kill' | 'drain'): Promise<void>;
