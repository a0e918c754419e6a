"""Keeps workflow code away from clocks, random sources, files, sockets, processes and threads, as well as Python allows.

While workflow code runs in a thread, the functions of `time`, `random`, `uuid`, `secrets` and `os.urandom` refuse in that
thread, and an audit hook refuses files, sockets, processes and threads. Other threads, and other code in this one, only pay
for a look at an empty dict. When a workflow is registered, `scan` reads its code for calls that cannot be caught later.

This is best effort, not a sandbox. What it does not see:

- `datetime.now()` and its like, which are built into C types, and names bound before the guard was installed (`from time
  import time`), when a function that the workflow calls uses them: the scan reads the workflow's own code only;
- clocks and random sources inside C extensions (`numpy.random`, `pandas.Timestamp.now`);
- work given to a thread pool, a connection or an open file that exists already; `os.stat`, `os.path.exists`, `os.environ`;
- state shared between executions: module globals, caches, class attributes;
- the order of sets of strings, `hash()` of strings and `id()`, which differ from process to process;
- what happens below an import, a log call, a warning, a traceback, a debugger, a finalizer, a garbage collection or a signal
  handler: all of these are let through.

A workflow can catch the refusal, but never gets the value, and it does not help: each refusal is noted here, and the program
takes the note when the code rests (`take_violation`). So one in a task that nobody awaits counts too.

A tool that rewrites the built-in clock in place (time-machine) must be imported before the guard is installed: then the
guard leaves the clock to it.
"""

from __future__ import annotations

import functools
import gc
import importlib
import random
import signal
import sys
import threading
from _thread import get_ident
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from holdfast.activities.definitions import Activity
from holdfast.code.guard_rules import (
    ACTIVITY,
    AUDITED_EVENTS,
    AUDITED_FAMILIES,
    CLOCK_DEFAULTS,
    CLOCKS,
    EXCUSED_CALLERS,
    EXCUSED_PACKAGES,
    NOW,
    PATCHED,
    RANDOM,
    SIDE_EFFECT,
    describe_refusal,
)
from holdfast.code.guard_scan import describe_direct_call, patched, scan
from holdfast.errors import ForbiddenInWorkflow

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

__all__ = [
    "allow",
    "check_direct_call",
    "enter",
    "install",
    "is_active",
    "leave",
    "refuse",
    "scan",
    "take_violation",
]

_active: Final[dict[int, str]] = {}
"""The workflow whose code runs now, by thread."""

_violations: Final[dict[int, ForbiddenInWorkflow]] = {}
"""What was refused first since the workflow's code began to run, by thread."""

_installed = False


# --- the marker ---


def enter(workflow: str) -> None:
    """From now on this thread runs code of that workflow."""
    _active[get_ident()] = workflow


def leave() -> None:
    """Let this thread run ordinary code again, without the guard."""
    _active.pop(get_ident(), None)
    if _violations:
        _violations.pop(get_ident(), None)


def take_violation() -> ForbiddenInWorkflow | None:
    """What was refused first in this thread since it began to run this workflow's code; None if nothing was."""
    return _violations.pop(get_ident(), None) if _violations else None


def refuse(message: str) -> NoReturn:
    """Note and raise a refusal. Only for a thread that runs workflow code."""
    error = ForbiddenInWorkflow(message)
    _violations.setdefault(get_ident(), error)
    raise error


def is_active() -> bool:
    """Whether this thread runs workflow code that the guard watches."""
    return get_ident() in _active


class _Suspension:
    """Takes the marker away and puts it back."""

    __slots__ = ("_workflow",)

    def __enter__(self) -> None:
        self._workflow = _active.pop(get_ident(), None)

    def __exit__(self, *_exception: object) -> None:
        if self._workflow is not None:
            _active[get_ident()] = self._workflow


def allow() -> _Suspension:
    """A context that suspends the guard in this thread. Nothing may be awaited inside."""
    return _Suspension()


# --- putting it in place ---


def install() -> None:
    """Patch the functions and add the audit hook. Once installed it stays; more calls do nothing."""
    global _installed  # noqa: PLW0603 - an audit hook cannot be removed, so there is one guard for the process
    if _installed:
        return
    _installed = True
    for name, remedy in PATCHED.items():
        _patch(name, functools.partial(_wrap_clock if name in CLOCKS else _wrap, deed=f"called {name}()", remedy=remedy))
    for name, position in CLOCK_DEFAULTS.items():
        _patch(name, functools.partial(_wrap_default, position=position, deed=f"called {name}() without a time"))
    _patch_seed()
    for name in ("getrandbits", "randbytes", "random"):
        _patch_method(random.SystemRandom, name, f"called SystemRandom.{name}()", SIDE_EFFECT)
    if sys.version_info < (3, 12):  # later versions have an audit event for it
        _patch_method(threading.Thread, "start", "started a thread", ACTIVITY)
    _patch_activities()
    sys.addaudithook(_audit)


