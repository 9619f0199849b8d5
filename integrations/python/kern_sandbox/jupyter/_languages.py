"""The languages of the kernels, and when a piece of their code is whole."""

import ast
import codeop
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Dict

from ..sandbox import Sandbox

Status = Dict[str, str]
CHECK_SECONDS = 10.0


@dataclass(frozen=True)
class Language:
    name: str
    title: str
    info: Dict[str, Any]
    is_complete: Callable[[str, Callable[[], Sandbox]], Status]
    has_input: bool = False


def python_is_complete(code: str, box: Callable[[], Sandbox]) -> Status:
    """As Python's own prompt: an indented last line may go on."""
    compiler = codeop.CommandCompiler()
    compiler.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = compiler(code, "<cell>", "exec") is not None
    except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError):
        return {"status": "invalid"}
    last = code.rsplit("\n", 1)[-1]
    indent = last[: len(last) - len(last.lstrip())]
    if whole and not (indent and last.strip()):
        return {"status": "complete"}
    return {"status": "incomplete", "indent": indent + ("    " if last.rstrip().endswith(":") else "")}


BASH_OPEN = ("unexpected end of file", "unexpected EOF while looking for matching", "delimited by end-of-file")


def bash_is_complete(code: str, box: Callable[[], Sandbox]) -> Status:
    """What a bash in a box says that only reads it."""
    if (len(code) - len(code.rstrip("\\"))) % 2:
        return {"status": "incomplete", "indent": ""}
    ran = box().run(["bash", "-n"], stdin=code, env={"LC_ALL": "C"}, timeout_s=CHECK_SECONDS)
    if any(words in ran.code_stderr for words in BASH_OPEN):
        return {"status": "incomplete", "indent": ""}
    return {"status": "complete" if ran.success else "invalid"}


# Compiles its input, and does not run it. An await is only known inside of a function.
NODE_CHECK = """
const { Script } = require('vm'), code = require('fs').readFileSync(0, 'utf8');
const wrong = (text) => { try { new Script(text); return ''; } catch (problem) { return problem.message; } };
let message = wrong(code);
if (/await|import statement|export/.test(message))
  message = wrong('(async () => {' + code.replace(/^\\s*(import|export) .*$/gm, '') + '\\n})()');
const open = /Unexpected end of input|Unterminated template|missing \\) after argument list/.test(message);
process.stdout.write(open ? 'incomplete' : message ? 'invalid' : 'complete');
"""


def node_is_complete(code: str, box: Callable[[], Sandbox]) -> Status:
    """What a node in a box says that only compiles it."""
    ran = box().run(["node", "-e", NODE_CHECK], stdin=code, timeout_s=CHECK_SECONDS)
    if ran.stdout == "incomplete":
        return {"status": "incomplete", "indent": ""}
    return {"status": ran.stdout if ran.stdout in ("complete", "invalid") else "unknown"}


def _info(name: str, mimetype: str, extension: str, mode: Any, lexer: str) -> Dict[str, Any]:
    return {
        "name": name,
        "version": "",  # that of the box's interpreter, which is not known before the first cell
        "mimetype": mimetype,
        "file_extension": extension,
        "codemirror_mode": mode,
        "pygments_lexer": lexer,
        "nbconvert_exporter": "python" if name == "python" else "script",
    }


LANGUAGES = {
    language.name: language
    for language in (
        Language(
            "python",
            "Python",
            _info("python", "text/x-python", ".py", {"name": "ipython", "version": 3}, "ipython3"),
            python_is_complete,
            has_input=True,
        ),
        Language(
            "node",
            "Node",
            _info("javascript", "text/javascript", ".js", "javascript", "javascript"),
            node_is_complete,
            has_input=True,
        ),
        Language("bash", "Bash", _info("bash", "text/x-sh", ".sh", "shell", "bash"), bash_is_complete),
    )
}
