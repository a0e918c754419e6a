"""What a deployment, or a change of states, writes: decided from what is known as of a settings number."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from holdfast.engine.processes.known_definitions import DefinitionDetails, Sibling, read_details
from holdfast.engine.use_cases.definition_starts import (
    find_starter,
    find_taken_messages,
    list_messages,
    list_schedule_ids,
    make_schedules,
    make_starts,
)
from holdfast.errors import DeploymentRefused
from holdfast.store.definitions import (
    DefinitionKind,
    DefinitionRow,
    DefinitionState,
    DeploymentWrite,
    ResourceRow,
    StateChange,
)

if TYPE_CHECKING:
    from holdfast.core.instants import Instant
    from holdfast.engine.processes.known_definitions import KnownDefinitions
    from holdfast.engine.processes.reading_files import Defined

DefinitionName: TypeAlias = tuple[DefinitionKind, str]
_ENCODER: Final = msgspec.json.Encoder()


class Plan(msgspec.Struct, frozen=True):
    """What to write, and the versions that the deployment makes or finds."""

    write: DeploymentWrite
    rows: Sequence[DefinitionRow] = ()
    """One for each definition, in the order of the files."""
    new_messages: frozenset[str] = frozenset()
    """Messages that start processes from now on: what is kept of them may start one."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not self.write.definitions and not self.write.states


def plan_deployment(known: KnownDefinitions, org: str, defined: Sequence[Defined], deployment: str, now: Instant) -> Plan:
    """The versions that files make or find. Raises DeploymentRefused or InvalidSchedule.

    Unchanged content is the version that is there. A definition is changed if its file is, or if what it calls by the
    binding `deployment` is another version than before.
    """
    found: dict[DefinitionName, DefinitionRow] = {}
    versions: dict[DefinitionName, Sibling] = {}
    for one in defined:
        latest = known.find_latest(org, one.kind, one.id)
        key = one.kind, one.id
        if latest is not None and latest.digest == one.file.digest:
            found[key], versions[key] = latest, (latest.version, latest.digest)
        else:
            versions[key] = _number_next(known, org, one)
    _renew_bound(known, org, defined, found, versions)
    siblings: dict[str, dict[str, Sibling]] = {}
    for (kind, name), version in versions.items():
        siblings.setdefault(kind.value, {})[name] = version
    new = [
        _make_row(org, one, versions[one.kind, one.id][0], deployment, now, siblings)
        for one in defined
        if (one.kind, one.id) not in found
    ]
    made = {(row.kind, row.definition_id): row for row in new}
    rows = [found.get((one.kind, one.id)) or made[one.kind, one.id] for one in defined]
    files = {one.file.digest: one.file for one in defined if (one.kind, one.id) in made}
    resources = [ResourceRow(org, digest, one.name, one.kind.value, one.data) for digest, one in files.items()]
    write = DeploymentWrite(org=org, at=now, resources=resources, definitions=new)
    return _add_starts(known, write, rows, is_deployed=True)


def _renew_bound(
    known: KnownDefinitions,
    org: str,
    defined: Sequence[Defined],
    found: dict[DefinitionName, DefinitionRow],
    versions: dict[DefinitionName, Sibling],
) -> None:
    """Make new versions also of what calls others by the binding `deployment`, if these are others than before."""
    changed = True
    while changed:
        changed = False
        for one in defined:
            row = found.get((one.kind, one.id))
            if row is None or not one.bound:
                continue
            before = read_details(row).siblings
            called = [(DefinitionKind(kind), name) for kind, name in one.bound]
            # Without the files of what it calls, unchanged content goes on with what it was deployed with.
            if all(versions[key] == before.get(key[0].value, {}).get(key[1]) for key in called if key in versions):
                continue
            del found[one.kind, one.id]
            versions[one.kind, one.id] = _number_next(known, org, one)
            changed = True


def _number_next(known: KnownDefinitions, org: str, one: Defined) -> Sibling:
    numbers = [row.version for row in known.list_versions(org, one.kind, one.id)]
    return 1 + max(numbers, default=0), one.file.digest


