"""Made by proto/generate.py from the tables in proto/; do not edit."""

from typing import Any, Dict, List, Mapping, TypedDict, Union

VERSION = 1

# In the order in which one hides another; more may come.
FAULT_TYPES = ('cancelled', 'timeout', 'oom', 'escape_blocked', 'exec_failed', 'disk', 'killed')
FILE_CHANGES = ('created', 'modified', 'deleted')
RESULT_KINDS = ('display', 'value', 'figure', 'update')
CELL_STATUSES = ('ok', 'error', 'interrupted', 'dead')
# reason -> code of an error
REASONS = {
    'parse': -32700,
    'invalid_request': -32600,
    'duplicate_id': -32600,
    'batch_unsupported': -32600,
    'unknown_method': -32601,
    'unknown_option': -32602,
    'unsupported_option': -32602,
    'invalid_type': -32602,
    'invalid_value': -32602,
    'out_of_range': -32602,
    'missing': -32602,
    'internal': -32603,
    'not_initialized': -32002,
    'cancelled': -32800,
    'unsupported_protocol': 1002,
    'overloaded': 1003,
    'limit': 1004,
    'line_too_long': 1005,
    'unknown_handle': 1100,
    'duplicate_handle': 1101,
    'busy': 1103,
    'kernel_dead': 1104,
    'shell_dead': 1105,
    'gone': 1106,
    'image_not_found': 1200,
    'image_invalid': 1201,
    'digest_mismatch': 1202,
    'pull_failed': 1203,
    'path_escape': 1300,
    'not_found': 1301,
    'not_regular': 1302,
    'too_large': 1303,
    'exists': 1304,
    'io': 1305,
    'permission_denied': 1306,
    'is_directory': 1307,
    'not_a_directory': 1308,
    'invalid_path': 1309,
    'changed': 1310,
    'edit_no_match': 1311,
    'edit_not_unique': 1312,
    'no_space': 1313,
    'read_only': 1314,
    'not_empty': 1315,
    'start_failed': 1400,
    'mount_refused': 1401,
    'limits_unenforced': 1402,
    'profile_unknown': 1403,
    'host_unsupported': 1404,
    'preload_failed': 1405,
    'setup_failed': 1500,
    'archive_refused': 1600,
    'plugin_error': 1700,
    'unknown_language': 1701,
}
# reasons of errors after which the same request may work
RETRYABLE = ('overloaded', 'busy', 'pull_failed')
# message -> field -> what its value has to be
RULES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    'SessionOpenParams': {
        'sessionId': {'type': 'string', 'minLength': 1, 'x-maxBytes': 64, 'pattern': '^[A-Za-z0-9._-]{1,64}$'},
        'image': {'type': 'string', 'minLength': 1, 'x-maxBytes': 4127},
        'pull': {'type': 'string', 'enum': ['missing', 'never', 'always']},
        'workspace': {'type': 'string', 'minLength': 1, 'x-maxBytes': 4095, 'pattern': '^/'},
        'workspaceTarget': {'type': 'string', 'minLength': 1, 'x-maxBytes': 4095, 'pattern': '^/'},
        'cwd': {'type': 'string', 'minLength': 1, 'x-maxBytes': 4095},
        'memoryMb': {'type': 'integer', 'minimum': 4, 'maximum': 1048576},
        'cpusMilli': {'type': 'integer', 'minimum': 10, 'maximum': 1024000},
        'pids': {'type': 'integer', 'minimum': 1, 'maximum': 4194304},
        'timeoutMs': {'type': 'integer', 'minimum': 1, 'maximum': 86400000},
        'network': {'type': 'boolean'},
        'egressAllow': {'type': 'array', 'maxItems': 256},
        'mounts': {'type': 'array', 'maxItems': 64},
        'tmpfs': {'type': 'object', 'maxProperties': 64},
        'shmSize': {'type': 'string', 'minLength': 1, 'x-maxBytes': 16, 'pattern': '^[1-9][0-9]*[kmg]$'},
        'env': {'type': 'object', 'maxProperties': 256},
        'user': {'type': 'string', 'minLength': 1, 'x-maxBytes': 64},
        'mapOwner': {'type': 'boolean'},
        'interpreters': {'type': 'object', 'maxProperties': 64},
        'preload': {'type': 'array', 'maxItems': 16},
        'profiles': {'type': 'array', 'maxItems': 16},
        'capDrop': {'type': 'array', 'maxItems': 64},
        'securityProfile': {'type': 'string', 'minLength': 1, 'x-maxBytes': 64},
        'apparmor': {'type': 'string', 'minLength': 1, 'x-maxBytes': 256},
        'enforceLimits': {'type': 'boolean'},
        'requireLimits': {'type': 'boolean'},
        'depsReadonly': {'type': 'boolean'},
        'maxOutputBytes': {'type': 'integer', 'minimum': 1, 'maximum': 1073741824},
        'trackFiles': {'type': 'boolean'},
        'workspaceMaxMb': {'type': 'integer', 'minimum': 1, 'maximum': 1048576},
        'workspaceStorage': {'type': 'string', 'enum': ['disk', 'memory']},
        'prewarm': {'type': 'integer', 'minimum': 0, 'maximum': 64},
        'start': {'type': 'string', 'enum': ['auto', 'cold', 'template', 'spare', 'zygote']},
        'box': {'type': 'string', 'enum': ['fresh', 'resident']},
        'progressToken': {'type': ['integer', 'string']},
    },
    'RunCodeParams': {
        'runId': {'type': 'string', 'minLength': 1, 'x-maxBytes': 64, 'pattern': '^[A-Za-z0-9._-]{1,64}$'},
        'sessionId': {'type': 'string', 'minLength': 1, 'x-maxBytes': 64, 'pattern': '^[A-Za-z0-9._-]{1,64}$'},
        'session': {},
        'language': {'type': 'string', 'minLength': 1, 'x-maxBytes': 32, 'pattern': '^[a-z][a-z0-9+._-]{0,31}$'},
        'code': {'x-maxBytes': 4194304},
        'filename': {'type': 'string', 'minLength': 1, 'x-maxBytes': 4095},
        'firstLine': {'type': 'integer', 'minimum': 1, 'maximum': 2147483647},
        'args': {'type': 'array', 'maxItems': 1024},
        'timeoutMs': {'type': 'integer', 'minimum': 1, 'maximum': 86400000},
        'env': {'type': 'object', 'maxProperties': 256},
        'cwd': {'type': 'string', 'minLength': 1, 'x-maxBytes': 4095},
        'stdin': {'x-maxBytes': 8388608},
        'interactive': {'type': 'boolean'},
        'user': {'type': 'string', 'minLength': 1, 'x-maxBytes': 64},
        'memoryMb': {'type': 'integer', 'minimum': 4, 'maximum': 1048576},
        'cpusMilli': {'type': 'integer', 'minimum': 10, 'maximum': 1024000},
        'pids': {'type': 'integer', 'minimum': 1, 'maximum': 4194304},
        'maxOutputBytes': {'type': 'integer', 'minimum': 1, 'maximum': 1073741824},
        'trackFiles': {'type': 'boolean'},
        'merge': {'type': 'boolean'},
        'encoding': {'type': 'string', 'enum': ['utf8', 'auto', 'base64']},
        'stream': {'type': 'string', 'enum': ['off', 'live', 'lossless']},
        'render': {},
        'progressToken': {'type': ['integer', 'string']},
    },
    'RunArgvParams': {
        'runId': {'type': 'string', 'minLength': 1, 'x-maxBytes': 64, 'pattern': '^[A-Za-z0-9._-]{1,64}$'},
        'sessionId': {'type': 'string', 'minLength': 1, 'x-maxBytes': 64, 'pattern': '^[A-Za-z0-9._-]{1,64}$'},
        'session': {},
        'argv': {'type': 'array', 'minItems': 1, 'maxItems': 1024},
        'timeoutMs': {'type': 'integer', 'minimum': 1, 'maximum': 86400000},
        'env': {'type': 'object', 'maxProperties': 256},
        'cwd': {'type': 'string', 'minLength': 1, 'x-maxBytes': 4095},
        'stdin': {'x-maxBytes': 8388608},
        'interactive': {'type': 'boolean'},
        'user': {'type': 'string', 'minLength': 1, 'x-maxBytes': 64},
        'memoryMb': {'type': 'integer', 'minimum': 4, 'maximum': 1048576},
        'cpusMilli': {'type': 'integer', 'minimum': 10, 'maximum': 1024000},
        'pids': {'type': 'integer', 'minimum': 1, 'maximum': 4194304},
        'maxOutputBytes': {'type': 'integer', 'minimum': 1, 'maximum': 1073741824},
        'trackFiles': {'type': 'boolean'},
        'merge': {'type': 'boolean'},
        'encoding': {'type': 'string', 'enum': ['utf8', 'auto', 'base64']},
        'stream': {'type': 'string', 'enum': ['off', 'live', 'lossless']},
        'render': {},
        'progressToken': {'type': ['integer', 'string']},
    },
    'KernelOpenParams': {
        'kernelId': {'type': 'string', 'minLength': 1, 'x-maxBytes': 64, 'pattern': '^[A-Za-z0-9._-]{1,64}$'},
        'sessionId': {'type': 'string', 'minLength': 1, 'x-maxBytes': 64, 'pattern': '^[A-Za-z0-9._-]{1,64}$'},
        'language': {'type': 'string', 'minLength': 1, 'x-maxBytes': 32, 'pattern': '^[a-z][a-z0-9+._-]{0,31}$'},
        'timeoutMs': {'type': 'integer', 'minimum': 1, 'maximum': 86400000},
        'env': {'type': 'object', 'maxProperties': 256},
        'cwd': {'type': 'string', 'minLength': 1, 'x-maxBytes': 4095},
        'memoryMb': {'type': 'integer', 'minimum': 4, 'maximum': 1048576},
        'progressToken': {'type': ['integer', 'string']},
    },
    'KernelRunParams': {
        'runId': {'type': 'string', 'minLength': 1, 'x-maxBytes': 64, 'pattern': '^[A-Za-z0-9._-]{1,64}$'},
        'kernelId': {'type': 'string', 'minLength': 1, 'x-maxBytes': 64, 'pattern': '^[A-Za-z0-9._-]{1,64}$'},
        'code': {'x-maxBytes': 4194304},
        'timeoutMs': {'type': 'integer', 'minimum': 1, 'maximum': 86400000},
        'allowInput': {'type': 'boolean'},
        'stream': {'type': 'string', 'enum': ['off', 'live', 'lossless']},
        'encoding': {'type': 'string', 'enum': ['utf8', 'auto', 'base64']},
        'filename': {'type': 'string', 'minLength': 1, 'x-maxBytes': 1024},
        'render': {},
        'progressToken': {'type': ['integer', 'string']},
    },
    'SessionSetupParams': {
        'sessionId': {'type': 'string', 'minLength': 1, 'x-maxBytes': 64, 'pattern': '^[A-Za-z0-9._-]{1,64}$'},
        'command': {'type': 'string', 'minLength': 1, 'x-maxBytes': 65536},
        'timeoutMs': {'type': 'integer', 'minimum': 1, 'maximum': 86400000},
        'stream': {'type': 'string', 'enum': ['off', 'live', 'lossless']},
        'progressToken': {'type': ['integer', 'string']},
    },
    'RenderOptions': {
        'maxChars': {'type': 'integer', 'minimum': 500, 'maximum': 262144},
    },
}
# field -> its default, as the sidecar has it
SESSION_DEFAULTS: Mapping[str, Any] = {
    'image': 'host',
    'pull': 'missing',
    'workspaceTarget': '/workspace',
    'pids': 256,
    'timeoutMs': 30000,
    'network': False,
    'mapOwner': False,
    'capDrop': ['ALL'],
    'enforceLimits': True,
    'requireLimits': False,
    'depsReadonly': True,
    'maxOutputBytes': 67108864,
    'trackFiles': True,
    'workspaceStorage': 'disk',
    'prewarm': 0,
    'start': 'auto',
    'box': 'fresh',
}

