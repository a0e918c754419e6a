"""Interrupts user code that does not come to rest, from another thread, and never anything else.

Theory of operation. Python can make a thread raise an exception wherever it is (`PyThreadState_SetAsyncExc`). The exception
is pending from then on, and CPython raises it at the thread's next check: at the start of a function, after a call, at a
jump backwards. It must not arrive once the user code has ended: it would hit the engine, or another execution's turn.

Two threads take part. The *turn's thread* calls user code through `TurnLimit.call`, which makes a token for that one call.
The *watchdog's thread* calls `TurnLimit.interrupt` with the token that it found armed for too long. They share two
attributes:

    turn's thread                              watchdog's thread, holding the lock
    (1) armed = token                          (a) firing = token
        … user code …                          (b) if armed is token:
    (2) armed = None                           (c)     make the exception pending
    (3) if firing is token: slow path

Under the GIL these steps happen in one order that both threads see. So either (2) comes before (b), and nothing becomes
pending; or (b), and (a) before it, come before (2), and then (3) sees the token and takes the slow path. Who does not take
the slow path has therefore nothing pending, and never will: a token is armed once, and is compared by identity while both
sides hold it.

The slow path takes the lock, so that no (c) is under way any more and none can follow, since `armed` is no longer the
token; then it takes back what is pending, by having it raised there and then and catching it. (CPython could also be told
to forget it. But 3.11 then keeps looking for it for ever: each check takes the long way, and under a profiler the thread
hangs at the start of the next function.) Until that is done the exception may still arrive, in this module's own code. How
often? After (2) at most twice: once what was pending at (2), once what a (c) made pending whose (b) came before (2). So
`call` has three nested `try`s, each of which begins to take back anew: the third cannot be disturbed. Before (2), while it
still counts as user code, the interruption may come any number of times, because user code may swallow it. Between the end
of the user code and (2) there is no check: neither a call, nor the start of a function, nor a jump backwards.

Nothing is concluded from where the exception arrived, or whether: user code may swallow it, and so do finalizers and
callbacks of weak references. Whoever was fired at was interrupted; its program is half done and must not be used again.

TurnInterrupted is a KeyboardInterrupt to asyncio, which lets that through: the workflow's loop stops, instead of going on
with the next task. It does not arrive in code that takes or gives a lock of the process (`logging`, `threading`, the import
system): such a lock would never be given back. The watchdog looks where the thread is, and tries again a moment later. A C
call is not interrupted at all before it returns; what becomes of the process then is said in `watchdog` and, for calls that
hold the GIL, in `cpu_timer`.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from holdfast.code.source_locations import find_innermost
from holdfast.engine.turns.cpu_timer import CpuTimer
from holdfast.engine.turns.interrupts import ends_process
from holdfast.errors import TurnTooLong

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

T = TypeVar("T")
CallToken: TypeAlias = tuple[str, str]
"""One call of user code: the workflow and the execution id. Two calls have two tokens, which are told apart by identity."""

CPU_FACTOR: Final = 2
"""How many times the limit of a turn may be used up in processor time before the process counts as stuck in C code."""
LOCKING_MODULES: Final = ("_weakrefset", "importlib._bootstrap", "weakref")
"""No interruption where the innermost frame is of one of these: a lock would stay taken, or a set be left half changed."""
LOCKING_FUNCTIONS: Final = {
    "logging": ("_acquireLock", "_releaseLock", "acquire", "handle", "release"),
    "threading": ("__enter__", "__exit__", "_acquire_restore", "_release_save", "acquire", "release"),
}
"""The same for single functions of modules."""
DEEPEST_DEBUGGER: Final = 200
"""In how many of the innermost frames a debugger is looked for: it is called by the code that it stops."""
DEBUGGERS: Final = ("_pydevd_bundle", "bdb", "debugpy", "pdb", "pydevd")

_make_pending = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_ulong, ctypes.py_object)(
    ("PyThreadState_SetAsyncExc", ctypes.pythonapi)
)


class TurnInterrupted(KeyboardInterrupt):
    """Raised inside user code that ran for too long. No Exception, so that `except Exception` does not swallow it."""


class TurnLimit:
    """The limit for the user code of one engine, which runs in one thread. A `RunLimit` of the programs."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.armed: CallToken | None = None
        """The call of user code that is under way."""
        self.latest: CallToken = ("", "")
        """The call that began last."""
        self.cpu_timer = CpuTimer(CPU_FACTOR * seconds)
        """A context, for the turn's thread, around each phase in which a batch runs user code."""
        self._firing: CallToken | None = None
        self._fired: CallToken | None = None
        """The call that was interrupted last."""
        self._place = ""
        """Where that one was when it was interrupted for the first time."""
        self._lock = threading.Lock()
        self._thread_id = 0
        self._clock: int | None = None

    def open(self) -> None:
        """From now on the calling thread is the one that runs user code."""
        self._thread_id = threading.get_ident()
        if hasattr(time, "pthread_getcpuclockid"):  # not on every system
            self._clock = time.pthread_getcpuclockid(self._thread_id)
        self.cpu_timer.open()

    def close(self) -> None:
        """No more limits of processor time. What still runs can be interrupted as long as somebody watches."""
        self.cpu_timer.close()

    # --- in the turn's thread ---

    def call(self, workflow: str, execution_id: str, function: Callable[[Any], T], argument: Any) -> T:
        """Call `function(argument)`, which runs user code. Raises TurnTooLong if that was interrupted."""
        if self.cpu_timer.phase is None:  # a program is dropped between two phases: its `finally` blocks are user code, too
            with self.cpu_timer:
                return self.call(workflow, execution_id, function, argument)
        token = (workflow, execution_id)
        result: Any = None
        error: BaseException | None = None
        try:
            try:
                try:
                    self.armed = self.latest = token
                    result = function(argument)
                    self.armed = None
                    if self._firing is not token:
                        return result  # type: ignore[no-any-return]  # the usual way
                    place = self._take_back(token)
                except BaseException as raised:
                    self.armed = None
                    if self._firing is not token and not isinstance(raised, TurnInterrupted):
                        raise
                    error = raised
                    place = self._take_back(token)
            except TurnInterrupted:
                self.armed = None
                place = self._take_back(token)
        except TurnInterrupted:
            place = self._take_back(token)
        try:
            if place is not None or isinstance(error, TurnInterrupted):  # which code may have kept, and raised again
                raise self._describe(workflow, place or "")
            if error is not None:
                raise error
            return result  # type: ignore[no-any-return]  # it came to rest just in time
        finally:
            del error  # it holds this frame

    def ends_process(self, error: BaseException) -> bool:
        """Whether an exception that user code let through did not come from it, and is to end the process or the turn."""
        return issubclass(type(error), TurnInterrupted) or ends_process(error)

    def _take_back(self, token: CallToken) -> str | None:
        """Take back an interruption that is pending. Where the call was interrupted; None if it was not."""
        with self._lock:
            try:
                is_pending = _make_pending(self._thread_id, TurnInterrupted)  # in place of what is, if anything
                while is_pending:  # CPython checks after the call, or else here
                    pass
            except TurnInterrupted:
                pass
            return self._place if self._fired is token else None

    def _describe(self, workflow: str, place: str) -> TurnTooLong:
        return TurnTooLong(
            f"Expected workflow '{workflow}' to come to rest within {self.seconds:g} s, but its code still ran{place}. "
            "Let it await something, move what takes long into an activity, or raise turn_limit=…; then call retry_blocked."
        )

    # --- in the watchdog's thread ---

    def interrupt(self, token: CallToken) -> None:
        """Make the call stop, unless it has ended, or is where it must not be stopped: then try again soon."""
        with self._lock:
            self._firing = token
            if self.armed is not token:
                return
            frame = self._find_frame()
            if frame is None or _takes_lock(frame):
                return
            if self._fired is not token:
                self._fired, self._place = token, _describe_place(frame)
            _make_pending(self._thread_id, TurnInterrupted)

    def find_place(self) -> str:
        """Where the turn's thread is: ` at file:line` of its innermost user code; empty if it runs none."""
        frame = self._find_frame()
        return "" if frame is None else _describe_place(frame)

    def is_debugged(self) -> bool:
        """Whether somebody looks at the running code in a debugger: that takes as long as it takes."""
        frame = self._find_frame()
        for _ in range(DEEPEST_DEBUGGER):  # what recurses without end has millions of frames
            if frame is None or frame.f_code is TurnLimit.call.__code__:
                break
            if _module_of(frame).partition(".")[0] in DEBUGGERS:
                return True
            frame = frame.f_back
        return False

    def read_cpu_seconds(self) -> float | None:
        """The processor time that the turn's thread has used so far; None if the system does not tell."""
        if self._clock is None:
            return None
        try:
            return time.clock_gettime(self._clock)
        except OSError:  # the thread has ended
            return None

    def _find_frame(self) -> FrameType | None:
        return sys._current_frames().get(self._thread_id)


def _describe_place(frame: FrameType) -> str:
    place = find_innermost(frame, TurnLimit.call.__code__)
    return f" at {place}" if place else ""


def _takes_lock(frame: FrameType) -> bool:
    module = _module_of(frame)
    return module in LOCKING_MODULES or frame.f_code.co_name in LOCKING_FUNCTIONS.get(module, ())


def _module_of(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__") or ""
    return name
