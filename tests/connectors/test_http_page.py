"""The page about calls by HTTP lists what there is: every option with its default, every input, every type of failure."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from holdfast import http_activity
from holdfast.connectors import http_failures

PAGE = (Path(__file__).parents[2] / "docs" / "http-activity.md").read_text()
OPTIONS = PAGE.split("## What may be called")[1].split("## Inputs")[0]
INPUTS = PAGE.split("## Inputs")[1].split("## Results")[0]
FAILURES = PAGE.split("## Failures")[1]


def list_first_cells(text: str) -> set[str]:
    rows = re.findall(r"^\| (`.+?) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_the_page_lists_exactly_the_options() -> None:
    assert list_first_cells(OPTIONS) == set(inspect.signature(http_activity).parameters)


def test_the_page_says_the_defaults() -> None:
    parameters = inspect.signature(http_activity).parameters

    assert [parameters[name].default for name in ("connect_timeout", "read_timeout", "total_timeout")] == [10, 30, 60]
    assert re.findall(r"^\| `\w+_timeout` \| (\d+) s \|", OPTIONS, re.MULTILINE) == ["10", "30", "60"]
    assert (parameters["max_response_bytes"].default, parameters["max_redirects"].default) == (1024 * 1024, 5)
    assert "| `max_response_bytes` | 1 MiB |" in OPTIONS
    assert "| `max_redirects` | 5 |" in OPTIONS


def test_the_page_lists_exactly_the_inputs() -> None:
    call = http_activity(allow=["*"])

    assert list_first_cells(INPUTS) == set(call.signature.names)


def test_the_page_lists_every_type_of_failure() -> None:
    types = {value for value in vars(http_failures).values() if isinstance(value, str) and re.fullmatch(r"Http\w+", value)}

    assert len(types) == 5
    assert [one for one in types if f"`{one}`" not in FAILURES] == []
