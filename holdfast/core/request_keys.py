"""The key of a request: what makes a repeated call safe, and where the answer to a call is found."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.core.instants import Instant

MADE_UP: Final = "call"
"""The kind of key that nobody else knows: the caller gave no request id, and the key only says where its answer is kept."""


class RequestKey(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What makes a repeated request safe: the first answer is given again until it expires."""

    kind: str
    key: str
    expires_at: Instant
