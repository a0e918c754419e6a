"""BPMN errors as failures: an error by its code, which an error event of a diagram catches.

`holdfast.BpmnError` is raised by activities and code workflows, and recorded as a failure of the type "BpmnError" whose
details are `{"code": …, "variables": {…}}`. A child that fails with it hands it on in the same form.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.core import payloads
from holdfast.core.failures import Failure, find_original
from holdfast.core.payloads import Payload
from holdfast.errors import BpmnError

BPMN_ERROR: Final = BpmnError.__name__
"""The type of the failure that a BPMN error is recorded as."""
NO_VARIABLES: Final = Payload(msgspec.Raw(b"{}"))


class BpmnThrown(msgspec.Struct, frozen=True):
    """A BPMN error as whoever catches it reads it; `variables` is a JSON object."""

    code: str
    message: str
    variables: Payload


class _Details(msgspec.Struct, frozen=True):
    """The details of the failure, as they are recorded."""

    code: str
    variables: dict[str, msgspec.Raw] = {}


_DETAILS: Final = msgspec.json.Decoder(_Details)


def make_bpmn_error_failure(code: str, message: str = "", variables: Payload = NO_VARIABLES) -> Failure:
    """The failure that a BPMN error is recorded as: of a process whose caller catches it. `variables`: a JSON object."""
    details = b'{"code":%b,"variables":%b}' % (msgspec.json.encode(code), bytes(variables.data))
    return Failure(
        type=BPMN_ERROR,
        message=message or f"BPMN error '{code}'",
        details=Payload(msgspec.Raw(details)),
        non_retryable=True,
    )


def read_bpmn_error(failure: Failure) -> BpmnThrown | None:
    """The BPMN error that a failure records; None if it is another one.

    A workflow that fails because its activity or its child threw one, and nobody caught it, has thrown it too.
    """
    original = find_original(failure)
    if original.type != BPMN_ERROR or original.foreign or original.details is None:
        return None
    try:
        details = _DETAILS.decode(original.details.data)
    except (msgspec.MsgspecError, RecursionError):  # a failure that somebody gave this type, with details of its own
        return None
    if not details.code:
        return None
    return BpmnThrown(details.code, original.message, Payload(msgspec.Raw(msgspec.json.encode(details.variables))))


def read_attributes(failure: Failure) -> dict[str, Any]:
    """The attributes of an exception that is made of such a failure again."""
    thrown = read_bpmn_error(failure)
    if thrown is None:
        return {"code": "", "variables": {}}
    return {"code": thrown.code, "variables": payloads.show_value(thrown.variables)}
