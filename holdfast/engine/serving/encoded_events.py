"""Events of clients that have their class: they travel encoded, with the options of the class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core import payloads
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.publications import EventOptions, EventOutcome
from holdfast.errors import InvalidArguments

if TYPE_CHECKING:
    from holdfast.engine.serving.server import Verb
    from holdfast.engine.use_cases.publications import PublicationCalls


def make_event_verbs(calls: PublicationCalls, check_open: Callable[[], None], limit: int) -> dict[str, Verb]:
    """The verb that sends an event which its client has encoded."""

    async def send_encoded_event(
        name: str,
        value: Any,
        *,
        options: Any,
        target: str | None = None,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> EventOutcome:
        check_open()
        try:
            read = msgspec.convert(options, EventOptions)
        except msgspec.ValidationError as error:
            raise InvalidArguments(f"Expected the options of event '{name}', but {error}. Use one version.") from None
        encoded = payloads.encode(value, f"event '{name}'", limit)
        return await calls.send_encoded(org, (name, read, encoded), target, request_id, headers)

    return {"send_encoded_event": send_encoded_event}
