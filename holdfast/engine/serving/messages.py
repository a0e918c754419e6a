"""What frames hold: greetings, calls, and errors with all their fields."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime
from enum import Enum
from typing import Any, Final

import msgspec

from holdfast import errors
from holdfast.core.references import BusinessReference
from holdfast.core.retry import RetryPolicy
from holdfast.engine.deployment_views import DefinitionInfo
from holdfast.engine.incident_views import IncidentInfo
from holdfast.engine.stale_views import StaleItem
from holdfast.engine.task_views import TaskInfo
from holdfast.engine.views import ExecutionInfo
from holdfast.errors import HoldfastError, StoreFault

_ERRORS: Final = {
    name: one for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, HoldfastError)
}
_ENUMS: Final[dict[str, type[Enum]]] = {"fault": StoreFault}
"""Fields of errors that are members of an enumeration."""


class Hello(msgspec.Struct, frozen=True):
    """What a client says first; and second, with its proof, where the server asks for one."""

    protocol: int
    version: str
    nonce: str = ""
    proof: str = ""


class Welcome(msgspec.Struct, frozen=True):
    """What the server answers: who it is, and how long a call may be."""

    protocol: int
    version: str
    longest_call: int
    nonce: str = ""
    """Where the client has to prove itself: what it is to sign."""
    proof: str = ""
    """The proof of the server itself."""


class Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call: a verb and its arguments."""

    verb: str
    positional: list[Any] = []
    payloads: list[Any] | msgspec.Raw | None = None
    """Arguments of a workflow, which follow those by position."""
    named: dict[str, Any] = {}
    times: dict[str, datetime] = {}
    """Named arguments that are moments."""
    seconds: dict[str, float] = {}
    """Named arguments that are lengths of time."""
    retry: RetryPolicy | None = None
    """The named argument `retry`, if there is one."""
    reference: BusinessReference | None = None
    """The named argument `business_reference`, if there is one."""
    is_bound: bool = False
    """Whether the last by position is a workflow that `payloads` are all arguments of: what is named are options."""


class Started(msgspec.Struct, frozen=True):
    """The answer to a start: what the caller's handle is on."""

    workflow_id: str
    execution_id: str
    created: bool | None


class Page(msgspec.Struct, frozen=True):
    """The answer to a list: the executions, and where the next page begins."""

    executions: list[ExecutionInfo]
    cursor: str | None


class TaskPage(msgspec.Struct, frozen=True):
    """The answer to a list of human tasks, and where the next page begins."""

    tasks: list[TaskInfo]
    cursor: str | None


class StalePage(msgspec.Struct, frozen=True):
    """The answer to a list of stale work, and where the next page begins."""

    stale: list[StaleItem]
    cursor: str | None


class IncidentPage(msgspec.Struct, frozen=True):
    """The answer to a list of incidents, and where the next page begins."""

    incidents: list[IncidentInfo]
    cursor: str | None


class DefinitionPage(msgspec.Struct, frozen=True):
    """The answer to a list of deployed definitions, and where the next page begins."""

    definitions: list[DefinitionInfo]
    cursor: str | None


class ErrorMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error on its way to the caller."""

    type: str
    message: str
    fields: dict[str, Any] = {}


def sign(token: str, side: str, nonce: str) -> str:
    """The proof that one side knows the token, without telling it."""
    return hmac.new(token.encode(), f"{side}:{nonce}".encode(), hashlib.sha256).hexdigest()


def is_signed(proof: str, token: str, side: str, nonce: str) -> bool:
    """Whether a proof was made with the token."""
    return hmac.compare_digest(proof.encode(), sign(token, side, nonce).encode())


def encode_error(error: HoldfastError) -> bytes:
    """An error with all its fields. Those that JSON cannot hold are sent as text."""
    fields = {
        name: value.name if isinstance(value, Enum) else value
        for name, value in vars(error).items()
        if name != "message" and not name.startswith("_")
    }
    message = ErrorMessage(type(error).__name__, error.message, fields)
    return msgspec.json.encode(message, enc_hook=repr)


def decode_error(body: bytes) -> HoldfastError:
    """The error as it was raised; of a class that is not known here, as a HoldfastError."""
    message = msgspec.json.decode(body, type=ErrorMessage)
    cls = _ERRORS.get(message.type, HoldfastError)
    error = cls.__new__(cls, message.message)
    HoldfastError.__init__(error, message.message)
    for name, value in message.fields.items():
        enum = _ENUMS.get(name)
        setattr(error, name, enum[value] if enum is not None and value in enum.__members__ else value)
    return error
