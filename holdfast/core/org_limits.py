"""How much one organisation may have at once: what callers set, and what they are told when there is no room."""

from __future__ import annotations

import msgspec


class OrgLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much one org may have at once; None: as much as it likes. `Engine(…, org_limits=OrgLimits(…))` sets it."""

    open_executions: int | None = None
    """Executions that have not ended. More are not started."""
    subscriptions: int | None = None
    """Waits for messages, events and broadcast signals. Further ones fail."""
    kept_items: int | None = None
    """Messages and events that are kept until somebody waits for them. Further ones are refused."""


def tell_no_subscription(org: str, limit: int) -> str:
    """What a workflow is told whose wait would be one too many."""
    return (
        f"Expected org '{org}' to have fewer than {limit} subscriptions, but it has as many, which is its limit. "
        "End other waits for messages, events or broadcast signals, or raise OrgLimits(subscriptions=…)."
    )
