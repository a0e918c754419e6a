"""The HTTP status of each error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors.definitions import UnknownActivity, UnknownEvent, UnknownWorkflow
from holdfast.errors.engines import ConnectionRefused, EngineClosed
from holdfast.errors.executions import ExecutionBlocked, LimitReached, ResultTimedOut
from holdfast.errors.handlers import AnswerTimedOut, NobodyAnswers, UnknownQuery, UnknownUpdate
from holdfast.errors.payloads import PayloadTooLarge
from holdfast.errors.roots import Conflict, HoldfastError, InvalidRequest, NotFound
from holdfast.errors.stores import StoreError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping


STATUS_CODES: Mapping[type[HoldfastError], int] = {
    InvalidRequest: 422,
    PayloadTooLarge: 413,
    UnknownWorkflow: 404,
    UnknownActivity: 404,
    UnknownUpdate: 404,
    UnknownQuery: 404,
    UnknownEvent: 404,
    NotFound: 404,
    Conflict: 409,
    LimitReached: 429,
    ExecutionBlocked: 409,
    ResultTimedOut: 504,
    AnswerTimedOut: 504,
    NobodyAnswers: 503,
    EngineClosed: 503,
    ConnectionRefused: 403,
    StoreError: 500,
    StoreUnavailable: 503,
    HoldfastError: 500,
}


def status_code(error: HoldfastError) -> int:
    """The HTTP status of an error: that of the nearest class up the tree."""
    return next((STATUS_CODES[cls] for cls in type(error).__mro__ if cls in STATUS_CODES), 500)
