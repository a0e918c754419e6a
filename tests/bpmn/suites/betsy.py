"""The processes and cases of the suite `betsy`: what is executed for which input, by whatever engine.

Scripts are placeholders: `SCRIPT_task1` means that task1 is to be logged. They become FEEL that appends to the variable
`logged`. Messages get one correlation key, since plain BPMN without data cannot name one. What was logged is collected from
all executions that a case leads to: a called process keeps its log to itself, since its caller may go on logging meanwhile.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.bpmn.support.suite_files import find_suite

MARKER: Final = "MARKER_EXISTS"
RUNTIME_ERROR: Final = "ERROR_runtime"
THROWN_ERROR: Final = "ERROR_thrownErrorEvent"
GENERIC_ERROR: Final = "ERROR_generic"
"""What the suite expects where something goes wrong; in our words an incident, or a refusal at deployment."""
SUBSCRIPTION: Final = (
    '<{0}extensionElements><zeebe:subscription xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" '
    'correlationKey="=&quot;betsy&quot;"/></{0}extensionElements>'
)


@dataclass(frozen=True)
class BetsyCase:
    """One input of a process, with what must be logged."""

    process: str
    path: Path
    variables: Mapping[str, Any]
    expected: tuple[str, ...]
    delay_ms: int
    has_parallel_process: bool
    number: int

    @property
    def id(self) -> str:
        """The name of the case among all: the process, and which of its inputs."""
        return f"{self.process}-{self.number}"


def list_cases() -> Iterator[BetsyCase]:
    """All cases, or none where the suite is not at hand."""
    folder = find_suite("betsy")
    if folder is None:
        return
    for test in json.loads((folder / "cases.json").read_text())["tests"]:
        for number, case in enumerate(test["cases"], 1):
            yield BetsyCase(
                test["process"],
                folder / test["file"],
                {"test": case["test"] or "", "integerVariable": case["integerVariable"], "logged": []},
                tuple(sorted(case["expected"])),
                case["delay_ms"],
                case["parallel_process"],
                number,
            )


def write_log(entry: str) -> str:
    """FEEL that appends an entry to the log."""
    return f'{{"logged": concatenate(if logged = null then [] else logged, ["{entry}"])}}'


SCRIPTS: Final[Mapping[str, str]] = {
    "CREATE_LOG_FILE": "null",
    "CREATE_MARKER_FILE": write_log(MARKER),
    "INCREMENT_INTEGER_VARIABLE_AND_LOG": '{"integerVariable": integerVariable + 1, "logged": append(logged, "increment")}',
    "INCREMENT_INTEGER_VARIABLE": '{"integerVariable": integerVariable + 1}',
    "SET_STRING_DATA": '{"data": "String"}',
    "LOG_DATA": '{"logged": if data = "String" then append(logged, "DATA_CORRECT") else logged}',
}
"""What the placeholders mean that do not log a task; jobs do what FEEL cannot."""
JOBS: Final[Mapping[str, str]] = {
    "THROW_ERROR": "throw-error",
    "CREATE_TIMESTAMP_LOG_1": "log-times",
    "CREATE_TIMESTAMP_LOG_2": "log-times",
    "WAIT_TEN_SECONDS": "wait-ten-seconds",
}
"""Placeholders that become jobs, each with its type. Nobody does the last: it is interrupted in the case that has it."""


def rewrite(data: bytes) -> bytes:
    """A model of the suite with scripts that run here."""
    text = re.sub(r"<(bpmn2:)?script>\s*(\w+)\s*</(?:bpmn2:)?script>", _rewrite_script, data.decode())
    text = re.sub(r'<(bpmn2:)?callActivity ([^>]*?)calledElement="(\w+)"([^>]*)>', _rewrite_call, text)
    return re.sub(r"<(bpmn2:)?message ([^>]*?)\s*(?:/>|>\s*</(?:bpmn2:)?message>)", _rewrite_message, text).encode()


def _rewrite_script(found: re.Match[str]) -> str:
    prefix, name = found.group(1) or "", found.group(2)
    if name in JOBS:
        return (
            f'<{prefix}extensionElements><zeebe:taskDefinition xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" '
            f'type="{JOBS[name]}"/></{prefix}extensionElements>'
        )
    text = SCRIPTS.get(name) or write_log(name.removeprefix("SCRIPT_"))
    return f"<{prefix}script>{text}</{prefix}script>"


def _rewrite_call(found: re.Match[str]) -> str:
    prefix, before, called, behind = found.groups()
    return (
        f"<{prefix or ''}callActivity {before}{behind}><{prefix or ''}extensionElements>"
        f'<zeebe:calledElement xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" processId="{called}" '
        'propagateAllParentVariables="false" propagateAllChildVariables="false"/>'
        f"</{prefix or ''}extensionElements>"
    )


def _rewrite_message(found: re.Match[str]) -> str:
    prefix = found.group(1) or ""
    return f"<{prefix}message {found.group(2)}>{SUBSCRIPTION.format(prefix)}</{prefix}message>"
