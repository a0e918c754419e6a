"""`holdfast tasks` and `holdfast task`: what waits for people, and what they do about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli.answers import answer, json_option, print_json
from holdfast.cli.codecs import codec_option
from holdfast.cli.databases import PATIENCE, Database, database_argument, org_option, use_client
from holdfast.cli.inputs import read_input, read_moment_ahead
from holdfast.cli.interventions import request_id_option
from holdfast.cli.owners import read_verbs
from holdfast.cli.starts import TAKES_NEGATIVE_NUMBERS, choose_given

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.engine.task_views import TaskEvent, TaskInfo, TaskList

Function = TypeVar("Function", bound=Callable[..., Any])

COLUMNS = ("task id", "name", "state", "assignee", "claimer", "candidates", "due", "workflow", "workflow id")
DOCUMENTS = ("payload", "form_schema", "result")
"""What a task has that is shown as JSON in several lines."""
TOLD_BY_KIND = ("state", "claimer")
"""What a step changes that its kind and who took it tell already."""
STATES = ("open", "claimed", "completed", "cancelled", "all")


@click.command("tasks")
@database_argument
@click.option("--state", multiple=True, type=click.Choice(STATES), help="May be repeated.  [default: open, claimed]")
@click.option("--assignee", help="Only those assigned to this person.")
@click.option("--claimer", help="Only those that this person has claimed.")
@click.option("--group", "candidate_group", help="Only those that members of this group may claim.")
@click.option("--user", "candidate_user", help="Only those that this person may claim as a candidate.")
@click.option(
    "--due-before", callback=read_moment_ahead, metavar="TIME", help="Only those that are due earlier; 2d: within two days."
)
@click.option("--name", help="Only tasks of this name.")
@click.option("--workflow", help="Only tasks of this workflow.")
@click.option("--execution", "execution_id", metavar="EXECUTION_ID", help="Only tasks of this execution.")
@click.option("--queue", help="Only tasks of this queue.")
@click.option("--business-key", help="Only tasks of executions with this business reference.")
@click.option("--order", type=click.Choice(["created", "due"]), help="[default: due with --due-before, else created]")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many at most.")
@click.option("--cursor", help="The next page: what the page before gave as its cursor.")
@org_option
@codec_option
@json_option
def tasks(*, database: Database, as_json: bool, state: tuple[str, ...], **options: Any) -> None:
    """List human tasks, the oldest first.

    With --due-before, or --order due, those come first that are due first. All conditions have to hold. Times are in UTC
    unless they say otherwise.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if state:
        given["state"] = "all" if "all" in state else list(state)

    from holdfast.engine.use_cases.human_tasks import make_filter

    async def work(client: Client) -> TaskList:
        return await client.tasks(**given)

    make_filter(given)  # type: ignore[arg-type]  # what is wrong is told here, before anybody is asked
    page = read_verbs(database, work)
    if as_json:
        print_json(page.to_dict())
        return
    if not page:
        click.echo("There are none.")
        return
    from holdfast.cli.tables import show_rows

    show_rows(COLUMNS, map(_list_cells, page))
    if page.cursor is not None:
        click.echo(f"There are more: --cursor {page.cursor}", err=True)


def _list_cells(one: TaskInfo) -> tuple[str, ...]:
    candidates = ", ".join([*one.candidate_users, *one.candidate_groups])
    due = "" if one.due is None else f"{one.due:%Y-%m-%d %H:%M:%S}"
    people = (one.assignee or "", one.claimer or "", candidates)
    state = one.state if one.damage is None else f"{one.state} (damaged)"
    return (one.task_id, one.name, state, *people, due, one.workflow, one.workflow_id)


@click.group("task")
@database_argument
@click.pass_context
def task(ctx: click.Context, database: Database) -> None:
    """Show a human task, and do something about it.

    What is refused changes nothing, and exits with code 1.
    """
    ctx.obj = database


def step_options(function: Function) -> Function:
    """Add what every step says: who takes it, and that it may be repeated."""
    for option in reversed(
        [
            click.option("--by", required=True, metavar="PERSON", help="Who does it."),
            click.option("--group", "groups", multiple=True, help="A group of that person; may be repeated."),
            request_id_option,
            org_option,
            codec_option,
            json_option,
        ]
    ):
        function = option(function)
    return function


timeout_option = click.option(
    "--timeout", type=float, default=30.0, show_default=True, metavar="SECONDS", help="Give up after so long."
)


def take(
    database: Database, said: str, call: Callable[[Client], Awaitable[TaskInfo]], *, as_json: bool, timeout: float = 0.0
) -> None:
    """Take a step, and tell it: `said` follows the task. `timeout`: the seconds that the step itself may wait."""

    async def work(client: Client) -> TaskInfo:
        return await call(client)

    done = use_client(database, work, patience=PATIENCE + timeout)
    answer(done, f"Task {done.task_id} ('{done.name}') {said}.", as_json=as_json)


@task.command()
@click.argument("task_id", metavar="TASK")
@org_option
@codec_option
@json_option
@click.pass_obj
def show(database: Database, /, *, task_id: str, org: str, as_json: bool) -> None:
    """Show a task, and what happened to it."""

    async def work(client: Client) -> tuple[TaskInfo, list[TaskEvent]]:
        return await client.task(task_id, org=org), await client.task_events(task_id, org=org)

    found, events = read_verbs(database, work)
    told = found.to_dict()
    if as_json:
        print_json({**told, "events": [one.to_dict() for one in events]})
        return
    from holdfast.cli.tables import show_document, show_fields, show_rows, show_time

    documents = {name: value for name in DOCUMENTS if (value := told.pop(name)) is not None}
    show_fields({name: getattr(found, name) for name, value in told.items() if value not in (None, "", [], {})})
    for name, value in documents.items():
        show_document(name.replace("_", " "), value)
    click.echo("\nwhat happened to it:")
    rows = [(one.sequence, show_time(one.at, "seconds"), one.kind, one.by or "", describe_step(one)) for one in events]
    show_rows(("#", "at", "step", "by", "details"), rows)


