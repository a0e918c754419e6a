"""`holdfast test-process`: carry out test cases of processes, and tell what they covered."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.inputs import find_files

if TYPE_CHECKING:
    from holdfast.testing.coverage import Coverage
    from holdfast.testing.process_runs import CaseOutcome


@click.command("test-process")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, callback=find_files)
@click.option(
    "--resource",
    "resources",
    multiple=True,
    callback=find_files,
    metavar="FILE",
    help="A .bpmn, .dmn or .form file to deploy, in the place of those that FILE names. May be repeated.",
)
@click.option("--coverage", "with_coverage", is_flag=True, help="Print which elements and flows were not reached.")
@click.option(
    "--coverage-report",
    metavar="FILE",
    help="Write the coverage as a page (.html) or as JSON (any other name).",
)
@click.option("--min-coverage", type=click.FloatRange(0, 100), metavar="PERCENT", help="Fail if less is covered.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def test_process(
    files: tuple[Path, ...],
    resources: tuple[Path, ...],
    with_coverage: bool,
    coverage_report: str | None,
    min_coverage: float | None,
    as_json: bool,
) -> None:
    """Carry out test cases of processes.

    FILE holds cases in the JSON form of Camunda Process Test. They run in memory and in virtual time. Deployed are the files
    that FILE names under "resources", else all .bpmn, .dmn and .form files beside it.

    For instance: holdfast test-process order.process-test.json --coverage. Exit code 1 if a case fails, if there is none, or
    if too little is covered; a line for each case tells why.
    """
    from holdfast.cli.values import write_json
    from holdfast.testing.process_runs import run_process_cases

    # That no node has the activities of the jobs is what cases are made for: nobody has to be warned of it.
    logging.getLogger("holdfast.engine").addHandler(logging.NullHandler())
    report = run_process_cases(*files, resources=resources, on_outcome=None if as_json else show_outcome)
    if coverage_report is not None:
        write_report(report.coverage, coverage_report)
    if as_json:
        told = {"cases": [outcome_to_json(one) for one in report.outcomes], "coverage": report.coverage.to_json()}
        click.echo(write_json(told))
    elif with_coverage:
        click.echo()
        click.echo(report.coverage.to_text())
    if not report.outcomes:
        raise click.ClickException("Expected test cases, but the files hold none.")
    if report.failed:
        raise click.ClickException(f"{len(report.failed)} of {len(report.outcomes)} cases failed.")
    covered = report.coverage.ratio * 100
    if min_coverage is not None and covered < min_coverage:
        raise click.ClickException(
            f"Expected the cases to cover at least {min_coverage:g} %, but they cover {covered:.1f} %. Add cases."
        )


def show_outcome(outcome: CaseOutcome) -> None:
    """Print what became of a case."""
    from holdfast.cli.tables import clean

    first, *rest = outcome.describe().splitlines()
    click.echo(clean(first))
    for line in rest:
        click.echo(f"  {clean(line)}")


def outcome_to_json(outcome: CaseOutcome) -> dict[str, object]:
    """What became of a case as JSON values."""
    found: dict[str, object] = {"file": outcome.file, "name": outcome.name, "passed": outcome.has_passed}
    if not outcome.has_passed:
        found |= {"failure": outcome.failure, "instruction": outcome.instruction}
    return found


def write_report(coverage: Coverage, file: str) -> None:
    """Write the coverage into a file. Raises ClickException if that cannot be written."""
    from holdfast.cli.values import write_json

    text = coverage.to_html() if file.endswith((".html", ".htm")) else write_json(coverage.to_json())
    try:
        Path(file).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"Expected to write '{file}', but: {error.strerror or error}.") from error
