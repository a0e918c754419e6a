from __future__ import annotations

import functools
import sys
import textwrap
import types
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.code import deterministic_asyncio, guard


def define(body: str, imports: str = "", **more: Any) -> Callable[..., Any]:
    """A workflow without source: `imports` above it, `body` inside it from line 10 on."""
    source = textwrap.dedent(imports).strip()
    source += "\n" * (8 - source.count("\n")) + "async def flow(ctx, value=None):\n"
    source += textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"
    namespace: dict[str, Any] = {"__name__": "app", **more}
    exec(compile(source, "app.py", "exec"), namespace)
    flow: Callable[..., Any] = namespace["flow"]
    return flow


REPORTED = {
    "datetime by its module": ("import datetime", "datetime.datetime.now()", "datetime.now()"),
    "datetime by name": ("from datetime import datetime", "datetime.utcnow()", "datetime.utcnow()"),
    "datetime with arguments": ("from datetime import datetime as d, UTC", "return [1, d.now(tz=UTC)]", "datetime.now()"),
    "today": ("from datetime import date", "x = date.today()", "date.today()"),
    "bound method of a type": ("import datetime\nnow = datetime.datetime.now", "now()", "datetime.now()"),
    "subclass of datetime": (
        "from datetime import datetime\nclass Moment(datetime): pass",
        "Moment.now()",
        "Moment.now()",
    ),
    "time by its module": ("import time", "time.time()", "time.time()"),
    "time by name": ("from time import time", "return time()", "time.time()"),
    "time by another name": ("from time import monotonic as clock", "return clock()", "time.monotonic()"),
    "sleep": ("from time import sleep", "sleep(1)", "time.sleep()"),
    "random by name": ("from random import random", "if random() < 0.5: return 1", "random.random()"),
    "random as an argument": ("from random import choice", "print(choice([1, 2]))", "random.choice()"),
    "random with a star": ("import random", "random.choices(*value)", "random.choices()"),
    "uuid4 by name": ("from uuid import uuid4", "return str(uuid4())", "uuid.uuid4()"),
    "secrets": ("import secrets", "secrets.token_hex(8)", "secrets.token_hex()"),
    "input": ("", "input()", "input()"),
    "open": ("", "with open('x') as file: file.read()", "open()"),
    "a thread": ("import threading", "threading.Thread(target=print).start()", "threading.Thread()"),
    "a process": ("import subprocess", "subprocess.run(['ls'], check=True)", "subprocess.run()"),
    "a socket": ("import socket", "socket.create_connection(('x', 1))", "socket.create_connection()"),
    "urlopen": ("import urllib.request", "urllib.request.urlopen('x')", "urllib.request.urlopen()"),
    "asyncio.run": ("import asyncio", "asyncio.run(value)", "asyncio.run()"),
    "asyncio.to_thread": ("import asyncio", "await asyncio.to_thread(print, 1)", "asyncio.to_thread()"),
    "an executor": (
        "import asyncio",
        "loop = asyncio.get_running_loop()\nawait loop.run_in_executor(None, print)",
        "the event loop's run_in_executor()",
    ),
    "an import inside": ("", "from uuid import uuid4\nreturn uuid4()", "uuid.uuid4()"),
    "an import inside by another name": ("", "import time as t\nreturn t.time()", "time.time()"),
    "an import inside with dots": ("", "import urllib.request as r\nr.urlopen('x')", "urllib.request.urlopen()"),
    "a package import inside": ("", "import urllib.request\nurllib.request.urlopen('x')", "urllib.request.urlopen()"),
    "a second name of an import inside": ("", "from random import Random, random\nrandom()", "random.random()"),
    "a package that is not loaded": ("", "import aiohttp\naiohttp.ClientSession()", "aiohttp.ClientSession()"),
    "a comprehension": ("from uuid import uuid4", "return [uuid4() for _ in 'ab']", "uuid.uuid4()"),
    "an inner function": ("import time", "def inner():\n    return time.time()\nreturn inner()", "time.time()"),
    "an inner function with an outer import": ("", "import time\nreturn (lambda: time.time())()", "time.time()"),
    "a call between others": ("import uuid", "ctx.run(str, ctx.f(1), uuid.uuid4())", "uuid.uuid4()"),
}


@pytest.mark.parametrize("case", REPORTED)
def test_call_is_reported(case: str) -> None:
    imports, body, called = REPORTED[case]
    found = guard.scan(define(body, imports))

    assert len(found) == 1
    assert found[0].startswith(f"it calls {called} (app.py:1"), found


