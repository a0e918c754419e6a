"""For tests of workflows: virtual time, crashes on demand, replay of recorded histories, facts about histories.

    from holdfast.testing import TestEngine, assert_history

    async def test_reminder_is_sent_after_a_month() -> None:
        async with TestEngine(workflows=[remind], activities=[send]) as engine:
            handle = await engine.start(remind, "ann@example.org")

            assert await handle.result() == "sent"

            assert_history(await handle.history(), ["WorkflowStarted", "TimerStarted", "TimerFired", ...])

Test cases of processes, JSON in the form of Camunda Process Test, run in virtual time too, with the coverage of elements and
flows; the plugin `holdfast.testing.pytest_plugin` makes a test of each:

    def test_orders() -> None:
        run_process_cases("order.process-test.json").check()

In CI, `replay` checks histories kept in files, and `replay_store` every open execution of a store, against new code.
"""

from holdfast.testing.assertions import EventMatcher, assert_history, assert_no_gaps, count_events, event, find_events
from holdfast.testing.clock import VirtualClock
from holdfast.testing.coverage import Coverage, ProcessCoverage
from holdfast.testing.engine import TestEngine
from holdfast.testing.histories import HistorySource, format_history, load_history, save_history
from holdfast.testing.process_runs import CaseOutcome, CaseReport, run_process_cases
from holdfast.testing.replay import Disagreement, ReplayReport, replay, replay_store

__all__ = [
    "CaseOutcome",
    "CaseReport",
    "Coverage",
    "Disagreement",
    "EventMatcher",
    "HistorySource",
    "ProcessCoverage",
    "ReplayReport",
    "TestEngine",
    "VirtualClock",
    "assert_history",
    "assert_no_gaps",
    "count_events",
    "event",
    "find_events",
    "format_history",
    "load_history",
    "replay",
    "replay_store",
    "run_process_cases",
    "save_history",
]