def _patch(dotted: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    module_name, name = dotted.split(".")
    if module_name == "time" and name != "sleep" and "time_machine" in sys.modules:
        return  # it overwrites the C functions that it finds there, and crashes on any other object
    module = importlib.import_module(module_name)
    original = getattr(module, name, None)
    if original is not None:
        wrapper = wrap(original)
        patched[dotted] = (original, wrapper)
        setattr(module, name, wrapper)


def _wrap(original: Callable[..., Any], *, deed: str, remedy: str) -> Callable[..., Any]:
    def call(active: dict[int, str], /, *args: Any, **kwargs: Any) -> Any:
        if active:
            _check(deed, remedy)
        return original(*args, **kwargs)

    return _disguise(call, original)


def _wrap_clock(original: Callable[[], Any], *, deed: str, remedy: str) -> Callable[..., Any]:
    def call(active: dict[int, str], /) -> Any:
        if active:
            _check(deed, remedy)
        return original()

    return _disguise(call, original)


def _wrap_default(original: Callable[..., Any], *, position: int, deed: str) -> Callable[..., Any]:
    def call(active: dict[int, str], /, *args: Any) -> Any:
        if active and (len(args) <= position or args[position] is None):
            _check(deed, NOW)
        return original(*args)

    return _disguise(call, original)


def _disguise(call: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """Bound to the marker: like the built-in function, and unlike a plain one, it takes no `self` as a class attribute."""
    functools.update_wrapper(call, original)
    del call.__wrapped__  # type: ignore[attr-defined]  # would be read as the signature with a first parameter too many
    return MethodType(call, _active)


def _patch_seed() -> None:
    original = random.Random.seed

    @functools.wraps(original)
    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        if _active and a is None:
            _check("called random.Random() without a seed", RANDOM)
        original(self, a, version)

    random.Random.seed = seed  # type: ignore[method-assign]


def _patch_method(owner: type, name: str, deed: str, remedy: str) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def call(self: Any, *args: Any) -> Any:
        if _active:
            _check(deed, remedy)
        return original(self, *args)

    setattr(owner, name, call)


def _patch_activities() -> None:
    original: Any = Activity.__call__

    @functools.wraps(original)
    def call(self: Activity[..., Any], *args: Any, **kwargs: Any) -> Any:
        if _active:
            check_direct_call(*describe_direct_call(self))
        return original(self, *args, **kwargs)

    Activity.__call__ = call  # type: ignore[method-assign]


# --- refusing ---


def _check(deed: str, remedy: str) -> None:
    """Raise ForbiddenInWorkflow, unless this thread runs ordinary code or the caller is excused."""
    workflow = _active.get(get_ident())
    if workflow is None:
        return
    caller = sys._getframe(2)
    if _package_of(caller) in EXCUSED_CALLERS or _is_excused(caller):
        return
    refuse(describe_refusal(workflow, deed, remedy))


def check_direct_call(what: str, remedy: str) -> None:
    """Raises ForbiddenInWorkflow if this thread runs workflow code: what was called must be asked for by the context."""
    workflow = _active.get(get_ident())
    if workflow is not None:
        refuse(f"Expected workflow '{workflow}' to ask for {what}, but it called it directly. {remedy}")


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if not _active:
        return
    workflow = _active.get(get_ident())
    if workflow is None or (event not in AUDITED_EVENTS and event.partition(".")[0] not in AUDITED_FAMILIES):
        return
    if _is_excused(sys._getframe(1)) or (event == "open" and _is_time_zone(args[0])):
        return
    if event in AUDITED_EVENTS:
        deed, remedy = AUDITED_EVENTS[event]
    else:
        deed, remedy = (f"opened {args[0]!r}" if event == "open" else f"called {event}()"), ACTIVITY
    refuse(describe_refusal(workflow, deed, remedy))


def _is_excused(caller: FrameType) -> bool:
    """Whether a frame between the caller and the engine belongs to something that is let through."""
    frame: FrameType | None = caller
    codes: list[CodeType] = []
    while frame is not None:
        package = _package_of(frame)
        if package in EXCUSED_PACKAGES or frame.f_code.co_name == "__del__":
            return True
        if package == "holdfast" and frame.f_globals["__name__"] != __name__:
            break  # the loop that runs the workflow: what lies below has nothing to do with it
        codes.append(frame.f_code)
        frame = frame.f_back
    interrupts = _interrupting_codes()
    return any(code in interrupts for code in codes)


def _is_time_zone(path: object) -> bool:
    """Whether the file belongs to the time zones of this machine, which C code opens without a frame of its own."""
    zoneinfo = sys.modules.get("zoneinfo")
    return zoneinfo is not None and isinstance(path, str) and path.startswith(tuple(zoneinfo.TZPATH))


def _package_of(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__") or ""
    return name.partition(".")[0]


def _interrupting_codes() -> set[CodeType]:
    """The code of what Python may call between any two lines: not the workflow's doing."""
    functions = [*gc.callbacks, sys.gettrace(), sys.getprofile(), *map(signal.getsignal, signal.valid_signals())]
    functions = [getattr(one, "func", one) for one in functions]  # of a partial
    codes = (getattr(getattr(one, "__func__", one), "__code__", None) for one in functions)
    return {code for code in codes if code is not None}
