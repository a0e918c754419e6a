"""What workflow code must not call, and what it can do instead: tables that the guard and the scan share.

Names are written with their modules and looked up when they are needed, so that this file imports none of them.
"""

from __future__ import annotations

from typing import Final

NOW: Final = "Use ctx.now() instead: it comes from history."
SLEEP: Final = "Use `await ctx.sleep(…)` or `await asyncio.sleep(…)` instead: both are durable timers."
RANDOM: Final = "Use ctx.random instead: it gives the same numbers on every replay."
RANDOM_BYTES: Final = "Use ctx.random.randbytes(…) instead: it gives the same bytes on every replay."
UUID: Final = "Use ctx.uuid4() instead: it gives the same ids on every replay."
SIDE_EFFECT: Final = "Use ctx.side_effect(…) instead: it calls the function once and keeps what it returned in history."
ACTIVITY: Final = "Do it in an activity: `await ctx.run(my_activity, …)`."
SIGNAL: Final = "Use `await ctx.wait_for_signal(…)` instead, and send the answer as a signal."


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _name_all(module: str, names: str, remedy: str) -> dict[str, str]:
    return {f"{module}.{name}": remedy for name in names.split()}


CLOCKS: Final = _name_all(
    "time",
    "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns "
    "process_time process_time_ns thread_time thread_time_ns",
    NOW,
)
"""Functions of `time` that take no parameters and give the time."""

CLOCK_DEFAULTS: Final = {"time.gmtime": 0, "time.localtime": 0, "time.ctime": 0, "time.asctime": 0, "time.strftime": 1}
"""Functions that read the clock only when the argument at this position is left out."""

PATCHED: Final = {
    **CLOCKS,
    **_name_all("time", "clock_gettime clock_gettime_ns", NOW),
    "time.sleep": SLEEP,
    **_name_all(
        "random",
        "betavariate binomialvariate choice choices expovariate gammavariate gauss getrandbits getstate lognormvariate "
        "normalvariate paretovariate randbytes randint random randrange sample seed setstate shuffle triangular uniform "
        "vonmisesvariate weibullvariate",
        RANDOM,
    ),
    **_name_all("uuid", "uuid1 uuid4 uuid6 uuid7 getnode", UUID),
    **_name_all("os", "urandom getrandom", RANDOM_BYTES),
    **_name_all("secrets", "choice randbelow randbits token_bytes token_hex token_urlsafe", SIDE_EFFECT),
}
"""Functions that refuse while workflow code runs. Those that this version of Python lacks are passed over."""

_VERBS: Final = "get post put patch delete head options request"

SCANNED: Final = {
    **PATCHED,
    "builtins.input": SIGNAL,
    "builtins.open": ACTIVITY,
    **_name_all("pendulum", "now today", NOW),
    **_name_all("arrow", "now utcnow", NOW),
    "django.utils.timezone.now": NOW,
    **_name_all(
        "asyncio",
        "run to_thread open_connection start_server create_subprocess_exec create_subprocess_shell run_coroutine_threadsafe",
        ACTIVITY,
    ),
    **_name_all("threading", "Thread Timer", ACTIVITY),
    **_name_all("concurrent.futures", "ThreadPoolExecutor ProcessPoolExecutor", ACTIVITY),
    **_name_all("concurrent.futures.thread", "ThreadPoolExecutor", ACTIVITY),
    **_name_all("concurrent.futures.process", "ProcessPoolExecutor", ACTIVITY),
    **_name_all("multiprocessing", "Pool Process", ACTIVITY),
    **_name_all("subprocess", "Popen call check_call check_output getoutput getstatusoutput run", ACTIVITY),
    **_name_all("os", "popen system", ACTIVITY),
    **_name_all("socket", "socket create_connection create_server getaddrinfo gethostbyname", ACTIVITY),
    **_name_all("urllib.request", "urlopen urlretrieve", ACTIVITY),
    **_name_all("http.client", "HTTPConnection HTTPSConnection", ACTIVITY),
    **_name_all("smtplib", "SMTP SMTP_SSL", ACTIVITY),
    "sqlite3.connect": ACTIVITY,
    **_name_all("requests", f"{_VERBS} Session session", ACTIVITY),
    **_name_all("httpx", f"{_VERBS} stream Client AsyncClient", ACTIVITY),
    **_name_all("aiohttp", "request ClientSession", ACTIVITY),
    **_name_all("urllib3", "request PoolManager", ACTIVITY),
}
"""Functions and classes that the scan reports when workflow code calls them by name."""

AUDITED_EVENTS: Final = {
    "_thread.start_new_thread": ("started a thread", ACTIVITY),
    "_thread.start_joinable_thread": ("started a thread", ACTIVITY),
    "builtins.input": ("called input()", SIGNAL),
    "socket.__new__": ("opened a socket", ACTIVITY),
    "time.sleep": ("called time.sleep()", SLEEP),
}
"""Audit events with words of their own. `open` names its file; the others are named by their event."""

AUDITED_FAMILIES: Final = _words(
    "fcntl ftplib glob http imaplib mmap msvcrt nntplib open os pathlib poplib pty shutil smtplib socket sqlite3 subprocess "
    "syslog telnetlib tempfile urllib webbrowser winreg"
)
"""What stands before the first dot of an audit event that touches files, the network or processes."""

EXCUSED_CALLERS: Final = _words("asyncio threading")
"""Packages that may read the clock themselves; what they call may not."""

EXCUSED_PACKAGES: Final = frozenset().union(
    _words("_frozen_importlib _frozen_importlib_external importlib zipimport"),
    _words("linecache traceback warnings"),
    _words("ddtrace logging loguru opentelemetry sentry_sdk structlog"),
    _words("_pydev_bundle _pydevd_bundle bdb coverage debugpy pdb pydevd"),
    _words("weakref"),  # calls finalizers of objects that have nothing to do with the workflow
    _words("dateutil gettext pytz zoneinfo"),  # read time zones and translations from files
)
"""Packages that may do anything, and what they call too: workflow code learns nothing from it that it decides upon."""


def describe_refusal(workflow: str, deed: str, remedy: str) -> str:
    """The message for something that workflow code did, such as "called time.time()"."""
    return f"Expected workflow '{workflow}' to be deterministic, but it {deed}. {remedy}"
