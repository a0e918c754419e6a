"""Requests that carry a key: what is remembered of them, and what a repeated one is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.engine.requests import Accepted, Opened, Request
from holdfast.store.rows import RequestRow

if TYPE_CHECKING:
    from holdfast.core.envelopes import RequestKey


def answer_repeated(request: Request, execution_id: str, sequence: int | None) -> Opened | Accepted:
    """The answer to a repeated request, from what was remembered of the first."""
    if request.is_start:
        return Opened(execution_id, created=False, signal_sequence=sequence)
    return Accepted(execution_id, sequence)


def make_request_row(org: str, key: RequestKey, execution_id: str, sequence: int | None) -> RequestRow:
    """What is remembered of a request with a key."""
    return RequestRow(org, key.kind, key.key, execution_id, sequence, key.expires_at)
