"""What a node knows of deployed definitions: the rows of all of them, without their content.

A row is small (about half a kilobyte), so that every name can be looked up within a turn, without asking the store. What is
known is that of a settings number, or later: `KnownPauses` refreshes it before it moves on to the next number, and turns
that were taken by an earlier number are lost (see `holdfast.store.definitions`). Only the engine's own thread changes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from holdfast.store.definitions import DefinitionKind, DefinitionState

if TYPE_CHECKING:
    from holdfast.store.contract import Store
    from holdfast.store.definitions import DefinitionRow

PAGE: Final = 5_000
"""How many rows are read at once."""

SiblingKey: TypeAlias = tuple[str, str]
"""(kind, definition id)."""


Sibling: TypeAlias = tuple[int, str]
"""(version, digest): by its content it is told from another that has got its number since, after a purge or an import."""


class StartMark(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message or a broadcast signal that starts a process at one of its elements."""

    kind: str
    name: str
    element: str


class TimerMark(msgspec.Struct, frozen=True, omit_defaults=True):
    """A timer that starts a process at one of its elements, as the file says it."""

    element: str
    kind: str
    text: str


class DefinitionDetails(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a version of a definition needs to be known by beside its row."""

    file: str = ""
    starts: tuple[StartMark, ...] = ()
    timers: tuple[TimerMark, ...] = ()
    has_none_start: bool = True
    """Whether it can be started by a call."""
    siblings: dict[str, dict[str, Sibling]] = {}
    """By kind and definition id: the versions that its deployment made or found."""
    bound: tuple[SiblingKey, ...] = ()
    """What it calls by the binding `deployment`: another version of those makes another version of it."""


_DETAILS: Final = msgspec.json.Decoder(DefinitionDetails)


def read_details(row: DefinitionRow) -> DefinitionDetails:
    """The details of a stored version of a definition."""
    return _DETAILS.decode(row.details)


def is_latest_candidate(row: DefinitionRow) -> bool:
    """Whether a version may be the latest of its definition."""
    return row.state != DefinitionState.UNDEPLOYED


class KnownDefinitions:
    """The definitions of all orgs, by org, kind and id, each version of them."""

    def __init__(self, store: Store, on_change: Callable[[], None] = lambda: None) -> None:
        self._store = store
        self._on_change = on_change
        """Called after other definitions are known."""
        self.number = 0
        """The settings number as of which they are known; 0: they were never read."""
        self._versions: dict[tuple[str, str, str], dict[int, DefinitionRow]] = {}
        self._deployments: dict[tuple[str, str], Mapping[str, Mapping[str, Sibling]]] = {}
        """By (org, deployment): the versions that it made or found."""
        self._reading: asyncio.Task[None] | None = None
        self._is_forgotten = False

    def note_went_back(self) -> None:
        """The database is at an earlier state: the next reading reads everything, whatever the number is by then."""
        self._is_forgotten = True

    # --- following the store ---

    async def refresh(self) -> None:
        """Read what has changed. Several who ask at the same time after it has begun share the next reading.

        Raises StoreError.
        """
        before = self._reading
        if before is not None and not before.done():
            await asyncio.wait([before])  # it may have looked before whatever the caller heard of
        if self._reading is before:
            self._reading = asyncio.get_running_loop().create_task(self._read())
        reading = self._reading
        assert reading is not None  # noqa: S101 - made above, by this caller or by another one
        await asyncio.shield(reading)

    async def _read(self) -> None:
        has_gone_back, self._is_forgotten = self._is_forgotten, False
        try:
            await self._read_since(0 if has_gone_back else self.number, has_gone_back=has_gone_back)
        except BaseException:
            self._is_forgotten |= has_gone_back
            raise

    async def _read_since(self, number: int, *, has_gone_back: bool) -> None:
        limit = PAGE
        changed: list[DefinitionRow] = []
        while True:
            found = await self._store.definitions.read_changed(number, limit)
            if found.number < number:
                number, changed, has_gone_back = 0, [], True
                continue
            if found.is_whole:
                changed += found.definitions
                break
            last = found.definitions[-1].changed if found.definitions else 0
            # What has the last number may go on behind the page.
            whole = [row for row in found.definitions if row.changed < last]
            if whole:
                changed += whole
                number = whole[-1].changed
            else:
                limit *= 2
        if has_gone_back:
            self._versions.clear()
            self._deployments.clear()
        self._take(changed)
        self.number = found.number
        if changed or has_gone_back:
            self._on_change()

    def _take(self, rows: Iterable[DefinitionRow]) -> None:
        for row in rows:
            self._versions.setdefault((row.org, row.kind, row.definition_id), {})[row.version] = row
            key = row.org, row.deployment
            if key not in self._deployments:
                self._deployments[key] = read_details(row).siblings

    # --- asking ---

    def find_version(self, org: str, kind: DefinitionKind, name: str, version: int) -> DefinitionRow | None:
        """A version of a definition, whatever its state."""
        return self._versions.get((org, kind, name), {}).get(version)

    def find_latest(self, org: str, kind: DefinitionKind, name: str) -> DefinitionRow | None:
        """The newest version that is not undeployed; it may be disabled."""
        versions = self._versions.get((org, kind, name))
        if versions is None:
            return None
        newest = versions[max(versions)]
        if is_latest_candidate(newest):
            return newest
        return max(filter(is_latest_candidate, versions.values()), key=lambda row: row.version, default=None)

    def find_tagged(self, org: str, kind: DefinitionKind, name: str, tag: str) -> DefinitionRow | None:
        """The newest version with a version tag that is not undeployed."""
        rows = self._versions.get((org, kind, name), {}).values()
        tagged = (row for row in rows if row.version_tag == tag and is_latest_candidate(row))
        return max(tagged, key=lambda row: row.version, default=None)

    def find_of_deployment(self, org: str, kind: DefinitionKind, name: str, deployment: str) -> DefinitionRow | None:
        """The version of a definition that a deployment made or found."""
        sibling = self._deployments.get((org, deployment), {}).get(kind, {}).get(name)
        row = None if sibling is None else self.find_version(org, kind, name, sibling[0])
        return row if row is None or sibling is None or row.digest == sibling[1] else None

    def list_versions(self, org: str, kind: DefinitionKind, name: str) -> list[DefinitionRow]:
        """All versions of a definition, the oldest first."""
        versions = self._versions.get((org, kind, name), {})
        return [versions[number] for number in sorted(versions)]

    def list_names(self, org: str, kind: DefinitionKind) -> list[str]:
        """The ids of an org's definitions of a kind of which a version is not undeployed, sorted."""
        found = (key[2] for key in self._versions if key[:2] == (org, kind))
        return sorted(name for name in found if self.find_latest(org, kind, name) is not None)

    def list_all_names(self, kind: DefinitionKind) -> set[str]:
        """The ids of the definitions of a kind, of all orgs and in whatever state."""
        return {name for _, known_kind, name in self._versions if known_kind == kind}

    def list_latest(self, kind: DefinitionKind) -> Iterator[DefinitionRow]:
        """The newest version of each definition of a kind, of all orgs, that is not undeployed."""
        for org, known_kind, name in list(self._versions):
            if known_kind == kind and (row := self.find_latest(org, kind, name)) is not None:
                yield row
