"""What this node's own callers want to be published, and how each of them is answered."""

from __future__ import annotations

import asyncio
from typing import TypeAlias

import msgspec

from holdfast.core.publications import Publication
from holdfast.core.request_keys import RequestKey
from holdfast.errors import HoldfastError
from holdfast.store.publications import PublicationRow, Published

PublishAnswer: TypeAlias = Published | HoldfastError
"""What a caller is told after the commit; an error: nothing was stored."""


class RememberedAnswer(msgspec.Struct, frozen=True, gc=False, tag="published"):
    """What is remembered of a publication whose call carries a request id."""

    delivered: int = 0
    started: int = 0
    kept: bool = False


class PublishRequest(msgspec.Struct, eq=False):
    """A publication of a caller, and a future that is resolved after the commit."""

    row: PublicationRow
    publication: Publication
    future: asyncio.Future[PublishAnswer]
    key: RequestKey | None = None
    """What makes a repeated call safe."""
    attempts: int = 0
    """How many transactions with it failed because the store was out of reach."""

    def resolve(self, answer: PublishAnswer) -> None:
        """Answer the caller, if it still waits."""
        if self.future.done():
            return
        if isinstance(answer, HoldfastError):
            self.future.set_exception(answer)
        else:
            self.future.set_result(answer)
