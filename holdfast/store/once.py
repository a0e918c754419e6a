"""What is done once, however often it is asked for: work of users, and calls that carry a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from holdfast.core.codec import decode_with
from holdfast.core.instants import Instant
from holdfast.errors import AlreadyDone
from holdfast.store.rows import HistoryRow, RequestRow

_NUMBER: Final = msgspec.json.Decoder(int)


class Once(msgspec.Struct, frozen=True, gc=False):
    """What makes work happen at most once, and only while an execution wants it."""

    request: RequestRow
    """Remembered by the same commit. If it was remembered before, the work was done."""
    after: int
    is_wanted: Callable[[Sequence[HistoryRow]], bool]
    """Asked when the work is done, about the history of the request's execution behind the sequence `after`, while that
    execution is held against other transactions until the commit. One that is closed wants nothing."""


class KeyedCall(msgspec.Struct, frozen=True, gc=False):
    """What makes a call outside of batches change something at most once.

    The store remembers what it returns by the same commit that changes something. A call that is remembered changes nothing,
    and returns that again. Of two with one key the second waits for the end of the first.
    """

    request: RequestRow
    """Its key. The answer is what the call returns, as a JSON number."""
    now: Instant
    remembers_refusal: bool = True
    """Whether 0 is remembered like every other answer; else nothing is, and the caller may try again under the same key."""

    @property
    def key(self) -> tuple[str, str, str]:
        """The key under which the store remembers the call."""
        return self.request.org, self.request.kind, self.request.key

    def answered(self, answer: int) -> RequestRow:
        """What the store remembers of the call."""
        return msgspec.structs.replace(self.request, answer=b"%d" % answer)


class NothingDone(Exception):
    """A keyed call changed nothing, and is not to be remembered: its transaction is rolled back."""


def read_answer(remembered: RequestRow) -> int:
    """What was returned to a call that is remembered. Raises CorruptStore."""
    return 0 if remembered.answer is None else decode_with(_NUMBER, remembered.answer, "the answer to a call")


def done_before(once: Once) -> AlreadyDone:
    """The request was remembered by an earlier commit."""
    return AlreadyDone(
        f"Expected to do '{once.request.key}' for the first time, but it was done before. Its first result counts."
    )


def not_wanted(once: Once) -> AlreadyDone:
    """The execution has ended, or no longer waits for it."""
    return AlreadyDone(
        f"Expected execution '{once.request.execution_id}' to wait for '{once.request.key}', but it no longer does. "
        "What was done is undone."
    )
