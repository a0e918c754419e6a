"""What callers say about schedules, checked: their options, templates and times."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from holdfast.code.bound_workflows import BoundWorkflow
from holdfast.core.ids import LONGEST_ID, check_identifier
from holdfast.core.instants import Instant, from_datetime, to_micros
from holdfast.core.safe_texts import LONGEST_SHOWN, is_plain_text, show
from holdfast.core.schedules import Overlap, ScheduleDetails, ScheduleState, arm
from holdfast.core.times.dates import FIRST_YEAR
from holdfast.engine.use_cases.schedule_views import ScheduleOptions, list_next
from holdfast.engine.use_cases.start_options import START_OPTIONS, RunOptions
from holdfast.errors import InvalidArguments, InvalidSchedule

LONGEST_NOTES: Final = 4_000
LARGEST_COUNT: Final = 1_000_000_000
_RUN_OPTIONS: Final = RunOptions.__optional_keys__
_OPTIONS: Final = ScheduleOptions.__optional_keys__
SCHEDULE_OPTIONS: Final = _OPTIONS | {"workflow_input"}
"""Keywords of `create_schedule` that are no arguments of the workflow."""
_LONGEST_TIME: Final = "2026-01-01T00:00:00.000000Z"
_LONGEST_ENDING: Final = "-backfill-1000000000"


def check_names(org: str, schedule_id: str) -> None:
    check_identifier(org, "the org")
    check_identifier(schedule_id, "the id of a schedule")


def check_options(options: Collection[str]) -> None:
    for name in options:
        if name not in _OPTIONS:
            raise InvalidArguments(
                f"Expected options of a schedule, but '{name}' is none. They are: {', '.join(sorted(_OPTIONS))}. Pass "
                "an argument of the workflow that has this name by position, or in args=[…]."
            )


def check_arguments(kwargs: Mapping[str, Any]) -> None:
    """Options of a start that a schedule does not have are refused: they are hardly meant as arguments."""
    check_options([name for name in kwargs if name in START_OPTIONS])


def choose_args(inputs: Sequence[Any], args: Any) -> Sequence[Any]:
    """The arguments of a workflow that were given by position or as a list. Raises InvalidArguments if they are both."""
    if inputs and args is not None:
        raise InvalidArguments(
            "Expected the arguments of the workflow behind it or as args=[…], but they are given both ways. Choose one."
        )
    return inputs or check_args(args)


def check_order(spec: Any) -> None:
    """Raises InvalidSchedule if a workflow stands where a schedule says when it fires."""
    if isinstance(spec, BoundWorkflow) or callable(spec):
        raise InvalidSchedule(
            f"Expected a schedule to say when it fires, but it is workflow {name_workflow(spec)!r}. Write the times before "
            "the workflow: create_schedule('nightly', '0 2 * * *', report)."
        )


def name_workflow(workflow: Any) -> Any:
    """The name of a workflow that may be given as a function, with its arguments, or by its name."""
    given = workflow.workflow if isinstance(workflow, BoundWorkflow) else workflow
    return getattr(given, "name", given)


def check_args(args: Any) -> Sequence[Any]:
    if args is None:
        return ()
    if isinstance(args, list | tuple):
        return args
    raise InvalidArguments(
        f"Expected args=… to be a list of arguments, but it is {show(args, repr, LONGEST_SHOWN)}. Write args=[…]."
    )


def take_run_options(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name in _RUN_OPTIONS}


def check_template(template: Any, schedule_id: str) -> str:
    check_identifier(template, "the workflow id of a schedule")
    if "{time}" not in template:
        raise InvalidSchedule(
            f"Expected the workflow id of a schedule to have {{time}} in it, but it is {template!r}. "
            "Write for instance '{schedule}-{time}': each fire starts an execution of its own."
        )
    named = template.replace("{schedule}", schedule_id)  # an id may have {time} in it, too: see `name_run`
    longest = len(named.replace("{time}", _LONGEST_TIME)) + len(_LONGEST_ENDING)
    if longest > LONGEST_ID:
        raise InvalidSchedule(
            f"Expected workflow ids of at most {LONGEST_ID} characters, but those of the schedule may have {longest}. "
            "Choose a shorter id or template."
        )
    return str(template)


def set_policies(details: ScheduleDetails, options: Mapping[str, Any]) -> ScheduleDetails:
    changes: dict[str, Any] = {}
    if "overlap" in options:
        changes["overlap"] = choose_overlap(options["overlap"])
    if "catch_up" in options:
        changes["catch_up_us"] = to_micros(options["catch_up"], "the catch-up window")
    if "jitter" in options:
        changes["jitter_us"] = to_micros(options["jitter"], "the jitter")
    if "count" in options:
        changes["count"] = _check_count(options["count"])
    if "notes" in options:
        changes["notes"] = _check_notes(options["notes"])
    return replace(details, **changes)


def choose_overlap(value: Any) -> Overlap:
    try:
        return Overlap(value)
    except ValueError:
        allowed = ", ".join(f"'{one}'" for one in Overlap)
        raise InvalidSchedule(
            f"Expected overlap to be one of {allowed}, but it is {show(value, repr, LONGEST_SHOWN)}. Choose one."
        ) from None


def check_passed(first: datetime, last: datetime, now: Instant) -> tuple[Instant, Instant]:
    """The first and the last time of a backfill, which have passed. Raises InvalidArguments."""
    begin, end = from_datetime(first, "the first time"), from_datetime(last, "the last time")
    if begin > end or end > now:
        raise InvalidArguments(
            f"Expected a backfill of a time that has passed, but it is from {first.isoformat()} to {last.isoformat()}. "
            "Pass the first and the last time, both before now."
        )
    if begin < 0:
        raise InvalidArguments(
            f"Expected a backfill of times since {FIRST_YEAR}, but it begins at {first.isoformat()}. Pass a later time."
        )
    return begin, end


def _check_count(value: Any) -> int | None:
    if value is None or (type(value) is int and 1 <= value <= LARGEST_COUNT):
        return value
    raise InvalidSchedule(
        f"Expected count to be a whole number from 1 to {LARGEST_COUNT}, but it is {show(value, repr, LONGEST_SHOWN)}. "
        "Leave it out for no end."
    )


def _check_notes(value: Any) -> str:
    if is_plain_text(value) and len(value) <= LONGEST_NOTES:
        return str(value)
    raise InvalidSchedule(
        f"Expected notes to be text of at most {LONGEST_NOTES} characters, without NUL and surrogates, but they are "
        "not. Shorten or decode them."
    )


def check_flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidArguments(f"Expected paused to be True or False, but it is {show(value, repr, LONGEST_SHOWN)}. Choose one.")


def arm_checked(details: ScheduleDetails, now: Instant) -> ScheduleDetails:
    """A schedule that counts from now on, and whose next times can be computed. Raises InvalidSchedule."""
    try:
        armed = arm(details, now)
        list_next(armed, ScheduleState.ACTIVE)
    except (ValueError, OverflowError):
        raise InvalidSchedule(
            f"Expected a schedule whose next times are dates, but those of '{details.spec.text}' are beyond the calendar. "
            "Correct it."
        ) from None
    if armed.is_over:
        raise InvalidSchedule(
            f"Expected a schedule that fires at some time, but '{details.spec.text}' never does from now on. Correct it."
        )
    return armed