def _make_row(
    org: str, one: Defined, version: int, deployment: str, now: Instant, siblings: Mapping[str, Mapping[str, Sibling]]
) -> DefinitionRow:
    details = DefinitionDetails(
        file=one.file.name,
        starts=one.starts,
        timers=one.timers,
        has_none_start=one.has_none_start,
        siblings={kind: dict(names) for kind, names in siblings.items()},
        bound=one.bound,
    )
    return DefinitionRow(
        org,
        one.kind.value,
        one.id,
        version,
        one.file.digest,
        deployment,
        now,
        name=one.name,
        version_tag=one.version_tag,
        updated_at=now,
        details=_ENCODER.encode(details),
    )


def plan_states(
    known: KnownDefinitions, rows: Iterable[DefinitionRow], state: DefinitionState, now: Instant, org: str
) -> Plan:
    """Another state for versions that are there. Raises DeploymentRefused, if one that begins to start takes a message."""
    changed = [row for row in rows if row.state != state]
    states = [StateChange(row.kind, row.definition_id, row.version, state.value) for row in changed]
    after = [replace(row, state=state.value) for row in changed]
    return _add_starts(known, DeploymentWrite(org=org, at=now, states=states), after, is_deployed=False)


def _add_starts(
    known: KnownDefinitions, write: DeploymentWrite, rows: Sequence[DefinitionRow], *, is_deployed: bool
) -> Plan:
    """Replace what starts each process whose starting version becomes another one."""
    after: dict[str, dict[int, DefinitionRow]] = {}
    for row in rows:
        if row.kind == DefinitionKind.BPMN:
            name = row.definition_id
            versions = after.setdefault(name, {one.version: one for one in _list_processes(known, write.org, name)})
            versions[row.version] = row
    ended: list[str] = []
    ended_schedules: set[str] = set()
    begun: dict[str, DefinitionRow] = {}
    for name, versions in after.items():
        old, new = find_starter(_list_processes(known, write.org, name)), find_starter(versions.values())
        if _is_same(old, new):
            continue
        ended.append(name)
        ended_schedules |= list_schedule_ids(versions.values())
        if new is not None:
            begun[name] = new
    _check_messages(known, write.org, after, begun)
    write = replace(
        write,
        ended_starts=ended,
        starts=[one for row in begun.values() for one in make_starts(row)],
        ended_schedules=sorted(ended_schedules),
        schedules=[one for row in begun.values() for one in make_schedules(row, write.at, is_deployed=is_deployed)],
    )
    return Plan(write, rows, frozenset(name for row in begun.values() for name in list_messages(row)))


def _is_same(old: DefinitionRow | None, new: DefinitionRow | None) -> bool:
    return (None if old is None else old.version) == (None if new is None else new.version)


def _list_processes(known: KnownDefinitions, org: str, name: str) -> Sequence[DefinitionRow]:
    return known.list_versions(org, DefinitionKind.BPMN, name)


def _check_messages(
    known: KnownDefinitions, org: str, after: Mapping[str, object], begun: Mapping[str, DefinitionRow]
) -> None:
    """Raises DeploymentRefused if a message would start two processes of the org: only one could have it."""
    if not any(map(list_messages, begun.values())):
        return
    starters = dict(begun)
    for name in known.list_names(org, DefinitionKind.BPMN):
        row = None if name in after else find_starter(_list_processes(known, org, name))
        if row is not None:
            starters[name] = row
    taken = {name: both for name, both in find_taken_messages(starters).items() if begun.keys() & set(both)}
    if taken:
        raise refuse_messages({name: f"processes {_join(both)}" for name, both in taken.items()})


def refuse_messages(taken: Mapping[str, str]) -> DeploymentRefused:
    """The error of messages that would start two things; each with the words that name them."""
    listing = "; ".join(f"message '{name}' would start {what}" for name, what in sorted(taken.items()))
    return DeploymentRefused(
        f"Expected each message to start one process, but {listing}. Give one of them another message, or undeploy the "
        "other."
    )


def refuse_names(names: Collection[str]) -> DeploymentRefused:
    """The error of processes that have the names of code workflows."""
    return DeploymentRefused(
        f"Expected the ids of processes to be no names of code workflows, but nodes have {_join(sorted(names))} as code. "
        "Give the process another id, or remove the workflow first."
    )


def _join(names: Iterable[str]) -> str:
    return " and ".join(f"'{name}'" for name in names)
