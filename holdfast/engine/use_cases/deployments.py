"""Deploying files, undeploying, enabling and disabling what is in them, and asking for it.

Theory of operation
-------------------
Files are read, checked and compiled in a thread; if anything is wrong with one of them, nothing is written. What to write is
planned from what is known of the org's definitions as of a settings number, and written by one transaction that fails if
that number is outdated: then what changed is read, and the plan made anew. If nobody knows whether the transaction was
committed, the next plan tells: what is there needs no writing.
"""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

import msgspec

from holdfast.core.ids import check_identifier, make_execution_id
from holdfast.core.publications import SubscriptionKind
from holdfast.engine.deployment_views import (
    DefinitionInfo,
    DefinitionList,
    DeployedDefinition,
    Deployment,
    Kind,
    State,
    show_definition,
)
from holdfast.engine.nodes.input_schemas import list_announcing
from holdfast.engine.processes.source_files import collect_files
from holdfast.engine.use_cases.definition_starts import make_timer_spec
from holdfast.engine.use_cases.deployment_plans import Plan, plan_deployment, plan_states, refuse_messages, refuse_names
from holdfast.errors import (
    InvalidArguments,
    InvalidProcess,
    OutcomeUnknown,
    StoreError,
    StoreUnavailable,
    UnknownDefinition,
)
from holdfast.store.definitions import DefinitionFilter, DefinitionKey, DefinitionKind, DefinitionRow, DefinitionState

if TYPE_CHECKING:
    from holdfast.engine.catalog import Catalog
    from holdfast.engine.clock import Clock
    from holdfast.engine.processes.deployed_processes import DeployedProcesses
    from holdfast.engine.processes.reading_files import Defined, FilesRead
    from holdfast.engine.processes.source_files import Files
    from holdfast.store.contract import Store

