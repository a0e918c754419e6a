"""The JSON form of test cases: what is read, and how a mistake is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import InvalidArguments
from holdfast.testing import process_cases
from holdfast.testing.process_cases import parse_cases


def write(*instructions: Any, **more: Any) -> bytes:
    return json.dumps({"testCases": [{"name": "pays", "instructions": instructions}], **more}).encode()


def test_case_file_is_read_with_what_modelers_add() -> None:
    data = write({"type": "INCREASE_TIME", "duration": "PT1H"}, processId="order", metadata={}, resources=["order.bpmn"])

    read = parse_cases(data, "cases.json")

    assert read.resources == ("order.bpmn",)
    assert read.test_cases[0].instructions == (process_cases.IncreaseTime(duration="PT1H"),)


@pytest.mark.parametrize(
    ("instruction", "told"),
    [
        ({"type": "NOPE"}, "instruction 1 of case 'pays' is 'NOPE', which is not known. Known are: ASSERT_DECISION"),
        ({"type": "EVALUATE_CONDITIONAL_START_EVENT"}, "which is not known, since conditional events do not run yet"),
        ({"type": "INCREASE_TIME", "duraton": "PT1H"}, "instruction 1 of case 'pays' is not right: Object contains unknown"),
        ({"type": "INCREASE_TIME"}, "Object missing required field `duration`"),
        ({"type": "COMPLETE_JOB", "jobSelector": {"x": 1}}, "is not right at jobSelector"),
        ({"type": "CONDITIONAL_BEHAVIOR", "conditions": [], "actions": [{"type": "NOPE"}]}, "is not right at actions"),
    ],
)
def test_unknown_instruction_or_field_fails_the_file(instruction: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        parse_cases(write(instruction), "cases.json")

    assert told in str(caught.value)
    assert str(caught.value).startswith("Expected cases.json to hold test cases of processes, but ")


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[]", b'{"testCases": 1}', b"[" * 100_000])
def test_what_is_no_case_file_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidArguments, match=r"Expected cases\.json to "):
        parse_cases(data, "cases.json")


def test_each_instruction_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "process-tests.md").read_text()

    assert [one for one in process_cases.INSTRUCTION_TYPES if f"`{one}`" not in page] == []
