"""Schedules as callers see them: made, asked for, changed and run. What is due is fired by `engine.schedules.runner`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from holdfast.core.ids import check_identifier
from holdfast.core.instants import Instant, to_datetime
from holdfast.core.options import naming_options, separate_options
from holdfast.core.schedules import (
    MOST_WAITING,
    TEMPLATE,
    Overlap,
    RunKind,
    ScheduleDetails,
    ScheduleState,
    backfill,
    list_passed,
    name_run,
    pause,
    resume,
    run_now,
)
from holdfast.core.times.specs import make_spec
from holdfast.engine.encoded_store import find_bare_store, show_encoded
from holdfast.engine.schedules.rows import change_row, make_row, make_start_row, read_details
from holdfast.engine.use_cases.schedule_checks import (
    SCHEDULE_OPTIONS,
    arm_checked,
    check_args,
    check_arguments,
    check_flag,
    check_names,
    check_options,
    check_order,
    check_passed,
    check_template,
    choose_overlap,
    name_workflow,
    set_policies,
    take_run_options,
)
from holdfast.engine.use_cases.schedule_views import ScheduleInfo, ScheduleRun, show_run, show_schedule
from holdfast.errors import (
    Conflict,
    InvalidArguments,
    ScheduleExists,
    ScheduleNotFound,
    WorkflowAlreadyOpen,
)
from holdfast.store.once import read_answer
from holdfast.store.schedules import ScheduleChange, ScheduleRow

if TYPE_CHECKING:
    from holdfast.engine.clock import Clock
    from holdfast.engine.use_cases.delivery import AnyWorkflow, Delivery
    from holdfast.store.contract import Store
    from holdfast.store.once import KeyedCall

MOST_BACKFILLED: Final = MOST_WAITING
_TRIES: Final = 50


@dataclass(frozen=True, slots=True)
class SchedulesDeps:
    """What the use cases of schedules work with."""

    store: Store
    delivery: Delivery
    clock: Clock
    on_changed: Callable[[], None]
    """A schedule was made or changed: nodes have to look."""
    on_put: Callable[[], None]
    """A start was put into the inbox."""


class Schedules:
    """Everything that can be asked of schedules. Each method raises before anything is stored, or returns after a commit."""

    def __init__(self, deps: SchedulesDeps) -> None:
        self._store = deps.store
        self._shown = show_encoded(deps.store)
        self._bare = find_bare_store(deps.store)
        self._delivery = deps.delivery
        self._clock = deps.clock
        self._on_changed = deps.on_changed
        self._on_put = deps.on_put

    # --- making and changing ---

    async def create(
        self,
        org: str,
        schedule_id: str,
        what: tuple[Any, AnyWorkflow, Sequence[Any]],
        keywords: Mapping[str, Any],
        *,
        request_id: str | None = None,
        owner: str = "",
    ) -> ScheduleInfo:
        """Make a schedule, which counts from now on. Raises ScheduleExists.

        `keywords` are options (`ScheduleOptions`) and arguments of the workflow. A repeated call returns the schedule as it
        is then; if it was deleted meanwhile, ScheduleNotFound is raised.
        """
        call = self._call(org, "create_schedule", request_id, schedule_id)
        if await self._recall(call) is not None:
            return await self._describe_again(org, schedule_id, "create")
        options, kwargs = separate_options(keywords, SCHEDULE_OPTIONS)
        check_arguments(kwargs)
        spec, workflow, args = what
        check_order(spec)
        await self._delivery.unknown_names.learn(org, workflow, options.get("version"))
        now = self._clock.now()
        with naming_options(SCHEDULE_OPTIONS):
            start = self._delivery.make_scheduled(org, workflow, args, kwargs, options)
        template = check_template(options.get("workflow_id", TEMPLATE), schedule_id)
        details = ScheduleDetails(
            uid=start.execution_id,
            spec=make_spec(spec, options.get("time_zone", "UTC")),
            start=replace(start, workflow_id=template, execution_id=""),
            armed_at=now,
        )
        details = arm_checked(set_policies(details, options), now)
        paused = check_flag(options.get("paused", False))
        if paused:
            details = pause(details, now)
        row = replace(make_row(org, schedule_id, details, now, owner=owner, is_paused=paused), version=1)
        try:
            await self._change(ScheduleChange(org, schedule_id, None, row), call)
        except Conflict:
            raise ScheduleExists(
                f"Expected to create schedule '{schedule_id}', but org '{org}' has one with that id. Choose another id, or "
                "use update_schedule."
            ) from None
        return await self._describe_again(org, schedule_id, "create")

    async def update(
        self,
        org: str,
        schedule_id: str,
        what: tuple[Any, Any, Any],
        options: Mapping[str, Any],
        request_id: str | None,
    ) -> ScheduleInfo:
        """Change of a schedule what is not None (spec, workflow, arguments) and these options.

        If that changes when it fires, it counts from now on; else its count stays.
        """
        check_options(options)
        if "paused" in options:
            raise InvalidArguments("Expected to change a schedule, but 'paused' is no part of it. Use pause or resume.")

        def change(row: ScheduleRow, details: ScheduleDetails, now: Instant) -> ScheduleRow | None:
            changed = self._apply(org, schedule_id, details, what, options)
            if changed == details:
                return None
            if changed.spec != details.spec or changed.count != details.count:
                changed = arm_checked(changed, now)
            return change_row(row, changed, now)

        await self._edit(org, schedule_id, "update", request_id, change)
        return await self._describe_again(org, schedule_id, "update")

    def _apply(
        self, org: str, schedule_id: str, details: ScheduleDetails, what: tuple[Any, Any, Any], options: Mapping[str, Any]
    ) -> ScheduleDetails:
        spec, workflow, args = what
        if spec is not None or "time_zone" in options:
            zone = options.get("time_zone", details.spec.zone)
            given = getattr(details.spec, "calendar", details.spec.text) if spec is None else spec
            details = replace(details, spec=make_spec(given, zone))
        start = details.start
        if workflow is not None or args is not None:
            stays = workflow is None or name_workflow(workflow) == start.workflow
            run = {
                "queue": start.queue,
                "version": start.code_version if start.pinned and stays else None,
                **take_run_options(options),
            }
            made = self._delivery.make_scheduled(org, workflow or start.workflow, check_args(args), {}, run)
            start = replace(
                start,
                workflow=made.workflow,
                input=made.input,
                code_version=made.code_version,
                pinned=made.pinned,
                route_name=made.route_name,
            )
        if run_options := take_run_options(options):
            start = self._delivery.make_changed(org, start, run_options)
        if "workflow_id" in options:
            start = replace(start, workflow_id=check_template(options["workflow_id"], schedule_id))
        return set_policies(replace(details, start=start), options)

    async def pause(self, org: str, schedule_id: str, request_id: str | None) -> bool:
        """Let a schedule fire no more until it is resumed, nor begin what waits; False if there is nothing to hold back."""

        def change(row: ScheduleRow, details: ScheduleDetails, now: Instant) -> ScheduleRow | None:
            if row.state == ScheduleState.PAUSED or (row.state == ScheduleState.ENDED and not details.has_timed_waiting):
                return None
            return change_row(row, pause(details, now), now, ScheduleState.PAUSED)

        return await self._edit(org, schedule_id, "pause", request_id, change)

    async def resume(self, org: str, schedule_id: str, request_id: str | None) -> bool:
        """Let a paused schedule fire again; False if it is not paused. What was due within the pause is left out."""

        def change(row: ScheduleRow, details: ScheduleDetails, now: Instant) -> ScheduleRow | None:
            if row.state != ScheduleState.PAUSED:
                return None
            return change_row(row, resume(details, now), now, ScheduleState.ACTIVE)

        return await self._edit(org, schedule_id, "resume", request_id, change)

    async def delete(self, org: str, schedule_id: str, request_id: str | None) -> bool:
        """Remove a schedule; False if there is none. Executions that it started go on."""
        call = self._call(org, "delete_schedule", request_id, schedule_id)
        if (known := await self._recall(call)) is not None:
            return known == 1
        for _ in range(_TRIES):
            row = await self._store.find_schedule(org, schedule_id)
            if row is None:
                return call is not None and await self._store.remember(call, 0) == 1
            try:
                await self._change(ScheduleChange(org, schedule_id, row.version, None), call)
            except Conflict:
                continue
            return True
        raise _busy(schedule_id)

    async def delete_owned(self, org: str, owner: str) -> int:
        """Remove all schedules that belong to a definition; how many there were."""
        removed, after = 0, ""
        while rows := await self._store.list_schedules(org, after=after, owner=owner):
            for row in rows:
                removed += await self.delete(org, row.schedule_id, None)
            after = rows[-1].schedule_id
        return removed

    # --- running ---

    async def run(self, org: str, schedule_id: str, request_id: str | None) -> ScheduleRun:
        """Start an execution now, whatever is open and whether or not the schedule is paused. It counts for no limit."""
        call = self._call(org, "run_schedule", request_id, schedule_id)
        if (known := await self._recall(call)) is not None:
            return await self._find_run(org, schedule_id, known)
        for _ in range(_TRIES):
            row, details = await self._read(org, schedule_id, "run")
            now = self._clock.now()
            changed, start, at = run_now(details, now, schedule_id)
            if await self._find_taken(org, [start.workflow_id]):
                if await self._has_changed(row):
                    continue  # it is the start of a call that came at the same time
                raise _already_open(start.workflow_id)
            new = change_row(row, changed, now)
            change = ScheduleChange(org, schedule_id, row.version, new, [make_start_row(org, start, now)], at)
            try:
                made = await self._change(change, call)
            except Conflict:
                continue
            self._on_put()
            await self._delivery.unknown_names.warn_of_run(org, schedule_id, start.workflow)
            if made == at:
                return show_run(changed.recent[0])
            return await self._find_run(org, schedule_id, made)
        raise _busy(schedule_id)

    async def _find_run(self, org: str, schedule_id: str, at: Instant) -> ScheduleRun:
        """The run that an earlier call with the same request id made."""
        row = await self._store.find_schedule(org, schedule_id)
        if row is None:
            raise _deleted(org, schedule_id, "run")
        details = read_details(row)
        for run in details.recent:
            if run.at == at and run.kind is RunKind.MANUAL:
                return show_run(run)
        workflow_id = name_run(details.start.workflow_id, schedule_id, at, RunKind.MANUAL, 0)
        return ScheduleRun(to_datetime(at), to_datetime(at), workflow_id, "", RunKind.MANUAL)

    async def backfill(
        self, org: str, schedule_id: str, first: datetime, last: datetime, overlap: object, request_id: str | None
    ) -> int:
        """Start executions for the times from `first` up to and including `last`, which have passed; how many."""
        call = self._call(org, "backfill_schedule", request_id, schedule_id)
        if (known := await self._recall(call)) is not None:
            return known
        begin, end = check_passed(first, last, self._clock.now())
        policy = choose_overlap(overlap)
        if policy not in (Overlap.ALLOW, Overlap.QUEUE):
            raise InvalidArguments(
                f"Expected overlap of a backfill to be 'allow' or 'queue', but it is '{policy}'. Choose one."
            )
        for _ in range(_TRIES):
            row, details = await self._read(org, schedule_id, "backfill")
            now = self._clock.now()
            times: list[Instant] = []
            for at in list_passed(details, begin, end):
                times.append(at)
                if len(times) + len(details.waiting) > MOST_BACKFILLED:
                    raise InvalidArguments(
                        f"Expected a backfill of at most {MOST_BACKFILLED} fires, with those that wait, but there are more. "
                        "Pass a shorter time."
                    )
            is_queued = policy is Overlap.QUEUE
            fired = backfill(details, now, schedule_id, times, queue=is_queued)
            if taken := await self._find_taken(org, [start.workflow_id for start in fired.starts]):
                if await self._has_changed(row):
                    continue  # they are starts of a call that came at the same time
                fired = backfill(details, now, schedule_id, times, queue=is_queued, taken=taken)
            starts = [make_start_row(org, start, now) for start in fired.starts]
            number = len(times) if is_queued else len(starts)
            change = ScheduleChange(org, schedule_id, row.version, change_row(row, fired.details, now), starts, number)
            try:
                made = await self._change(change, call)
            except Conflict:
                continue
            self._on_put()
            if starts:
                await self._delivery.unknown_names.warn_of_run(org, schedule_id, details.start.workflow)
            return made
        raise _busy(schedule_id)

    async def _has_changed(self, row: ScheduleRow) -> bool:
        stored = await self._store.find_schedule(row.org, row.schedule_id)
        return stored is None or stored.version != row.version

    async def _find_taken(self, org: str, ids: Collection[str]) -> set[str]:
        """Those of these workflow ids that somebody has."""
        if not ids:
            return set()
        transaction = await self._store.begin()
        try:
            return {one for _, one in await transaction.find_open_ids({(org, one) for one in ids})}
        finally:
            await transaction.rollback()

    # --- asking ---

    async def describe(self, org: str, schedule_id: str) -> ScheduleInfo:
        """A schedule with its next five fire times and what it started last. Raises ScheduleNotFound."""
        return show_schedule(await self._find(org, schedule_id, "describe", self._shown))

    async def list(self, org: str, limit: int, after: str) -> list[ScheduleInfo]:
        """The schedules of an org behind an id, in the order of their ids."""
        check_identifier(org, "the org")
        if type(limit) is not int or not 1 <= limit <= 1000:
            raise InvalidArguments(f"Expected limit to be from 1 to 1000, but it is {limit!r}. Ask for pages with after=….")
        if after != "":
            check_identifier(after, "after=…, the id of the last schedule of the page before,")
        rows = await self._shown.list_schedules(org, limit, after)
        return [show_schedule(row) for row in rows]

    # --- parts ---

    def _call(self, org: str, kind: str, request_id: str | None, schedule_id: str) -> KeyedCall | None:
        check_names(org, schedule_id)
        return self._delivery.make_call(org, kind, request_id, schedule_id)

    async def _recall(self, call: KeyedCall | None) -> int | None:
        """What was returned to a call that is remembered; None: it is not, or has no request id."""
        if call is None:
            return None
        transaction = await self._store.begin()
        try:
            found = await transaction.read_requests([call.key], call.now)
        finally:
            await transaction.rollback()
        if call.key not in found:
            return None
        self._on_changed()  # nodes may have looked before the commit of the first call, if nobody knew what became of it
        self._on_put()
        return read_answer(found[call.key])

    async def _describe_again(self, org: str, schedule_id: str, verb: str) -> ScheduleInfo:
        """The schedule that a call made or changed, now or when it came for the first time."""
        try:
            return await self.describe(org, schedule_id)
        except ScheduleNotFound:
            raise _deleted(org, schedule_id, verb) from None

    async def _read(
        self, org: str, schedule_id: str, verb: str, *, needs_values: bool = False
    ) -> tuple[ScheduleRow, ScheduleDetails]:
        """A schedule that is to be changed. Values stay encoded if they are not needed, or cannot be decoded now."""
        row = await self._find(org, schedule_id, verb, self._shown if needs_values else self._bare)
        return row, read_details(row)

    async def _find(self, org: str, schedule_id: str, verb: str, store: Store) -> ScheduleRow:
        check_names(org, schedule_id)
        row = await store.find_schedule(org, schedule_id)
        if row is None:
            raise ScheduleNotFound(
                f"Expected to {verb} schedule '{schedule_id}', but org '{org}' has none with that id. List the schedules."
            )
        return row

    async def _edit(
        self,
        org: str,
        schedule_id: str,
        verb: str,
        request_id: str | None,
        change: Callable[[ScheduleRow, ScheduleDetails, Instant], ScheduleRow | None],
    ) -> bool:
        """Change a schedule, again if somebody else did meanwhile; whether there was anything to change, now or then."""
        call = self._call(org, f"{verb}_schedule", request_id, schedule_id)
        if (known := await self._recall(call)) is not None:
            return known == 1
        for _ in range(_TRIES):
            row, details = await self._read(org, schedule_id, verb, needs_values=verb == "update")
            new = change(row, details, self._clock.now())
            if new is None:
                return call is not None and await self._store.remember(call, 0) == 1
            try:
                return await self._change(ScheduleChange(org, schedule_id, row.version, new), call) == 1
            except Conflict:
                continue
        raise _busy(schedule_id)

    async def _change(self, change: ScheduleChange, call: KeyedCall | None) -> int:
        try:
            return await self._store.change_schedule(change, call)
        finally:
            self._on_changed()  # whatever was raised: of a commit nobody may have been able to tell


def _already_open(workflow_id: str) -> WorkflowAlreadyOpen:
    return WorkflowAlreadyOpen(
        f"Expected to start workflow id '{workflow_id}', but an execution that has it is open. Try again, or change the "
        "template of the schedule."
    )


def _deleted(org: str, schedule_id: str, verb: str) -> ScheduleNotFound:
    return ScheduleNotFound(
        f"Expected to {verb} schedule '{schedule_id}' of org '{org}' once, but a call with this request id did, and the "
        "schedule has been deleted since. Use another request id to do it anew."
    )


def _busy(schedule_id: str) -> Conflict:
    return Conflict(f"Expected to change schedule '{schedule_id}', but others change it all the time. Try again.")
