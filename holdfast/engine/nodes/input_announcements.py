"""The input schemas of this node's workflows: put into the store when they change, and named by each heartbeat."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from holdfast.core.input_schemas import encode_input_schema
from holdfast.engine.nodes.event_announcements import describe_events
from holdfast.engine.nodes.roster import AnnouncedEvent
from holdfast.errors import StoreError

if TYPE_CHECKING:
    from holdfast.code.event_types import EventType
    from holdfast.engine.catalog import Catalog
    from holdfast.store.contract import Store


class InputAnnouncements:
    """What this node announces of the input of its workflows that every organisation has, and of its types of events."""

    def __init__(self, store: Store, catalog: Catalog, events: Mapping[str, EventType]) -> None:
        self._store = store
        self._catalog = catalog
        described, self._event_schemas = describe_events(events)
        self.events = {name: AnnouncedEvent(options, digest) for name, (options, digest) in described.items()}
        """The types of events that this node announces, by name."""
        self._put: set[str] = set()
        self.digests: Mapping[str, Mapping[str, str]] = {}
        """By workflow and version: the digest of a schema that is in the store."""

    async def follow_change(self, on_announced: Callable[[], None]) -> None:
        """Announce what has changed while the engine is open, then call back."""
        try:
            await self.announce()
        except StoreError:
            return  # until the next change, callers without the code are not checked
        on_announced()

    async def announce(self) -> None:
        """Put the schemas that the store may not have, and name all of them from now on. Raises StoreError."""
        digests: dict[str, dict[str, str]] = {}
        bodies: dict[str, bytes] = dict(self._event_schemas)
        for definition in self._catalog:
            schema = definition.input_schema if definition.org is None else None
            if schema is not None:
                digest, body = encode_input_schema(schema)
                digests.setdefault(definition.name, {})[definition.version] = digest
                bodies[digest] = body
        missing = {digest: body for digest, body in bodies.items() if digest not in self._put}
        if missing:
            await self._store.put_input_schemas(missing)
            self._put.update(missing)
        self.digests = digests
