"""The coverage of elements and flows: counted from records, over all cases, and told as text, JSON and a page."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from holdfast.testing import Coverage, ProcessCoverage, run_process_cases
from tests.testing.process_files import CHARGE, PAY, SHIP, create, write_case

DECLINE: dict[str, Any] = {
    "type": "THROW_BPMN_ERROR_FROM_JOB",
    "jobSelector": {"elementId": "charge"},
    "errorCode": "DECLINED",
}


def cover(folder: Path, *cases: list[dict[str, Any]]) -> Coverage:
    """What several cases cover of the order process."""
    paths = [write_case(folder, *one, file=f"cases{number}.json") for number, one in enumerate(cases)]
    return run_process_cases(*paths, resources=[folder / "order.bpmn"]).coverage


def find(coverage: Coverage) -> ProcessCoverage:
    [found] = coverage.processes
    return found


def test_what_was_reached_counts_also_where_it_was_interrupted(tmp_path: Path) -> None:
    found = find(cover(tmp_path, [create(orderId="o-1"), DECLINE]))

    assert {id_ for id_, count in found.elements.items() if count} == {"start", "charge", "on_declined", "end_declined"}
    assert found.flows == {"to_charge": 1, "to_declined": 1}


def test_cases_add_up(tmp_path: Path) -> None:
    stop: dict[str, Any] = {"type": "BROADCAST_SIGNAL", "signalName": "stop"}
    late: list[dict[str, Any]] = [
        create(orderId="o-1", channel="mail"),
        CHARGE,
        PAY,
        {"type": "INCREASE_TIME", "duration": "PT3H"},
        {"type": "COMPLETE_JOB", "jobSelector": {"elementId": "remind"}},
        SHIP,
    ]

    coverage = cover(tmp_path, [create(orderId="o-1"), DECLINE], [create(orderId="o-1"), stop], late)

    assert find(coverage).missed_elements == []
    assert find(coverage).missed_flows == []
    assert coverage.ratio == 1.0
    assert find(coverage).elements["charge"] == 3


def test_failed_case_counts_as_far_as_it_came(tmp_path: Path) -> None:
    found = find(cover(tmp_path, [create(orderId="o-1"), SHIP]))

    assert found.elements == {"start": 1, "charge": 1}
    assert found.missed_flows[0] == "to_declined"


def test_process_that_nobody_started_is_not_covered(tmp_path: Path) -> None:
    coverage = cover(tmp_path, [])

    assert (coverage.ratio, find(coverage).covered) == (0.0, 0)
    assert coverage.to_text().startswith(
        "order (order.bpmn): 0%, 0 of 13 elements, 0 of 8 flows\n  not entered: start (Ordered)"
    )


def test_nothing_to_cover_is_covered() -> None:
    assert Coverage().ratio == 1.0
    assert Coverage().to_text() == "in all: 100%"


def test_json_has_each_element_and_flow(tmp_path: Path) -> None:
    found = cover(tmp_path, [create(orderId="o-1")]).to_json()

    [process] = found["processes"]
    assert (process["id"], process["file"], process["ratio"], found["ratio"]) == ("order", "order.bpmn", 0.1429, 0.1429)
    assert len(process["elements"]) == 13
    assert process["flows"]["to_charge"] == 1
    assert process["flows"]["to_wait"] == 0


def test_page_is_well_formed_and_escapes_names(tmp_path: Path) -> None:
    coverage = cover(tmp_path, [create(orderId="o-1")])
    opened: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            opened.append(tag)

    page = coverage.to_html()
    Reader().feed(page)

    assert opened.count("tr") == 22
    assert "<h1>Process coverage: 14%</h1>" in page
    assert "to_charge (start → charge)" in page
