from __future__ import annotations

import os
import queue
import random
import secrets
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.code import guard
from holdfast.errors import ForbiddenInWorkflow
from tests.code.guarded import running

# --- clocks and random sources ---

SOURCES: list[tuple[str, Callable[[], object], str]] = [
    ("time.time()", time.time, "ctx.now()"),
    ("time.time_ns()", time.time_ns, "ctx.now()"),
    ("time.monotonic()", time.monotonic, "ctx.now()"),
    ("time.monotonic_ns()", time.monotonic_ns, "ctx.now()"),
    ("time.perf_counter()", time.perf_counter, "ctx.now()"),
    ("time.strftime() without a time", lambda: time.strftime("%Y"), "ctx.now()"),
    ("time.gmtime() without a time", lambda: time.gmtime(None), "ctx.now()"),
    ("time.sleep()", lambda: time.sleep(0), "ctx.sleep(…)"),
    ("random.random()", random.random, "ctx.random"),
    ("random.randint()", lambda: random.randint(1, 6), "ctx.random"),
    ("random.choice()", lambda: random.choice([1, 2]), "ctx.random"),
    ("random.shuffle()", lambda: random.shuffle([1, 2]), "ctx.random"),
    ("random.seed()", lambda: random.seed(1), "ctx.random"),
    ("random.Random() without a seed", random.Random, "ctx.random"),
    ("SystemRandom.random()", lambda: random.SystemRandom().random(), "ctx.side_effect(…)"),
    ("uuid.uuid1()", uuid.uuid1, "ctx.uuid4()"),
    ("uuid.uuid4()", uuid.uuid4, "ctx.uuid4()"),
    ("os.urandom()", lambda: os.urandom(8), "ctx.random.randbytes(…)"),
    ("secrets.token_hex()", secrets.token_hex, "ctx.side_effect(…)"),
    ("secrets.choice()", lambda: secrets.choice([1, 2]), "ctx.side_effect(…)"),
]


@pytest.mark.parametrize(("called", "call", "remedy"), SOURCES, ids=[called for called, _, _ in SOURCES])
def test_source_is_refused_with_its_remedy_and_works_again_afterwards(
    called: str, call: Callable[[], object], remedy: str
) -> None:
    with running("order"), pytest.raises(ForbiddenInWorkflow) as refusal:
        call()

    assert refusal.value.message.startswith(f"Expected workflow 'order' to be deterministic, but it called {called}. Use ")
    assert remedy in refusal.value.message
    call()


def test_seeded_random_works_in_a_workflow() -> None:
    with running():
        source = random.Random(7)
        drawn = [source.random(), source.randint(1, 6), source.choice("abc"), source.getrandbits(128)]

    again = random.Random(7)
    assert drawn == [again.random(), again.randint(1, 6), again.choice("abc"), again.getrandbits(128)]


def test_time_functions_that_are_given_a_time_work_in_a_workflow() -> None:
    with running():
        assert time.gmtime(0).tm_year == 1970
        assert time.strftime("%Y", time.gmtime(0)) == "1970"


def test_other_threads_keep_their_clock_while_a_workflow_runs() -> None:
    asked: queue.Queue[Callable[[], object] | None] = queue.Queue()
    answers: queue.Queue[object] = queue.Queue()

    def serve() -> None:
        while (question := asked.get()) is not None:
            answers.put(question())

    thread = threading.Thread(target=serve)
    thread.start()

    with running():
        for question in (time.time, lambda: Path(__file__).read_text(), guard.is_active):
            asked.put(question)
        given = [answers.get() for _ in range(3)]
    asked.put(None)
    thread.join()

    assert isinstance(given[0], float)
    assert given[2] is False


def test_two_threads_can_run_workflows_at_once() -> None:
    entered, left = threading.Event(), threading.Event()

    def run_other() -> None:
        with running("other"):
            entered.set()
            left.wait()

    thread = threading.Thread(target=run_other)
    thread.start()
    entered.wait()
    try:
        with running("mine"):
            pass
        assert not guard.is_active()
        with running("mine"), pytest.raises(ForbiddenInWorkflow, match="'mine'"):
            time.time()
    finally:
        left.set()
        thread.join()


