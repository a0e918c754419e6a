from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from lxml import etree

from holdfast import Engine

Invoke = Callable[..., Result]

ORDER = """<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="t">
  <process id="order" name="Order" isExecutable="true">
    <startEvent id="begin"/>
    <userTask id="check" name="Check &lt;the&gt; order"/>
    <endEvent id="done"/>
    <sequenceFlow id="f1" sourceRef="begin" targetRef="check"/>
    <sequenceFlow id="f2" sourceRef="check" targetRef="done"/>
  </process>
</definitions>"""


@pytest.fixture
def order(tmp_path: Path) -> Path:
    path = tmp_path / "order.bpmn"
    path.write_text(ORDER)
    return path


def test_file_is_drawn_into_another(invoke: Invoke, order: Path, tmp_path: Path) -> None:
    target = tmp_path / "order.svg"

    result = invoke("render", order, "-o", target)

    assert (result.exit_code, result.output) == (0, "")
    assert etree.fromstring(target.read_bytes()).get("aria-label") == "Order"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["order.bpmn", "order.svg"]


def test_standard_output_and_input_are_dashes(invoke: Invoke, order: Path) -> None:
    plain, dashed = invoke("render", order), invoke("render", order, "-o", "-")
    piped = invoke("render", "-", stdin=ORDER)

    assert plain.stdout.startswith("<svg ")
    assert plain.stdout == dashed.stdout == piped.stdout


def test_existing_drawing_is_replaced(invoke: Invoke, order: Path, tmp_path: Path) -> None:
    target = tmp_path / "order.svg"
    target.write_text("old")

    assert invoke("render", order, "-o", target).exit_code == 0
    assert target.read_text().startswith("<svg ")


@pytest.mark.parametrize("content", [b"", b"no xml", b"<html/>", b"\xff\xfe\x00", b"<definitions"])
def test_file_that_is_no_bpmn_is_refused(invoke: Invoke, tmp_path: Path, content: bytes) -> None:
    path, target = tmp_path / "order.bpmn", tmp_path / "order.svg"
    path.write_bytes(content)
    target.write_text("old")

    result = invoke("render", path, "-o", target)

    assert result.exit_code == 1
    assert "Expected a BPMN file" in result.stderr
    assert target.read_text() == "old"


def test_file_without_a_process_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "empty.bpmn"
    path.write_text('<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"/>')

    result = invoke("render", path)

    assert result.exit_code == 1
    assert "Expected a process to draw" in result.stderr


def test_missing_file_is_a_usage_error(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("render", tmp_path / "nowhere.bpmn")

    assert result.exit_code == 2
    assert "nowhere.bpmn" in result.stderr


@pytest.mark.parametrize("target", ["", "nowhere/order.svg", "order.bpmn/order.svg", "x" * 300])
def test_output_that_cannot_be_written_is_a_usage_error(invoke: Invoke, order: Path, tmp_path: Path, target: str) -> None:
    result = invoke("render", order, "-o", tmp_path / target)

    assert result.exit_code == 2
    assert "Expected to write" in result.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["order.bpmn"]


def test_drawing_is_not_written_over_what_is_drawn(invoke: Invoke, order: Path) -> None:
    result = invoke("render", order, "-o", order)

    assert result.exit_code == 2
    assert order.read_text() == ORDER


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--execution", "x"], ["a", "b", "c", "--execution", "x"]])
def test_arguments_have_to_fit(invoke: Invoke, arguments: list[str]) -> None:
    assert invoke("render", *arguments).exit_code == 2


def test_execution_has_to_exist(invoke: Invoke, order: Path, database: Path) -> None:
    result = invoke("render", order, "--execution", "nobody", database)

    assert result.exit_code == 1
    assert "nobody" in result.stderr


def test_execution_of_code_has_no_file(invoke: Invoke, database: Path) -> None:
    result = invoke("render", "--execution", "done", database)

    assert result.exit_code == 1
    assert "Expected an execution of a deployed process" in result.stderr


async def run_short(path: Path, url: str) -> None:
    async with Engine(url) as engine:
        await engine.deploy([path])
        await (await engine.start("order", {}, workflow_id="order-1")).result()


def test_execution_is_drawn_over_the_file_that_it_runs(invoke: Invoke, tmp_path: Path) -> None:
    path, database = tmp_path / "short.bpmn", tmp_path / "app.db"
    path.write_text(ORDER.replace("userTask", "manualTask"))
    asyncio.run(run_short(path, f"sqlite:///{database}"))

    deployed = invoke("render", "--execution", "order-1", database)
    given = invoke("render", path, "--execution", "order-1", database)

    assert deployed.exit_code == 0
    assert "<title>f2 (1 taken)</title>" in deployed.stdout
    assert "(1 completed)" in deployed.stdout
    assert given.stdout == deployed.stdout
    assert given.stderr == ""


def test_file_of_another_process_than_that_of_the_execution_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    path, other, database = tmp_path / "short.bpmn", tmp_path / "other.bpmn", tmp_path / "app.db"
    path.write_text(ORDER.replace("userTask", "manualTask"))
    other.write_text(ORDER.replace('id="order"', 'id="return"'))
    asyncio.run(run_short(path, f"sqlite:///{database}"))

    result = invoke("render", other, "--execution", "order-1", database, "-o", tmp_path / "order.svg")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "to have process 'order', which execution" in result.stderr
    assert "but found 'return'." in result.stderr
    assert not (tmp_path / "order.svg").exists()


def test_file_with_other_content_than_the_deployed_one_is_drawn_with_a_note(invoke: Invoke, tmp_path: Path) -> None:
    path, database = tmp_path / "short.bpmn", tmp_path / "app.db"
    path.write_text(ORDER.replace("userTask", "manualTask"))
    asyncio.run(run_short(path, f"sqlite:///{database}"))
    path.write_text(path.read_text().replace('name="Order"', 'name="Changed"'))

    result = invoke("render", path, "--execution", "order-1", database)

    assert result.exit_code == 0
    assert "<title>f2 (1 taken)</title>" in result.stdout
    assert "Changed" in result.stdout
    assert "has other content than version 1 of process 'order'" in result.stderr


def test_execution_of_code_is_not_drawn_over_a_file(invoke: Invoke, order: Path, database: Path) -> None:
    result = invoke("render", order, "--execution", "done", database)

    assert result.exit_code == 1
    assert "Expected an execution of a deployed process" in result.stderr
