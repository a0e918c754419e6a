"""Which elements and sequence flows of processes were reached by test cases: counted from the records of their histories.

An element is covered once it was entered, a flow once a token took it. Elements that cannot be entered do not count: a
boundary event does, a data object does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from html import escape
from typing import Any

import msgspec

from holdfast.testing.process_instances import Instance
from holdfast.testing.process_models import CaseModels, ProcessModel


class ProcessCoverage(msgspec.Struct, frozen=True):
    """What was reached of one process: by id of the element or flow, how often."""

    process: ProcessModel
    elements: Counter[str]
    flows: Counter[str]

    @property
    def missed_elements(self) -> list[str]:
        """The ids of the elements that were never entered, in the order of the file."""
        return [one for one in self.process.elements if not self.elements[one]]

    @property
    def missed_flows(self) -> list[str]:
        """The ids of the sequence flows that were never taken, in the order of the file."""
        return [one for one in self.process.flows if not self.flows[one]]

    @property
    def total(self) -> int:
        """How many elements and flows the process has."""
        return len(self.process.elements) + len(self.process.flows)

    @property
    def covered(self) -> int:
        """How many of them were reached."""
        return self.total - len(self.missed_elements) - len(self.missed_flows)

    @property
    def ratio(self) -> float:
        """How much of the process was reached, from 0 to 1."""
        return self.covered / self.total if self.total else 1.0


class Coverage:
    """What a run of test cases reached of all processes that its files have."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], ProcessCoverage] = {}

    def add(self, models: CaseModels, instances: Iterable[Instance]) -> None:
        """Count what instances reached of the processes of some files; also which processes were not reached at all."""
        for process in models.processes.values():
            self._found.setdefault((process.file, process.id), ProcessCoverage(process, Counter(), Counter()))
        for instance in instances:
            found = self._found.get((instance.process.file, instance.process.id))
            if found is not None:
                found.elements.update(one.element for one in instance.progress.elements)
                found.flows.update(instance.progress.flows)

    @property
    def processes(self) -> list[ProcessCoverage]:
        """Each process with what was reached of it, by file and id."""
        return [self._found[key] for key in sorted(self._found)]

    @property
    def ratio(self) -> float:
        """How much of all processes together was reached, from 0 to 1."""
        total = sum(one.total for one in self._found.values())
        return sum(one.covered for one in self._found.values()) / total if total else 1.0

    # --- as a report ---

    def to_text(self) -> str:
        """A line for each process, with what was missed below it, and one for all."""
        lines: list[str] = []
        for one in self.processes:
            lines.append(
                f"{one.process.id} ({one.process.file}): {one.ratio:.0%}, "
                f"{len(one.process.elements) - len(one.missed_elements)} of {len(one.process.elements)} elements, "
                f"{len(one.process.flows) - len(one.missed_flows)} of {len(one.process.flows)} flows"
            )
            lines += [f"  not entered: {name_element(one.process, id_)}" for id_ in one.missed_elements]
            lines += [f"  not taken: {name_flow(one.process, id_)}" for id_ in one.missed_flows]
        lines.append(f"in all: {self.ratio:.0%}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values: per process the counts of each element and flow, and the ratio."""
        return {
            "ratio": round(self.ratio, 4),
            "processes": [
                {
                    "id": one.process.id,
                    "file": one.process.file,
                    "ratio": round(one.ratio, 4),
                    "elements": {id_: one.elements[id_] for id_ in one.process.elements},
                    "flows": {id_: one.flows[id_] for id_ in one.process.flows},
                }
                for one in self.processes
            ],
        }

    def to_html(self) -> str:
        """The report as a page of its own, without anything to be loaded."""
        parts = [
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Process coverage</title><style>',
            "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:60em}",
            "table{border-collapse:collapse;width:100%}",
            "td,th{text-align:left;padding:.2em .6em;border-bottom:1px solid #8884}",
            ".missed{background:#f4433622}.count{text-align:right;width:5em}</style></head><body>",
            f"<h1>Process coverage: {self.ratio:.0%}</h1>",
        ]
        for one in self.processes:
            parts.append(f"<h2>{escape(one.process.id)}: {one.ratio:.0%}</h2><p>{escape(one.process.file)}</p>")
            parts.append('<table><tr><th>Element or flow</th><th class="count">times</th></tr>')
            parts += [_write_row(name_element(one.process, id_), one.elements[id_]) for id_ in one.process.elements]
            parts += [_write_row(name_flow(one.process, id_), one.flows[id_]) for id_ in one.process.flows]
            parts.append("</table>")
        parts.append("</body></html>")
        return "\n".join(parts)


def name_element(process: ProcessModel, id_: str) -> str:
    """An element as people know it: its id, and its name if it has one."""
    name = process.elements[id_].name
    return f"{id_} ({' '.join(name.split())})" if name else id_


def name_flow(process: ProcessModel, id_: str) -> str:
    """A flow as people know it: its id, and from where to where it leads."""
    flow = process.flows[id_]
    return f"{id_} ({flow.source} → {flow.target})"


def _write_row(name: str, count: int) -> str:
    kind = "hit" if count else "missed"
    return f'<tr class="{kind}"><td>{escape(name)}</td><td class="count">{count}</td></tr>'