NOT_REPORTED = {
    "a function that is passed on": ("from uuid import uuid4", "ctx.side_effect(uuid4)"),
    "a method that is passed on": ("from datetime import datetime", "ctx.side_effect(datetime.now)"),
    "a function that is passed on by a local": ("from uuid import uuid4", "f = ctx.side_effect\nf(uuid4, print(1))"),
    "a lambda for a side effect": ("from datetime import datetime", "ctx.side_effect(lambda: datetime.now().isoformat())"),
    "an inner function for a side effect": (
        "import time",
        "def read():\n    return time.time()\nreturn ctx.side_effect(read)",
    ),
    "a lambda for a query": ("import time", "ctx.on_query('age', lambda: time.time())"),
    "a parameter of that name": ("import time", "def inner(time):\n    return time.time()\nreturn inner(value)"),
    "a local of that name": ("from uuid import uuid4", "uuid4 = value\nuuid4()"),
    "a local that is bound twice": ("", "import time\ntime = value\ntime.time()"),
    "a method of that name": ("", "value.now()\nvalue.time()\nvalue.open()\nvalue.run_in_executor(None, print)"),
    "a function of that name": ("def open(x): return x\ndef uuid4(): return 1", "open(1)\nuuid4()"),
    "a type": ("import asyncio, threading, uuid", "isinstance(value, threading.Thread)\nreturn uuid.UUID(int=1)"),
    "arithmetic with dates": ("from datetime import datetime, timedelta", "datetime.fromtimestamp(0) + timedelta(1)"),
    "a seeded source": ("import random", "random.Random(1).random()"),
    "the workflow's own": ("", "ctx.now()\nctx.random.random()\nctx.uuid4()\nawait ctx.sleep(1)"),
    "asyncio's own": ("import asyncio", "await asyncio.gather()\nfor x in asyncio.as_completed([]): await x"),
    "a class inside": ("import time", "class Clock:\n    def time(self): return 1\n    now = time\nreturn Clock().time()"),
    "an exception": ("import subprocess", "raise subprocess.TimeoutExpired('x', 1)"),
    "a clock of a subclass": (
        "import datetime\nclass Fixed(datetime.datetime):\n    @classmethod\n    def now(cls): return cls(2024, 1, 1)",
        "Fixed.now()",
    ),
}


@pytest.mark.parametrize("case", NOT_REPORTED)
def test_innocent_code_is_not_reported(case: str) -> None:
    imports, body = NOT_REPORTED[case]

    assert guard.scan(define(body, imports)) == []


def test_message_has_place_and_remedy() -> None:
    flow = define("x = 1\ny = datetime.now()", "from datetime import datetime")

    assert guard.scan(flow) == ["it calls datetime.now() (app.py:11). Use ctx.now() instead: it comes from history."]


def test_each_call_is_reported_once() -> None:
    flow = define("a = time.time() + time.time()\nb = uuid.uuid4()", "import time, uuid")

    assert [one.split(" (")[0] for one in guard.scan(flow)] == ["it calls time.time()", "it calls uuid.uuid4()"]


def test_name_bound_before_the_guard_is_reported_like_one_bound_after() -> None:
    guard.install()
    from holdfast.code.guard_scan import patched

    for early_or_late in patched["time.time"]:
        assert len(guard.scan(define("return clock()", clock=early_or_late))) == 1


def test_closure_is_followed() -> None:
    def make() -> Any:
        from uuid import uuid4

        async def flow(ctx: object) -> str:
            return str(uuid4())

        return flow

    assert len(guard.scan(make())) == 1


def test_early_name_of_as_completed_is_reported() -> None:
    flow = define("for x in as_completed([]): await x", as_completed=deterministic_asyncio.ORIGINALS["asyncio.as_completed"])

    (found,) = guard.scan(flow)

    assert "as_completed() by a name that was bound early" in found
    assert "asyncio.as_completed()" in found


def test_late_name_of_as_completed_is_not_reported() -> None:
    assert guard.scan(define("for x in as_completed([]): await x", as_completed=deterministic_asyncio.as_completed)) == []


def test_http_client_is_reported_when_its_request_functions_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: Any = types.ModuleType("requests")
    requests.get = lambda url: url
    requests.Timeout = type("Timeout", (Exception,), {})
    monkeypatch.setitem(sys.modules, "requests", requests)

    (found,) = guard.scan(define("try:\n    requests.get('x')\nexcept requests.Timeout:\n    pass", requests=requests))

    assert found.startswith("it calls requests.get() (app.py:11)")


def test_decorated_function_is_read_inside() -> None:
    flow = define("time.time()", "import time")

    @functools.wraps(flow)
    async def wrapper(*args: Any) -> Any:
        return await flow(*args)

    assert len(guard.scan(wrapper)) == 1
    assert len(guard.scan(functools.partial(wrapper, 1))) == 1


def test_what_has_no_code_is_not_reported() -> None:
    assert guard.scan(print) == []
