"""Texts of users' values and exceptions, whatever their own methods do: raise, return something else, or misbehave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.core.interrupts import is_interrupt

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_SHOWN: Final = 200
"""Characters of a refused value that a message shows."""


def show(value: object, describe: Callable[[object], str] = str, most: int | None = None) -> str:
    """The value as plain text of at most `most` characters that UTF-8 can hold. Raises nothing but Ctrl-C."""
    try:
        text = describe(value)
        if most is not None:
            text = str.__getitem__(text, slice(most))
        # By the methods of `str` itself: the text may be of a subclass, which has its own.
        return str.encode(text, "utf-8", "backslashreplace").decode("utf-8")
    except BaseException as error:  # what cannot describe itself must still be recorded
        if is_interrupt(error):
            raise
        return f"<{name_type(value)} that cannot be shown: {name_type(error)}>"


def is_plain_text(value: object) -> bool:
    """Whether a value is text that every database can hold: PostgreSQL has no NUL, and UTF-8 no lone surrogates."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def make_plain_text(text: str) -> str:
    """The text with U+FFFD in the place of what `is_plain_text` refuses."""
    if is_plain_text(text):
        return text
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def count_noun(number: int, noun: str) -> str:
    """A number with a noun whose plural ends in s: '1 failure', '2 failures'."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def name_type(value: object) -> str:
    """The name of a value's type, by which failures are told apart."""
    name: str = type.__dict__["__name__"].__get__(type(value))  # a metaclass may have its own idea of it
    return name.encode("utf-8", "backslashreplace").decode("utf-8")
