"""Writes the classes that follow from the protocols of the verbs: `python -m tools.facades`; with `--check` it compares.

From the protocols in `holdfast/engine/verbs/` it makes `ClientVerbs` (each verb handed to whatever reaches the database)
and `SyncVerbs` (each verb for code without an event loop), and from `WorkflowHandle` the `SyncWorkflowHandle`. So signatures
and docstrings are written once, and type checkers see all of them.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
VERBS: Final = ROOT / "holdfast/engine/verbs"
HANDLES: Final = ROOT / "holdfast/engine/handles.py"
CLIENT: Final = ROOT / "holdfast/client/client_verbs.py"
SYNC: Final = ROOT / "holdfast/engine/sync_verbs.py"

NOTE: Final = "Written by `python -m tools.facades`: change the protocol, and run it again."
STARTING: Final = frozenset({"signal_with_start_workflow", "start"})
"""Verbs whose overloads take the arguments of a workflow."""
REPEATABLE: Final = frozenset({"deploy", "disable", "enable", "undeploy"})
"""Verbs that change something, and that can be called again without harm, though they carry no request id."""
IGNORED: Final = "  # type: ignore[misc]  # mypy finds that no implementation fits *Ts\n"

Method = ast.FunctionDef | ast.AsyncFunctionDef


def find_class(path: Path, name: str) -> ast.ClassDef:
    """A class of a module, or of a module of a package, as a tree."""
    return next(one for one in read_statements(path) if isinstance(one, ast.ClassDef) and one.name == name)


def read_statements(path: Path) -> list[ast.stmt]:
    """The statements of a module, or of all modules of a package, at the top level."""
    modules = sorted(path.glob("*.py")) if path.is_dir() else [path]
    return [one for module in modules for one in ast.parse(module.read_text()).body]


def list_verbs() -> list[Method]:
    """The verbs in the order in which `Verbs` names the protocols of its topics, each overload for itself."""
    topics = [ast.unparse(one) for one in find_class(VERBS, "Verbs").bases]
    return [one for topic in topics if topic != "Protocol" for one in list_methods(find_class(VERBS, topic))]


def list_methods(cls: ast.ClassDef) -> list[Method]:
    """The public methods of a class in order, each overload for itself."""
    return [one for one in cls.body if isinstance(one, Method) and not one.name.startswith("_")]


def is_overload(method: Method) -> bool:
    """Whether a method is only there for type checkers."""
    return any(ast.unparse(one) == "overload" for one in method.decorator_list)


def write_signature(method: Method, *, is_async: bool) -> str:
    """The decorators and the `def` of a method, up to the colon."""
    lines = [f"@{ast.unparse(one)}" for one in method.decorator_list]
    returns = "" if method.returns is None else f" -> {ast.unparse(method.returns)}"
    args = ast.unparse(method.args)
    if method.name in STARTING and not is_overload(method):
        args = IGNORED + args
    return "\n".join([*lines, f"{'async ' if is_async else ''}def {method.name}({args}){returns}:"])


def write_docstring(method: Method) -> str:
    """The docstring of a method as a literal with its own line breaks."""
    text = ast.get_docstring(method) or ""
    body = text if "\n" not in text else text.replace("\n", "\n    ").replace("\n    \n", "\n\n") + "\n    "
    return f'"""{body}"""'


def write_arguments(method: Method) -> str:
    """The arguments with which a method hands its own on."""
    args = method.args
    parts = [one.arg for one in [*args.posonlyargs, *args.args] if one.arg != "self"]
    parts += [f"*{args.vararg.arg}"] if args.vararg else []
    parts += [f"{one.arg}={one.arg}" for one in args.kwonlyargs]
    parts += [f"**{args.kwarg.arg}"] if args.kwarg else []
    return ", ".join(parts)


def write_method(method: Method, body: str, *, is_async: bool) -> str:
    """A whole method with its docstring; an overload without."""
    if is_overload(method):
        return write_signature(method, is_async=is_async) + " ..."
    return write_signature(method, is_async=is_async) + f"\n    {write_docstring(method)}\n    {body}"


def is_changing(method: Method) -> bool:
    """Whether a verb changes something. All others may be asked again when an answer is lost."""
    return method.name in {*STARTING, *REPEATABLE, "end_stale", "update_with_start"} or "request_id" in [
        one.arg for one in method.args.kwonlyargs
    ]


def make_client_body(method: Method) -> str:
    """How a client does a verb: by whatever reaches the database."""
    call = f"lambda verbs: verbs.{method.name}({write_arguments(method)})"
    if method.name == "handle":
        return "return make_handle(self, target, org, workflow)"
    if method.name == "wait_for_result":
        return f"return await self._reach.wait({write_arguments(method)})"
    if method.name == "wait_for_change":
        return f"return await self._reach.watch({call})"
    if not is_changing(method):
        return f"return await self._reach.read({call})"
    if "timeout" in [one.arg for one in method.args.kwonlyargs]:
        return make_asking_body(method)
    has_key = "request_id" in [one.arg for one in method.args.kwonlyargs]
    if method.name in REPEATABLE:
        return f"return await self._reach.write({call}, is_safe=True)"
    is_safe = "request_id is not None" if has_key else "is_keyed(options)" if method.args.kwarg else "False"
    made = f"await self._reach.write({call}, is_safe={is_safe})"
    return f"return ({made}).bind(self)" if method.name == "start" else f"return {made}"


def make_asking_body(method: Method) -> str:
    """How a client does a verb that a turn of an execution answers: it may be asked again, with what is left of its time."""
    has_key = "request_id" in [one.arg for one in method.args.kwonlyargs]
    arguments = (
        write_arguments(method).replace("timeout=timeout", "timeout=left").replace("request_id=request_id", "request_id=key")
    )
    call = f"lambda verbs, {'key' if has_key else '_'}, left: verbs.{method.name}({arguments})"
    return f"return await self._reach.ask({call}, key={'request_id' if has_key else 'find_key(options)'}, timeout=timeout)"


def make_sync_body(method: Method, owner: str) -> str:
    """How a method is called from a thread without a loop."""
    arguments = write_arguments(method).replace("connection=connection", "connection=take_connection(connection)")
    call = f"self.{owner}.{method.name}({arguments})"
    if not isinstance(method, ast.AsyncFunctionDef):
        return "return SyncWorkflowHandle(make_handle(self._verbs, target, org, workflow), self._run)"
    if "WorkflowHandle" in ast.unparse(method.returns or ast.Constant(None)):
        return f"return SyncWorkflowHandle(self._run({call}), self._run)"
    return f"return self._run({call})"


def indent(text: str) -> str:
    """A block, one level deeper."""
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())


def read_imports() -> str:
    """What the protocols import for their signatures; what a facade does not use is left out when it is formatted."""
    imports = [ast.unparse(one) for one in read_statements(VERBS) if isinstance(one, ast.Import | ast.ImportFrom)]
    return "\n".join(
        sorted({one for one in imports if not one.startswith(("from __future__", "from holdfast.engine.verbs"))})
    )


def read_type_variables() -> str:
    """The type variables of the protocols, which their signatures name."""
    return "\n".join(sorted({ast.unparse(one) for one in read_statements(VERBS) if isinstance(one, ast.Assign)}))


IMPORTS: Final = read_imports()
TYPE_VARIABLES: Final = read_type_variables()

CLIENT_HEAD: Final = f'''"""The verbs of a client. {NOTE}"""

from __future__ import annotations

{IMPORTS}

from holdfast.client.reaches import Reach, find_key, is_keyed
from holdfast.engine.handles import make_handle

{TYPE_VARIABLES}


class ClientVerbs:
    """The verbs, each handed to whatever reaches the database."""

    @property
    def _reach(self) -> Reach:
        """What reaches the database. Raises EngineClosed if it is not connected."""
        raise NotImplementedError

'''

SYNC_HEAD: Final = f'''"""The verbs for code without an event loop. {NOTE}"""

from __future__ import annotations

{IMPORTS}
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol

from holdfast.engine.handles import make_handle
from holdfast.engine.thread_connections import take_connection
from holdfast.engine.verbs import Verbs

{TYPE_VARIABLES}


class Run(Protocol):
    """Runs something that can be awaited, in the loop to which it belongs, and waits for its result."""

    def __call__(self, awaitable: Awaitable[T], /) -> T:
        """The result of what is awaited, or what it raises."""
        ...


class SyncWorkflowHandle(Generic[R]):
    """A handle on one execution, for code without an event loop: everything blocks until it is done."""

    def __init__(self, handle: WorkflowHandle[R], run: Run) -> None:
        self._handle = handle
        self._run = run

    @property
    def org(self) -> str:
        """The organisation that the execution belongs to."""
        return self._handle.org

    @property
    def workflow_id(self) -> str:
        """The workflow id under which it was started or asked for."""
        return self._handle.workflow_id

    @property
    def execution_id(self) -> str | None:
        """The id of the execution; None for the newest one of the workflow id."""
        return self._handle.execution_id

    @property
    def created(self) -> bool | None:
        """Whether the start that gave this handle made the execution."""
        return self._handle.created

    def __repr__(self) -> str:
        return repr(self._handle)

'''

SYNC_CLASS: Final = '''

class SyncVerbs:
    """The verbs, for threads that run no event loop: each blocks until it is done."""

    def __init__(self, verbs: Verbs, run: Run) -> None:
        self._verbs = verbs
        self._run = run

'''


def make_client() -> str:
    """The text of the module with the verbs of clients."""
    methods = list_verbs()
    written = [write_method(one, make_client_body(one), is_async=isinstance(one, ast.AsyncFunctionDef)) for one in methods]
    return CLIENT_HEAD + "\n\n".join(indent(one) for one in written) + "\n"


def make_sync() -> str:
    """The text of the module with the verbs for code without an event loop."""
    handles = [one for one in list_methods(find_class(HANDLES, "WorkflowHandle")) if isinstance(one, ast.AsyncFunctionDef)]
    methods = list_verbs()
    of_handle = [indent(write_method(one, make_sync_body(one, "_handle"), is_async=False)) for one in handles]
    of_verbs = [indent(write_method(one, make_sync_body(one, "_verbs"), is_async=False)) for one in methods]
    verbs = "\n\n".join(of_verbs).replace("-> WorkflowHandle[", "-> SyncWorkflowHandle[")
    return SYNC_HEAD + "\n\n".join(of_handle) + "\n" + SYNC_CLASS + verbs + "\n"


def format_text(text: str) -> str:
    """The text as this project formats code, without imports that nothing uses."""
    ruff = [sys.executable, "-m", "ruff"]
    options = ["--stdin-filename", str(SYNC), "--quiet", "-"]
    for command in (["check", "--fix"], ["format"]):
        done = subprocess.run([*ruff, *command, *options], input=text, capture_output=True, text=True, check=False)  # noqa: S603
        text = done.stdout
    return text


def main() -> int:
    """Write the modules; with `--check`, tell whether they are what they should be."""
    made = {CLIENT: format_text(make_client()), SYNC: format_text(make_sync())}
    if "--check" in sys.argv:
        return int(any(path.read_text() != text for path, text in made.items()))
    for path, text in made.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