def test_patched_function_takes_no_self_as_a_class_attribute() -> None:
    class Clock:
        now: Any = time.time
        convert: Any = time.gmtime

    assert isinstance(Clock().now(), float)
    assert Clock().convert(0).tm_year == 1970


def test_patched_function_keeps_its_name_and_its_documentation() -> None:
    assert time.time.__name__ == "time"
    assert time.time.__doc__
    assert random.randint.__name__ == "randint"


def test_installing_twice_changes_nothing() -> None:
    before = (time.time, random.random, uuid.uuid4, random.Random.seed)

    guard.install()

    assert (time.time, random.random, uuid.uuid4, random.Random.seed) == before


def test_guard_leaves_the_clock_to_time_machine() -> None:
    script = """
import importlib.machinery, sys, time, types
sys.modules["time_machine"] = types.ModuleType("time_machine")
sys.modules["time_machine"].__spec__ = importlib.machinery.ModuleSpec("time_machine", None)  # other libraries look for it
from holdfast.code import guard
guard.install()
print(type(time.time).__name__, type(time.sleep).__name__)
"""

    assert run_python(script) == "builtin_function_or_method method"


# --- the marker ---


def test_guard_is_active_between_enter_and_leave() -> None:
    assert not guard.is_active()
    with running():
        assert guard.is_active()
    assert not guard.is_active()


def test_leaving_without_having_entered_does_nothing() -> None:
    guard.leave()

    assert not guard.is_active()


def test_allow_suspends_the_guard_until_its_end() -> None:
    with running():
        with guard.allow():
            assert time.time() > 0
            assert Path(__file__).read_text()
            assert not guard.is_active()
        assert guard.is_active()
        with pytest.raises(ForbiddenInWorkflow, match="'order'"):
            time.time()


def test_allow_restores_the_guard_after_an_exception() -> None:
    with running():
        with pytest.raises(ValueError, match="no"), guard.allow():
            raise ValueError("no")
        assert guard.is_active()


def test_allow_outside_a_workflow_does_nothing() -> None:
    with guard.allow():
        assert time.time() > 0
    assert not guard.is_active()


# --- files, sockets, processes, threads ---

DEEDS: list[tuple[str, Callable[[], object]]] = [
    (f"opened {__file__!r}", lambda: open(__file__)),  # noqa: PTH123, SIM115 - it must not come to that
    (f"opened {__file__!r}", lambda: Path(__file__).read_text()),
    ("opened '/x'", lambda: os.open("/x", os.O_RDONLY)),
    ("called os.listdir()", lambda: os.listdir(".")),  # noqa: PTH208 - the function itself is meant
    ("called os.remove()", lambda: Path("/x").unlink()),
    ("called os.mkdir()", lambda: Path("/x/y").mkdir()),
    ("called shutil.rmtree()", lambda: shutil.rmtree("/x")),
    ("opened a socket", socket.socket),
    ("called socket.getaddrinfo()", lambda: socket.getaddrinfo("localhost", 80)),
    ("called subprocess.Popen()", lambda: subprocess.run(["true"], check=False)),
    ("called os.system()", lambda: os.system("true")),
    ("called sqlite3.connect()", lambda: sqlite3.connect(":memory:")),
    ("started a thread", lambda: threading.Thread(target=print).start()),
    ("called input()", input),
]


@pytest.mark.parametrize(("deed", "call"), DEEDS, ids=[deed for deed, _ in DEEDS])
def test_deed_is_refused(deed: str, call: Callable[[], object]) -> None:
    expected = f"Expected workflow 'order' to be deterministic, but it {deed}."
    with running("order"), pytest.raises(ForbiddenInWorkflow) as refusal:
        call()

    assert refusal.value.message.startswith(expected)
    assert "ctx.run(" in refusal.value.message or "ctx.wait_for_signal(" in refusal.value.message


def run_python(script: str) -> str:
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
