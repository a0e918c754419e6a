"""`holdfast start` and `holdfast signal-with-start`: begin executions, and wait for their results."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli.answers import ExitCode, answer, fail, json_option, print_json
from holdfast.cli.codecs import codec_option
from holdfast.cli.databases import Database, database_argument, make_request_id, org_option, use_client
from holdfast.cli.inputs import read_delay, read_input, read_inputs, read_length, read_pairs

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.code.bound_workflows import BoundWorkflow
    from holdfast.engine.handles import WorkflowHandle
    from holdfast.errors import HoldfastError, UnknownWorkflow, WorkflowError

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])

MOST_NAMED = 20
"""How many deployed processes an error names."""
TAKES_NEGATIVE_NUMBERS = {"ignore_unknown_options": True}
"""The settings of commands that take values: -5 is a value, and a misspelt option is no JSON."""


def reference_options() -> list[Callable[[Function], Function]]:
    """The options that say what an execution is about."""
    return [
        click.option("--business-reference", metavar="KEY", help="What it is about, by which lists find it."),
        click.option(
            "--reference-part",
            "reference_parts",
            multiple=True,
            callback=read_pairs,
            metavar="NAME=VALUE",
            help="A part of the business reference; may be repeated.",
        ),
    ]


def run_options(function: Function) -> Function:
    """Add the options of an execution that is to be created."""
    for option in reversed(
        [
            click.option("--queue", help="The queue whose nodes take its turns."),
            click.option("--metadata", multiple=True, callback=read_pairs, metavar="NAME=VALUE", help="May be repeated."),
            click.option(
                "--header", "headers", multiple=True, callback=read_pairs, metavar="NAME=VALUE", help="May be repeated."
            ),
            *reference_options(),
            click.option("--delay", callback=read_delay, metavar="WHEN", help="Begin after 90s, 2h, or at a time."),
            click.option("--execution-timeout", callback=read_length, metavar="LENGTH", help="For all its runs: 30m, 2d."),
            click.option("--run-timeout", callback=read_length, metavar="LENGTH", help="For each single run."),
            click.option("--version", help="The version of the workflow, to which it is pinned then."),
            click.option("--request-id", help="Calls with the same id are one call."),
            click.option("--text", "as_text", is_flag=True, help="Values are texts as they stand, not JSON."),
        ]
    ):
        function = option(function)
    return function


@click.command(context_settings=TAKES_NEGATIVE_NUMBERS)
@database_argument
@click.argument("workflow", metavar="WORKFLOW")
@click.argument("args", nargs=-1, metavar="[ARGS]...")
@click.option("--id", "workflow_id", help="The workflow id, of which one is open at a time.  [default: the execution's id]")
@click.option(
    "--on-open",
    type=click.Choice(["use_existing", "fail", "terminate_existing"]),
    help="What to do if the workflow id is open.  [default: use_existing]",
)
@click.option(
    "--on-closed",
    type=click.Choice(["allow", "allow_if_failed", "reject"]),
    help="What to do if only closed executions have it.  [default: allow]",
)
@run_options
@click.option("--wait", is_flag=True, help="Wait for the result, and print it.")
@click.option("--timeout", callback=read_length, metavar="LENGTH", help="With --wait: for how long at most.")
@org_option
@codec_option
@json_option
def start(
    *,
    database: Database,
    workflow: str,
    args: tuple[str, ...],
    org: str,
    wait: bool,
    as_json: bool,
    as_text: bool,
    **options: Any,
) -> None:
    """Start a workflow.

    ARGS are its arguments in their order, each as JSON, as @file or as - for standard input. Exit code 3 if --wait finds
    that it failed, timed out, was cancelled or terminated; 4 if it is still open after --timeout; 5 if it is blocked.
    """
    timeout: timedelta | None = options.pop("timeout")
    if timeout is not None and not wait:
        raise click.UsageError("Expected --timeout with --wait, but --wait is not given. Add it, or leave both out.")
    inputs = read_inputs(args, as_text=as_text)
    given = choose_given(read_reference(options))

    async def work(client: Client) -> WorkflowHandle[Any]:
        return await client.start(_bind(workflow, inputs), org=org, **given)

    handle = use_starting_client(database, work, workflow, org)
    told = {
        "org": org,
        "workflow": workflow,
        "workflow_id": handle.workflow_id,
        "execution_id": handle.execution_id,
        "created": handle.created,
    }
    if not wait:
        answer(told, describe_start(workflow, handle), as_json=as_json)
        return
    click.echo(describe_start(workflow, handle), err=True)
    wait_for_end(database, told, timeout, as_json=as_json)


def use_starting_client(database: Database, work: Callable[[Client], Coroutine[Any, Any, T]], workflow: str, org: str) -> T:
    """Await `work`, which starts a workflow, with a client. Raises UnknownWorkflow, which names the processes too."""
    from holdfast.errors import ProcessNotStartable, UnknownWorkflow

    async def run(client: Client) -> T:
        try:
            return await work(client)
        except ProcessNotStartable:
            raise
        except UnknownWorkflow as error:
            if error.version is not None:
                raise
            raise await tell_processes(client, error, workflow, org) from error

    return use_client(database, run)


async def tell_processes(client: Client, error: UnknownWorkflow, workflow: str, org: str) -> UnknownWorkflow:
    """An error about a name that is neither a workflow nor a process that can be started, with the names of both."""
    from holdfast.errors import UnknownWorkflow

    gone = await client.definitions(definition_id=workflow, kind="bpmn", state="undeployed", org=org)
    page = await client.definitions(kind="bpmn", org=org, limit=MOST_NAMED)
    deployed = [one.id for one in page]
    code = ", ".join(error.known) or "none"
    processes = (", ".join(deployed) or "none") + (", and others" if page.cursor is not None else "")
    if gone:
        found, remedy = f"process '{workflow}' was undeployed", "Deploy it again, or name another."
    else:
        found, remedy = (
            "there is none of that name",
            "Check the name and --org, deploy the process, or start an engine with its code.",
        )
    return UnknownWorkflow(
        f"Expected a workflow or process '{workflow}' that can be started, but {found} (code: {code}; deployed processes of "
        f"org '{org}': {processes}). {remedy}",
        workflow=workflow,
        known=(*error.known, *deployed),
    )


def _bind(workflow: str, inputs: Sequence[Any]) -> BoundWorkflow[Any]:
    """A workflow with all its arguments: options of the command line are options, whatever its parameters are called."""
    from holdfast.code.bound_workflows import BoundWorkflow

    return BoundWorkflow(workflow, inputs, {})


def read_reference(options: dict[str, Any]) -> dict[str, Any]:
    """The options with the business reference as the value that it is. Raises UsageError if it has parts, but no key."""
    from holdfast.core.references import BusinessReference

    key, parts = options["business_reference"], options["reference_parts"]
    if parts and key is None:
        raise click.UsageError("Expected --business-reference with --reference-part, but it is not given. Add it.")
    others = {name: value for name, value in options.items() if name not in ("business_reference", "reference_parts")}
    return others | {"business_reference": None if key is None else BusinessReference(key, parts)}


def choose_given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given: for the others, the engine has defaults. Calls without a request id get one."""
    given = {name: value for name, value in options.items() if value not in (None, {}, ())}
    # So that a call can be repeated while owners change.
    return given if "request_id" in given else {"request_id": make_request_id(), **given}