Text = Union[str, "Base64Text", "BlobText"]


class Base64Text(TypedDict, total=False):
    """Bytes as base64 (RFC 4648, padded)."""

    base64: str


class BlobText(TypedDict, total=False):
    """Bytes that the server keeps."""

    blob: Dict[str, Any]


class Client(TypedDict, total=False):
    """Who is calling."""

    name: str
    version: str


class ClientCapabilities(TypedDict, total=False):
    """What the client can do."""

    maxLineBytes: int
    credits: bool


class ClientLimits(TypedDict, total=False):
    """Limits that the client chooses."""

    runs: int
    queued: int
    memoryMb: int
    pids: int


class InitializeResult(TypedDict, total=False):
    """The server's side."""

    protocolVersion: int
    protocolMinor: int
    server: "Server"
    capabilities: "ServerCapabilities"
    limits: "ServerLimits"
    host: Dict[str, Any]


class Server(TypedDict, total=False):
    """Who answers."""

    name: str
    version: str
    pid: int


class ServerCapabilities(TypedDict, total=False):
    """What the server can do."""

    features: List[str]
    localPaths: bool
    languages: List["Language"]


class Language(TypedDict, total=False):
    """A language that a plugin brings."""

    name: str
    rich: bool
    kernel: bool
    zygote: bool
    interrupt: bool
    input: bool


