"""What starts leave in envelopes, rows and histories: nothing of what is not used, and else what older nodes notice."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.core import behaviours, codec, envelopes, events
from holdfast.core.behaviours import check_known
from holdfast.core.chains import Chain
from holdfast.core.execution import Details, Execution
from holdfast.core.payloads import NULL
from holdfast.core.retry import RetryPolicy
from holdfast.core.turn import take_turn
from holdfast.errors import NewerFormat
from tests.core.test_turn import Script

NOW = 1_000_000


def begin(**options: Any) -> tuple[envelopes.Start, Execution, events.WorkflowStarted]:
    start = envelopes.Start(execution_id="e", workflow_id="w", workflow="order", input=NULL, **options)
    execution = Execution.register("org", start, NOW)
    turn = take_turn(execution, Script([]), [start], NOW)
    started = turn.events[0]
    assert isinstance(started, events.WorkflowStarted)
    return start, execution, started


def keys(value: Any) -> set[str]:
    return set(msgspec.json.decode(codec.encode(value)))


def test_a_plain_start_records_nothing_of_options_that_it_does_not_use() -> None:
    start, execution, started = begin()

    assert keys(start) == {"type", "execution_id", "workflow_id", "workflow", "input"}
    assert keys(started) == {"type", "workflow", "workflow_id", "input", "behaviours"}
    assert keys(execution.details) <= {"waiting"}


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"start_at": NOW + 5}, "start_at"),
        ({"chain": Chain(run_timeout_us=5)}, "chain"),
        ({"chain": Chain(execution_timeout_us=5)}, "chain"),
        ({"chain": Chain(retry=RetryPolicy())}, "chain"),
    ],
)
def test_older_nodes_cannot_read_the_envelope_and_the_row_of_a_start_with_options(
    options: dict[str, Any], field: str
) -> None:
    start, execution, _ = begin(**options)

    for value, kind in ((start, envelopes.Start), (execution.details, Details)):
        assert field in keys(value)
        assert kind.__struct_config__.forbid_unknown_fields  # whoever does not know the field refuses it


def test_older_nodes_leave_executions_with_headers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, started = begin(headers={"a": "b"})

    check_known(started.behaviours)
    monkeypatch.setattr(behaviours, "OCCASIONAL", frozenset())
    with pytest.raises(NewerFormat, match="headers"):
        check_known(started.behaviours)


def test_a_deadline_counts_from_the_end_of_the_delay_and_goes_on_over_runs() -> None:
    chain = Chain(run_timeout_us=10, execution_timeout_us=100)
    _, execution, _ = begin(start_at=NOW + 5, chain=chain)

    assert execution.details.chain is not None
    assert (execution.details.chain.run_deadline, execution.details.chain.deadline) == (NOW + 15, NOW + 105)
    following = execution.details.chain.follow(2).begin(NOW + 50)
    assert (following.run_deadline, following.deadline, following.attempt) == (NOW + 60, NOW + 105, 2)
