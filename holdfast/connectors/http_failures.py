"""How a call fails: the types of its failures, as histories, retry policies and error expressions know them."""

from __future__ import annotations

from typing import Any, Final

from holdfast.errors import ApplicationFailure

REFUSED: Final = "HttpRefused"
"""The request may not be made, or is none: no host of the allow-list, a private address, a header with a line break."""
STATUS: Final = "HttpStatus"
"""The service answered with a status that is no success."""
CONNECTION: Final = "HttpConnectionFailed"
"""The service was not reached, or did not answer to the end."""
TIMED_OUT: Final = "HttpTimedOut"
TOO_LARGE: Final = "HttpResponseTooLarge"


class CallFailed(ApplicationFailure):
    """A call that failed; history records it as an ApplicationFailure of one of the types above."""

    def __init__(self, message: str, type: str, *, details: Any = None, is_final: bool = False) -> None:
        super().__init__(message, type=type, details=details, non_retryable=is_final)


def make_refusal(expected: str, found: str, remedy: str) -> CallFailed:
    """The failure of a request that is not made, and never will be as it is."""
    return CallFailed(f"Expected {expected}, but {found}. {remedy}", REFUSED, is_final=True)
