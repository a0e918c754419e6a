"""The command line: `holdfast …`, one file per noun.

The files import click and little else; what a command needs is imported when it runs, so that `holdfast --help` is fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from holdfast import __version__
from holdfast.cli.backlogs import backlog
from holdfast.cli.check import check
from holdfast.cli.dead_letters import dead_letters
from holdfast.cli.demo.command import demo
from holdfast.cli.deployments import definitions, deploy, disable, enable, undeploy
from holdfast.cli.dmn import dmn
from holdfast.cli.drawings import render
from holdfast.cli.executions import show
from holdfast.cli.exports import export_executions, import_executions
from holdfast.cli.feel import feel
from holdfast.cli.handler_calls import ask_query, send_update
from holdfast.cli.histories import history, replay
from holdfast.cli.incidents import incidents, resolve_incident, variables
from holdfast.cli.interventions import cancel, retry, terminate
from holdfast.cli.nodes import nodes
from holdfast.cli.pauses import pause, pauses, resume
from holdfast.cli.process_tests import test_process
from holdfast.cli.processes import run
from holdfast.cli.publications import broadcast, events, send_event, send_message
from holdfast.cli.purges import purge
from holdfast.cli.schedules import schedules
from holdfast.cli.searches import count_executions, list_executions
from holdfast.cli.signals import send_signal
from holdfast.cli.simulations import simulate
from holdfast.cli.stale import stale
from holdfast.cli.starts import signal_with_start, start
from holdfast.cli.tails import tail
from holdfast.cli.tasks import task, tasks
from holdfast.cli.transfers import transfer_database
from holdfast.errors import HoldfastError

COMMANDS: Final[Sequence[click.Command]] = (
    demo,
    deploy,
    undeploy,
    enable,
    disable,
    definitions,
    run,
    start,
    send_signal,
    signal_with_start,
    ask_query,
    send_update,
    send_message,
    send_event,
    broadcast,
    events,
    cancel,
    terminate,
    retry,
    pause,
    resume,
    pauses,
    stale,
    incidents,
    resolve_incident,
    variables,
    schedules,
    tasks,
    task,
    list_executions,
    count_executions,
    show,
    history,
    tail,
    backlog,
    dead_letters,
    nodes,
    replay,
    check,
    purge,
    export_executions,
    import_executions,
    transfer_database,
    simulate,
    feel,
    dmn,
    test_process,
    render,
)


RENAMED: Final[Mapping[str, str]] = {"migrate": "transfer"}
"""Former names of commands: they are refused with the present name."""


class Commands(click.Group):
    """A group that lists its commands in the order given and prints our errors as sentences, without a traceback."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in RENAMED:
            ctx.fail(f"Expected a command, but '{cmd_name}' has another name now. Use `holdfast {RENAMED[cmd_name]}`.")
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except HoldfastError as error:
            raise click.ClickException(error.message) from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="holdfast")
def main() -> None:
    """Durable workflows: start and signal them, look into a database, replay histories, see a crash survived.

    DB is the path of a SQLite database, or a URL: sqlite:///app.db, postgresql://user@host/database?schema=holdfast. The
    commands work while the application runs: what is read is read beside it, what changes something is done by the process
    that owns a SQLite file, or by this one while nobody owns it. Only `purge`, `import`, `transfer` and
    `run --database` have to own a SQLite file: stop its engine first.

    Exit code 1: refused, or not found; 2: bad usage. Each command has its own --help.
    """


for _command in COMMANDS:
    main.add_command(_command)