class ServerLimits(TypedDict, total=False):
    """The limits in force."""

    maxLineInBytes: int
    maxLineBytes: int
    runs: int
    queued: int
    blobBytes: int


class NoFields(TypedDict, total=False):
    """An empty object."""



class Nothing(TypedDict, total=False):
    """Nothing to tell."""



class Progress(TypedDict, total=False):
    """At most 10 times a second; the last one at the end."""

    token: Union[int, str]
    phase: str
    done: int
    total: int
    message: str


class Log(TypedDict, total=False):
    """One line of the log."""

    level: str
    code: str
    message: str
    parent: Union[int, str]


class Mount(TypedDict, total=False):
    """A path of the host in the box."""

    source: str
    target: str
    mode: str


class SessionOpenResult(TypedDict, total=False):
    """The session."""

    sessionId: str
    workspace: str
    workspaceTarget: str
    image: "SessionImage"
    effective: "Effective"
    notes: List["Note"]


class SessionImage(TypedDict, total=False):
    """What the boxes are made of."""

    ref: str
    digest: str
    interpreters: Dict[str, str]


class Effective(TypedDict, total=False):
    """The limits in force."""

    memoryMb: "EffectiveLimit"
    pids: "EffectiveLimit"
    cpusMilli: "EffectiveLimit"
    workspaceMaxMb: "EffectiveLimit"
    ids: Dict[str, Any]


