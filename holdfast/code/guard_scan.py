"""Reads a workflow's code, when it is registered, for calls that a replay could not repeat.

It reads bytecode, so it needs no source. It follows names through globals, closures and imports, and reports a call only if
its name stands for the forbidden thing itself: a function of the same name, a method of some object, or a function that is
passed on without being called (`ctx.side_effect(uuid4)`) is none of its business. An activity that is called is reported
too: the context is to be asked for it. Functions that the workflow calls are not read.
"""

from __future__ import annotations

import asyncio
import builtins
import dis
import functools
import inspect
import sys
from datetime import date
from types import BuiltinMethodType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast.activities.definitions import Activity, TransactionActivity
from holdfast.code import deterministic_asyncio
from holdfast.code.guard_rules import ACTIVITY, NOW, SCANNED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

patched: Final[dict[str, tuple[Any, Any]]] = {}
"""What the guard has patched, by name: the original and the patch, either of which may be bound elsewhere."""

_CALLED_FOR_US: Final = frozenset({"side_effect", "on_query"})
"""Methods that take a function which may do as it likes: beside them, inner functions are not read."""

_COMPREHENSIONS: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_LOOP_GETTERS: Final = (asyncio.get_running_loop, asyncio.get_event_loop)
_CLOCK_METHODS: Final = frozenset({"now", "today", "utcnow"})
_NULL_COMES_FIRST: Final = sys.version_info < (3, 13)
"""A call pushes NULL beside what it calls; until 3.12 before it, since then after it."""


def scan(function: Callable[..., Any]) -> list[str]:
    """What is wrong with a workflow's code. Each entry continues "Expected workflow 'x' to be deterministic, but …"."""
    plain = _find_function(function)
    if plain is None:
        return []
    return list(dict.fromkeys(_Scan(plain).read(plain.__code__, _read_closure(plain))))


def describe_direct_call(activity: Activity[..., Any]) -> tuple[str, str]:
    """What workflow code called although the context is to be asked for it, and how to ask."""
    if isinstance(activity, TransactionActivity):
        return f"transaction '{activity.name}'", f"Write `await ctx.transaction({activity.name}, …)`."
    return f"activity '{activity.name}'", f"Write `await ctx.run({activity.name}, …)`."


def _find_function(function: Any) -> FunctionType | None:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(getattr(function, "__func__", function))
    return function if isinstance(function, FunctionType) else None


def _read_closure(function: FunctionType) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


class _Op(NamedTuple):
    """An instruction in words that all versions of Python share. `name` is a name, or the value of a constant."""

    kind: str
    name: Any
    calls: bool
    line: int


class _Unloaded(str):
    """The dotted name of something in a module that is not loaded, or that its module makes when asked."""

    __slots__ = ()


class _Scan:
    """The scan of one function and of the code inside it."""

    def __init__(self, function: FunctionType) -> None:
        self._globals = function.__globals__
        self._rules = _find_forbidden()
        codes = list(_walk(function.__code__))
        self._reads_inner = not any(_CALLED_FOR_US.intersection(code.co_names) for code in codes)

    def read(self, code: CodeType, outer: Mapping[str, Any]) -> Iterator[str]:
        ops = list(_read_ops(code))
        local = {**dict.fromkeys(op.name for op in ops if op.kind == "store"), **outer, **_find_imports(ops)}
        has_loop = False
        for index, op in enumerate(ops):
            if op.kind in {"global", "local"}:
                found, length, called = self._follow(ops, index, local)
                where = f"({code.co_filename}:{op.line})"
                has_loop = has_loop or (called and any(found is one for one in _LOOP_GETTERS))
                if called and isinstance(found, Activity):
                    what, remedy = describe_direct_call(found)
                    yield f"it calls {what} directly {where}. {remedy}"
                elif called and (rule := self._judge(found, length)):
                    yield f"it calls {rule[0]} {where}. {rule[1]}"
            elif op.kind == "attribute" and op.name == "run_in_executor" and op.calls and has_loop:
                yield f"it calls the event loop's run_in_executor() ({code.co_filename}:{op.line}). {ACTIVITY}"
        for inner in _inner_codes(code):
            if self._reads_inner or inner.co_name in _COMPREHENSIONS:
                free = set(inner.co_freevars)
                yield from self.read(inner, {name: value for name, value in local.items() if name in free})

    def _follow(self, ops: list[_Op], start: int, local: Mapping[str, Any]) -> tuple[Any, int, bool]:
        """What a name and the attributes after it stand for, how many names these are, and whether it is called."""
        op = ops[start]
        if op.kind == "local" or op.name in local:
            found = local.get(op.name)
        else:
            found = self._globals.get(op.name, vars(builtins).get(op.name))
        end = start + 1
        while end < len(ops) and ops[end].kind == "attribute":
            found = _look_up(found, ops[end].name)
            end += 1
        beside = ops[max(start - 1, 0)] if _NULL_COMES_FIRST else ops[min(end, len(ops) - 1)]
        called = beside.kind == "null" or ops[end - 1].calls or (_NULL_COMES_FIRST and op.calls)
        return found, end - start, called

    def _judge(self, found: Any, length: int) -> tuple[str, str] | None:
        """The name and the remedy of something forbidden."""
        if isinstance(found, _Unloaded):
            return (f"{found}()", SCANNED[found]) if found in SCANNED else None
        if isinstance(found, BuiltinMethodType) and found.__name__ in _CLOCK_METHODS:
            owner = found.__self__
            if isinstance(owner, type) and issubclass(owner, date):
                return f"{owner.__name__}.{found.__name__}()", NOW
        if length == 1:
            for name, original in deterministic_asyncio.ORIGINALS.items():
                if found is original:
                    called = name.partition(".")[2]
                    return f"{called}() by a name that was bound early", f"Write `import asyncio` and call {name}()."
        return self._rules.get(id(found))


