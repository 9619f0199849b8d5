"""The kernel: ipykernel speaks with the client, a box runs the cells."""

import os
import signal
import threading
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Optional, Set

from ipykernel import kernel_protocol_version
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel as BaseKernel

from .._cells import Display
from .._shared import shutdown
from .._version import __version__
from ..errors import SandboxError
from ..kernel import Kernel
from ..results import ExecutionResult, SandboxFault
from ..sandbox import Sandbox
from . import _errors as errors
from ._display import shown
from ._languages import LANGUAGES, Language
from ._options import Chosen

KINDS = {"display": "display_data", "update": "update_display_data", "value": "execute_result"}


class BoxKernel(BaseKernel):
    """A kernel of Jupyter for one language. Cells run while the main thread waits for them; interrupts come to it as
    SIGINT, whichever way the client sends them."""

    implementation = "kern_sandbox"
    implementation_version = __version__
    language: Language = LANGUAGES["python"]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.language_info = self.language.info
        self.banner = f"{self.language.title} in a box of kern-sandbox {__version__}"
        self._sandbox: Optional[Sandbox] = None
        self._cells: Optional[Kernel] = None
        self._chosen: Optional[Chosen] = None
        self._noted: Set[str] = set()
        self._cell_parent: Any = {}
        self._running = False
        self._breakable = False
        signal.signal(signal.SIGINT, self._on_interrupt)

    @property
    def kernel_info(self) -> Dict[str, Any]:
        """Without ipykernel's debugger and subshells, which are for cells in this process."""
        return {
            "protocol_version": kernel_protocol_version,
            "implementation": self.implementation,
            "implementation_version": self.implementation_version,
            "language_info": self.language_info,
            "banner": self.banner,
            "help_links": [],
            "debugger": False,
            "supported_features": [],
        }

    # -- cells

    async def do_execute(
        self,
        code: str,
        silent: bool,
        store_history: bool = True,
        user_expressions: Optional[Dict[str, str]] = None,
        allow_stdin: bool = False,
        *,
        cell_meta: Any = None,
        cell_id: Any = None,
    ) -> Dict[str, Any]:
        self._allow_stdin = allow_stdin
        self._cell_parent = self.get_parent("shell")
        found = []
        if code.strip():
            try:
                found = errors.of_result(self._run(code, Outputs(self, silent)))
            except SandboxError as problem:
                found = [errors.of_exception(problem)]
            except KeyboardInterrupt:
                found = [errors.of_interrupt()]
        if not found:
            return self._reply("ok", {"payload": [], "user_expressions": {}})
        if not silent:
            self.publish("error", found[0])
        return self._reply("error", found[0])

    def _reply(self, status: str, more: Dict[str, Any]) -> Dict[str, Any]:
        return {"status": status, "execution_count": self.execution_count, **more}

    def _run(self, code: str, outputs: "Outputs") -> ExecutionResult:
        with self._may_be_broken():
            cells = self._open()
        for note in self._sandbox.notes if self._sandbox else []:
            self._note(outputs, note)
        self._running = True
        try:
            result = cells.run_code(
                code,
                on_stdout=outputs.stdout,
                on_stderr=outputs.stderr,
                on_display=outputs.display,
                on_input=self._ask if self._allow_stdin and self.language.has_input else None,
                lossless=True,
            )
        finally:
            self._running = False
        outputs.end(result)
        for note in result.runtime_notes:
            self._note(outputs, note)
        return result

    def _note(self, outputs: "Outputs", note: str) -> None:
        if note not in self._noted:
            self._noted.add(note)
            outputs.text("stderr", note + "\n")

    def _ask(self, prompt: str, password: bool) -> Optional[str]:
        """A line from the client. After an interrupt there is none, and the cell has heard of it."""
        try:
            with self._may_be_broken():
                answer: str = self.getpass(prompt) if password else self.raw_input(prompt)
                return answer
        except KeyboardInterrupt:
            self._interrupt_cell()
        except EOFError:
            pass
        return None

    # -- the box

    def _open(self) -> Kernel:
        """The box of this kernel, made for the first cell. One that does not start is tried again by the next cell."""
        if self._cells is None:
            sandbox = self._box()
            self._cells = sandbox.kernel(
                language=self.language.name, on_output=self._on_late_output, on_state=self._on_state
            )
        return self._cells

    def _box(self) -> Sandbox:
        if self._sandbox is None:
            sandbox = self.options().sandbox(os.getcwd())
            sandbox.open()
            self._sandbox = sandbox
        return self._sandbox

    def options(self) -> Chosen:
        if self._chosen is None:
            self._chosen = Chosen(os.environ)
        return self._chosen

    def _on_late_output(self, stream: str, text: str) -> None:
        self.publish("stream", {"name": stream, "text": text})

    def _on_state(self, state: str, fault: Optional[SandboxFault]) -> None:
        if state == "dead" and not self._running:
            why = f"{fault.type}: {fault.message}" if fault is not None else "it has ended"
            self.publish(
                "stream", {"name": "stderr", "text": f"kern: the interpreter is dead ({why}); {errors.RESTART}\n"}
            )

    # -- interrupts

    def pre_handler_hook(self) -> None:
        """ipykernel would put its own handler of SIGINT here."""

    def post_handler_hook(self) -> None:
        """And take it away here."""

    async def interrupt_request(self, stream: Any, ident: Any, parent: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        if self.session:
            self.session.send(stream, "interrupt_reply", {"status": "ok"}, parent, ident=ident)

    @contextmanager
    def _may_be_broken(self) -> Iterator[None]:
        """Here an interrupt is a KeyboardInterrupt: nothing runs in the box that could be interrupted."""
        self._breakable = True
        try:
            yield
        finally:
            self._breakable = False

    def _on_interrupt(self, number: int, frame: Any) -> None:
        if self._breakable:
            raise KeyboardInterrupt
        if self._running:  # this thread may be in the middle of anything
            threading.Thread(target=self._interrupt_cell, daemon=True).start()

    def _interrupt_cell(self) -> None:
        try:
            if self._cells is not None:
                self._cells.interrupt()
        except SandboxError as problem:
            self.log.warning("the cell was not interrupted: %s", problem)

    # -- the rest of the protocol

    async def do_is_complete(self, code: str) -> Dict[str, str]:
        try:
            with self._may_be_broken():
                return self.language.is_complete(code, self._box)
        except (SandboxError, KeyboardInterrupt):
            return {"status": "unknown"}

    async def do_shutdown(self, restart: bool) -> Dict[str, Any]:
        shutdown()
        return {"status": "ok", "restart": restart}

    def publish(self, kind: str, content: Dict[str, Any]) -> None:
        """To every client, as of the last cell; from any thread."""
        if self.session:
            self.session.send(self.iopub_socket, kind, content, parent=self._cell_parent, ident=self._topic(kind))


class Outputs:
    """What a cell shows, on its way to the clients. A silent cell shows nothing."""

    def __init__(self, kernel: BoxKernel, silent: bool) -> None:
        self._kernel = kernel
        self._silent = silent
        self._stderr = errors.HeldStderr(lambda text: self.text("stderr", text))

    def text(self, stream: str, text: str) -> None:
        if not self._silent:
            self._kernel.publish("stream", {"name": stream, "text": text})

    def stdout(self, data: bytes) -> None:
        self._stderr.flush()
        self.text("stdout", data.decode(errors="replace"))

    def stderr(self, data: bytes) -> None:
        self._stderr.write(data.decode(errors="replace"))

    def display(self, display: Display) -> None:
        self._stderr.flush()
        if self._silent:
            return
        if display.op == "clear":
            self._kernel.publish("clear_output", {"wait": display.wait})
            return
        kind = KINDS.get(display.op)
        if kind is None:
            return
        data, metadata = shown(display.data, display.metadata, self._kernel.options().display)
        content: Dict[str, Any] = {"data": data, "metadata": metadata}
        if display.op == "value":
            content["execution_count"] = self._kernel.execution_count
        else:
            content["transient"] = {"display_id": display.display_id} if display.display_id is not None else {}
        self._kernel.publish(kind, content)

    def end(self, result: ExecutionResult) -> None:
        self._stderr.end(result)
        if result.cell_status == "ok" and result.fault is not None:
            self.text("stderr", f"kern: {result.fault.type}: {result.fault.message}\n")
        if result.result_channel != "ok":
            self.text("stderr", f"kern: displays are missing: the result channel is {result.result_channel}\n")


class BoxKernelApp(IPKernelApp):
    """Without what a kernel that runs cells in its own process needs."""

    def init_path(self) -> None:
        """No working directory on the path: cells may write there."""

    def init_control(self, context: Any) -> None:
        super().init_control(context)
        self.shell_channel_thread = None  # no subshells: cells run one after another


def run_kernel(language: str) -> None:
    kernel_class = type("BoxKernel", (BoxKernel,), {"language": LANGUAGES[language]})
    # Nothing that this process itself prints belongs into the notebook.
    BoxKernelApp.launch_instance(kernel_class=kernel_class, outstream_class=None)