def describe_start(workflow: str, handle: WorkflowHandle[Any]) -> str:
    """What became of a start, in words."""
    what = "Started" if handle.created else "Already open:"
    return f"{what} {workflow} '{handle.workflow_id}' (execution {handle.execution_id})."


def wait_for_end(database: Database, told: dict[str, Any], timeout: timedelta | None, *, as_json: bool) -> None:
    """Wait for an execution, and print its result. Raises ClickException with an exit code if it has none."""
    from holdfast.errors import ExecutionBlocked, ResultTimedOut, WorkflowError

    async def work(client: Client) -> Any:
        return await client.wait_for_result(told["execution_id"], org=told["org"], timeout=timeout, on_blocked="raise")

    try:
        result = use_client(database, work, patience=None)
    except KeyboardInterrupt:
        raise fail(f"The wait was ended; execution {told['execution_id']} goes on.", ExitCode.INTERRUPTED) from None
    except ResultTimedOut as error:
        raise report(told, "open", error, ExitCode.STILL_OPEN, as_json=as_json) from None
    except ExecutionBlocked as error:
        raise report(told, "blocked", error, ExitCode.BLOCKED, as_json=as_json) from None
    except WorkflowError as error:
        raise report(told, name_end(error), error, ExitCode.NOT_COMPLETED, as_json=as_json) from None
    print_json({**told, "status": "completed", "result": result} if as_json else result)


