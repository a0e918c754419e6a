"""Every case of the suite `token-simulation` that is covered so far; of the others, why not.

Compared are, per scope, the order in which elements were entered, and the order in which they were left. The simulator
moves all tokens one step at a time; the interpreter moves each to its next element, first in, first out. So both agree on
the order of entering, and of leaving, where these are compared each for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from tests.bpmn.suites.simulator_traces import count_traces
from tests.bpmn.suites.token_simulation import SimulatorCase, SimulatorRun, list_cases

CASES: Final = list(list_cases())
API: Final = "it tests the interface of the simulator: no trace is expected"
EVERY_WAIT: Final = (
    "a signal reaches every wait that is open when it is thrown; in the simulator the inner one takes it away"
)
IMPLICIT: Final = "beside a start event, BPMN lets nothing begin to which no flow leads; the simulator begins it all"
ORDER: Final = "two tokens move at the same time, and the simulator lets the other one leave first"

LATER: Final[Mapping[str, str]] = {
    "inclusive-gateway": "inclusive gateways come later",
    "compensation": "compensation comes later",
    "collapsed-compensation": "compensation comes later",
    "collapsed-sub-process-compensation": "compensation comes later",
    "transaction": "transactions come later",
}
"""By how the names of diagrams begin, what they need that does not run yet."""
EXCEPTIONS: Final[Mapping[str, str]] = {
    "0-sub-process": API,
    "1-sub-process": API,
    "2-sub-process": API,
    "3-sub-process": API,
    "4-sub-process": API,
    "5-sub-process": API,
    "45-error-no-catch": "an error that nothing catches is an incident; the simulator goes on",
    "66-signal-consume": EVERY_WAIT,
    "67-signal-rethrow": EVERY_WAIT,
    "81-process-implicit-start-none-event": IMPLICIT,
    "82-process-implicit-start-trigger": IMPLICIT,
    "83-process-implicit-start-collaboration": IMPLICIT,
    "85-sub-process-multiple-starts": IMPLICIT,
    "112-event-sub-process-cancelation": EVERY_WAIT,
    "113-event-sub-process-nested-cancelation-absorb-event": EVERY_WAIT,
    "119-event-sub-process-implicit-start": IMPLICIT,
    "125-message-flow-pool-pool": "both pools are black boxes: nothing is executed",
    "135-message-flow-send-receive": "no trace is expected",
}
"""By case, why it is not compared."""
LEFT_IN_ANY_ORDER: Final[Mapping[str, str]] = {
    "59-signal-trigger-event-based-gateway": ORDER,
    "117-event-sub-process-nested-interrupting-non-interrupting-boundary": ORDER,
}
"""By case, why the order of leaving is not compared."""


def find_exception(case: SimulatorCase) -> str:
    """Why a case is not compared; empty if it is."""
    later = (reason for beginning, reason in LATER.items() if case.name.startswith(beginning))
    return EXCEPTIONS.get(case.id) or next(later, "")


COVERED: Final = [one for one in CASES if not find_exception(one)]


@pytest.mark.parametrize("case", COVERED, ids=lambda one: one.id)
def test_P1_tokens_flow_as_in_the_simulator(case: SimulatorCase) -> None:
    run = SimulatorRun(case)

    run.play()

    found, expected = run.read_found(), run.read_expected()
    if case.id in LEFT_IN_ANY_ORDER:
        for trace in (*found, *expected):
            trace.left.sort()
    if expected:
        assert count_traces(found) == count_traces(expected)
    if case.expects_end:
        assert all(one.is_closed for one in run.system.executions)
    assert expected or case.expects_end


def test_exceptions_are_cases_of_the_suite() -> None:
    assert not CASES or not ({*EXCEPTIONS, *LEFT_IN_ANY_ORDER} - {one.id for one in CASES})