def _find_forbidden() -> dict[int, tuple[str, str]]:
    """Everything forbidden that is loaded, by identity; what is patched in both its forms."""
    found: dict[int, tuple[str, str]] = {}
    for name, remedy in SCANNED.items():
        module_name, _, attribute = name.rpartition(".")
        shown = name.removeprefix("builtins.")
        module = sys.modules.get(module_name)
        for one in (getattr(module, "__dict__", {}).get(attribute), *patched.get(name, ())):
            if one is not None:
                found.setdefault(id(one), (f"{shown}()", remedy))
    return found


def _look_up(owner: Any, name: str) -> Any:
    """An attribute, if it can be read without running code; None if not."""
    if isinstance(owner, _Unloaded):
        return _find_dotted(f"{owner}.{name}")
    if isinstance(owner, ModuleType):
        members = vars(owner)
        return members[name] if name in members else _Unloaded(f"{owner.__name__}.{name}")
    if isinstance(owner, type) and issubclass(owner, date) and name in _CLOCK_METHODS:
        return getattr(owner, name)
    # A method that is an activity, of a class or of an object whose class says so.
    classes = owner.__mro__ if isinstance(owner, type) else type(owner).__mro__
    places = [getattr(owner, "__dict__", {}), *map(vars, classes)]
    found = next((place[name] for place in places if name in place), None)
    return found if isinstance(found, Activity) else None


def _find_dotted(name: str) -> Any:
    """What an import of that name gives, without importing anything."""
    if name in sys.modules:
        return sys.modules[name]
    owner, _, attribute = name.rpartition(".")
    module = sys.modules.get(owner)
    return getattr(module, "__dict__", {}).get(attribute, _Unloaded(name))


def _find_imports(ops: list[_Op]) -> dict[str, Any]:
    """Local names that are bound once, by an import."""
    found: dict[str, Any] = {}
    stores = [op.name for op in ops if op.kind == "store"]
    current: str | None = None
    for index, op in enumerate(ops):
        if op.kind == "import":
            is_absolute = index >= 2 and ops[index - 2].name == 0
            has_names = index >= 1 and bool(ops[index - 1].name)
            current = (op.name if has_names else op.name.partition(".")[0]) if is_absolute else None
            bound = current
        elif op.kind == "import from" and current is not None:
            bound = f"{current}.{op.name}"
        else:
            continue
        after = ops[index + 1] if index + 1 < len(ops) else op
        if after.kind == "store" and bound is not None and stores.count(after.name) == 1:
            found[after.name] = _find_dotted(bound)
        elif after.kind != "store":
            # `import a.b as c` reads b from a before it is stored; `from a import b, c` goes on with a.
            current = bound
    return found


def _walk(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in _inner_codes(code):
        yield from _walk(inner)


def _inner_codes(code: CodeType) -> Iterable[CodeType]:
    return (const for const in code.co_consts if isinstance(const, CodeType))


def _read_ops(code: CodeType) -> Iterator[_Op]:
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        line = (instruction.positions and instruction.positions.lineno) or line
        flag = bool((instruction.arg or 0) & 1)
        if name in {"LOAD_GLOBAL", "LOAD_NAME"}:
            yield _Op("global", value, flag and name == "LOAD_GLOBAL", line)
        elif name == "LOAD_METHOD":
            yield _Op("attribute", value, True, line)
        elif name == "LOAD_ATTR":
            yield _Op("attribute", value, flag and sys.version_info >= (3, 12), line)
        elif name.startswith("STORE_FAST_"):  # two in one, the first of them a store
            second = "store" if name.count("STORE") == 2 else "local"
            yield from (_Op("store", value[0], False, line), _Op(second, value[1], False, line))
        elif name.startswith("LOAD_FAST") and isinstance(value, tuple):
            yield from (_Op("local", one, False, line) for one in value)
        elif name.startswith("LOAD_FAST") or name in {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}:
            yield _Op("local", value, False, line)
        elif name not in {"CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN"}:
            yield _Op(_KINDS.get(name, "other"), value, False, line)


_KINDS: Final = {
    "DELETE_DEREF": "store",
    "DELETE_FAST": "store",
    "IMPORT_FROM": "import from",
    "IMPORT_NAME": "import",
    "PUSH_NULL": "null",
    "STORE_DEREF": "store",
    "STORE_FAST": "store",
    "STORE_GLOBAL": "store",
    "STORE_NAME": "store",
}