MOST_VERSIONS: Final = 2**31 - 1
"""The largest number that a version can have."""
TRIES: Final = 100
"""How often a deployment is planned anew since others deploy or pause at the same time."""
MOST_LISTED: Final = 1_000
MOST_SHOWN: Final = 200
"""How many problems a message lists; all are among the `problems` of the error."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DeploymentsDeps:
    """What the use cases of deployments work with."""

    store: Store
    catalog: Catalog
    processes: DeployedProcesses
    clock: Clock
    entropy: Callable[[int], int]
    follow: Callable[[Plan], Awaitable[None]]
    """Called after something was deployed or has changed its state: this node and the others follow."""


class Deployments:
    """Everything that can be asked of deployed definitions. What raises has written nothing, unless it says so."""

    def __init__(self, deps: DeploymentsDeps) -> None:
        self._deps = deps
        self._known = deps.processes.known

    # --- changing ---

    async def deploy(self, org: str, files: Files) -> Deployment:
        """Deploy files, all of them or none. Raises InvalidProcess with every problem, or DeploymentRefused."""
        check_identifier(org, "the org")
        read = await asyncio.to_thread(_read, files)
        if errors := read.errors:
            raise _refuse_files(errors)
        deps, now = self._deps, self._deps.clock.now()
        deployment = make_execution_id(now, deps.entropy(62))
        names = {one.id for one in read.defined if one.kind == DefinitionKind.BPMN}
        await self._check_code_names(names)
        defined = await asyncio.to_thread(_evaluate, read.defined, now)
        plan = await self._write(org, lambda: plan_deployment(self._known, org, defined, deployment, deps.clock.now()))
        return Deployment(
            id=next((row.deployment for row in plan.rows if row.deployment == deployment), plan.rows[0].deployment),
            org=org,
            definitions=tuple(_show(row, one, deployment) for row, one in zip(plan.rows, defined, strict=True)),
            notices=tuple(map(str, read.notices)),
        )

    async def change_state(
        self, org: str, definition_id: str, kind: str, version: int | None, state: DefinitionState
    ) -> bool:
        """Give versions of a definition another state; False if they have it. Raises UnknownDefinition.

        Without `version`, all that are not undeployed.
        """
        check_identifier(org, "the org")
        check_identifier(definition_id, "the id of a definition")
        known_kind = _check_kind(kind)
        _check_version(version)

        def make_plan() -> Plan:
            rows: Sequence[DefinitionRow] = self._known.list_versions(org, known_kind, definition_id)
            if version is not None:
                rows = [row for row in rows if row.version == version]
            if not rows:
                raise self._refuse_unknown(org, known_kind, definition_id, version)
            if state != DefinitionState.UNDEPLOYED:
                rows = _leave_undeployed(rows, definition_id)
            return plan_states(self._known, rows, state, self._deps.clock.now(), org)

        return bool((await self._write(org, make_plan)).write.states)

    async def _write(self, org: str, make_plan: Callable[[], Plan]) -> Plan:
        """Plan and write until what was planned from is what is there."""
        deps, wrote = self._deps, None
        for _ in range(TRIES):
            try:
                await deps.processes.refresh()
            except StoreError as error:
                if wrote is None:
                    raise
                await deps.follow(wrote)  # it may be written
                raise OutcomeUnknown(
                    "Expected to deploy, but the connection broke, and it is not known whether it was stored. Deploy again: "
                    "what is there makes no new version."
                ) from error
            number, plan = self._known.number, make_plan()
            if plan.is_empty:
                break
            await self._check_code_messages(org, plan)
            try:
                is_written = await deps.store.definitions.deploy(plan.write, number) is not None
            except OutcomeUnknown:
                wrote, is_written = plan, False
            if is_written:
                wrote = plan
                break
        else:
            raise StoreUnavailable(
                f"Expected to deploy, but others have deployed or paused something {TRIES} times meanwhile. Try again."
            )
        if wrote is not None:
            await deps.follow(wrote)
            return wrote
        return plan

    # --- checks ---

    async def _check_code_names(self, names: set[str]) -> None:
        """Raises DeploymentRefused if this node, or another that is alive, has a code workflow of such a name."""
        deps = self._deps
        taken = names & {one.name for one in deps.catalog}
        if names and not taken:
            announcing = await list_announcing(deps.store, deps.clock.now())
            taken = names & {name for one in announcing for name in one.workflows}
        if taken:
            raise refuse_names(taken)

    async def _check_code_messages(self, org: str, plan: Plan) -> None:
        """Raises DeploymentRefused if a message of a process starts a code workflow of a living node."""
        if not plan.new_messages:
            return
        deps = self._deps
        transaction = await deps.store.begin()
        try:
            names = {(SubscriptionKind.MESSAGE.value, name) for name in plan.new_messages}
            offered = await transaction.read_starts(names, org)
        finally:
            await transaction.rollback()
        nodes = {one.name for one in deps.catalog}
        announcing = await list_announcing(deps.store, deps.clock.now())
        living = nodes | {name for one in announcing for name in one.workflows}
        started = {row.workflow: row.name for row in offered if row.node and row.workflow in living}
        if started:
            raise refuse_messages({name: f"code workflow '{workflow}' too" for workflow, name in started.items()})

    def _refuse_unknown(self, org: str, kind: DefinitionKind, definition_id: str, version: int | None) -> UnknownDefinition:
        names = self._known.list_names(org, kind)
        versions = [str(row.version) for row in self._known.list_versions(org, kind, definition_id)]
        if version is not None and versions:
            return UnknownDefinition(
                f"Expected version {version} of '{definition_id}', but org '{org}' has versions {', '.join(versions)}.",
                known=versions,
            )
        shown = ", ".join(names[:20]) or "none"
        return UnknownDefinition(
            f"Expected org '{org}' to have {kind.value} '{definition_id}', but it is not deployed (deployed: {shown}). "
            "Deploy it first.",
            known=names,
        )

    # --- asking ---

    async def list(
        self,
        org: str,
        *,
        definition_id: str | None,
        kind: str | None,
        state: str | None,
        all_versions: bool,
        limit: int,
        cursor: str | None,
    ) -> DefinitionList:
        """A page of the org's definitions, by kind and id, of each the newest version first."""
        check_identifier(org, "the org")
        if state is not None and state not in get_args(State):
            raise InvalidArguments(f"Expected a state to be active, disabled or undeployed, but it is {state!r}.")
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_LISTED:
            raise InvalidArguments(
                f"Expected a limit from 1 to {MOST_LISTED}, but it is {limit!r}. Use the cursor for more."
            )
        query = DefinitionFilter(
            org,
            kind=None if kind is None else _check_kind(kind).value,
            definition_id=None if definition_id is None else check_identifier(definition_id, "the id of a definition"),
            states=() if state is None else (state,),
            is_latest_only=not all_versions and state != DefinitionState.UNDEPLOYED,
            after=None if cursor is None else _read_cursor(cursor),
            limit=limit + 1,
        )
        rows = await self._deps.store.definitions.search(query)
        page = DefinitionList(map(show_definition, rows[:limit]))
        if len(rows) > limit:
            page.cursor = urlsafe_b64encode(msgspec.json.encode(rows[limit - 1].key)).decode()
        return page

    async def find(self, org: str, definition_id: str, kind: str, version: int | None) -> DefinitionInfo:
        """One version of a definition, or the newest that is not undeployed. Raises UnknownDefinition."""
        return show_definition(await self._find(org, definition_id, kind, version))

    async def read_content(self, org: str, definition_id: str, kind: str, version: int | None) -> bytes:
        """The file that a version came with, byte for byte. Raises UnknownDefinition."""
        row = await self._find(org, definition_id, kind, version)
        resource = await self._deps.store.definitions.read_resource(org, row.digest)
        if resource is None:
            raise self._refuse_unknown(org, DefinitionKind(row.kind), definition_id, version)
        return resource.data

    async def _find(self, org: str, definition_id: str, kind: str, version: int | None) -> DefinitionRow:
        check_identifier(org, "the org")
        check_identifier(definition_id, "the id of a definition")
        known_kind = _check_kind(kind)
        _check_version(version)
        row = await self._deps.store.definitions.find(org, known_kind.value, definition_id, version=version)
        if row is None:
            await self._deps.processes.refresh()
            raise self._refuse_unknown(org, known_kind, definition_id, version)
        return row


