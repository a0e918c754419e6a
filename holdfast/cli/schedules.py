"""`holdfast schedules`: workflows that start at the times that a schedule says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli.answers import answer, json_option, print_json
from holdfast.cli.codecs import codec_option
from holdfast.cli.databases import Database, database_argument, org_option, use_client
from holdfast.cli.inputs import read_input, read_inputs, read_length, read_moment, read_pairs
from holdfast.cli.interventions import intervene, request_id_option
from holdfast.cli.owners import read_verbs
from holdfast.cli.starts import TAKES_NEGATIVE_NUMBERS, choose_given, read_reference, reference_options

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.engine.use_cases.schedule_views import ScheduleInfo, ScheduleRun

Function = TypeVar("Function", bound=Callable[..., Any])

OVERLAPS = ("skip", "queue", "allow", "cancel_running", "terminate_running")


@click.group("schedules")
@database_argument
@click.pass_context
def schedules(ctx: click.Context, database: Database) -> None:
    """Create, list, change and run schedules.

    A schedule starts a workflow at the times that a cron line, a cycle, a date or a calendar says.
    """
    ctx.obj = database


def policy_options(function: Function) -> Function:
    """Add what `create` and `update` can say about a schedule, and about the executions that it starts."""
    for option in reversed(
        [
            click.option("--time-zone", metavar="ZONE", help="In which local times count: Europe/Berlin.  [default: UTC]"),
            click.option(
                "--overlap", type=click.Choice(OVERLAPS), help="While an execution of it is open.  [default: skip]"
            ),
            click.option("--catch-up", callback=read_length, metavar="LENGTH", help="How late fires may be.  [default: 1d]"),
            click.option("--jitter", callback=read_length, metavar="LENGTH", help="By how much fires may be put off."),
            click.option("--count", type=int, help="After how many fires it ends."),
            click.option("--notes", help="For people."),
            click.option("--workflow-id", metavar="TEMPLATE", help="With {time} in it.  [default: {schedule}-{time}]"),
            click.option("--queue", help="The queue whose nodes take the turns."),
            click.option("--metadata", multiple=True, callback=read_pairs, metavar="NAME=VALUE", help="May be repeated."),
            click.option(
                "--header", "headers", multiple=True, callback=read_pairs, metavar="NAME=VALUE", help="May be repeated."
            ),
            *reference_options(),
            click.option("--execution-timeout", callback=read_length, metavar="LENGTH", help="For all runs of one: 30m."),
            click.option("--run-timeout", callback=read_length, metavar="LENGTH", help="For each single run."),
            click.option("--version", help="The version of the workflow."),
            click.option("--text", "as_text", is_flag=True, help="Values are texts as they stand, not JSON."),
            request_id_option,
            org_option,
            codec_option,
            json_option,
        ]
    ):
        function = option(function)
    return function


def read_spec(_ctx: click.Context, _param: click.Parameter, value: str | None) -> Any:
    """When a schedule fires: a text, or a calendar as JSON. Raises BadParameter."""
    if value is None or not value.lstrip().startswith("{"):
        return value
    return read_input(value, "SPEC")


@schedules.command(context_settings=TAKES_NEGATIVE_NUMBERS)
@click.argument("schedule_id", metavar="ID")
@click.argument("spec", metavar="SPEC", callback=read_spec)
@click.argument("workflow", metavar="WORKFLOW")
@click.argument("args", nargs=-1, metavar="[ARGS]...")
@click.option("--paused", is_flag=True, help="Create it paused.")
@policy_options
@click.pass_obj
def create(
    database: Database,
    /,
    *,
    schedule_id: str,
    spec: Any,
    workflow: str,
    args: tuple[str, ...],
    paused: bool,
    as_text: bool,
    org: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Create a schedule that starts WORKFLOW.

    SPEC is a cron line ('30 9 * * 1-5'), a cycle (R3/PT10M), a date, a duration (PT5M), or a calendar as JSON
    ('{"times": ["09:00"], "weekdays": ["mon"]}'). ARGS are the arguments of the workflow, each as JSON, @file or -.
    """
    from holdfast.code.bound_workflows import BoundWorkflow

    bound: BoundWorkflow[Any] = BoundWorkflow(workflow, read_inputs(args, as_text=as_text), {})
    given = choose_given(read_reference(options))

    async def work(client: Client) -> ScheduleInfo:
        return await client.create_schedule(schedule_id, spec, bound, paused=paused, org=org, **given)

    info = use_client(database, work)
    answer(info, f"Schedule '{schedule_id}' is {info.state}. {describe_next(info)}", as_json=as_json)


