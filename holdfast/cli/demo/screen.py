"""How the story looks in the terminal. In a pipe the same words come without colours, bars and motion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from rich.columns import Columns
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from holdfast.cli.demo.evidence import Evidence, StoredExecution
from holdfast.cli.demo.proof import ActivityRuns, Check
from holdfast.cli.tables import STYLES, count, make_table, show_time
from holdfast.core import events
from holdfast.core.events import AnyEvent
from holdfast.engine.views import ExecutionInfo, RecoveryReport

PIPE_WIDTH = 100


class Screen:
    """Prints scenes, and shows progress below them."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or make_console()
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def show_title(self) -> None:
        """Print the title, and what the demo is about to show."""
        self.console.print(Text("Holdfast: a worker process is killed, and nothing is lost.", style="bold green"))

    def begin_scene(self, title: str) -> None:
        """A new part of the story."""
        self.console.print()
        self.console.print(Text(title, style="bold"))

    def say(self, text: str, style: str = "") -> None:
        """Print one line of the story, indented below the title of its scene."""
        self.console.print(Text(f"  {text}", style=style))

    def announce_kill(self, pid: int) -> None:
        """Print that the worker process is killed now."""
        self.console.print()
        self.console.rule(Text(f"kill -9 {pid}", style="bold red"), style="red", characters="=")

    @contextmanager
    def show_progress(self) -> Iterator[None]:
        """Bars below the story for a while."""
        columns = (SpinnerColumn("line"), TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn())
        self._tasks = {}
        with Progress(*columns, console=self.console) as self._progress:
            yield

    def advance(self, name: str, done: int, total: int) -> None:
        """Move a bar; the first time makes it."""
        if self._progress is None:
            return
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total, completed=done)
        self._progress.update(self._tasks[name], completed=done, total=total)

    # --- tables ---

    def show_executions(self, infos: Sequence[ExecutionInfo]) -> None:
        """Print a table of executions with their status."""
        table = make_table("workflow id", "status", "events", "waits for")
        for info in infos:
            waiting = info.waiting_for or ("an activity" if info.nodes else "")
            if info.waiting_until is not None:
                waiting += f", timer due {show_time(info.waiting_until)[11:-1]}"
            table.add_row(info.workflow_id, Text(info.status, style=STYLES[info.status]), str(info.history_length), waiting)
        self.console.print(table)

    def show_report(self, report: RecoveryReport) -> None:
        """What the engine found when it opened."""
        self.say(f"recovery: {report.resumed} resumed, because the dead process was running their activities")
        self.say(f"          {report.waiting} go on waiting, {count(report.timers, 'timer')} armed")

    def show_histories(self, evidence: Evidence) -> None:
        """What happened in each execution, before and after the kill."""
        begun = min(told.history.events[0].taken_at for told in evidence.executions)
        tables = [make_history(told, begun, evidence.killed_at) for told in evidence.executions]
        self.console.print(Columns(tables, padding=(1, 2)))

    def show_runs(self, runs: Sequence[ActivityRuns]) -> None:
        """How often functions ran outside, and what counts inside."""
        table = make_table("activity", "for", "begun", "failed", "cut off", "done", "recorded", "attempt")
        for run in runs:
            cut_off = run.begun - run.failed - run.done
            style = "yellow" if run.begun > 1 else None
            numbers = (run.begun, run.failed, cut_off, run.done, run.results, run.attempt)
            table.add_row(run.activity, run.subject, *(str(number) if number else "-" for number in numbers), style=style)
        self.console.print(table)

    def show_checks(self, checks: Sequence[Check]) -> None:
        """What was claimed and what was found."""
        table = make_table("", "claim", "found")
        for check in checks:
            verdict = Text("yes", style="green") if check.holds else Text("NO", style="bold red")
            table.add_row(verdict, check.claim, check.found)
        self.console.print(table)


def make_console() -> Console:
    """A console on standard output; in a pipe it is wide enough for the tables."""
    console = Console(highlight=False, markup=False, emoji=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, emoji=False, width=PIPE_WIDTH)


def make_history(told: StoredExecution, begun: datetime, killed_at: datetime) -> Table:
    """One history, its events with sequence and time since the story began, and a line where the kill was."""
    table = make_table("#", "+ s", "event", title=f"{told.info.workflow_id}: {told.info.status}")
    is_after = False
    for recorded in told.history.events:
        if not is_after and recorded.taken_at > killed_at and recorded.sequence > 1:
            table.add_row("", f"{(killed_at - begun).total_seconds():.3f}", "= kill -9 =", style="bold red")
        is_after = recorded.taken_at > killed_at
        since = f"{(recorded.taken_at - begun).total_seconds():.3f}"
        table.add_row(str(recorded.sequence), since, describe(recorded.event), style=style_of(recorded.event))
    return table


def describe(event: AnyEvent) -> str:
    """An event in a few words."""
    kind = type(event).__name__
    match event:
        case events.ActivityScheduled(name=name) | events.SignalReceived(name=name):
            return f"{kind} {name}"
        case events.ActivityCompleted(attempt=attempt) if attempt > 1:
            return f"{kind} attempt {attempt}"
        case events.ChildStarted(workflow=workflow):
            return f"{kind} {workflow}"
        case _:
            return kind


def style_of(event: AnyEvent) -> str | None:
    """What stands out in a history."""
    match event:
        case events.ActivityCompleted(attempt=attempt) if attempt > 1:
            return "yellow"
        case events.WorkflowStarted() | events.WorkflowCompleted():
            return "bold"
        case _:
            return None