def _read(files: Files) -> FilesRead:
    from holdfast.engine.processes.reading_files import read_files  # noqa: PLC0415 - loads lxml, which others do not need

    return read_files(collect_files(files))


def _evaluate(defined: Sequence[Defined], now: int) -> Sequence[Defined]:
    from holdfast.engine.processes.start_expressions import evaluate_starts  # noqa: PLC0415 - loads FEEL

    found, problems = evaluate_starts(defined, now, make_timer_spec)
    if problems:
        raise _refuse_files(problems)
    return found


def _refuse_files(problems: Sequence[Any]) -> InvalidProcess:
    lines = [str(one) for one in problems[:MOST_SHOWN]]
    if len(problems) > MOST_SHOWN:
        lines.append(f"… and {len(problems) - MOST_SHOWN} more.")
    count = "is one problem" if len(problems) == 1 else f"are {len(problems)} problems"
    return InvalidProcess(f"Expected files that can be deployed, but there {count}:\n" + "\n".join(lines), problems)


def _show(row: DefinitionRow, one: Defined, deployment: str) -> DeployedDefinition:
    kind: Kind = one.kind.value
    return DeployedDefinition(
        kind=kind,
        id=one.id,
        version=row.version,
        is_new=row.deployment == deployment,
        name=row.name,
        version_tag=row.version_tag,
        file=one.file.name,
    )


def _leave_undeployed(rows: Sequence[DefinitionRow], definition_id: str) -> Sequence[DefinitionRow]:
    left = [row for row in rows if row.state != DefinitionState.UNDEPLOYED]
    if not left:
        raise UnknownDefinition(f"Expected '{definition_id}' to be deployed, but it was undeployed. Deploy it again.")
    return left


def _check_kind(kind: object) -> DefinitionKind:
    try:
        return DefinitionKind(str(kind))
    except ValueError:
        raise InvalidArguments(f"Expected a kind to be bpmn, dmn or form, but it is {kind!r}.") from None


def _check_version(version: object) -> None:
    if version is not None and (
        isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= MOST_VERSIONS
    ):
        raise InvalidArguments(f"Expected a version to be a number from 1 to {MOST_VERSIONS:,}, but it is {version!r:.80}.")


def _read_cursor(cursor: str) -> DefinitionKey:
    try:
        return msgspec.json.decode(urlsafe_b64decode(cursor), type=tuple[str, str, int])
    except (ValueError, TypeError, msgspec.MsgspecError):
        raise InvalidArguments(
            f"Expected a cursor that a list returned, but it is {cursor!r:.100}. Pass `page.cursor` unchanged."
        ) from None
