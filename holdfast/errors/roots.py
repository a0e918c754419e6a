"""The errors that the others stand on."""

from __future__ import annotations

from typing import Any


class HoldfastError(Exception):
    """The root of the tree; `message` says what was expected, what is the case, and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidRequest(HoldfastError):
    """The request cannot be right, whenever it is made; nothing was stored."""


class NotFound(HoldfastError):
    """Nothing in the database has the id that was asked for."""


class Conflict(HoldfastError):
    """The request is fine, the moment is not; nothing was stored."""


class StepError(HoldfastError):
    """Something that the workflow asked for did not succeed.

    Built from history alone, so that `except` matches on replay as it did at first.
    `type` is the name of the original exception's class, `message` what it said, `__cause__` the exception made again.
    """

    trace = ""
    """Where the original exception was raised, a line per frame, as recorded."""

    def __init__(self, message: str, *, name: str = "", type: str = "", details: Any = None, attempt: int = 0) -> None:
        super().__init__(message)
        self.name = name
        self.type = type
        self.details = details
        self.attempt = attempt
