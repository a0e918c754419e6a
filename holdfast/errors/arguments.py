"""What callers pass to verbs and options: names, durations, times, arguments, filters, settings."""

from __future__ import annotations

from holdfast.errors.roots import InvalidRequest


class InvalidIdentifier(InvalidRequest):
    """A workflow id, name, org or queue is empty, too long or has control characters."""


class InvalidDuration(InvalidRequest):
    """A duration is negative, longer than a century, or not a number."""


class InvalidTime(InvalidRequest):
    """A date-time has no zone or lies outside what can be stored."""


class InvalidArguments(InvalidRequest):
    """Arguments do not fit the function's signature or type hints."""

    unknown_keyword: str | None = None
    """The keyword that is no parameter, if that is what does not fit."""

    @classmethod
    def name_unknown(cls, keyword: str, what: str, parameters: str) -> InvalidArguments:
        """The error of a call that names a parameter which `what` does not have."""
        error = cls(f"Expected {what} to be called with {parameters}, but '{keyword}' is no parameter of it.")
        error.unknown_keyword = keyword
        return error


class FilterError(InvalidArguments):
    """A filter or an order of a list cannot be parsed; `position` is the place in its text, counted from 0."""

    def __init__(self, message: str, position: int = 0) -> None:
        super().__init__(message)
        self.position = position

    @classmethod
    def at(cls, what: str, text: str, position: int, expected: str, hint: str = "") -> FilterError:
        """The error of a text that has something else than what is expected at a place, which the message points at."""
        found = f"there is {text[position : position + 30]!r}" if position < len(text) else "it ends there"
        shown = text[max(0, position - 40) : position + 20].replace("\n", " ")
        pointer = " " * min(position, 40) + "^"
        said = f"Expected {what} to have {expected} at character {position + 1}, but {found}.{' ' if hint else ''}{hint}"
        return cls(f"{said}\n  {shown}\n  {pointer}", position)


class InvalidConfiguration(InvalidRequest):
    """An option of the engine, the store or the command line has no such value."""


class NodeNameTaken(InvalidConfiguration):
    """Another process works under this node's name."""
