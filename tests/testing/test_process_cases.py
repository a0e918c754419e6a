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


def test_byte_order_mark_is_no_part_of_a_file() -> None:
    data = write({"type": "INCREASE_TIME", "duration": "PT1H"})

    assert parse_cases(b"\xef\xbb\xbf" + data, "cases.json") == parse_cases(data, "cases.json")


@pytest.mark.parametrize("number", ["1e400", "-1e400"])
def test_number_out_of_range_is_told_with_its_place(number: str) -> None:
    data = write({"type": "BROADCAST_SIGNAL", "signalName": "x", "variables": {"a": "N"}})

    with pytest.raises(InvalidArguments) as caught:
        parse_cases(data.replace(b'"N"', number.encode()), "cases.json")

    assert "instruction 1 of case 'pays' is not right at variables" in str(caught.value)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (
            (
                '{"testCases": [{"name": "pays", "instructions": [{"type": "BROADCAST_SIGNAL", "signalName": "x", '
                '"variables": {"a": 1, "b": 2, "a": 1}}]}]}'
            ),
            "instruction 1 of case 'pays' is not right at variables: name 'a' is given more than once.",
        ),
        (
            '{"testCases": [{"name": "x", "instructions": [], "instructions": []}]}',
            "it does not: name 'instructions' is given more than once - at `$.testCases[0]`.",
        ),
        ('{"testCases": [], "testCases": []}', "name 'testCases' is given more than once - at `$`."),
        ('{"testCases": [], "metadata": {"a": {"b": 1, "b": 2}}}', "name 'b' is given more than once - at `$.metadata.a`."),
    ],
)
def test_name_that_an_object_has_twice_fails_the_file(data: str, told: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        parse_cases(data.encode(), "cases.json")

    assert str(caught.value).startswith("Expected cases.json to hold test cases of processes, but ")
    assert told in str(caught.value)


def test_wrong_case_among_repeated_names_is_told_by_its_number() -> None:
    with pytest.raises(InvalidArguments, match="instruction 1 of case 1 is 'NOPE'"):
        parse_cases(b'{"testCases": [{"instructions": [{"type": "NOPE"}]}], "x": 1e400}', "cases.json")


def test_each_instruction_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "process-tests.md").read_text()

    assert [one for one in process_cases.INSTRUCTION_TYPES if f"`{one}`" not in page] == []
