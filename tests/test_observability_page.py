"""The page on observability: its list of log events is the code's, every record has a code, and its example runs."""

from __future__ import annotations

import ast
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.log_events import FIELDS, LogEvent

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "observability.md").read_text()
LEVELS = {"warning", "error", "critical", "exception"}
TAGS = {"tag", "tag_execution", "tag_task", "_tag", "_tag_target"}


def find_records(tree: ast.AST) -> Iterator[ast.Call]:
    """The calls that write records at WARNING or above, or at a level that is computed."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner = node.func.value
        is_log = isinstance(owner, ast.Name) and owner.id in ("log", "_log", "_engine_log", "_activity_log")
        if is_log and node.func.attr in LEVELS | {"log"}:
            yield node


def test_page_lists_every_event_once_and_no_other() -> None:
    listed = re.findall(r"^\| `(\w+)` \| (?:WARNING|ERROR|CRITICAL) \|", PAGE, re.MULTILINE)

    assert sorted(listed) == sorted(LogEvent)


def test_page_lists_the_fields_of_records_which_logging_does_not_use_itself() -> None:
    table = PAGE.split("## Fields")[1].split("##")[0]

    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == FIELDS
    assert not {*FIELDS, "event"} & set(vars(logging.makeLogRecord({}))) - {"message", "asctime"}


def test_page_lists_the_loggers() -> None:
    listed = set(re.findall(r"^\| `(holdfast[.\w]*)", PAGE, re.MULTILINE))
    made = set()
    for path in (ROOT / "holdfast").rglob("*.py"):
        if "simulation" not in path.parts:
            made |= {name.rstrip(".") for name in re.findall(r"getLogger\(f?\"(holdfast[.\w]*)", path.read_text())}

    assert {name.rstrip(".") for name in listed} == made


@pytest.mark.parametrize("package", ["engine", "store", "code", "testing"])
def test_every_record_that_warns_has_a_code(package: str) -> None:
    without = []
    for path in sorted((ROOT / "holdfast" / package).rglob("*.py")):
        for call in find_records(ast.parse(path.read_text())):
            extra = next((one.value for one in call.keywords if one.arg == "extra"), None)
            is_tagged = isinstance(extra, ast.Name)  # made in the lines before
            is_tagged |= isinstance(extra, ast.Call) and isinstance(extra.func, ast.Name) and extra.func.id in TAGS
            if not is_tagged:
                without.append(f"{path.relative_to(ROOT)}:{call.lineno}")

    assert without == []


def test_every_code_is_used() -> None:
    code = "".join(path.read_text() for path in (ROOT / "holdfast").rglob("*.py"))

    assert [event.name for event in LogEvent if f"LogEvent.{event.name}" not in code] == []


def test_example_writes_lines_of_json() -> None:
    example = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    program = f"""{example[1]}
import asyncio
from holdfast import Context, Engine, workflow

@workflow
async def fails(ctx: Context) -> None:
    ctx.logger.info("about to fail")
    raise ValueError("no")

async def main() -> None:
    async with Engine("memory://", workflows=[fails]) as engine:
        handle = await engine.start(fails, workflow_id="w")
        try:
            await handle.result()
        except Exception:
            pass

asyncio.run(main())
"""

    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)

    said, failed = map(json.loads, done.stderr.splitlines())
    assert (said["level"], said["workflow_id"], said["org"]) == ("INFO", "w", "default")
    assert (failed["event"], failed["workflow"], failed["workflow_id"]) == ("execution_failed", "fails", "w")
    assert "in fails" in failed["trace"]