class EffectiveLimit(TypedDict, total=False):
    """A limit as it really is."""

    value: Any
    enforced: str
    reason: str


class Note(TypedDict, total=False):
    """Something worth knowing."""

    code: str
    message: str


class SessionListResult(TypedDict, total=False):
    """The open sessions."""

    sessions: Union[List["SessionItem"], "BlobText"]


class SessionItem(TypedDict, total=False):
    """An open session."""

    sessionId: str
    workspace: str
    workspaceTarget: str
    image: str
    runs: int
    kernels: int
    shells: int


class SessionSetupResult(TypedDict, total=False):
    """An ExecutionResult, and:"""

    runId: str
    stdout: "Text"
    stderr: "Text"
    exitCode: int
    signal: str
    durationMs: int
    success: bool
    fault: "Fault"
    runtimeNotes: Union[List["RuntimeNote"], "BlobText"]
    truncated: bool
    stdoutBytes: int
    stderrBytes: int
    files: Union[List["ChangedFile"], "BlobText"]
    filesTruncated: bool
    results: Union[List["RichResult"], "BlobText"]
    resultChannel: str
    error: Union["CodeError", "BlobText"]
    usage: "Usage"
    start: "Start"
    rendered: "Text"
    cached: bool


class Fault(TypedDict, total=False):
    """What the sandbox did to the call, from kernel facts only."""

    type: str
    message: str
    syscall: str
    process: str
    limit: str
    step: str


