"""Workflow code that cannot be interrupted ends its process, which says where it was; one that stands still lives."""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from holdfast import Engine, Status
from holdfast.engine.turns import cpu_timer
from holdfast.engine.turns.cpu_timer import CpuTimer
from holdfast.engine.turns.watchdog import EXIT_CODE
from tests.engine import stuck
from tests.eventually import eventually_blocking
from tests.postgres.access import connect

ROOT = Path(__file__).parents[2]
MOST_PROCESSES = 12
LINUX = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only there a timer counts a thread's processor time"
)


@pytest.fixture(params=["sqlite", "postgres"])
def lasting_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of each kind of database that outlives a process."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'app.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@contextmanager
def start_process(url: str, how: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.engine.stuck", url, how],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def run_process(url: str, how: str) -> tuple[int, str]:
    """Let the process run to its end; its exit code, and what it said."""
    with start_process(url, how) as process:
        out, err = process.communicate(timeout=60)
        return process.returncode, out + err


@pytest.mark.parametrize("how", ["waits", "swallows"])
def test_code_that_cannot_be_interrupted_ends_its_process(lasting_url: str, how: str) -> None:
    code, said = run_process(lasting_url, how)

    assert code == EXIT_CODE, said
    assert re.search(
        r"CRITICAL:holdfast\.engine:Expected workflow 'stuck' \(execution [0-9a-f-]+\) to come to rest within 0\.2 s, but "
        rf"its code still runs at {re.escape(stuck.__file__)}:\d+ and cannot be interrupted",
        said,
    ), said


def test_D2_finalizer_that_never_ends_ends_its_process(lasting_url: str) -> None:
    code, said = run_process(lasting_url, "collected")

    assert code == EXIT_CODE, said
    assert "CRITICAL:holdfast.engine:Expected to take turns, but for 1 s the thread has been stuck" in said
    assert "in __del__" in said


def test_node_that_ends_its_process_gives_up_its_lease_without_a_goodbye(postgres_url: str) -> None:
    code, said = run_process(postgres_url, "waits")

    assert code == EXIT_CODE, said
    with connect(postgres_url) as connection:
        rows = connection.execute("SELECT seen_at, has_left FROM nodes WHERE node = 'stuck'").fetchall()
    assert rows == [(0, False)], "others take over at once, and count it among those that died"


async def test_N3_turn_that_waits_for_ever_is_found_and_its_execution_blocked(lasting_url: str) -> None:
    codes: list[int] = []
    while not codes or (codes[-1] != 0 and len(codes) < MOST_PROCESSES):
        code, said = run_process(lasting_url, "waits")
        codes.append(code)
        assert code in (0, EXIT_CODE), said

    assert codes[-1] == 0
    assert len(codes) <= 9, "two until care is taken, then five that are counted, and the one that lives"
    async with Engine(lasting_url, workflows=[stuck.stuck, stuck.sends]) as engine:
        info = await engine.query_status("doomed")
        assert info.status is Status.BLOCKED
        assert "to take its turn, but 5 times in a row the process that tried ended." in str(info.last_error)


@LINUX
@pytest.mark.parametrize("how", ["sums", "matches"])
def test_call_that_holds_the_interpreter_ends_its_process_and_shows_where(how: str, tmp_path: Path) -> None:
    code, said = run_process(f"sqlite:///{tmp_path / 'app.db'}", how)

    assert code == -signal.SIGXCPU, said
    assert "most recent call first" in said
    assert re.search(rf'File "{re.escape(stuck.__file__)}", line \d+ in stuck', said), said


@LINUX
@pytest.mark.parametrize("how", ["evict", "remove", "terminate", "shut down"])
def test_D2_finally_block_that_holds_the_interpreter_ends_its_process(how: str, tmp_path: Path) -> None:
    code, said = run_process(f"sqlite:///{tmp_path / 'app.db'}", f"drop by {how}")

    assert code == -signal.SIGXCPU, said
    assert re.search(rf'File "{re.escape(stuck.__file__)}", line \d+ in lingers', said), said


def test_process_that_stands_still_in_a_turn_is_left_alone(lasting_url: str) -> None:
    with start_process(lasting_url, "stands still") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in the turn\n"
        eventually_blocking(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED, "it to stand still")
        time.sleep(10 * stuck.LIMIT)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=60)

    assert process.returncode == 0, err
    assert out.endswith("doomed is completed\n"), out + err


# --- the timer ---


@pytest.fixture
def own_signal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """SIGXCPU as in a new process: an engine that another test failed to close does not use it."""
    faulthandler.unregister(signal.SIGXCPU)
    monkeypatch.setattr(cpu_timer, "_printing", cpu_timer._Printing())
    yield
    faulthandler.unregister(signal.SIGXCPU)


def catches(number: int) -> bool:
    """Whether this process has a handler for a signal, as the system sees it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    caught = re.search(r"SigCgt:\s*([0-9a-f]+)", status)
    assert caught
    return bool(int(caught[1], 16) >> (number - 1) & 1)


@LINUX
@pytest.mark.usefixtures("own_signal")
def test_several_timers_share_the_signal_and_the_last_one_gives_it_back() -> None:
    one, other = CpuTimer(10), CpuTimer(10)
    one.open()
    thread = threading.Thread(target=other.open)
    thread.start()
    thread.join()
    assert one.works
    assert other.works

    one.close()
    one.close()
    assert catches(signal.SIGXCPU)
    other.close()
    assert not catches(signal.SIGXCPU)


@LINUX
@pytest.mark.usefixtures("own_signal")
def test_handler_of_the_process_is_left_alone() -> None:
    signal.signal(signal.SIGXCPU, lambda *_: None)
    timer = CpuTimer(0.01)
    try:
        timer.open()
        with timer:
            sum(range(10**6))
        timer.close()
        assert not timer.works
        assert catches(signal.SIGXCPU)
    finally:
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)


@LINUX
@pytest.mark.usefixtures("own_signal")
def test_timer_is_at_rest_outside_of_its_context_and_never_strikes_who_sleeps() -> None:
    timer = CpuTimer(0.05)
    timer.open()

    with timer:
        time.sleep(0.2)
    timer.renew()
    until = time.thread_time() + 0.2
    while time.thread_time() < until:
        pass

    timer.close()


@LINUX
@pytest.mark.usefixtures("own_signal")
def test_timer_does_not_strike_as_long_as_it_is_renewed() -> None:
    timer = CpuTimer(0.2)
    timer.open()

    with timer:
        until = time.thread_time() + 0.6
        while time.thread_time() < until:
            timer.renew()

    timer.close()


@LINUX
@pytest.mark.usefixtures("own_signal")
async def test_nothing_is_left_behind_when_engines_close() -> None:
    engines = [Engine("memory://", workflows=[stuck.stuck]) for _ in range(2)]
    for engine in engines:
        await engine.open()
    assert catches(signal.SIGXCPU)

    for engine in engines:
        await engine.shutdown()

    assert not catches(signal.SIGXCPU)
    assert not any(engine._runtime.turn_limit.cpu_timer.works for engine in engines)