def describe_step(one: TaskEvent) -> str:
    """What a step changed, and what was said about it, in full."""
    if one.damage is not None:
        return one.damage
    changes = [
        f"{name}: {_show_change(name, one.before.get(name))} -> {_show_change(name, value)}"
        for name, value in one.after.items()
        if name not in TOLD_BY_KIND
    ]
    return "; ".join([*changes, *filter(None, (one.comment, one.reason))])


def _show_change(name: str, value: Any) -> str:
    from holdfast.cli.tables import show_time, show_value
    from holdfast.core.instants import to_datetime

    if name in ("due", "follow_up") and isinstance(value, int):
        return show_time(to_datetime(value), "seconds")
    return "none" if value in (None, "", [], ()) else show_value(value)


@task.command()
@click.argument("task_id", metavar="TASK")
@step_options
@click.pass_obj
def claim(database: Database, /, *, task_id: str, as_json: bool, **options: Any) -> None:
    """Take a task, as its assignee or a candidate."""
    given = choose_given(options)
    take(database, f"was claimed by '{given['by']}'", lambda client: client.claim_task(task_id, **given), as_json=as_json)


@task.command()
@click.argument("task_id", metavar="TASK")
@step_options
@click.pass_obj
def release(database: Database, /, *, task_id: str, as_json: bool, **options: Any) -> None:
    """Give back a task that one has claimed."""
    given = choose_given(options)
    take(database, f"was released by '{given['by']}'", lambda client: client.release_task(task_id, **given), as_json=as_json)


@task.command()
@click.argument("task_id", metavar="TASK")
@click.argument("assignee", metavar="[PERSON]", required=False)
@step_options
@click.pass_obj
def assign(database: Database, /, *, task_id: str, assignee: str | None, as_json: bool, **options: Any) -> None:
    """Assign a task to somebody, or to nobody; a claim ends by it."""
    given = choose_given(options)
    whom = "nobody" if assignee is None else f"'{assignee}'"
    take(database, f"was assigned to {whom}", lambda client: client.assign_task(task_id, assignee, **given), as_json=as_json)


@task.command(context_settings=TAKES_NEGATIVE_NUMBERS)
@click.argument("task_id", metavar="TASK")
@click.argument("form", default="null", metavar="[FORM]")
@click.option("--text", "as_text", is_flag=True, help="FORM is a text as it stands, not JSON.")
@timeout_option
@step_options
@click.pass_obj
def complete(
    database: Database, /, *, task_id: str, form: str, as_text: bool, as_json: bool, timeout: float, **options: Any
) -> None:
    """Complete a task that one has claimed.

    FORM is JSON, @file, or - for standard input. It has to fit the form of the task, see `show`. While its workflow takes
    no turn, since no engine with its code runs or it is paused, the command waits.
    """
    value, given = read_input(form, "FORM", as_text=as_text), choose_given(options)
    call = {"timeout": timeout, **given}
    take(
        database,
        f"was completed by '{given['by']}'",
        lambda client: client.complete_task(task_id, value, **call),
        as_json=as_json,
        timeout=timeout,
    )


@task.command()
@click.argument("task_id", metavar="TASK")
@click.option("--reason", default="", help="Why, as it is shown.")
@timeout_option
@step_options
@click.pass_obj
def cancel(database: Database, /, *, task_id: str, reason: str, as_json: bool, timeout: float, **options: Any) -> None:
    """Cancel a task: its workflow is told."""
    call = {"timeout": timeout, **choose_given(options)}
    take(
        database,
        f"was cancelled by '{call['by']}'",
        lambda client: client.cancel_task(task_id, reason, **call),
        as_json=as_json,
        timeout=timeout,
    )


@task.command()
@click.argument("task_id", metavar="TASK")
@click.argument("text", metavar="TEXT")
@step_options
@click.pass_obj
def comment(database: Database, /, *, task_id: str, text: str, as_json: bool, **options: Any) -> None:
    """Say something about a task: a task event keeps it."""
    given = choose_given(options)
    take(
        database,
        f"has a new comment, by '{given['by']}'",
        lambda client: client.comment_task(task_id, text, **given),
        as_json=as_json,
    )


@task.command()
@click.argument("task_id", metavar="TASK")
@click.option(
    "--at", callback=read_moment_ahead, metavar="TIME", help="When it is due: a time, or 2h for two hours from now."
)
@click.option("--never", is_flag=True, help="It is not due at any time.")
@timeout_option
@step_options
@click.pass_obj
def due(
    database: Database,
    /,
    *,
    task_id: str,
    at: datetime | None,
    never: bool,
    as_json: bool,
    timeout: float,
    **options: Any,
) -> None:
    """Change when a task is due."""
    from holdfast.cli.tables import show_time

    if (at is None) != never:
        raise click.UsageError("Expected --at TIME or --never: one of them.")
    call = {"timeout": timeout, **choose_given(options)}
    said = "is due at no time" if at is None else f"is due at {show_time(at, 'seconds')}"
    take(database, said, lambda client: client.set_task_due(task_id, at, **call), as_json=as_json, timeout=timeout)