def name_end(error: WorkflowError) -> str:
    """The status of an execution that ended with an error."""
    from holdfast.errors import WorkflowCancelled, WorkflowTerminated

    if isinstance(error, WorkflowCancelled):
        return "cancelled"
    return "terminated" if isinstance(error, WorkflowTerminated) else "failed"


def report(
    told: dict[str, Any], status: str, error: HoldfastError, code: ExitCode, *, as_json: bool
) -> click.ClickException:
    """An execution that has no result, as JSON on standard output where that was asked for, and as an error."""
    kind = getattr(error, "type", None) or type(error).__name__
    if as_json:
        details = getattr(error, "details", None)
        print_json({**told, "status": status, "error": {"type": kind, "message": error.message, "details": details}})
    if code is ExitCode.NOT_COMPLETED and status == "failed":
        return fail(f"{told['workflow']} '{told['workflow_id']}' failed: {kind}: {error.message}", code)
    return fail(error.message, code)


@click.command("signal-with-start", context_settings=TAKES_NEGATIVE_NUMBERS)
@database_argument
@click.argument("workflow_id", metavar="ID")
@click.argument("workflow", metavar="WORKFLOW")
@click.argument("args", nargs=-1, metavar="[ARGS]...")
@click.option("--signal", "signal_name", required=True, metavar="NAME", help="The signal.")
@click.option("--value", default="null", metavar="VALUE", help="Its value: JSON, @file or -.  [default: null]")
@run_options
@org_option
@codec_option
@json_option
def signal_with_start(
    *,
    database: Database,
    workflow_id: str,
    workflow: str,
    args: tuple[str, ...],
    signal_name: str,
    value: str,
    org: str,
    as_json: bool,
    as_text: bool,
    **options: Any,
) -> None:
    """Signal an execution, or start it with the signal.

    ID is the workflow id. If no execution of it is open, WORKFLOW is started with ARGS, and the signal waits for it.
    """
    if [value, *args].count("-") > 1:
        raise click.UsageError("Expected at most one value from standard input, but there are more. Use files: @name.")
    inputs = read_inputs(args, as_text=as_text)
    signal_value = None if value == "null" else read_input(value, "--value", as_text=as_text)
    given = choose_given(read_reference(options))

    async def work(client: Client) -> Any:
        return await client.signal_with_start_workflow(
            workflow_id,
            _bind(workflow, inputs),
            signal_name=signal_name,
            signal_value=signal_value,
            org=org,
            **given,
        )

    done = use_starting_client(database, work, workflow, org)
    told = {
        "org": org,
        "workflow_id": workflow_id,
        "execution_id": done.workflow_execution_id,
        "created": done.workflow_created,
        "signal": signal_name,
        "sequence": done.signal_event_sequence,
    }
    what = f"Started {workflow} with signal" if done.workflow_created else "Sent signal"
    answer(told, f"{what} '{signal_name}' for '{workflow_id}' (execution {done.workflow_execution_id}).", as_json=as_json)
