"""BPMN errors as failures: recorded by code, message and variables, and read back the same."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import BpmnError
from holdfast.core import payloads
from holdfast.core.bpmn_errors import BpmnThrown, make_bpmn_error_failure, read_bpmn_error
from holdfast.core.failures import Failure, describe_exception
from holdfast.core.payloads import Payload
from holdfast.core.rebuilt_errors import find_no_errors, rebuild
from holdfast.errors import ActivityFailed, ApplicationFailure, ChildWorkflowFailed, InvalidArguments

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def record(error: BaseException) -> Failure:
    try:
        raise error
    except BaseException as raised:
        return describe_exception(raised)


def decode(thrown: BpmnThrown | None) -> Any:
    assert thrown is not None
    return payloads.show_value(thrown.variables)


@given(st.text(min_size=1, max_size=20).filter(str.strip), st.text(max_size=20), st.dictionaries(st.text(max_size=5), JSON))
def test_raised_error_is_read_back(code: str, message: str, variables: dict[str, Any]) -> None:
    thrown = read_bpmn_error(record(BpmnError(code, message, variables)))

    assert decode(thrown) == variables
    assert thrown is not None
    assert thrown.code == code
    assert thrown.message == (message or f"BPMN error '{code}'")


def test_recorded_form_is_the_documented_one() -> None:
    failure = record(BpmnError("declined", "no cover", {"limit": 50}))

    assert (failure.type, failure.message, failure.non_retryable, failure.foreign) == ("BpmnError", "no cover", True, False)
    assert failure.details is not None
    assert bytes(failure.details.data) == b'{"code":"declined","variables":{"limit":50}}'


def test_made_failure_is_recorded_like_a_raised_one() -> None:
    raised = record(BpmnError("declined", "no cover", {"limit": 50}))
    made = make_bpmn_error_failure("declined", "no cover", Payload(msgspec.Raw(b'{"limit":50}')))

    assert made == msgspec.structs.replace(raised, trace="")
    assert read_bpmn_error(made) == read_bpmn_error(raised)
    assert decode(read_bpmn_error(make_bpmn_error_failure('odd "code"\n'))) == {}


def test_error_of_an_activity_is_that_of_the_workflow_that_does_not_catch_it() -> None:
    failed = rebuild(ActivityFailed, "activity", record(BpmnError("declined", "no", {"a": 1})), find_no_errors())
    child = rebuild(ChildWorkflowFailed, "child", record(failed), find_no_errors())

    for one in (failed, child):
        assert isinstance(one, BpmnError)
        assert (one.code, one.variables) == ("declined", {"a": 1})
    assert read_bpmn_error(record(child)) == read_bpmn_error(record(failed))
    assert decode(read_bpmn_error(record(child))) == {"a": 1}
    assert isinstance(failed.__cause__, BpmnError)
    assert failed.__cause__.code == "declined"


def test_subclass_is_recorded_as_the_error_itself() -> None:
    class Declined(BpmnError):
        def __init__(self) -> None:
            super().__init__("declined")

    assert read_bpmn_error(record(Declined())) == BpmnThrown(
        "declined", "BPMN error 'declined'", Payload(msgspec.Raw(b"{}"))
    )


def test_other_failures_are_no_bpmn_errors() -> None:
    own = type("BpmnError", (Exception,), {"details": {"code": "x"}})
    wrapped = ValueError("no")
    wrapped.__cause__ = BpmnError("x")

    for error in (
        ValueError("BpmnError"),
        ApplicationFailure("no", type="BpmnError"),
        ApplicationFailure("no", type="BpmnError", details={"code": ""}),
        ApplicationFailure("no", type="BpmnError", details={"code": 5}),
        ApplicationFailure("no", type="BpmnError", details={"code": "x", "variables": [1]}),
        own("no"),
        wrapped,
    ):
        assert read_bpmn_error(record(error)) is None


def test_variables_that_json_cannot_hold_are_the_failure_instead() -> None:
    failure = record(BpmnError("declined", variables={"socket": object()}))

    assert (failure.type, failure.non_retryable) == ("EncodingError", True)
    assert failure.message.startswith(
        "Expected the variables of BpmnError('declined') to be values that JSON can hold, but: "
    )
    assert failure.cause is not None
    assert failure.cause.type == "BpmnError"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("",), r"^Expected BpmnError\(…\) to get the code of an error, a text that is not empty, but it got ''\."),
        (("  ",), "but it got '  '"),
        ((None,), "but it got None"),
        ((404,), "but it got 404"),
        (("x", None), r"^Expected the message of BpmnError\('x'\) to be a text, but it is a NoneType\."),
        (
            ("x", "", [1]),
            r"^Expected the variables of BpmnError\('x'\) to be a mapping from names to values, but they are \[1\]",
        ),
        (("x", "", {1: 2}), r"but they are \{1: 2\}\. Pass for instance"),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple[Any, ...], reason: str) -> None:
    with pytest.raises(InvalidArguments, match=reason):
        BpmnError(*arguments)


def test_error_survives_pickling_and_copying() -> None:
    error = BpmnError("declined", "no cover", {"limit": 50})

    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert (again.code, str(again), again.variables) == ("declined", "no cover", {"limit": 50})
        assert again.details == error.details