@schedules.command(context_settings=TAKES_NEGATIVE_NUMBERS)
@click.argument("schedule_id", metavar="ID")
@click.option("--spec", callback=read_spec, help="When it fires, from now on.")
@click.option("--workflow", help="What it starts.")
@click.option("--arg", "args", multiple=True, metavar="VALUE", help="An argument of the workflow. May be repeated.")
@policy_options
@click.pass_obj
def update(
    database: Database,
    /,
    *,
    schedule_id: str,
    spec: Any,
    workflow: str | None,
    args: tuple[str, ...],
    as_text: bool,
    org: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Change what is given of a schedule, and nothing else.

    If that changes when it fires, it counts from now on; else its count stays.
    """
    given = choose_given(read_reference(options))
    inputs = read_inputs(args, as_text=as_text) if args else None

    async def work(client: Client) -> ScheduleInfo:
        return await client.update_schedule(schedule_id, spec, workflow=workflow, args=inputs, org=org, **given)

    info = use_client(database, work)
    answer(info, f"Schedule '{schedule_id}' is {info.state}. {describe_next(info)}", as_json=as_json)


@schedules.command("list")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="How many at most.")
@click.option("--after", default="", metavar="ID", help="Those behind this id.")
@org_option
@codec_option
@json_option
@click.pass_obj
def list_schedules(database: Database, limit: int, after: str, org: str, as_json: bool) -> None:
    """List the schedules of an org, in the order of their ids."""
    from holdfast.cli.tables import show_rows, show_time

    async def work(client: Client) -> list[ScheduleInfo]:
        return await client.schedules(org=org, limit=limit, after=after)

    found = read_verbs(database, work)
    if as_json:
        print_json({"schedules": found})
        return
    if not found:
        click.echo("There are none.")
        return
    show_rows(
        ("id", "state", "spec", "workflow", "next", "fired", "skipped", "missed", "refused"),
        [
            (
                one.schedule_id,
                one.state,
                one.spec,
                one.workflow,
                "unknown" if one.problem else show_time(one.next_fires[0]) if one.next_fires else "",
                one.fired,
                one.skipped,
                one.missed,
                one.refused,
            )
            for one in found
        ],
    )


@schedules.command()
@click.argument("schedule_id", metavar="ID")
@org_option
@codec_option
@json_option
@click.pass_obj
def show(database: Database, schedule_id: str, org: str, as_json: bool) -> None:
    """Show a schedule, its next five fire times and its recent runs."""
    from holdfast.cli.tables import clean, show_json, show_rows, show_time

    async def work(client: Client) -> ScheduleInfo:
        return await client.describe_schedule(schedule_id, org=org)

    info = read_verbs(database, work)
    if as_json:
        print_json(info)
        return
    for name, value in info.to_dict().items():
        if name not in ("recent_runs", "next_fires") and value not in (None, "", {}):
            click.echo(clean(f"{name.replace('_', ' ')}: {value if isinstance(value, str) else show_json(value)}"))
    click.echo(f"next fires: {', '.join(map(show_time, info.next_fires)) or 'none'}")
    if info.recent_runs:
        rows = [
            (run.workflow_id, run.kind, show_time(run.at), "refused" if run.is_refused else show_time(run.started_at))
            for run in info.recent_runs
        ]
        show_rows(("workflow id", "kind", "for", "started"), rows)


def step(function: Function) -> Function:
    """Add what commands about one schedule take."""
    options = json_option(org_option(request_id_option(function)))
    return click.argument("schedule_id", metavar="ID")(options)


@schedules.command()
@step
@click.pass_obj
def pause(database: Database, schedule_id: str, request_id: str | None, org: str, as_json: bool) -> None:
    """Let a schedule fire no more until it is resumed."""
    given = choose_given({"request_id": request_id})
    intervene(
        database,
        lambda client: client.pause_schedule(schedule_id, org=org, **given),
        {"org": org, "schedule_id": schedule_id, "verb": "pause"},
        f"Schedule '{schedule_id}' is paused.",
        f"Expected to pause schedule '{schedule_id}', but it is paused or has ended. There is nothing to do.",
        as_json=as_json,
    )


@schedules.command()
@step
@click.pass_obj
def resume(database: Database, schedule_id: str, request_id: str | None, org: str, as_json: bool) -> None:
    """Let a paused schedule fire again; what fell into the pause is left out."""
    given = choose_given({"request_id": request_id})
    intervene(
        database,
        lambda client: client.resume_schedule(schedule_id, org=org, **given),
        {"org": org, "schedule_id": schedule_id, "verb": "resume"},
        f"Schedule '{schedule_id}' fires again.",
        f"Expected to resume schedule '{schedule_id}', but it is not paused. There is nothing to do.",
        as_json=as_json,
    )


@schedules.command()
@step
@click.pass_obj
def delete(database: Database, schedule_id: str, request_id: str | None, org: str, as_json: bool) -> None:
    """Delete a schedule; executions that it started continue."""
    given = choose_given({"request_id": request_id})
    intervene(
        database,
        lambda client: client.delete_schedule(schedule_id, org=org, **given),
        {"org": org, "schedule_id": schedule_id, "verb": "delete"},
        f"Schedule '{schedule_id}' was deleted.",
        f"Expected to delete schedule '{schedule_id}', but org '{org}' has none with that id. List the schedules.",
        as_json=as_json,
    )


@schedules.command()
@step
@click.pass_obj
def run(database: Database, schedule_id: str, request_id: str | None, org: str, as_json: bool) -> None:
    """Start an execution of a schedule now, also while it is paused."""
    given = choose_given({"request_id": request_id})

    async def work(client: Client) -> tuple[ScheduleRun, str]:
        done = await client.run_schedule(schedule_id, org=org, **given)
        return done, await _describe_run(client, done, schedule_id, org)

    done, said = use_client(database, work)
    answer(done, said, as_json=as_json)


async def _describe_run(client: Client, done: ScheduleRun, schedule_id: str, org: str) -> str:
    """What became of a run: it is started by a node that has the workflow, and waits while none has."""
    from holdfast.engine.nodes.roster import NodeState
    from holdfast.errors import ScheduleNotFound

    name = f"'{done.workflow_id}' (execution {done.execution_id})"
    try:
        workflow = (await client.describe_schedule(schedule_id, org=org)).workflow
    except ScheduleNotFound:  # it was deleted meanwhile, and what it started goes on
        return f"Started {name}."
    if any(workflow in one.workflows for one in await client.nodes() if one.state is NodeState.ALIVE):
        return f"Started {name}."
    return f"The start of {name} waits: no node that has workflow '{workflow}' runs. There is no execution until one does."


@schedules.command()
@click.argument("schedule_id", metavar="ID")
@click.argument("first", metavar="FROM", callback=read_moment)
@click.argument("last", metavar="TO", callback=read_moment)
@click.option("--overlap", type=click.Choice(["allow", "queue"]), default="allow", show_default=True, help="All at once?")
@request_id_option
@org_option
@json_option
@click.pass_obj
def backfill(
    database: Database,
    *,
    schedule_id: str,
    first: datetime,
    last: datetime,
    overlap: str,
    request_id: str | None,
    org: str,
    as_json: bool,
) -> None:
    """Start executions for fire times that have passed.

    FROM and TO are times, or how long ago: 2h. All start at once, or with --overlap queue one after the other.
    """
    given = choose_given({"request_id": request_id})

    async def work(client: Client) -> int:
        return await client.backfill_schedule(schedule_id, first, last, overlap=overlap, org=org, **given)

    done = use_client(database, work)
    told = {"org": org, "schedule_id": schedule_id, "started": done}
    answer(told, f"Schedule '{schedule_id}' starts {done} executions for times that have passed.", as_json=as_json)


def describe_next(info: ScheduleInfo) -> str:
    """When a schedule fires next, in words."""
    return f"Next: {info.next_fires[0].isoformat()}." if info.next_fires else "It does not fire now."
