"""What a workflow may be started by, beside a call: a message or a broadcast signal, for `@workflow(starts_on=…)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from holdfast.core.publications import StartTrigger, SubscriptionKind
from holdfast.errors import InvalidConfiguration


class Message(StartTrigger, frozen=True):
    """For `starts_on`: a message of this name. Its correlation key becomes the workflow id, its value the input."""

    kind: ClassVar[SubscriptionKind] = SubscriptionKind.MESSAGE


class BroadcastSignal(StartTrigger, frozen=True):
    """For `starts_on`: a broadcast signal of this name. Its variables become the input."""

    kind: ClassVar[SubscriptionKind] = SubscriptionKind.BROADCAST


def check_triggers(given: object) -> tuple[StartTrigger, ...]:
    """What `starts_on` names, each once. Raises InvalidConfiguration for anything else."""
    if given is None:
        return ()
    listed = given if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
    for one in listed:
        if not isinstance(one, StartTrigger):
            raise InvalidConfiguration(
                "Expected starts_on=… of a workflow to be Message('…') or BroadcastSignal('…'), or a list of them, "
                f"but found {one!r}."
            )
    return tuple(dict.fromkeys(listed))
