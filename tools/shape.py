"""Checks the shape of the code: long files, wide classes, wide constructors, docstrings that say nothing.

`python -m tools.shape` looks at this checkout, prints each violation as `file:line: what is wrong. What to do.` and fails if
there is any. There is no baseline: what is too large is split, or named below with a reason.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDERS: Final = ("holdfast", "tests", "bench", "examples")
DOCUMENTED: Final = "holdfast"
"""The folder whose docstrings are checked: in the others, names state the facts."""

MAX_LINES: Final = 600
MAX_METHODS: Final = 25
MAX_PARAMETERS: Final = 6
FEWEST_WORDS: Final = 6

LONG_FILES: Final[Mapping[str, str]] = {
    "holdfast/client/client_verbs.py": "written by tools.facades from the protocols of the verbs",
    "holdfast/engine/sync_verbs.py": "written by tools.facades from the protocols of the verbs",
}
"""Files that may have any number of lines, and why."""

MANY_METHODS: Final[Mapping[str, str]] = {
    "holdfast/code/context.py:Context": "a facade: everything that a workflow can ask for",
    "holdfast/code/loop.py:WorkflowLoop": "asyncio.AbstractEventLoop says which methods a loop has",
    "holdfast/engine/engine.py:Engine": "a facade: what becomes of an engine, and what it alone can do",
    "holdfast/engine/encoded_store.py:EncodedStore": "a store around a store has the methods of the contract",
    "holdfast/engine/engine_verbs.py:EngineVerbs": "a facade: every verb of the API in process",
    "holdfast/client/client_verbs.py:ClientVerbs": "a facade: every verb of the API by whatever reaches the database",
    "holdfast/engine/sync_verbs.py:SyncVerbs": "a facade: every verb of the API for threads",
    "holdfast/client/socket_verbs.py:SocketVerbs": "a facade: every verb of the API by the owner of a file",
    "holdfast/engine/runtime.py:Runtime": "the one place where parts are wired, and that says what follows from what",
    "holdfast/store/contract.py:Store": "the contract that stores keep",
    "holdfast/store/memory/store.py:MemoryStore": "a store has the methods of the contract",
    "holdfast/store/memory/transaction.py:MemoryTransaction": "a store's transaction has the methods of the contract",
    "holdfast/store/postgres/store.py:PostgresStore": "a store has the methods of the contract",
    "holdfast/store/sqlite/store.py:SqliteStore": "a store has the methods of the contract",
}
"""Classes that may have any number of methods, and why."""

MANY_PARAMETERS: Final[Mapping[str, str]] = {
    "holdfast/engine/engine.py:Engine": "what a user can choose, each by its keyword",
    "holdfast/testing/engine.py:TestEngine": "the same, and how time passes",
}
"""Classes whose constructors may have any number of parameters, and why."""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Violation(NamedTuple):
    """One place in a file that breaks a limit, and what to do about it."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def check_tree(root: Path, folders: Iterable[str] = FOLDERS) -> list[Violation]:
    """All violations in the Python and SQL files of some folders, by file and line."""
    files = (path for folder in folders for path in (root / folder).rglob("*") if path.suffix in {".py", ".sql"})
    return [found for path in sorted(files) for found in check_file(path.read_text(), path.relative_to(root).as_posix())]


def check_file(text: str, path: str) -> list[Violation]:
    """The violations in one file, given its text and its path from the root."""
    found = [] if path in LONG_FILES else [Violation(path, line, message) for line, message in _check_length(text)]
    if path.endswith(".py"):
        found += [Violation(path, line, message) for line, message in _check_module(ast.parse(text), path)]
    return sorted(found)


_Finding: TypeAlias = tuple[int, str]


def _check_length(text: str) -> Iterator[_Finding]:
    lines = len(text.splitlines())
    if lines > MAX_LINES:
        yield MAX_LINES + 1, f"The file has {lines} lines, more than {MAX_LINES}. Split it by topic."


def _check_module(module: ast.Module, path: str) -> Iterator[_Finding]:
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            name = f"{path}:{node.name}"
            if name not in MANY_METHODS:
                yield from _check_methods(node)
            if name not in MANY_PARAMETERS:
                yield from _check_constructor(node)
    if path.startswith(f"{DOCUMENTED}/"):
        yield from _check_docstring(module, "the module")
        yield from _check_docstrings(module.body, "")


def _check_methods(node: ast.ClassDef) -> Iterator[_Finding]:
    count = len({one.name for one in node.body if isinstance(one, Function)})  # overloads and setters count once
    if count > MAX_METHODS:
        remedy = "Give a part of its work to a class of its own."
        yield node.lineno, f"Class {node.name} has {count} methods, more than {MAX_METHODS}. {remedy}"


def _check_constructor(node: ast.ClassDef) -> Iterator[_Finding]:
    """Only an `__init__` that is written out counts: the fields of a dataclass or a struct are a value."""
    for one in node.body:
        if isinstance(one, Function) and one.name == "__init__":
            count = len([*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs]) - 1
            if count > MAX_PARAMETERS:
                remedy = "Put those that belong together into a value of their own."
                yield (
                    one.lineno,
                    f"The constructor of {node.name} has {count} parameters, more than {MAX_PARAMETERS}. {remedy}",
                )


def _check_docstrings(body: Iterable[ast.stmt], prefix: str) -> Iterator[_Finding]:
    """Those of public classes and functions, and of the public methods of such classes."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _check_docstring(node, f"class {node.name}")
            yield from _check_docstrings(node.body, f"{node.name}.")
        elif isinstance(node, Function) and not node.name.startswith("_"):
            yield from _check_docstring(node, f"{prefix}{node.name}")


def _check_docstring(node: ast.Module | ast.ClassDef | Function, name: str) -> Iterator[_Finding]:
    docstring = ast.get_docstring(node)
    if docstring is not None and len(docstring.split()) < FEWEST_WORDS:
        remedy = "Name its subject, so that it can be read on hover."
        yield node.body[0].lineno, f'The docstring of {name} has fewer than {FEWEST_WORDS} words: "{docstring}" {remedy}'


def main() -> int:
    """Print the violations of this checkout; 1 if there are any."""
    violations = check_tree(ROOT)
    for violation in violations:
        print(violation)  # noqa: T201 - its output is what it is for
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
