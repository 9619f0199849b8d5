"""The options of a sandbox, and the parameters of `session/open` and of calls that they become."""

from typing import Any, Dict, Mapping, Optional, Sequence

from . import _options as check
from ._options import Callback, Mounts, StrPath, Tmpfs
from .errors import SandboxError

SESSION = "SessionOpenParams"


class Inherit:
    """The value of a per-call option that is not given: the sandbox's own."""

    def __repr__(self) -> str:
        return "INHERIT"


INHERIT = Inherit()


class Options:
    """What a sandbox is like. Wrong types, wrong values and misspelt names are a SandboxError here, before any process."""

    @check.named_options
    def __init__(
        self,
        image: Optional[str] = None,
        setup: Optional[str] = None,
        workspace: Optional[StrPath] = None,
        memory_mb: Optional[int] = 512,
        cpus: Optional[float] = None,
        pids: int = 256,
        timeout_s: float = 30,
        network: bool = False,
        mounts: Optional[Mounts] = None,
        tmpfs: Optional[Tmpfs] = None,
        profiles: Optional[Sequence[str]] = None,
        env: Optional[Mapping[str, str]] = None,
        max_output_bytes: int = 64 << 20,
        enforce_limits: bool = True,
        require_limits: bool = False,
        security_profile: Optional[str] = None,
        apparmor: Optional[str] = None,
        cap_drop: Sequence[str] = ("ALL",),
        deps_readonly: bool = True,
        track_files: bool = True,
        on_stdout: Optional[Callback] = None,
        on_stderr: Optional[Callback] = None,
        prewarm: int = 0,
        egress_allow: Optional[Sequence[str]] = None,
        *,
        user: Optional[str] = None,
        shm_size: Optional[str] = None,
        interpreters: Optional[Mapping[str, str]] = None,
        preload: Optional[Sequence[str]] = None,
        cwd: Optional[str] = None,
        map_owner: bool = False,
        workspace_max_mb: Optional[int] = None,
        workspace_storage: str = "disk",
        start: str = "auto",
    ) -> None:
        self.image = image
        self.setup = setup
        self.workspace = None if workspace is None else check.path("workspace", workspace)
        self.memory_mb = memory_mb
        self.cpus = cpus
        self.pids = pids
        self.timeout_s = timeout_s
        self.network = network
        self.mounts = mounts
        self.tmpfs = tmpfs
        self.profiles = profiles
        self.env = env
        self.max_output_bytes = max_output_bytes
        self.enforce_limits = enforce_limits
        self.require_limits = require_limits
        self.security_profile = security_profile
        self.apparmor = apparmor
        self.cap_drop = cap_drop
        self.deps_readonly = deps_readonly
        self.track_files = track_files
        self.on_stdout = check.callback("on_stdout", on_stdout)
        self.on_stderr = check.callback("on_stderr", on_stderr)
        self.prewarm = prewarm
        self.egress_allow = egress_allow
        self.user = user
        self.shm_size = shm_size
        self.interpreters = interpreters
        self.preload = preload
        self.cwd = cwd
        self.map_owner = map_owner
        self.workspace_max_mb = workspace_max_mb
        self.workspace_storage = workspace_storage
        self.start = start
        self.params = self._session_params()

    def _session_params(self) -> Dict[str, Any]:
        """The params of session/open, all checked."""
        if self.setup is not None:
            check.field("setup", self.setup, "SessionSetupParams", "command")
        params: Dict[str, Any] = {"timeoutMs": check.milliseconds("timeout_s", self.timeout_s)}
        for name, wire in SAME.items():
            value = getattr(self, name)
            if value is not None:
                params[wire] = check.field(name, value, SESSION, wire)
        if self.workspace is not None:
            params["workspace"] = self.workspace
        if self.cpus is not None:
            params["cpusMilli"] = check.thousandths("cpus", self.cpus)
        if self.env is not None:
            params["env"] = check.env("env", self.env)
        if self.interpreters is not None:
            params["interpreters"] = check.env("interpreters", self.interpreters)
        params.update(self._isolation())
        names = {wire: name for name, wire in {**SAME, **RENAMED}.items()}
        for wire, value in params.items():
            check.count(names.get(wire, wire), value, SESSION, wire)
        return params

    def _isolation(self) -> Dict[str, Any]:
        params: Dict[str, Any] = {"capDrop": check.texts("cap_drop", self.cap_drop, check.CAPABILITY, "a capability")}
        binds = [] if self.mounts is None else check.mounts(self.mounts)
        if binds:
            params["mounts"] = binds
        if self.tmpfs is not None:
            params["tmpfs"] = check.tmpfs(self.tmpfs, self.memory_mb, binds)
        if self.security_profile is not None and self.security_profile != "untrusted":
            raise check.wrong("security_profile", "'untrusted' or None", self.security_profile)
        if self.apparmor is not None and not check.APPARMOR.fullmatch(self.apparmor):
            raise check.wrong("apparmor", "the name of a profile", self.apparmor)
        if self.profiles is not None:
            what = "vcpu:NAME, vgpio:NAME or vdisk:NAME"
            params["profiles"] = check.texts("profiles", self.profiles, check.PROFILE, what)
        if self.preload is not None:
            params["preload"] = check.texts("preload", self.preload)
        if self.egress_allow is not None:
            what = "a domain name without scheme, port or wildcard"
            params["egressAllow"] = check.texts("egress_allow", self.egress_allow, check.DOMAIN, what)
            if self.network:
                raise SandboxError("network=True leaves nothing for egress_allow to restrict", path="egress_allow")
        return params


# option -> field of session/open, where the value is written otherwise
RENAMED = {"cap_drop": "capDrop", "egress_allow": "egressAllow"}
# option -> field of session/open, where the value is the same
SAME = {
    "image": "image",
    "memory_mb": "memoryMb",
    "pids": "pids",
    "network": "network",
    "max_output_bytes": "maxOutputBytes",
    "enforce_limits": "enforceLimits",
    "require_limits": "requireLimits",
    "security_profile": "securityProfile",
    "apparmor": "apparmor",
    "deps_readonly": "depsReadonly",
    "track_files": "trackFiles",
    "prewarm": "prewarm",
    "user": "user",
    "shm_size": "shmSize",
    "cwd": "cwd",
    "map_owner": "mapOwner",
    "workspace_max_mb": "workspaceMaxMb",
    "workspace_storage": "workspaceStorage",
    "start": "start",
}