class RuntimeNote(TypedDict, total=False):
    """Something about the box, not about the code."""

    code: str
    message: str


class ChangedFile(TypedDict, total=False):
    """A file of the workspace that changed, whoever did it."""

    path: str
    pathBase64: str
    change: str
    size: int
    mime: str
    sha256: str


class RichResult(TypedDict, total=False):
    """A value, figure or display of the code; a claim of the code."""

    kind: str
    data: Dict[str, "Text"]
    metadata: Dict[str, Any]
    displayId: str
    seq: int
    at: "ResultPlace"
    dropped: List["DroppedData"]


class ResultPlace(TypedDict, total=False):
    """Where in the output it came."""

    stdout: int
    stderr: int


class DroppedData(TypedDict, total=False):
    """A form of a result that was left out."""

    mime: str
    reason: str


class CodeError(TypedDict, total=False):
    """The exception that ended the code; a claim of the code."""

    name: str
    message: str
    phase: str
    frames: List["Frame"]
    traceback: "Text"
    cause: "CodeError"


class Frame(TypedDict, total=False):
    """A place on the call stack."""

    file: str
    line: int
    column: int
    function: str
    source: str


class Usage(TypedDict, total=False):
    """What the call used."""

    wallUs: int
    cpuUserUs: int
    cpuSystemUs: int
    memoryPeakBytes: int
    processesPeak: int
    pidsRefused: int
    syscallsRefused: int
    oomKills: int
    ioReadBytes: int
    ioWriteBytes: int


class Start(TypedDict, total=False):
    """How the box was started."""

    kind: str
    us: int


class SessionSnapshotResult(TypedDict, total=False):
    """The archive."""

    bytes: int
    entries: int
    sha256: str
    skipped: Union[List["Skipped"], "BlobText"]
    skippedMore: int
    blob: "Text"


class Skipped(TypedDict, total=False):
    """A name that a snapshot left out."""

    path: str
    pathBase64: str
    reason: str


class SessionRestoreResult(TypedDict, total=False):
    """What was restored."""

    entries: int
    bytes: int
    notes: List["Note"]


class SessionClosed(TypedDict, total=False):
    """A session that the sidecar ended by itself."""

    sessionId: str
    reason: str


class RenderOptions(TypedDict, total=False):
    """Ask for `rendered`."""

    maxChars: int


class ExecutionResult(TypedDict, total=False):
    """What became of a run."""

    runId: str
    stdout: "Text"
    stderr: "Text"
    exitCode: int
    signal: str
    durationMs: int
    success: bool
    fault: "Fault"
    runtimeNotes: Union[List["RuntimeNote"], "BlobText"]
    truncated: bool
    stdoutBytes: int
    stderrBytes: int
    files: Union[List["ChangedFile"], "BlobText"]
    filesTruncated: bool
    results: Union[List["RichResult"], "BlobText"]
    resultChannel: str
    error: Union["CodeError", "BlobText"]
    usage: "Usage"
    start: "Start"
    rendered: "Text"


class RunStarted(TypedDict, total=False):
    """The main process is running."""

    runId: str
    id: Union[int, str]
    sessionId: str
    kernelId: str
    shellId: str


