"""What senders are told when a publication is refused: one error each, and nothing was stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.core.publications import Publication, SubscriptionKind
from holdfast.errors import (
    DuplicateMessage,
    ExecutionClosed,
    ExecutionNotFound,
    HoldfastError,
    LimitReached,
    MessageRefused,
    TooManyKept,
)
from holdfast.store.publications import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def make_refusal(publication: Publication, refusal: Refusal, most_kept: int) -> HoldfastError:
    """The error of a publication that the store refused."""
    return _MAKERS[refusal](publication, most_kept)


def _tell_nobody(publication: Publication, _most_kept: int) -> HoldfastError:
    return MessageRefused(
        f"Expected somebody to wait for message '{publication.name}' with the key '{publication.key}', but nobody does, and "
        "no workflow of a living node starts by it. Send it with ttl=… to keep it until somebody waits for it."
    )


def _tell_duplicate(publication: Publication, _most_kept: int) -> HoldfastError:
    return DuplicateMessage(
        f"Expected to send message '{publication.name}' with the id '{publication.id}' once, but one with that id is kept "
        f"for the key '{publication.key}' already. It will be delivered; there is nothing to do."
    )


def _tell_full(publication: Publication, most_kept: int) -> HoldfastError:
    kinds = "messages" if publication.kind is SubscriptionKind.MESSAGE else "events"
    return TooManyKept(
        f"Expected to keep '{publication.name}' until somebody waits for it, but {most_kept} {kinds} of that name are kept, "
        "as many as may be. Let somebody take them, remove some, or raise max_pending_events=…."
    )


def tell_org_full(publication: Publication, org: str, limit: int) -> LimitReached:
    """The error of a publication that cannot be kept since its org keeps as much as it may."""
    return LimitReached(
        f"Expected to keep '{publication.name}' until somebody waits for it, but org '{org}' keeps {limit} messages and "
        "events, which is its limit. Let somebody take them, remove some, or raise OrgLimits(kept_items=…).",
        org=org,
        what="kept_items",
        limit=limit,
    )


def _tell_no_target(publication: Publication, _most_kept: int) -> HoldfastError:
    return ExecutionNotFound(
        f"Expected to send event '{publication.name}' to execution {publication.target}, but there is none. Check the id."
    )


def _tell_closed_target(publication: Publication, _most_kept: int) -> HoldfastError:
    return ExecutionClosed(
        f"Expected to send event '{publication.name}' to execution {publication.target}, but it is closed. "
        "Send it to an open one, or to everybody by send_event."
    )


_MAKERS: Final[Mapping[Refusal, Callable[[Publication, int], HoldfastError]]] = {
    Refusal.NOBODY: _tell_nobody,
    Refusal.DUPLICATE: _tell_duplicate,
    Refusal.FULL: _tell_full,
    Refusal.NO_TARGET: _tell_no_target,
    Refusal.CLOSED_TARGET: _tell_closed_target,
}
