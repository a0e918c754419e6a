"""How stores say that work which may be done once is not done now."""

from __future__ import annotations

from holdfast.errors import AlreadyDone
from holdfast.store.contract import Once


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