class RunOutput(TypedDict, total=False):
    """A piece of output."""

    runId: str
    seq: int
    stream: str
    offset: int
    bytes: int
    text: str
    base64: str


class RunDisplay(TypedDict, total=False):
    """A rich result while the code runs."""

    runId: str
    seq: int
    op: str
    data: Dict[str, "Text"]
    metadata: Dict[str, Any]
    displayId: str
    wait: bool


class InputWanted(TypedDict, total=False):
    """The code waits for a line."""

    runId: str
    prompt: str
    password: bool


class OutputReadResult(TypedDict, total=False):
    """text or base64."""

    text: str
    base64: str
    nextOffset: int
    eof: bool
    droppedBefore: int


class BlobReadResult(TypedDict, total=False):
    """text or base64."""

    text: str
    base64: str
    nextOffset: int
    eof: bool


class BlobWriteResult(TypedDict, total=False):
    """The blob so far."""

    id: str
    bytes: int


class KernelOpenResult(TypedDict, total=False):
    """The kernel."""

    kernelId: str
    language: str
    interpreter: str


class CellRenderOptions(TypedDict, total=False):
    """Ask for `rendered`."""

    maxChars: int


class KernelRunResult(TypedDict, total=False):
    """An ExecutionResult, and:"""

    runId: str
    stdout: "Text"
    stderr: "Text"
    exitCode: int
    signal: str
    durationMs: int
    success: bool
    fault: "Fault"
    runtimeNotes: Union[List["RuntimeNote"], "BlobText"]
    truncated: bool
    stdoutBytes: int
    stderrBytes: int
    files: Union[List["ChangedFile"], "BlobText"]
    filesTruncated: bool
    results: Union[List["RichResult"], "BlobText"]
    resultChannel: str
    error: Union["CodeError", "BlobText"]
    usage: "Usage"
    start: "Start"
    rendered: "Text"
    cellStatus: str
    executionCount: int
    stateKept: bool


class KernelInterruptResult(TypedDict, total=False):
    """At once."""

    running: bool


class KernelListResult(TypedDict, total=False):
    """The kernels."""

    kernels: Union[List["KernelItem"], "BlobText"]


class KernelItem(TypedDict, total=False):
    """A kernel."""

    kernelId: str
    sessionId: str
    language: str
    state: str


class KernelState(TypedDict, total=False):
    """A kernel changed its state."""

    kernelId: str
    state: str
    fault: "Fault"


class KernelOutput(TypedDict, total=False):
    """Bytes between cells."""

    kernelId: str
    stream: str
    text: str
    base64: str


class ShellOpenResult(TypedDict, total=False):
    """The shell."""

    shellId: str


class ShellRunResult(TypedDict, total=False):
    """An ExecutionResult, and:"""

    runId: str
    stdout: "Text"
    stderr: "Text"
    exitCode: int
    signal: str
    durationMs: int
    success: bool
    fault: "Fault"
    runtimeNotes: Union[List["RuntimeNote"], "BlobText"]
    truncated: bool
    stdoutBytes: int
    stderrBytes: int
    files: Union[List["ChangedFile"], "BlobText"]
    filesTruncated: bool
    results: Union[List["RichResult"], "BlobText"]
    resultChannel: str
    error: Union["CodeError", "BlobText"]
    usage: "Usage"
    start: "Start"
    rendered: "Text"
    stateKept: bool


class ShellOutput(TypedDict, total=False):
    """Bytes outside any command; everything of a terminal."""

    shellId: str
    stream: str
    text: str
    base64: str


class ShellExited(TypedDict, total=False):
    """A shell ended; it is not restarted."""

    shellId: str
    exitCode: int
    signal: str


class Lines(TypedDict, total=False):
    """Some lines of a file. A line ends behind its LF; the last one needs none."""

    start: int
    count: int


