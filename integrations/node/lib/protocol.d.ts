// Made by proto/generate.py from the tables in proto/; do not edit.

/** Bytes: a string, base64, or a blob to be read with blob/read. */
export type Text = string | Base64Text | BlobText;

/** Bytes as base64 (RFC 4648, padded). */
export interface Base64Text {
  base64: string;
}

/** Bytes that the server keeps. */
export interface BlobText {
  blob: { id: string; bytes?: number; sha256?: string; mime?: string };
}

/** The first request. */
export interface InitializeParams {
  /** The major version; this page is 1. 0 to 2147483647. */
  protocolVersion: number;
  /** Who is calling. */
  client: Client;
  /** A process whose end also ends the sidecar, with everything in it. 1 to 4194304. */
  processId?: number;
  /** What the client can do. */
  capabilities?: ClientCapabilities;
  /** Limits that the client chooses. */
  limits?: ClientLimits;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** Who is calling. */
export interface Client {
  /** The client program. */
  name: string;
  /** Its version. */
  version: string;
}

/** What the client can do. */
export interface ClientCapabilities {
  /** The longest line that the client can read. Default: 32768. 4096 to 16777216 bytes. */
  maxLineBytes?: number;
  /** The client sends run/credit for lossless streams. Default: false. */
  credits?: boolean;
}

/** Limits that the client chooses. */
export interface ClientLimits {
  /** Runs at the same time. Default: 64. 1 to 256. */
  runs?: number;
  /** Runs that may wait for a place. Default: 1024. 0 to 65536. */
  queued?: number;
  /** Memory of all boxes together, beside the cap of each; the largest process is killed at it. Refused where the kernel cannot hold it. 16 to 1048576 MiB. */
  memoryMb?: number;
  /** Processes of all boxes together. 8 to 4194304. */
  pids?: number;
}

/** The server's side. */
export interface InitializeResult {
  /** 1. */
  protocolVersion: number;
  /** Grows with each addition. */
  protocolMinor: number;
  /** Who answers. */
  server: Server;
  /** What the server can do. */
  capabilities: ServerCapabilities;
  /** The limits in force. */
  limits: ServerLimits;
  /** A short report on the host; host/doctor has the long one. */
  host?: Record<string, unknown>;
}

/** Who answers. */
export interface Server {
  /** kern-sidecar. */
  name: string;
  /** Its version. */
  version: string;
  /** Its process id. */
  pid: number;
}

/** What the server can do. */
export interface ServerCapabilities {
  /** Names of parts that this build has. */
  features: string[];
  /** Host paths in results are paths of the client's machine. */
  localPaths: boolean;
  /** In the order of their names. */
  languages: Language[];
}

/** A language that a plugin brings. */
export interface Language {
  /** As in run/code's language. */
  name: string;
  /** Gives results and errors beside its output. */
  rich?: boolean;
  /** Can be a kernel. */
  kernel?: boolean;
  /** Can start from a booted interpreter. */
  zygote?: boolean;
  /** A kernel of it can be interrupted without losing its state. */
  interrupt?: boolean;
  /** A kernel of it takes allowInput. */
  input?: boolean;
}

/** The limits in force. */
export interface ServerLimits {
  /** The longest line that the server reads. */
  maxLineInBytes: number;
  /** The longest line that it sends. */
  maxLineBytes: number;
  /** Runs at the same time. */
  runs: number;
  /** Runs that may wait. */
  queued: number;
  /** Blobs and kept output together, before the oldest go. */
  blobBytes: number;
}

/** An empty object. */
export interface NoFields {
}

/** Nothing of its own. */
export interface NoParams {
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** Nothing to tell. */
export interface Nothing {
}

/** How to end. */
export interface ShutdownParams {
  /** drain lets the running calls end; kill ends them now. Default: "kill". */
  mode?: "drain" | "kill";
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** What to cancel; unknown and finished ids are ignored. */
export interface CancelParams {
  /** The id of the request to cancel. */
  id: number | string;
}

/** At most 10 times a second; the last one at the end. */
export interface Progress {
  /** The request's progressToken. */
  token: number | string;
  /** What is being done. */
  phase: string;
  /** Never falls. */
  done: number;
  /** When it is known. */
  total?: number;
  /** For a person. */
  message?: string;
}

/** One line of the log. */
export interface Log {
  /** How bad. */
  level: "error" | "warn" | "info" | "debug" | (string & {});
  /** Stable, in lower snake_case. */
  code: string;
  /** For a person. */
  message: string;
  /** The id of the request or run that it belongs to. */
  parent?: number | string;
}

/** What boxes of the session are like. */
export interface SessionOpenParams {
  /** Chosen by the client; absent: by the server. */
  sessionId?: string;
  /** host, dir:/path, oci:/path[:tag], docker-archive:/path or a registry reference. Default: "host". */
  image?: string;
  /** When to ask the registry; no effect on local images. Default: "missing". */
  pull?: "missing" | "never" | "always";
  /** A directory of the host that stays; absent: a private one, removed at close. */
  workspace?: string;
  /** Where the box sees the workspace. Default: "/workspace". */
  workspaceTarget?: string;
  /** The working directory in the box; absent: the workspace. */
  cwd?: string;
  /** Memory cap of each call; absent: a profile's, else 512. 4 to 1048576 MiB. */
  memoryMb?: number;
  /** CPU cap of each call; absent: a profile's, else none. 10 to 1024000 1/1000 CPU. */
  cpusMilli?: number;
  /** Processes and threads of each call. Default: 256. 1 to 4194304. */
  pids?: number;
  /** Deadline of each call, from the start of its main process. Default: 30000. 1 to 86400000 ms. */
  timeoutMs?: number;
  /** Shares the host's network with the box, 127.0.0.1 and abstract sockets included. Default: false. Can weaken the isolation. */
  network?: boolean;
  /** The only destinations that the box may reach. Can weaken the isolation. */
  egressAllow?: string[];
  /** Further paths of the host. Can weaken the isolation. */
  mounts?: Mount[];
  /** Memory file systems: target to size, at most the memory cap. /tmp has 64m unless named; {} asks for none. */
  tmpfs?: Record<string, string>;
  /** Size of /dev/shm. */
  shmSize?: string;
  /** Environment of every call. */
  env?: Record<string, string>;
  /** Who the code runs as in the box: sandbox, root, a number below 65536, or a name of the image. Can weaken the isolation. */
  user?: string;
  /** Under root: maps the box's user to the workspace's owner where nothing better works. Default: false. Can weaken the isolation. */
  mapOwner?: boolean;
  /** Language to the interpreter's path in the image. */
  interpreters?: Record<string, string>;
  /** Python modules that are imported before a call comes, once for all calls of the session where they can be forked (no threads, processes or open files are left by the import), else in the box of each. Their code is trusted with the session's calls. session/open answers when the first interpreter has them, or fails with preload_failed. Calls with variables, a directory or input of their own import by themselves. */
  preload?: string[];
  /** Named sets of options, later ones win. */
  profiles?: string[];
  /** Capabilities to drop from Docker's 14; what is kept is of use to root in the box only. Default: ["ALL"]. Can weaken the isolation. */
  capDrop?: string[];
  /** untrusted: a stricter system call filter, and no other option may weaken the box. */
  securityProfile?: string;
  /** AppArmor profile of the command; refused where it cannot be put on. */
  apparmor?: string;
  /** false: no memory, CPU and process caps. Default: true. Can weaken the isolation. */
  enforceLimits?: boolean;
  /** Fail with limits_unenforced where the kernel cannot hold a cap. Default: false. */
  requireLimits?: boolean;
  /** Installed packages are read only for the code. Default: true. Can weaken the isolation. */
  depsReadonly?: boolean;
  /** How much of a call's output is kept; the call runs on. Default: 67108864. 1 to 1073741824 bytes. */
  maxOutputBytes?: number;
  /** Report the files that a call changed. Costs two walks of the workspace (about 3 us a file); false costs nothing. Default: true. */
  trackFiles?: boolean;
  /** Size of the workspace that a call may not exceed, with 256 names for each MiB; watched. The kernel's, if the workspace is in memory, a file system of its own that is no larger (with a number of names of its own), or private with a project quota: see effective. 1 to 1048576 MiB. */
  workspaceMaxMb?: number;
  /** memory: a private workspace in memory of exactly workspaceMaxMb, which must be given. The kernel refuses more (ENOSPC); nothing shows at its path on the host; files count as memory of the call that writes them. Default: "disk". */
  workspaceStorage?: "disk" | "memory";
  /** Boxes that are kept ready for the session's next calls, also when it is idle. 0: as many as its calls show to be of use. Default: 0. 0 to 64. */
  prewarm?: number;
  /** How boxes are started. auto: a spare if one is ready, else from the template. spare: one that was ready before its call is claimed; it is made and waited for if there is none. zygote: an interpreter that was booted before, or forked from one (python; such calls of a session share the seed of hash()), where the language and the call allow it, else a spare. template: made for the call. cold: template and box are. start.kind of a result says which it was. Default: "auto". */
  start?: "auto" | "cold" | "template" | "spare" | "zygote";
  /** A box for each call, or one that stays. Default: "fresh". */
  box?: "fresh" | "resident";
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** A path of the host in the box. */
export interface Mount {
  /** A path of the host. */
  source: string;
  /** Where the box sees it. */
  target: string;
  /** Read only or writable. */
  mode: "ro" | "rw";
}

/** The session. */
export interface SessionOpenResult {
  /** The session. */
  sessionId: string;
  /** Its path on the host; an empty directory when it is in memory. */
  workspace: string;
  /** Its path in the box. */
  workspaceTarget: string;
  /** What the boxes are made of. */
  image: SessionImage;
  /** The limits in force. */
  effective: Effective;
  /** What turned out differently than one might think. */
  notes: Note[];
}

/** What the boxes are made of. */
export interface SessionImage {
  /** As asked for. */
  ref: string;
  /** Of a registry or OCI image. */
  digest?: string;
  /** Language to the path that runs it. */
  interpreters: Record<string, string>;
}

/** The limits in force. */
export interface Effective {
  /** Memory of a call. */
  memoryMb: EffectiveLimit;
  /** Processes of a call. */
  pids: EffectiveLimit;
  /** CPU of a call. */
  cpusMilli: EffectiveLimit;
  /** Size of the workspace. */
  workspaceMaxMb?: EffectiveLimit;
  /** How user ids are mapped. */
  ids?: Record<string, unknown>;
}

/** A limit as it really is. */
export interface EffectiveLimit {
  /** The cap; absent: none. */
  value?: unknown;
  /** Who holds it. */
  enforced: "kernel" | "polled" | "none" | (string & {});
  /** Why not the kernel, or by which means of it. */
  reason?: string;
}

/** Something worth knowing. */
export interface Note {
  /** Stable, in lower snake_case. */
  code: string;
  /** For a person. */
  message: string;
}

/** Which session. */
export interface SessionHandleParams {
  /** The session. */
  sessionId: string;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** The open sessions. */
export interface SessionListResult {
  /** In the order of opening. */
  sessions: SessionItem[] | BlobText;
}

/** An open session. */
export interface SessionItem {
  /** The session. */
  sessionId: string;
  /** Its path on the host. */
  workspace?: string;
  /** Its path in the box. */
  workspaceTarget?: string;
  /** Its image. */
  image?: string;
  /** Runs of it, waiting ones included. */
  runs?: number;
  /** Its kernels. */
  kernels?: number;
  /** Its shells. */
  shells?: number;
}

/** Prepares the session's file system. */
export interface SessionSetupParams {
  /** The session. */
  sessionId: string;
  /** A shell command, with the network on. A leading pip install or npm install of packages goes to .deps. */
  command: string;
  /** Absent: the larger of the session's and 120 s. 1 to 86400000 ms. */
  timeoutMs?: number;
  /** As in run/code. Default: "off". */
  stream?: "off" | "live" | "lossless";
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** An ExecutionResult, and: */
export interface SessionSetupResult {
  /** The run. */
  runId: string;
  /** The code's own bytes only. */
  stdout: Text;
  /** Likewise. */
  stderr: Text;
  /** Of the main process; 128+n when signal n ended it. */
  exitCode: number;
  /** That signal, without SIG. */
  signal?: string;
  /** From the start of the main process. */
  durationMs: number;
  /** Exit code 0 and no fault. */
  success: boolean;
  /** What the sandbox did to the call. */
  fault?: Fault;
  /** About the box. */
  runtimeNotes: RuntimeNote[] | BlobText;
  /** Output beyond maxOutputBytes was not kept. */
  truncated: boolean;
  /** All that was written. */
  stdoutBytes: number;
  /** All that was written. */
  stderrBytes: number;
  /** Regular files and links that changed between start and end, whoever changed them, bytewise by path. Empty with the note files_untracked when there are more than 500,000 names, or too many for all calls together. */
  files: ChangedFile[] | BlobText;
  /** There were more. */
  filesTruncated?: boolean;
  /** The final view: updates applied. */
  results: RichResult[] | BlobText;
  /** Whether results and error can be complete; closed: the code has closed the channel and gone on. */
  resultChannel: "ok" | "closed" | "corrupt" | "limit" | (string & {});
  /** The exception that ended the code. */
  error?: CodeError | BlobText;
  /** What the call used. */
  usage: Usage;
  /** How the box was started. */
  start: Start;
  /** Model-safe text, when asked for. */
  rendered?: Text;
  /** The same setup had been done before. */
  cached: boolean;
}

/** What the sandbox did to the call, from kernel facts only. */
export interface Fault {
  /** What happened; the first of this list that did. */
  type: "cancelled" | "timeout" | "oom" | "escape_blocked" | "exec_failed" | "disk" | "killed" | (string & {});
  /** For a person. */
  message: string;
  /** The system call that was refused. */
  syscall?: string;
  /** The program that made it. */
  process?: string;
  /** The limit that was hit. */
  limit?: string;
  /** The set-up step that failed. */
  step?: string;
}

/** Something about the box, not about the code. */
export interface RuntimeNote {
  /** Stable, in lower snake_case. */
  code: string;
  /** For a person. */
  message: string;
}

/** A file of the workspace that changed, whoever did it. */
export interface ChangedFile {
  /** Relative to the workspace. */
  path?: string;
  /** Instead of path, when it is not UTF-8. */
  pathBase64?: string;
  /** Between the start and the end of the call. modified: the content, or only times, mode, owner or number of names (compare sha256). */
  change: "created" | "modified" | "deleted" | (string & {});
  /** At the end; absent for deleted files. */
  size?: number;
  /** Guessed from name and content. */
  mime?: string;
  /** Of the content, for small files. */
  sha256?: string;
}

/** A value, figure or display of the code; a claim of the code. */
export interface RichResult {
  /** Shown, or the value of the last expression. */
  kind: "display" | "value" | "figure" | "update" | (string & {});
  /** By MIME type; image data is base64, JSON is JSON text. */
  data: Record<string, Text>;
  /** By MIME type. */
  metadata?: Record<string, unknown>;
  /** For later updates. */
  displayId?: string;
  /** Order within the run. */
  seq: number;
  /** Where in the output it came. */
  at: ResultPlace;
  /** Forms that were left out. */
  dropped?: DroppedData[];
}

/** Where in the output it came. */
export interface ResultPlace {
  /** Bytes of stdout before it. */
  stdout: number;
  /** Bytes of stderr before it. */
  stderr: number;
}

/** A form of a result that was left out. */
export interface DroppedData {
  /** The form that was dropped. */
  mime: string;
  /** Why. */
  reason: string;
}

/** The exception that ended the code; a claim of the code. */
export interface CodeError {
  /** Its class. */
  name: string;
  /** Its message. */
  message: string;
  /** When it happened: compile, run; display and thread: beside the code, which went on. */
  phase: string;
  /** The innermost last. */
  frames: Frame[];
  /** As the language prints it; empty in a cause. */
  traceback: Text;
  /** What it came from. */
  cause?: CodeError;
}

/** A place on the call stack. */
export interface Frame {
  /** File name. */
  file: string;
  /** From 1. */
  line: number;
  /** From 1. */
  column?: number;
  /** Function name. */
  function: string;
  /** The line itself. */
  source?: string;
}

/** What the call used. */
export interface Usage {
  /** Time by the clock. */
  wallUs: number;
  /** CPU time in user mode. */
  cpuUserUs: number;
  /** CPU time in the kernel. */
  cpuSystemUs: number;
  /** Most memory at one time. */
  memoryPeakBytes: number;
  /** Most processes at one time. */
  processesPeak?: number;
  /** Forks refused by the cap. */
  pidsRefused?: number;
  /** System calls refused as escapes. */
  syscallsRefused?: number;
  /** Processes killed for memory. */
  oomKills?: number;
  /** Read from disks. */
  ioReadBytes?: number;
  /** Written to disks. */
  ioWriteBytes?: number;
}

/** How the box was started. */
export interface Start {
  /** How the box was started. */
  kind: "cold" | "template" | "spare" | "zygote" | (string & {});
  /** Until its main process was. */
  us: number;
}

/** Packs the workspace as .tar.gz, to path (0600; replaces a regular file when it is whole) or into a blob. What restore would not take is not made: 500000 names, 4095 bytes a path, 256 directories deep, 16 GiB of content, files of 1 TiB with their holes. */
export interface SessionSnapshotParams {
  /** The session. */
  sessionId: string;
  /** The archive on the host, outside of workspaces and writable mounts. */
  path?: string;
  /** Symbolic links: none, or those with a relative target inside of the workspace. snapshot skips the others, restore refuses the archive. Default: "refuse". */
  links?: "refuse" | "inside";
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** The archive. */
export interface SessionSnapshotResult {
  /** Of the archive. */
  bytes: number;
  /** In it. */
  entries: number;
  /** Of the archive. */
  sha256: string;
  /** What was left out, the first 10000. */
  skipped: Skipped[] | BlobText;
  /** How many more were. */
  skippedMore?: number;
  /** The archive, when no path was given. */
  blob?: Text;
}

/** A name that a snapshot left out. */
export interface Skipped {
  /** In the workspace. */
  path?: string;
  /** Instead of path, when it is not UTF-8. */
  pathBase64?: string;
  /** Why it is not in the archive; changed: if it is there, somebody wrote to it meanwhile. */
  reason: "symlink" | "symlink_outside" | "device" | "fifo" | "socket" | "unreadable" | "mount_point" | "name_too_long" | "too_large" | "changed" | (string & {});
}

/** Replaces the workspace by the content of a .tar, .tar.gz or .tar.zst, all of it or nothing. Refused: what snapshot would not make (its limits; workspaceMaxMb when that is less), names that are absolute, have a part ".." or come twice, links that leave the workspace, devices, FIFOs, more than 200 times the packed size above 1 GiB. */
export interface SessionRestoreParams {
  /** The session. */
  sessionId: string;
  /** The archive on the host, outside of workspaces and writable mounts. */
  path?: string;
  /** Symbolic links: none, or those with a relative target inside of the workspace. snapshot skips the others, restore refuses the archive. Default: "refuse". */
  links?: "refuse" | "inside";
  /** The archive itself: base64, or a blob. */
  blob?: Text;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** What was restored. */
export interface SessionRestoreResult {
  /** In the archive. */
  entries: number;
  /** Of content. */
  bytes: number;
  /** deps_ignored: the archive's .deps is no plain directory, so calls have no packages. */
  notes: Note[];
}

/** A session that the sidecar ended by itself. */
export interface SessionClosed {
  /** The session. */
  sessionId: string;
  /** Why the sidecar ended it. */
  reason: string;
}

/** Code to run in a fresh box. */
export interface RunCodeParams {
  /** Chosen by the client; absent: by the server. */
  runId?: string;
  /** The session; absent: a throw-away one. */
  sessionId?: string;
  /** What the throw-away session is like. */
  session?: SessionParams;
  /** The language of the code. Default: "python". */
  language?: string;
  /** The program. */
  code: Text;
  /** Its name in messages and tracebacks. */
  filename?: string;
  /** The number of its first line there. 1 to 2147483647. */
  firstLine?: number;
  /** What the program finds behind its name. */
  args?: string[];
  /** Deadline from the start of the main process; absent: the session's. 1 to 86400000 ms. */
  timeoutMs?: number;
  /** Added to the session's environment. */
  env?: Record<string, string>;
  /** Working directory; absent: the session's. */
  cwd?: string;
  /** What the program reads, then end of file. */
  stdin?: Text;
  /** Keeps stdin open for run/stdin. Default: false. */
  interactive?: boolean;
  /** Who the code runs as in the box. Can weaken the isolation. */
  user?: string;
  /** Absent: the session's. 4 to 1048576 MiB. */
  memoryMb?: number;
  /** Absent: the session's. 10 to 1024000 1/1000 CPU. */
  cpusMilli?: number;
  /** Absent: the session's. 1 to 4194304. */
  pids?: number;
  /** How much output is kept; absent: the session's. 1 to 1073741824 bytes. */
  maxOutputBytes?: number;
  /** Report changed files; absent: the session's. */
  trackFiles?: boolean;
  /** One pipe for stdout and stderr, all in `stdout`, in true order. Default: false. */
  merge?: boolean;
  /** utf8 replaces invalid bytes, auto turns to base64 when there are any. Default: "utf8". */
  encoding?: "utf8" | "auto" | "base64";
  /** run/output while it runs. Default: "off". */
  stream?: "off" | "live" | "lossless";
  /** Ask for `rendered`. */
  render?: RenderOptions;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** What boxes of a session are like. */
export interface SessionParams {
  /** Chosen by the client; absent: by the server. */
  sessionId?: string;
  /** host, dir:/path, oci:/path[:tag], docker-archive:/path or a registry reference. Default: "host". */
  image?: string;
  /** When to ask the registry; no effect on local images. Default: "missing". */
  pull?: "missing" | "never" | "always";
  /** A directory of the host that stays; absent: a private one, removed at close. */
  workspace?: string;
  /** Where the box sees the workspace. Default: "/workspace". */
  workspaceTarget?: string;
  /** The working directory in the box; absent: the workspace. */
  cwd?: string;
  /** Memory cap of each call; absent: a profile's, else 512. 4 to 1048576 MiB. */
  memoryMb?: number;
  /** CPU cap of each call; absent: a profile's, else none. 10 to 1024000 1/1000 CPU. */
  cpusMilli?: number;
  /** Processes and threads of each call. Default: 256. 1 to 4194304. */
  pids?: number;
  /** Deadline of each call, from the start of its main process. Default: 30000. 1 to 86400000 ms. */
  timeoutMs?: number;
  /** Shares the host's network with the box, 127.0.0.1 and abstract sockets included. Default: false. Can weaken the isolation. */
  network?: boolean;
  /** The only destinations that the box may reach. Can weaken the isolation. */
  egressAllow?: string[];
  /** Further paths of the host. Can weaken the isolation. */
  mounts?: Mount[];
  /** Memory file systems: target to size, at most the memory cap. /tmp has 64m unless named; {} asks for none. */
  tmpfs?: Record<string, string>;
  /** Size of /dev/shm. */
  shmSize?: string;
  /** Environment of every call. */
  env?: Record<string, string>;
  /** Who the code runs as in the box: sandbox, root, a number below 65536, or a name of the image. Can weaken the isolation. */
  user?: string;
  /** Under root: maps the box's user to the workspace's owner where nothing better works. Default: false. Can weaken the isolation. */
  mapOwner?: boolean;
  /** Language to the interpreter's path in the image. */
  interpreters?: Record<string, string>;
  /** Python modules that are imported before a call comes, once for all calls of the session where they can be forked (no threads, processes or open files are left by the import), else in the box of each. Their code is trusted with the session's calls. session/open answers when the first interpreter has them, or fails with preload_failed. Calls with variables, a directory or input of their own import by themselves. */
  preload?: string[];
  /** Named sets of options, later ones win. */
  profiles?: string[];
  /** Capabilities to drop from Docker's 14; what is kept is of use to root in the box only. Default: ["ALL"]. Can weaken the isolation. */
  capDrop?: string[];
  /** untrusted: a stricter system call filter, and no other option may weaken the box. */
  securityProfile?: string;
  /** AppArmor profile of the command; refused where it cannot be put on. */
  apparmor?: string;
  /** false: no memory, CPU and process caps. Default: true. Can weaken the isolation. */
  enforceLimits?: boolean;
  /** Fail with limits_unenforced where the kernel cannot hold a cap. Default: false. */
  requireLimits?: boolean;
  /** Installed packages are read only for the code. Default: true. Can weaken the isolation. */
  depsReadonly?: boolean;
  /** How much of a call's output is kept; the call runs on. Default: 67108864. 1 to 1073741824 bytes. */
  maxOutputBytes?: number;
  /** Report the files that a call changed. Costs two walks of the workspace (about 3 us a file); false costs nothing. Default: true. */
  trackFiles?: boolean;
  /** Size of the workspace that a call may not exceed, with 256 names for each MiB; watched. The kernel's, if the workspace is in memory, a file system of its own that is no larger (with a number of names of its own), or private with a project quota: see effective. 1 to 1048576 MiB. */
  workspaceMaxMb?: number;
  /** memory: a private workspace in memory of exactly workspaceMaxMb, which must be given. The kernel refuses more (ENOSPC); nothing shows at its path on the host; files count as memory of the call that writes them. Default: "disk". */
  workspaceStorage?: "disk" | "memory";
  /** Boxes that are kept ready for the session's next calls, also when it is idle. 0: as many as its calls show to be of use. Default: 0. 0 to 64. */
  prewarm?: number;
  /** How boxes are started. auto: a spare if one is ready, else from the template. spare: one that was ready before its call is claimed; it is made and waited for if there is none. zygote: an interpreter that was booted before, or forked from one (python; such calls of a session share the seed of hash()), where the language and the call allow it, else a spare. template: made for the call. cold: template and box are. start.kind of a result says which it was. Default: "auto". */
  start?: "auto" | "cold" | "template" | "spare" | "zygote";
  /** A box for each call, or one that stays. Default: "fresh". */
  box?: "fresh" | "resident";
}

/** Ask for `rendered`. */
export interface RenderOptions {
  /** How many characters `rendered` may have. 500 to 262144. */
  maxChars: number;
}

/** What became of a run. */
export interface ExecutionResult {
  /** The run. */
  runId: string;
  /** The code's own bytes only. */
  stdout: Text;
  /** Likewise. */
  stderr: Text;
  /** Of the main process; 128+n when signal n ended it. */
  exitCode: number;
  /** That signal, without SIG. */
  signal?: string;
  /** From the start of the main process. */
  durationMs: number;
  /** Exit code 0 and no fault. */
  success: boolean;
  /** What the sandbox did to the call. */
  fault?: Fault;
  /** About the box. */
  runtimeNotes: RuntimeNote[] | BlobText;
  /** Output beyond maxOutputBytes was not kept. */
  truncated: boolean;
  /** All that was written. */
  stdoutBytes: number;
  /** All that was written. */
  stderrBytes: number;
  /** Regular files and links that changed between start and end, whoever changed them, bytewise by path. Empty with the note files_untracked when there are more than 500,000 names, or too many for all calls together. */
  files: ChangedFile[] | BlobText;
  /** There were more. */
  filesTruncated?: boolean;
  /** The final view: updates applied. */
  results: RichResult[] | BlobText;
  /** Whether results and error can be complete; closed: the code has closed the channel and gone on. */
  resultChannel: "ok" | "closed" | "corrupt" | "limit" | (string & {});
  /** The exception that ended the code. */
  error?: CodeError | BlobText;
  /** What the call used. */
  usage: Usage;
  /** How the box was started. */
  start: Start;
  /** Model-safe text, when asked for. */
  rendered?: Text;
}

/** A program to run in a fresh box. */
export interface RunArgvParams {
  /** Chosen by the client; absent: by the server. */
  runId?: string;
  /** The session; absent: a throw-away one. */
  sessionId?: string;
  /** What the throw-away session is like. */
  session?: SessionParams;
  /** The program, searched in PATH when it has no slash, and its arguments. */
  argv: string[];
  /** Deadline from the start of the main process; absent: the session's. 1 to 86400000 ms. */
  timeoutMs?: number;
  /** Added to the session's environment. */
  env?: Record<string, string>;
  /** Working directory; absent: the session's. */
  cwd?: string;
  /** What the program reads, then end of file. */
  stdin?: Text;
  /** Keeps stdin open for run/stdin. Default: false. */
  interactive?: boolean;
  /** Who the code runs as in the box. Can weaken the isolation. */
  user?: string;
  /** Absent: the session's. 4 to 1048576 MiB. */
  memoryMb?: number;
  /** Absent: the session's. 10 to 1024000 1/1000 CPU. */
  cpusMilli?: number;
  /** Absent: the session's. 1 to 4194304. */
  pids?: number;
  /** How much output is kept; absent: the session's. 1 to 1073741824 bytes. */
  maxOutputBytes?: number;
  /** Report changed files; absent: the session's. */
  trackFiles?: boolean;
  /** One pipe for stdout and stderr, all in `stdout`, in true order. Default: false. */
  merge?: boolean;
  /** utf8 replaces invalid bytes, auto turns to base64 when there are any. Default: "utf8". */
  encoding?: "utf8" | "auto" | "base64";
  /** run/output while it runs. Default: "off". */
  stream?: "off" | "live" | "lossless";
  /** Ask for `rendered`. */
  render?: RenderOptions;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** The main process is running. */
export interface RunStarted {
  /** The run. */
  runId: string;
  /** The request that it belongs to. */
  id: number | string;
  /** Its session. */
  sessionId?: string;
  /** Its kernel. */
  kernelId?: string;
  /** Its shell. */
  shellId?: string;
}

/** A piece of output. */
export interface RunOutput {
  /** The run. */
  runId: string;
  /** From 0; one count for all of a run's output and displays. */
  seq: number;
  /** Which. */
  stream: "stdout" | "stderr" | (string & {});
  /** Bytes of the stream before it; a gap shows what was dropped. */
  offset: number;
  /** Its own raw bytes. */
  bytes: number;
  /** The bytes as text; a code point is never split. */
  text?: string;
  /** Instead of text. */
  base64?: string;
}

/** A rich result while the code runs. */
export interface RunDisplay {
  /** The run. */
  runId: string;
  /** As in run/output. */
  seq: number;
  /** What to do. */
  op: "display" | "update" | "clear" | "value" | (string & {});
  /** By MIME type. */
  data?: Record<string, Text>;
  /** By MIME type. */
  metadata?: Record<string, unknown>;
  /** What to update. */
  displayId?: string;
  /** Clear only when the next one comes. */
  wait?: boolean;
}

/** The code waits for a line. */
export interface InputWanted {
  /** The run; answer with run/stdin. */
  runId: string;
  /** What to show. */
  prompt: string;
  /** Do not show what is typed. */
  password: boolean;
}

/** Input for an interactive run. */
export interface RunStdinParams {
  /** The run. */
  runId: string;
  /** What the program reads next. */
  text?: string;
  /** The same as bytes. */
  base64?: string;
  /** That was all. Default: false. */
  eof?: boolean;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** A signal for the main process. */
export interface RunSignalParams {
  /** The run. */
  runId: string;
  /** Without SIG: TERM, KILL, INT, … */
  signal: string;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** Opens the window of a lossless stream. */
export interface RunCreditParams {
  /** The run. */
  runId: string;
  /** Raw bytes that the client is ready to take. 1 to 1073741824 bytes. */
  bytes: number;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** A part of a run's kept output. */
export interface OutputReadParams {
  /** The run. */
  runId: string;
  /** Which. */
  stream: "stdout" | "stderr";
  /** Where to start. Default: 0. 0 to 9007199254740992 bytes. */
  offset?: number;
  /** How much at most; absent: as much as a line takes. 1 to 1073741824 bytes. */
  maxBytes?: number;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** text or base64. */
export interface OutputReadResult {
  /** The bytes, when they are UTF-8. */
  text?: string;
  /** The bytes otherwise. */
  base64?: string;
  /** Where to go on. */
  nextOffset: number;
  /** The run has ended and that was the end. */
  eof: boolean;
  /** Bytes before offset that are no longer kept. */
  droppedBefore: number;
}

/** A part of a blob. */
export interface BlobReadParams {
  /** The blob. */
  id: string;
  /** Where to start. Default: 0. 0 to 9007199254740992 bytes. */
  offset?: number;
  /** How much at most; absent: as much as a line takes. 1 to 1073741824 bytes. */
  length?: number;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** text or base64. */
export interface BlobReadResult {
  /** The bytes, when they are UTF-8. */
  text?: string;
  /** The bytes otherwise. */
  base64?: string;
  /** Where to go on. */
  nextOffset: number;
  /** That was the end. */
  eof: boolean;
}

/** Makes a blob or appends to one. */
export interface BlobWriteParams {
  /** The blob to append to; absent: a new one. */
  id?: string;
  /** What to append. */
  text?: string;
  /** What to append, as bytes. */
  base64?: string;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** The blob so far. */
export interface BlobWriteResult {
  /** The blob. */
  id: string;
  /** Its size now. */
  bytes: number;
}

/** Which blob. */
export interface BlobFreeParams {
  /** The blob. */
  id: string;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** An interpreter that keeps its state. */
export interface KernelOpenParams {
  /** Chosen by the client; absent: by the server. */
  kernelId?: string;
  /** The session. */
  sessionId: string;
  /** Its language. Default: "python". */
  language?: string;
  /** Deadline of each cell; absent: the session's. 1 to 86400000 ms. */
  timeoutMs?: number;
  /** Added to the session's environment. */
  env?: Record<string, string>;
  /** Working directory; absent: the session's. */
  cwd?: string;
  /** Cap of the kernel and all that its cells start; absent: the session's. 4 to 1048576 MiB. */
  memoryMb?: number;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** The kernel. */
export interface KernelOpenResult {
  /** The kernel. */
  kernelId: string;
  /** Its language. */
  language: string;
  /** Its path in the image. */
  interpreter: string;
}

/** A cell. */
export interface KernelRunParams {
  /** Chosen by the client; absent: by the server. */
  runId?: string;
  /** The kernel. */
  kernelId: string;
  /** The cell. */
  code: Text;
  /** Deadline: the cell is interrupted (SIGINT, and again after 500 ms), after 1 s the kernel is killed; absent: the kernel's. 1 to 86400000 ms. */
  timeoutMs?: number;
  /** The cell has an open stdin, which run/stdin writes to; what it asks for comes as run/inputWanted. Else its stdin is at its end. Default: false. */
  allowInput?: boolean;
  /** As in run/code. Default: "off". */
  stream?: "off" | "live" | "lossless";
  /** As in run/code. Default: "utf8". */
  encoding?: "utf8" | "auto" | "base64";
  /** Its name in messages; absent: [cell N]. */
  filename?: string;
  /** Ask for `rendered`. */
  render?: CellRenderOptions;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** Ask for `rendered`. */
export interface CellRenderOptions {
  /** How many characters `rendered` may have. 500 to 262144. */
  maxChars: number;
}

/** An ExecutionResult, and: */
export interface KernelRunResult {
  /** The run. */
  runId: string;
  /** The code's own bytes only. */
  stdout: Text;
  /** Likewise. */
  stderr: Text;
  /** Of the main process; 128+n when signal n ended it. */
  exitCode: number;
  /** That signal, without SIG. */
  signal?: string;
  /** From the start of the main process. */
  durationMs: number;
  /** Exit code 0 and no fault. */
  success: boolean;
  /** What the sandbox did to the call. */
  fault?: Fault;
  /** About the box. */
  runtimeNotes: RuntimeNote[] | BlobText;
  /** Output beyond maxOutputBytes was not kept. */
  truncated: boolean;
  /** All that was written. */
  stdoutBytes: number;
  /** All that was written. */
  stderrBytes: number;
  /** Regular files and links that changed between start and end, whoever changed them, bytewise by path. Empty with the note files_untracked when there are more than 500,000 names, or too many for all calls together. */
  files: ChangedFile[] | BlobText;
  /** There were more. */
  filesTruncated?: boolean;
  /** The final view: updates applied. */
  results: RichResult[] | BlobText;
  /** Whether results and error can be complete; closed: the code has closed the channel and gone on. */
  resultChannel: "ok" | "closed" | "corrupt" | "limit" | (string & {});
  /** The exception that ended the code. */
  error?: CodeError | BlobText;
  /** What the call used. */
  usage: Usage;
  /** How the box was started. */
  start: Start;
  /** Model-safe text, when asked for. */
  rendered?: Text;
  /** How the cell ended; a claim unless dead. */
  cellStatus: "ok" | "error" | "interrupted" | "dead" | (string & {});
  /** From 1. */
  executionCount?: number;
  /** The kernel lives on. */
  stateKept: boolean;
}

/** Which kernel. */
export interface KernelInterruptParams {
  /** The kernel. */
  kernelId: string;
  /** Only when this run is the one. */
  runId?: string;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** At once. */
export interface KernelInterruptResult {
  /** Something was running. */
  running: boolean;
}

/** Which kernel. */
export interface KernelHandleParams {
  /** The kernel. */
  kernelId: string;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** The kernels. */
export interface KernelListResult {
  /** In the order of opening. */
  kernels: KernelItem[] | BlobText;
}

/** A kernel. */
export interface KernelItem {
  /** The kernel. */
  kernelId: string;
  /** Its session. */
  sessionId: string;
  /** Its language. */
  language: string;
  /** What it is doing. */
  state: "idle" | "busy" | "dead" | (string & {});
}

/** A kernel changed its state. */
export interface KernelState {
  /** The kernel. */
  kernelId: string;
  /** What it does now. */
  state: "idle" | "busy" | "dead" | (string & {});
  /** Why it is dead. */
  fault?: Fault;
}

/** Bytes between cells. */
export interface KernelOutput {
  /** The kernel. */
  kernelId: string;
  /** Which. */
  stream: "stdout" | "stderr" | (string & {});
  /** The bytes as text; a code point is never split. */
  text?: string;
  /** Instead of text. */
  base64?: string;
}

/** A shell that keeps its state. */
export interface ShellOpenParams {
  /** Chosen by the client; absent: by the server. */
  shellId?: string;
  /** The session. */
  sessionId: string;
  /** The shell; absent: bash, else sh. Of mode pipes one word: bash, sh, dash or ash, or a path to one of them. */
  argv?: string[];
  /** Commands with results, or a terminal. Default: "pipes". */
  mode?: "pipes" | "pty";
  /** Of the terminal. Default: 24. 1 to 1000 lines. */
  rows?: number;
  /** Of the terminal. Default: 80. 1 to 1000 columns. */
  cols?: number;
  /** Added to the session's environment. TERM of a terminal: xterm-256color. */
  env?: Record<string, string>;
  /** Working directory; absent: the session's. */
  cwd?: string;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** The shell. */
export interface ShellOpenResult {
  /** The shell. */
  shellId: string;
}

/** A command. */
export interface ShellRunParams {
  /** Chosen by the client; absent: by the server. */
  runId?: string;
  /** The shell. */
  shellId: string;
  /** What a person would type. */
  command: Text;
  /** What the command reads; absent: nothing. */
  stdin?: Text;
  /** Deadline: the job is interrupted (SIGINT, and again after 500 ms), after 1 s the shell is killed; absent: the session's. 1 to 86400000 ms. */
  timeoutMs?: number;
  /** As in run/code. Default: "off". */
  stream?: "off" | "live" | "lossless";
  /** As in run/code. Default: false. */
  merge?: boolean;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** An ExecutionResult, and: */
export interface ShellRunResult {
  /** The run. */
  runId: string;
  /** The code's own bytes only. */
  stdout: Text;
  /** Likewise. */
  stderr: Text;
  /** Of the main process; 128+n when signal n ended it. */
  exitCode: number;
  /** That signal, without SIG. */
  signal?: string;
  /** From the start of the main process. */
  durationMs: number;
  /** Exit code 0 and no fault. */
  success: boolean;
  /** What the sandbox did to the call. */
  fault?: Fault;
  /** About the box. */
  runtimeNotes: RuntimeNote[] | BlobText;
  /** Output beyond maxOutputBytes was not kept. */
  truncated: boolean;
  /** All that was written. */
  stdoutBytes: number;
  /** All that was written. */
  stderrBytes: number;
  /** Regular files and links that changed between start and end, whoever changed them, bytewise by path. Empty with the note files_untracked when there are more than 500,000 names, or too many for all calls together. */
  files: ChangedFile[] | BlobText;
  /** There were more. */
  filesTruncated?: boolean;
  /** The final view: updates applied. */
  results: RichResult[] | BlobText;
  /** Whether results and error can be complete; closed: the code has closed the channel and gone on. */
  resultChannel: "ok" | "closed" | "corrupt" | "limit" | (string & {});
  /** The exception that ended the code. */
  error?: CodeError | BlobText;
  /** What the call used. */
  usage: Usage;
  /** How the box was started. */
  start: Start;
  /** Model-safe text, when asked for. */
  rendered?: Text;
  /** The shell lives on. */
  stateKept: boolean;
}

/** Input for a terminal. */
export interface ShellWriteParams {
  /** The shell. */
  shellId: string;
  /** What to type. */
  text?: string;
  /** The same as bytes. */
  base64?: string;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** The terminal's new size. */
export interface ShellResizeParams {
  /** The shell. */
  shellId: string;
  /** Of the terminal. 1 to 1000 lines. */
  rows: number;
  /** Of the terminal. 1 to 1000 columns. */
  cols: number;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** A signal for the job in front. */
export interface ShellSignalParams {
  /** The shell. */
  shellId: string;
  /** Without SIG. */
  signal: string;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** Which shell. */
export interface ShellHandleParams {
  /** The shell. */
  shellId: string;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** Bytes outside any command; everything of a terminal. */
export interface ShellOutput {
  /** The shell. */
  shellId: string;
  /** Which. */
  stream: "stdout" | "stderr" | (string & {});
  /** The bytes as text; a code point is never split. */
  text?: string;
  /** Instead of text. */
  base64?: string;
}

/** A shell ended; it is not restarted. */
export interface ShellExited {
  /** The shell. */
  shellId: string;
  /** Its exit code. */
  exitCode: number;
  /** What killed it, without SIG. */
  signal?: string;
}

/** What to read. */
export interface FileReadParams {
  /** The session. */
  sessionId: string;
  /** Relative to the workspace, or absolute as the box or else as the host sees it. */
  path?: string;
  /** Instead of path, when it is not UTF-8. */
  pathBase64?: string;
  /** Follow symbolic links, up to 40, that are relative and stay inside; else a link is path_escape. Default: false. */
  followLinks?: boolean;
  /** Where to start; behind the end there is nothing to read, and eof. 0 to 9007199254740992 bytes. */
  offset?: number;
  /** How much at most; more than 64 MiB at once is too_large. 1 to 9007199254740992 bytes. */
  length?: number;
  /** By lines instead. */
  lines?: Lines;
  /** utf8 replaces invalid bytes, auto gives base64 when there are any (also when a range cuts a character). Default: "auto". */
  encoding?: "utf8" | "auto" | "base64";
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** Some lines of a file. A line ends behind its LF; the last one needs none. */
export interface Lines {
  /** From 1. 1 to 9007199254740992. */
  start: number;
  /** How many at most. 1 to 9007199254740992. */
  count: number;
}

/** text, base64 or blob. */
export interface FileReadResult {
  /** The content, when it is UTF-8. A byte order mark is part of it. */
  text?: string;
  /** The content otherwise. */
  base64?: string;
  /** The content, when it does not fit a line. */
  blob?: unknown;
  /** Of the file. */
  size: number;
  /** That was the end. */
  eof: boolean;
  /** Changes with the content. Up to 1 MiB it is made of the bytes, else of inode, size and times. */
  etag: string;
  /** By the name's extension, else by the first bytes. */
  mime?: string;
  /** Of the file, by its first 64 KiB: UTF-16 by its byte order mark; binary has a NUL or is not UTF-8. */
  encoding: "utf-8" | "utf-16le" | "utf-16be" | "binary" | (string & {});
  /** With lines: the first one that was asked for. */
  startLine?: number;
  /** With lines: the last one that is in; startLine - 1 when there is none. */
  endLine?: number;
  /** With lines: of the file; absent when it is longer than 256 MiB. */
  totalLines?: number;
}

/** What to write. */
export interface FileWriteParams {
  /** The session. */
  sessionId: string;
  /** Relative to the workspace, or absolute as the box or else as the host sees it. */
  path?: string;
  /** Instead of path, when it is not UTF-8. */
  pathBase64?: string;
  /** Follow symbolic links, up to 40, that are relative and stay inside; else a link is path_escape. Default: false. */
  followLinks?: boolean;
  /** The new content; a blob may have up to 64 MiB. */
  content: Text;
  /** An old file: replace it whole (other names of it keep the old content), fail, or append to it. Default: "replace". */
  ifExists?: "replace" | "fail" | "append";
  /** Fail with changed when the file is not there, or its etag is another one. */
  ifMatch?: string;
  /** Make missing directories (0755). Default: true. */
  mkdirs?: boolean;
  /** Permission bits of a new file, 0644 when absent; an old one keeps its own. 0 to 511. */
  mode?: number;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** The file now. */
export interface FileWriteResult {
  /** Of the file now. */
  size: number;
  /** Changes with the content. Up to 1 MiB it is made of the bytes, else of inode, size and times. */
  etag: string;
  /** It was not there before. */
  created: boolean;
}

/** Which file. */
export interface FilePathParams {
  /** The session. */
  sessionId: string;
  /** Relative to the workspace, or absolute as the box or else as the host sees it. */
  path?: string;
  /** Instead of path, when it is not UTF-8. */
  pathBase64?: string;
  /** Follow symbolic links, up to 40, that are relative and stay inside; else a link is path_escape. Default: false. */
  followLinks?: boolean;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** The file. Without followLinks a symbolic link at the end of the path is told as what it is. */
export interface FileStatResult {
  /** What it is. */
  type: "file" | "directory" | "symlink" | "fifo" | "socket" | "device" | (string & {});
  /** Its size. */
  size: number;
  /** Since 1970. */
  mtimeMs: number;
  /** Permission bits. */
  mode: number;
  /** Of a regular file that the box's user may read; as in file/read. */
  etag?: string;
  /** Of a regular file: by the name's extension, else by the first bytes. */
  mime?: string;
}

/** Which directory. */
export interface FileListParams {
  /** The session. */
  sessionId: string;
  /** A directory; the workspace when absent. */
  path?: string;
  /** Instead of path, when it is not UTF-8. */
  pathBase64?: string;
  /** Follow symbolic links, up to 40, that are relative and stay inside; else a link is path_escape. Default: false. */
  followLinks?: boolean;
  /** With everything below, but not through symbolic links and mount points. Default: false. */
  recursive?: boolean;
  /** Entries of a page, which also ends at 4 MiB of paths. Default: 1000. 1 to 100000. */
  limit?: number;
  /** nextCursor of the page before, with the same path and recursive. */
  cursor?: string;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** The directory. What comes or goes between pages is in or not; everything else is there exactly once. */
export interface FileListResult {
  /** In bytewise order. */
  entries: FileEntry[] | BlobText;
  /** There are more. */
  nextCursor?: string;
  /** Directories on this page that were not entered: unreadable, mount points, paths beyond 4095 bytes. */
  skipped?: number;
}

/** A name in a directory. Its path can be given to the file methods: relative to the workspace, or absolute in a mount. */
export interface FileEntry {
  /** The path. */
  path?: string;
  /** Instead of path. */
  pathBase64?: string;
  /** What it is. */
  type: "file" | "directory" | "symlink" | "fifo" | "socket" | "device" | (string & {});
  /** Its size. */
  size?: number;
  /** Since 1970. */
  mtimeMs?: number;
}

/** A new directory, of mode 0755. */
export interface FileMkdirParams {
  /** The session. */
  sessionId: string;
  /** Relative to the workspace, or absolute as the box or else as the host sees it. */
  path?: string;
  /** Instead of path, when it is not UTF-8. */
  pathBase64?: string;
  /** Follow symbolic links, up to 40, that are relative and stay inside; else a link is path_escape. The last name is never followed. Default: false. */
  followLinks?: boolean;
  /** Make missing directories above it, too; one that is there already is fine then. Default: false. */
  parents?: boolean;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** From where to where, within the workspace or within one mount. */
export interface FileMoveParams {
  /** The session. */
  sessionId: string;
  /** Relative to the workspace, or absolute as the box or else as the host sees it. */
  path?: string;
  /** Instead of path, when it is not UTF-8. */
  pathBase64?: string;
  /** Follow symbolic links, up to 40, that are relative and stay inside; else a link is path_escape. The last name is never followed. Default: false. */
  followLinks?: boolean;
  /** The new path, name and all. */
  to?: string;
  /** Instead of to. */
  toBase64?: string;
  /** Replace a file, or an empty directory by a directory; else exists. Default: false. */
  replace?: boolean;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** A file, a symbolic link, or an empty directory. */
export interface FileRemoveParams {
  /** The session. */
  sessionId: string;
  /** Relative to the workspace, or absolute as the box or else as the host sees it. */
  path?: string;
  /** Instead of path, when it is not UTF-8. */
  pathBase64?: string;
  /** Follow symbolic links, up to 40, that are relative and stay inside; else a link is path_escape. The last name is never followed. Default: false. */
  followLinks?: boolean;
  /** With everything below, whatever its mode. An error may leave a part of it. Default: false. */
  recursive?: boolean;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** What to change in a file of up to 16 MiB. Bytes that no edit names stay as they are, valid UTF-8 or not. */
export interface FileEditParams {
  /** The session. */
  sessionId: string;
  /** Relative to the workspace, or absolute as the box or else as the host sees it. */
  path?: string;
  /** Instead of path, when it is not UTF-8. */
  pathBase64?: string;
  /** Follow symbolic links, up to 40, that are relative and stay inside; else a link is path_escape. Default: false. */
  followLinks?: boolean;
  /** In this order, each in what the one before left; all or nothing. */
  edits: Edit[];
  /** Fail with changed when the file is not there, or its etag is another one. */
  ifMatch?: string;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** One replacement. LF and CRLF match each other, and newText gets the line end of the file. */
export interface Edit {
  /** What stands there. */
  oldText: string;
  /** What shall stand there. */
  newText: string;
  /** Everywhere, from the left; else it must be there exactly once. Default: false. */
  all?: boolean;
}

/** The file now. */
export interface FileEditResult {
  /** How many by each edit. */
  replacements: number[];
  /** Changes with the content. Up to 1 MiB it is made of the bytes, else of inode, size and times. */
  etag: string;
}

/** Which names. */
export interface FileGlobParams {
  /** The session. */
  sessionId: string;
  /** Where to look; the workspace when absent. Paths in the result begin with it as it is given here. Mounts are looked into only when named. */
  path?: string;
  /** Instead of path, when it is not UTF-8. */
  pathBase64?: string;
  /** Without a slash: of names at any depth. With one: of paths from path on; /*.c is right there. * and ? match no slash; ** as a whole name is any number of directories, or at the end all below; [a-z], [!a], [[:alpha:]]; {a,b{c,d}}; \ before a character that stands for itself; a slash at the end: directories only. */
  pattern: string;
  /** Patterns of the same kind: what they match is left out, with everything below. */
  ignore?: string[];
  /** Also names that begin with a dot; else only where a pattern spells that dot. Default: false. */
  hidden?: boolean;
  /** Leave out what .gitignore files (also those above path) and .git/info/exclude say, and .git itself. Default: false. */
  gitignore?: boolean;
  /** How many names at most; the first ones. Default: 10000. 1 to 1000000. */
  limit?: number;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** The names. */
export interface FileGlobResult {
  /** In bytewise order. */
  entries: FileEntry[] | BlobText;
  /** There are more: above limit, or 16 MiB of paths. */
  truncated: boolean;
  /** How much was passed over: what the box's user may not read, mount points, paths above 4095 bytes. */
  unreadable?: number;
}

/** What to look for. */
export interface FileSearchParams {
  /** The session. */
  sessionId: string;
  /** Where to look; the workspace when absent. Paths in the result begin with it as it is given here. Mounts are looked into only when named. */
  path?: string;
  /** Instead of path, when it is not UTF-8. */
  pathBase64?: string;
  /** What to look for, within lines. A line feed in a text is invalid_value. */
  pattern: string;
  /** The pattern is a regular expression of PCRE2 with Unicode classes; ^ and $ are the ends of a line, of which a carriage return is a part. One that takes too many steps, or more than 5 s of processor time and 1 s for each MB, fails with limit. Default: false. */
  regex?: boolean;
  /** Only files that this pattern of file/glob matches; with ! in front, only others. dir/ is for what is below. */
  glob?: string;
  /** Capitals do not matter. Default: false. */
  ignoreCase?: boolean;
  /** Lines to show before. Default: 0. 0 to 100. */
  before?: number;
  /** Lines to show behind. Default: 0. 0 to 100. */
  after?: number;
  /** Also names that begin with a dot; else only where a pattern spells that dot. Default: false. */
  hidden?: boolean;
  /** Leave out what .gitignore files (also those above path) and .git/info/exclude say, and .git itself. Default: false. */
  gitignore?: boolean;
  /** How many matches at most; the first ones. Default: 1000. 1 to 1000000. */
  limit?: number;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** The places. */
export interface FileSearchResult {
  /** By path and line. */
  matches: FileMatch[] | BlobText;
  /** There are more: above limit, or 16 MiB of lines. */
  truncated: boolean;
  /** Files with a NUL byte: not searched from the block of 128 KiB on that has it. */
  binarySkipped: number;
  /** How much was passed over: what the box's user may not read, mount points, paths above 4095 bytes. */
  unreadable?: number;
}

/** A line that has a match. A line of more than 128 KiB is searched in pieces that overlap by 4 KiB (a text: by its length): a longer match may be missed there. */
export interface FileMatch {
  /** The path. */
  path?: string;
  /** Instead of path. */
  pathBase64?: string;
  /** From 1. */
  line: number;
  /** Of its first match: from 1, in code points. */
  column: number;
  /** The line without its end; at most 2000 bytes, those around the match. What is not UTF-8 is replaced. */
  text: Text;
  /** Lines before; of each at most the first 2000 bytes. */
  before: string[];
  /** Lines behind, likewise. */
  after: string[];
  /** The line is longer. */
  cut?: boolean;
}

/** The images of the store. */
export interface ImageListResult {
  /** By ref. */
  images: Image[] | BlobText;
}

/** One image of the store. */
export interface Image {
  /** As session/open takes it. */
  ref: string;
  /** sha256:… */
  digest?: string;
  /** On disk. */
  bytes?: number;
}

/** Which image. */
export interface ImageRefParams {
  /** A registry reference. */
  ref: string;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** What to import, and as what. */
export interface ImageImportParams {
  /** An OCI layout or an archive on the host. */
  path: string;
  /** A registry reference. */
  ref: string;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** Can this host run boxes, and how well? */
export interface DoctorResult {
  /** No check failed. */
  ok: boolean;
  /** In a fixed order. */
  checks: Check[] | BlobText;
}

/** One thing that was looked at. */
export interface Check {
  /** Stable. */
  id: string;
  /** fail: boxes do not start. */
  status: "ok" | "warn" | "fail" | (string & {});
  /** What is. */
  found: string;
  /** What should be. */
  wanted?: string;
  /** What to do about it. */
  fix?: string;
}

/** The profiles. */
export interface ProfileListResult {
  /** By name. */
  profiles: Profile[] | BlobText;
}

/** A named set of session options. */
export interface Profile {
  /** As session/open's profiles take it. */
  name: string;
  /** What it is for. */
  text?: string;
}

/** All plugins that were found. */
export interface PluginListResult {
  /** By name. */
  plugins: Plugin[] | BlobText;
}

/** A runner plugin. */
export interface Plugin {
  /** The plugin, or the file name of one that was refused. */
  name: string;
  /** Loaded or not. */
  status: "ok" | "refused" | (string & {});
  /** Its own version. */
  version?: string;
  /** Where it was found. */
  path?: string;
  /** What it runs. */
  languages?: string[];
  /** Why it was refused. */
  reason?: string;
}

/** Counters; more may come. */
export interface StatsResult {
  /** Since the server started. */
  uptimeMs?: number;
  /** Open ones. */
  sessions?: number;
  /** Running ones. */
  runs?: number;
  /** Runs that wait. */
  queued?: number;
  /** Open ones. */
  kernels?: number;
  /** Open ones. */
  shells?: number;
  /** Runs so far. */
  runsTotal?: number;
  /** Blobs that live. */
  blobs?: number;
  /** Together. */
  blobBytes?: number;
  /** Because nobody read them. */
  logLinesDropped?: number;
  /** For `files` of results: one serves all calls that wait for it. */
  workspaceWalks?: number;
  /** Held for calls that run. */
  snapshotBytes?: number;
}

/** Which form. */
export interface SchemaParams {
  /** JSON Schema 2020-12 with x-methods and x-errors. Default: "jsonschema". */
  format?: "jsonschema";
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** The schema of this very build. */
export interface SchemaResult {
  /** The document. */
  schema: unknown | BlobText;
}

/** What to render. */
export interface RenderParams {
  /** Output of a run. */
  text: Text;
  /** How many characters the answer may have; head and tail stay. 500 to 262144. */
  maxChars: number;
  /** Integer or string; $/progress notifications then carry it. */
  progressToken?: number | string;
}

/** The rendered text. */
export interface RenderResult {
  /** Text that is safe to show a model. */
  rendered: Text;
}

/** The request had no effect. */
export interface Error {
  /** The number of the reason. */
  code: number;
  /** For a person. */
  message: string;
  /** For a program. */
  data: ErrorData;
}

/** Why. */
export interface ErrorData {
  /** What clients switch on; x-errors has all of them. */
  reason: string;
  /** JSON pointer (RFC 6901) into the params. */
  path?: string;
  /** The kernel's error. */
  errno?: unknown;
  /** The set-up step that failed. */
  step?: string;
  /** What to do about it. */
  hint?: string;
  /** The same request may work later. */
  retryable: boolean;
  /** More, by reason. */
  details?: Record<string, unknown>;
}

/** Every request. */
export interface Requests {
  "initialize": { params: InitializeParams; result: InitializeResult };
  "ping": { params: NoParams; result: Nothing };
  "shutdown": { params: ShutdownParams; result: Nothing };
  "session/open": { params: SessionOpenParams; result: SessionOpenResult };
  "session/close": { params: SessionHandleParams; result: Nothing };
  "session/list": { params: NoParams; result: SessionListResult };
  "session/setup": { params: SessionSetupParams; result: SessionSetupResult };
  "session/snapshot": { params: SessionSnapshotParams; result: SessionSnapshotResult };
  "session/restore": { params: SessionRestoreParams; result: SessionRestoreResult };
  "run/code": { params: RunCodeParams; result: ExecutionResult };
  "run/argv": { params: RunArgvParams; result: ExecutionResult };
  "run/stdin": { params: RunStdinParams; result: Nothing };
  "run/signal": { params: RunSignalParams; result: Nothing };
  "run/credit": { params: RunCreditParams; result: Nothing };
  "output/read": { params: OutputReadParams; result: OutputReadResult };
  "blob/read": { params: BlobReadParams; result: BlobReadResult };
  "blob/write": { params: BlobWriteParams; result: BlobWriteResult };
  "blob/free": { params: BlobFreeParams; result: Nothing };
  "kernel/open": { params: KernelOpenParams; result: KernelOpenResult };
  "kernel/run": { params: KernelRunParams; result: KernelRunResult };
  "kernel/interrupt": { params: KernelInterruptParams; result: KernelInterruptResult };
  "kernel/restart": { params: KernelHandleParams; result: Nothing };
  "kernel/close": { params: KernelHandleParams; result: Nothing };
  "kernel/list": { params: NoParams; result: KernelListResult };
  "shell/open": { params: ShellOpenParams; result: ShellOpenResult };
  "shell/run": { params: ShellRunParams; result: ShellRunResult };
  "shell/write": { params: ShellWriteParams; result: Nothing };
  "shell/resize": { params: ShellResizeParams; result: Nothing };
  "shell/signal": { params: ShellSignalParams; result: Nothing };
  "shell/close": { params: ShellHandleParams; result: Nothing };
  "file/read": { params: FileReadParams; result: FileReadResult };
  "file/write": { params: FileWriteParams; result: FileWriteResult };
  "file/stat": { params: FilePathParams; result: FileStatResult };
  "file/list": { params: FileListParams; result: FileListResult };
  "file/mkdir": { params: FileMkdirParams; result: Nothing };
  "file/move": { params: FileMoveParams; result: Nothing };
  "file/remove": { params: FileRemoveParams; result: Nothing };
  "file/edit": { params: FileEditParams; result: FileEditResult };
  "file/glob": { params: FileGlobParams; result: FileGlobResult };
  "file/search": { params: FileSearchParams; result: FileSearchResult };
  "image/list": { params: NoParams; result: ImageListResult };
  "image/pull": { params: ImageRefParams; result: Image };
  "image/import": { params: ImageImportParams; result: Image };
  "image/remove": { params: ImageRefParams; result: Nothing };
  "host/doctor": { params: NoParams; result: DoctorResult };
  "profiles/list": { params: NoParams; result: ProfileListResult };
  "plugin/list": { params: NoParams; result: PluginListResult };
  "stats/get": { params: NoParams; result: StatsResult };
  "rpc/schema": { params: SchemaParams; result: SchemaResult };
  "render": { params: RenderParams; result: RenderResult };
}

/** Every notification. */
export interface Notifications {
  "initialized": { params: NoFields };
  "exit": { params: NoFields };
  "$/cancel": { params: CancelParams };
  "$/progress": { params: Progress };
  "$/log": { params: Log };
  "session/closed": { params: SessionClosed };
  "run/started": { params: RunStarted };
  "run/output": { params: RunOutput };
  "run/display": { params: RunDisplay };
  "run/inputWanted": { params: InputWanted };
  "kernel/state": { params: KernelState };
  "kernel/output": { params: KernelOutput };
  "shell/output": { params: ShellOutput };
  "shell/exited": { params: ShellExited };
}

/** Why a request had no effect. The list is open. */
export type ErrorReason = "parse" | "invalid_request" | "duplicate_id" | "batch_unsupported" | "unknown_method" | "unknown_option" | "unsupported_option" | "invalid_type" | "invalid_value" | "out_of_range" | "missing" | "internal" | "not_initialized" | "cancelled" | "unsupported_protocol" | "overloaded" | "limit" | "line_too_long" | "unknown_handle" | "duplicate_handle" | "busy" | "kernel_dead" | "shell_dead" | "gone" | "image_not_found" | "image_invalid" | "digest_mismatch" | "pull_failed" | "path_escape" | "not_found" | "not_regular" | "too_large" | "exists" | "io" | "permission_denied" | "is_directory" | "not_a_directory" | "invalid_path" | "changed" | "edit_no_match" | "edit_not_unique" | "no_space" | "read_only" | "not_empty" | "start_failed" | "mount_refused" | "limits_unenforced" | "profile_unknown" | "host_unsupported" | "preload_failed" | "setup_failed" | "archive_refused" | "plugin_error" | "unknown_language" | (string & {});
