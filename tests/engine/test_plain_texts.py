"""NUL and lone surrogates in each text that a call takes: kept as they are or refused, on every store alike."""

from __future__ import annotations

import asyncio
import inspect
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from holdfast import Context, Engine, event, workflow
from holdfast.engine.transfer.transfers import transfer
from holdfast.engine.use_cases.human_tasks import TaskConditions
from holdfast.engine.use_cases.schedule_views import ScheduleOptions
from holdfast.engine.verbs.human_tasks import TaskVerbs
from holdfast.engine.verbs.pauses import PauseVerbs
from holdfast.engine.verbs.publications import PublicationVerbs
from holdfast.engine.verbs.queries_and_updates import QueryAndUpdateVerbs
from holdfast.engine.verbs.schedules import ScheduleVerbs
from holdfast.engine.verbs.stale import StaleWorkVerbs
from holdfast.errors import HoldfastError, StoreError
from tests.eventually import eventually

PROTOCOLS: Final = (PauseVerbs, QueryAndUpdateVerbs, PublicationVerbs, TaskVerbs, ScheduleVerbs, StaleWorkVerbs)
OPTIONS: Final[Mapping[str, Any]] = {"TaskConditions": TaskConditions, "ScheduleOptions": ScheduleOptions}
"""What the keywords of verbs are made of, by the name in their signatures."""
NUL, SURROGATE = "a\0b", "a\ud800b"
TASK: Final = "the task of the workflow"
"""Stands for the id of the only human task."""
DAY: Final = datetime(2030, 1, 1, tzinfo=UTC)
GIVEN: Final[Mapping[str, Mapping[str, Any]]] = {
    "pause": {"target": "desk"},
    "resume": {"target": "desk"},
    "pause_workflow": {"name": "other"},
    "resume_workflow": {"name": "other"},
    "pause_queue": {"name": "other"},
    "resume_queue": {"name": "other"},
    "pauses": {},
    "query": {"target": "desk", "name": "look"},
    "update": {"target": "desk", "name": "give", "value": "x"},
    "update_with_start": {"workflow_id": "desk", "workflow": "desk", "update_name": "give", "update_value": "x"},
    "send_event": {"event": "Paid", "value": {"by": "ann"}},
    "send_event_to": {"target": "desk", "event": "Paid", "value": {"by": "ann"}},
    "send_message": {"name": "note", "key": "k", "ttl": 60},
    "broadcast_signal": {"name": "alarm"},
    "pending_events": {"event": "Paid"},
    "remove_pending_event": {"event": "Paid", "event_id": "x"},
    "tasks": {},
    "task": {"task_id": TASK},
    "task_events": {"task_id": TASK},
    "claim_task": {"task_id": TASK, "by": "ann"},
    "release_task": {"task_id": TASK, "by": "ann"},
    "assign_task": {"task_id": TASK, "assignee": "ann", "by": "ann"},
    "complete_task": {"task_id": TASK, "by": "ann"},
    "cancel_task": {"task_id": TASK, "by": "ann"},
    "comment_task": {"task_id": TASK, "comment": "well", "by": "ann"},
    "set_task_priority": {"task_id": TASK, "priority": 3, "by": "ann"},
    "set_task_due": {"task_id": TASK, "due": None, "by": "ann"},
    "create_schedule": {"schedule_id": "new", "spec": "@daily", "workflow": "desk"},
    "update_schedule": {"schedule_id": "nightly"},
    "pause_schedule": {"schedule_id": "nightly"},
    "resume_schedule": {"schedule_id": "nightly"},
    "run_schedule": {"schedule_id": "nightly"},
    "backfill_schedule": {"schedule_id": "nightly", "first": DAY, "last": DAY},
    "delete_schedule": {"schedule_id": "nightly"},
    "describe_schedule": {"schedule_id": "nightly"},
    "schedules": {},
    "stale": {"older_than": timedelta(days=9)},
    "end_stale": {"older_than": timedelta(days=9)},
}
"""What a call of each verb is given that has nothing wrong with it."""


@event
@dataclass
class Paid:
    by: str


@workflow
async def desk(ctx: Context) -> None:
    @ctx.on_update
    def give(value: str) -> str:
        return value

    @ctx.on_query
    def look() -> str:
        return "nothing"

    await ctx.human_task("approve", candidates=["clerks"])


def list_texts() -> Iterator[tuple[str, str, Any]]:
    """(verb, argument, annotation) of each argument that is text, or has texts in it."""
    for protocol in PROTOCOLS:
        for verb, method in inspect.getmembers(protocol, inspect.isfunction):
            if verb.startswith("_"):
                continue
            for name, parameter in inspect.signature(method).parameters.items():
                said = str(parameter.annotation)
                if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                    options = OPTIONS.get(said.removeprefix("Unpack[").removesuffix("]"))
                    hints = {} if options is None else typing.get_type_hints(options)
                    yield from ((verb, option, str(hint)) for option, hint in hints.items() if _has_text(str(hint)))
                elif _has_text(said) or name in ("event", "workflow"):
                    yield verb, name, said


def _has_text(annotation: str) -> bool:
    return re.search(r"\bstr\b", annotation) is not None


def spoil(annotation: str, text: str) -> list[Any]:
    """Values for an argument that have the text in them."""
    if "Mapping[str, str]" in annotation:
        return [{text: "x"}, {"x": text}]
    return [text, [text]] if "Sequence[" in annotation else [text]


async def try_all(url: str) -> dict[str, str]:
    """What becomes of each call with each text: the name of the error, or 'done'."""
    outcomes: dict[str, str] = {}
    async with Engine(url, workflows=[desk], events=[Paid]) as engine:
        await engine.start(desk, workflow_id="desk")

        async def has_task() -> bool:
            return bool(await engine.tasks())

        await eventually(has_task, "the human task")
        task_id = (await engine.tasks())[0].task_id
        await engine.create_schedule("nightly", "@daily", desk)
        for verb, name, annotation in list_texts():
            given = {key: task_id if value == TASK else value for key, value in GIVEN[verb].items()}
            for label, text in (("NUL", NUL), ("surrogate", SURROGATE)):
                for place, value in enumerate(spoil(annotation, text)):
                    call = getattr(engine, verb)(**{**given, name: value})
                    outcomes[f"{verb}({name}={label}) {place}"] = await find_outcome(call)
                    await engine.delete_schedule("new")  # so that the next one is not refused for it
    return outcomes


async def find_outcome(call: Any) -> str:
    """What a call comes to. An error of the store's is none that says what is wrong with a text."""
    try:
        await asyncio.wait_for(call, 30)
    except StoreError:
        raise
    except HoldfastError as error:
        return type(error).__name__
    return "done"


async def test_V1_texts_that_not_every_database_can_hold_are_refused_alike(tmp_path: Path, postgres_url: str) -> None:
    source = f"sqlite:///{tmp_path / 'source.db'}"

    outcomes = {url: await try_all(url) for url in ("memory://", source, postgres_url)}

    memory, sqlite, postgres = outcomes.values()
    assert memory == sqlite == postgres
    done = [call for call, outcome in memory.items() if outcome == "done"]
    assert [call for call in done if "surrogate" in call] == []
    names = {name for call in done for name in re.findall(r"\((\w+)=NUL", call)}
    assert names == {"comment", "headers", "metadata"}, "which are kept as JSON"


async def test_what_was_taken_with_such_texts_can_be_transferred(tmp_path: Path, postgres_url: str) -> None:
    source = f"sqlite:///{tmp_path / 'source.db'}"
    await try_all(source)

    report = await transfer(source, postgres_url)

    assert not report.was_done_before