class FileReadResult(TypedDict, total=False):
    """text, base64 or blob."""

    text: str
    base64: str
    blob: Any
    size: int
    eof: bool
    etag: str
    mime: str
    encoding: str
    startLine: int
    endLine: int
    totalLines: int


class FileWriteResult(TypedDict, total=False):
    """The file now."""

    size: int
    etag: str
    created: bool


class FileStatResult(TypedDict, total=False):
    """The file. Without followLinks a symbolic link at the end of the path is told as what it is."""

    type: str
    size: int
    mtimeMs: int
    mode: int
    etag: str
    mime: str


class FileListResult(TypedDict, total=False):
    """The directory. What comes or goes between pages is in or not; everything else is there exactly once."""

    entries: Union[List["FileEntry"], "BlobText"]
    nextCursor: str
    skipped: int


class FileEntry(TypedDict, total=False):
    """A name in a directory. Its path can be given to the file methods: relative to the workspace, or absolute in a mount."""

    path: str
    pathBase64: str
    type: str
    size: int
    mtimeMs: int


class Edit(TypedDict, total=False):
    """One replacement. LF and CRLF match each other, and newText gets the line end of the file."""

    oldText: str
    newText: str
    all: bool


class FileEditResult(TypedDict, total=False):
    """The file now."""

    replacements: List[int]
    etag: str


class FileGlobResult(TypedDict, total=False):
    """The names."""

    entries: Union[List["FileEntry"], "BlobText"]
    truncated: bool
    unreadable: int


class FileSearchResult(TypedDict, total=False):
    """The places."""

    matches: Union[List["FileMatch"], "BlobText"]
    truncated: bool
    binarySkipped: int
    unreadable: int


class FileMatch(TypedDict, total=False):
    """A line that has a match. A line of more than 128 KiB is searched in pieces that overlap by 4 KiB (a text: by its length): a longer match may be missed there."""

    path: str
    pathBase64: str
    line: int
    column: int
    text: "Text"
    before: List[str]
    after: List[str]
    cut: bool


class ImageListResult(TypedDict, total=False):
    """The images of the store."""

    images: Union[List["Image"], "BlobText"]


class Image(TypedDict, total=False):
    """One image of the store."""

    ref: str
    digest: str
    bytes: int


class DoctorResult(TypedDict, total=False):
    """Can this host run boxes, and how well?"""

    ok: bool
    checks: Union[List["Check"], "BlobText"]


class Check(TypedDict, total=False):
    """One thing that was looked at."""

    id: str
    status: str
    found: str
    wanted: str
    fix: str


class ProfileListResult(TypedDict, total=False):
    """The profiles."""

    profiles: Union[List["Profile"], "BlobText"]


class Profile(TypedDict, total=False):
    """A named set of session options."""

    name: str
    text: str


class PluginListResult(TypedDict, total=False):
    """All plugins that were found."""

    plugins: Union[List["Plugin"], "BlobText"]


class Plugin(TypedDict, total=False):
    """A runner plugin."""

    name: str
    status: str
    version: str
    path: str
    languages: List[str]
    reason: str


class StatsResult(TypedDict, total=False):
    """Counters; more may come."""

    uptimeMs: int
    sessions: int
    runs: int
    queued: int
    kernels: int
    shells: int
    runsTotal: int
    blobs: int
    blobBytes: int
    logLinesDropped: int
    workspaceWalks: int
    snapshotBytes: int


class SchemaResult(TypedDict, total=False):
    """The schema of this very build."""

    schema: Union[Any, "BlobText"]


class RenderResult(TypedDict, total=False):
    """The rendered text."""

    rendered: "Text"


class Error(TypedDict, total=False):
    """The request had no effect."""

    code: int
    message: str
    data: "ErrorData"


class ErrorData(TypedDict, total=False):
    """Why."""

    reason: str
    path: str
    errno: Any
    step: str
    hint: str
    retryable: bool
    details: Dict[str, Any]
