"""What a workflow says about a human task: the options of `ctx.human_task`, checked and made into a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypedDict

import msgspec

from holdfast.core import payloads
from holdfast.core.check_schemas import make_check_schema
from holdfast.core.commands import CreateTask
from holdfast.core.ids import DEFAULT_QUEUE, check_identifier
from holdfast.core.input_schemas import make_schema
from holdfast.core.instants import Duration, Instant, from_datetime, to_micros
from holdfast.errors import InvalidArguments

if TYPE_CHECKING:
    from holdfast.code.command_issuer import CommandIssuer
    from holdfast.code.values import Values
    from holdfast.core.payloads import Payload

MOST_CANDIDATES: Final = 1_000
LONGEST_DESCRIPTION: Final = 4_000
_PRIORITIES: Final = range(-(2**31), 2**31)


class HumanTaskOptions(TypedDict, total=False):
    """The options of a human task beside its name and its form."""

    candidates: Sequence[str]
    """The groups whose members may claim it."""
    candidate_users: Sequence[str]
    """The users that may claim it. Without an assignee, candidate users and groups, everybody may."""
    assignee: str | None
    """Whose task it is: the assignee may claim it, too."""
    payload: Any
    """What the person is shown."""
    description: str
    """What is to be done, in words."""
    due: datetime | Duration | None
    """When it is to be done: a point in time, or a length of time from now. Its passing is a task event."""
    follow_up: datetime | Duration | None
    """When somebody is to look after it. Its passing is a task event."""
    escalate_after: datetime | Duration | None
    """When the groups of `escalate_to` may claim it as well, unless it has ended. A task event tells of it."""
    escalate_to: Sequence[str]
    priority: int
    """The higher, the more urgent; 0 if nothing is said."""
    queue: str
    """By which work lists can select it. Default: the queue of the execution."""


def make_task_command(
    name: str, form: Any, options: Mapping[str, Any], values: Values, now: Instant, queue: str
) -> CreateTask:
    """The command of a human task, without its number. Raises an InvalidRequest that says what is wrong."""
    unknown = sorted(set(options) - HumanTaskOptions.__optional_keys__)
    if unknown:
        raise InvalidArguments(
            f"Expected options of a human task, but {unknown[0]!r} is none. Use "
            f"{', '.join(sorted(HumanTaskOptions.__optional_keys__))}."
        )
    check_identifier(name, "the name of a human task")
    values.check_hint(form, "the form of human task", name)
    assignee, escalate_to = options.get("assignee"), _check_names(options, "escalate_to")
    escalate_at = _check_time(options, "escalate_after", now)
    if escalate_to and escalate_at is None:
        raise InvalidArguments(
            f"Expected escalate_to of human task '{name}' to come with escalate_after, but that is missing. Say when."
        )
    schema, check = _describe_form(form)
    return CreateTask(
        number=0,
        name=name,
        payload=values.encode(options.get("payload"), f"the payload of human task '{name}'"),
        form=payloads.describe_hint(form),
        schema=schema,
        check=check,
        description=_check_description(options.get("description", "")),
        assignee="" if assignee is None else check_identifier(assignee, "the assignee of a human task"),
        users=_check_names(options, "candidate_users"),
        groups=_check_names(options, "candidates"),
        priority=_check_priority(options.get("priority", 0)),
        queue=check_identifier(options.get("queue") or queue or DEFAULT_QUEUE, "the queue of a human task"),
        due=_check_time(options, "due", now),
        follow_up=_check_time(options, "follow_up", now),
        escalate_at=escalate_at,
        escalate_to=escalate_to,
    )


def _describe_form(form: Any) -> tuple[bytes, bytes]:
    """The JSON Schema of a form for people, and the one that it is checked by."""
    try:
        return _encode_schemas(form)
    except TypeError:  # a hint that cannot be hashed
        return _encode_schemas.__wrapped__(form)


@lru_cache(maxsize=256)
def _encode_schemas(form: Any) -> tuple[bytes, bytes]:
    schema, check = make_schema(form), make_check_schema(form)
    return msgspec.json.encode(schema, order="deterministic"), msgspec.json.encode(check, order="deterministic")


def _check_names(options: Mapping[str, Any], option: str) -> tuple[str, ...]:
    given = options.get(option)
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, Sequence | set | frozenset):
        raise InvalidArguments(
            f"Expected {option} of a human task to be a list of names, but it is {given!r}. Write for instance ['managers']."
        )
    names = tuple(sorted({check_identifier(one, f"each of {option} of a human task") for one in given}))
    if len(names) > MOST_CANDIDATES:
        raise InvalidArguments(
            f"Expected {option} of a human task to have at most {MOST_CANDIDATES} names, but there are {len(names)}. "
            "Name a group."
        )
    return names


def _check_time(options: Mapping[str, Any], option: str, now: Instant) -> Instant | None:
    given = options.get(option)
    if given is None:
        return None
    if isinstance(given, datetime):
        return from_datetime(given, f"{option} of a human task")
    return now + to_micros(given, f"{option} of a human task")


def _check_description(text: Any) -> str:
    if isinstance(text, str) and len(text) <= LONGEST_DESCRIPTION:
        return text
    raise InvalidArguments(
        f"Expected the description of a human task to be text of at most {LONGEST_DESCRIPTION} characters, but it is "
        f"{type(text).__name__}{f' of {len(text)}' if isinstance(text, str) else ''}. Put more into its payload."
    )


def _check_priority(priority: Any) -> int:
    if type(priority) is int and priority in _PRIORITIES:
        return priority
    raise InvalidArguments(f"Expected the priority of a human task to be a whole number, but it is {priority!r}.")


def read_form(issuer: CommandIssuer, number: int, form: Payload) -> None:
    """Read the form of the human task with a number, if that is awaited. Raises DecodingError if its type cannot."""
    future = issuer.steps.get(number)
    if future is not None and not future.done():
        payloads.decode(form, future.hint, f"the form of {future.label}")
