"""Ends a process that is stuck in a C call which never gives up the GIL, such as `sum(range(10**11))`.

No thread of Python runs then, so none can help. On Linux a timer of the system counts the processor time of the turn's
thread, and only that: a process that stands still is never ended by it, and what other threads compute does not count. When
the time is used up the thread gets SIGXCPU; `faulthandler` prints the stack, in C and without the GIL, and then lets the
usual effect of the signal happen, which ends the process. The supervisor starts it again; what ends processes again and
again is found and given up.

The timer runs while a batch takes its turns, and while a program is dropped from memory; not while activities, or anything
else in the loop, compute. As long as
other threads get to run, the watchdog renews it: it strikes only if the GIL was held all the time.

Without it, the process stays stuck until somebody ends it. That is so on systems other than Linux; where the system refuses
such a timer; and where the process has its own use for SIGXCPU when the engine opens, which is left alone.
"""

from __future__ import annotations

import ctypes
import faulthandler
import logging
import signal
import sys
import threading
import time
from typing import Any, Final

log = logging.getLogger("holdfast.engine")

_SIGEV_THREAD_ID: Final = 4
"""Linux: the signal is for one thread, whose stack is then printed."""
_STDERR: Final = 2


class _SigEvent(ctypes.Structure):
    """`struct sigevent`, 64 bytes on Linux."""

    _fields_ = (  # type: ignore[mutable-override]  # never changed
        ("value", ctypes.c_void_p),
        ("signal_number", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("thread_id", ctypes.c_int),
        ("padding", ctypes.c_char * (64 - ctypes.sizeof(ctypes.c_void_p) - 3 * ctypes.sizeof(ctypes.c_int))),
    )


class _TimeSpec(ctypes.Structure):
    """`struct timespec` of the C library: a length of time in seconds and nanoseconds."""

    _fields_ = (("seconds", ctypes.c_long), ("nanos", ctypes.c_long))  # type: ignore[mutable-override]  # never changed


class _TimerSpec(ctypes.Structure):
    """`struct itimerspec`: a timer that strikes once has no interval."""

    _fields_ = (("interval", _TimeSpec), ("value", _TimeSpec))  # type: ignore[mutable-override]  # never changed


_DISARMED: Final = _TimerSpec()
# Arguments of `timer_settime` are made once: it is called twice for each batch.
_DISARMED_POINTER: Final = ctypes.c_void_p(ctypes.addressof(_DISARMED))
_RELATIVE: Final = ctypes.c_int(0)
_NO_POINTER: Final = ctypes.c_void_p(None)


class _Printing:
    """Prints the stack of the thread that gets SIGXCPU, for as long as any engine of the process wants that."""

    def __init__(self) -> None:
        self._users = 0
        self._lock = threading.Lock()

    def begin(self) -> bool:
        """Begin, for one more timer; False if the process has its own use for the signal."""
        with self._lock:
            if signal.getsignal(signal.SIGXCPU) is not signal.SIG_DFL:
                return False
            if not self._users:
                faulthandler.register(signal.SIGXCPU, file=_STDERR, all_threads=False, chain=True)
            self._users += 1
            return True

    def end(self) -> None:
        """One timer less. A handler that the process has set meanwhile stays."""
        with self._lock:
            self._users -= 1
            if not self._users and signal.getsignal(signal.SIGXCPU) is signal.SIG_DFL:
                faulthandler.unregister(signal.SIGXCPU)


_printing: Final = _Printing()


class CpuTimer:
    """Ends the process when one thread has used `seconds` of processor time inside of this context.

    `open`, `close` and the context belong to that thread; `renew` may be called from any other. Where there is no such
    timer, none of them does anything.
    """

    def __init__(self, seconds: float) -> None:
        self._limit = _TimerSpec(value=_TimeSpec(int(seconds), int(seconds % 1 * 1e9)))
        self._limit_pointer = ctypes.c_void_p(ctypes.addressof(self._limit))
        self._library: Any = None
        self._set: Any = None
        """`timer_settime`, looked up once."""
        self._timer: ctypes.c_void_p | None = None
        self._is_armed = False
        self.phase: object | None = None
        """What stands for the time that the thread spends inside of this context, as long as it does; each time another."""
        self._lock = threading.Lock()
        """So that nobody renews what is being disarmed."""

    @property
    def works(self) -> bool:
        """Whether this system gave the process such a timer."""
        return self._timer is not None

    def open(self) -> None:
        """Make the timer, for the calling thread."""
        if self._timer is not None or not sys.platform.startswith("linux") or not _printing.begin():
            return
        try:
            self._timer = self._make()
        except (AttributeError, OSError) as error:
            _printing.end()
            log.info("there is no timer of processor time, so a C call that holds the GIL cannot be ended: %s", error)

    def close(self) -> None:
        """Delete the timer of the system: the thread may compute for as long as it likes."""
        if self._timer is None:
            return
        with self._lock:
            timer, self._timer, self._is_armed = self._timer, None, False
            self._library.timer_delete(timer)
        _printing.end()

    def renew(self) -> None:
        """Let the time begin anew, if it is being measured: other threads got to run."""
        with self._lock:
            if self._is_armed:
                self._set(self._timer, _RELATIVE, self._limit_pointer, _NO_POINTER)

    def __enter__(self) -> None:
        self.phase = object()
        if self._timer is not None:
            self._is_armed = True
            self._set(self._timer, _RELATIVE, self._limit_pointer, _NO_POINTER)

    def __exit__(self, *_exception: object) -> None:
        self.phase = None
        if self._timer is not None:
            with self._lock:
                self._is_armed = False
                self._set(self._timer, _RELATIVE, _DISARMED_POINTER, _NO_POINTER)

    def _make(self) -> ctypes.c_void_p:
        # PyDLL keeps the GIL: these calls do not wait for anything.
        library = ctypes.PyDLL(None, use_errno=True)
        if not hasattr(library, "timer_create"):
            library = ctypes.PyDLL("librt.so.1", use_errno=True)  # older C libraries
        library.timer_delete.argtypes = (ctypes.c_void_p,)
        timer = ctypes.c_void_p()
        event = _SigEvent(None, signal.SIGXCPU, _SIGEV_THREAD_ID, threading.get_native_id())
        clock = time.pthread_getcpuclockid(threading.get_ident())
        if library.timer_create(clock, ctypes.byref(event), ctypes.byref(timer)):
            raise OSError(ctypes.get_errno(), "timer_create")
        self._library = library
        self._set = ctypes.PyDLL(library._name).timer_settime  # keeping errno would take longer than the call
        return timer
