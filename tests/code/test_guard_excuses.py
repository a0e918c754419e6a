from __future__ import annotations

import asyncio
import gc
import linecache
import logging
import signal
import sys
import tempfile
import time
import traceback
import uuid
import warnings
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from holdfast.errors import ForbiddenInWorkflow
from tests.code.guarded import run_workflow, running


def test_logging_to_a_file_is_let_through(tmp_path: Path) -> None:
    handler = logging.FileHandler(tmp_path / "log", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("tests.guard")
    logger.addHandler(handler)
    try:
        with running():
            logger.warning("said in a workflow")
    finally:
        logger.removeHandler(handler)
        handler.close()

    assert (tmp_path / "log").read_text().endswith("said in a workflow\n")


def test_import_in_a_workflow_is_let_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "guard_reads_at_import.py").write_text(
        "import time, uuid, pathlib\nSTARTED, ID = time.time(), uuid.uuid4()\nTEXT = pathlib.Path(__file__).read_text()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    with running():
        import guard_reads_at_import  # type: ignore[import-not-found]

    assert guard_reads_at_import.STARTED > 0
    del sys.modules["guard_reads_at_import"]


def test_traceback_reads_its_source_in_a_workflow() -> None:
    linecache.clearcache()
    with running():
        try:
            raise ValueError("for the traceback")
        except ValueError:
            text = traceback.format_exc()

    assert 'raise ValueError("for the traceback")' in text


def test_warning_reads_its_source_in_a_workflow() -> None:
    linecache.clearcache()
    with running():
        text = warnings.formatwarning("mind the gap", UserWarning, __file__, 1)

    assert "mind the gap" in text
    assert "from __future__" in text


def test_time_zone_is_read_in_a_workflow() -> None:
    with running():
        assert ZoneInfo.no_cache("Europe/Berlin").key == "Europe/Berlin"


def test_asyncio_may_read_the_clock_itself() -> None:
    loop = asyncio.new_event_loop()
    try:
        with running():
            assert loop.time() > 0
    finally:
        loop.close()


def test_finalizer_of_another_object_is_let_through(tmp_path: Path) -> None:
    class Temporary:
        def __del__(self) -> None:
            (tmp_path / "closed").write_text(str(time.time()))

    other = [Temporary()]
    folder = [tempfile.TemporaryDirectory(dir=tmp_path, prefix="gone")]
    with running(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.clear()
        folder.clear()

    assert (tmp_path / "closed").exists()
    assert not list(tmp_path.glob("gone*"))


def test_callback_of_the_garbage_collector_is_let_through() -> None:
    pauses: list[float] = []

    def measure(_phase: str, _info: dict[str, int]) -> None:
        pauses.append(time.perf_counter())

    gc.disable()  # it would begin by itself whenever it likes
    gc.callbacks.append(measure)
    try:
        with running():
            gc.collect()
    finally:
        gc.callbacks.remove(measure)
        gc.enable()

    assert len(pauses) == 2


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs a signal to spare")
def test_signal_handler_is_let_through() -> None:
    seen: list[float] = []
    before = signal.signal(signal.SIGUSR1, lambda _number, _frame: seen.append(time.time()))
    try:
        with running():
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert len(seen) == 1


def test_package_below_the_loop_excuses_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # An application that runs its engine while one of its modules is imported.
    (tmp_path / "guard_runs_at_import.py").write_text("import tests_guard_hook\ntests_guard_hook.run()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    outcome: list[BaseException | None] = []

    async def flow() -> None:
        time.time()

    def run() -> None:
        outcome.append(run_workflow(flow))

    hook: Any = type(sys)("tests_guard_hook")
    hook.run = run
    monkeypatch.setitem(sys.modules, "tests_guard_hook", hook)

    import guard_runs_at_import  # type: ignore[import-not-found]

    assert isinstance(outcome[0], ForbiddenInWorkflow)
    del sys.modules[guard_runs_at_import.__name__]


def test_refusal_reaches_the_workflow_on_its_own_loop() -> None:
    async def flow() -> str:
        try:
            await asyncio.to_thread(print)
        except ForbiddenInWorkflow:
            pass
        return uuid.uuid4().hex

    assert isinstance(run_workflow(flow), ForbiddenInWorkflow)
