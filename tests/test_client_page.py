"""What docs/client.md says of clients is so, and its programs can be read."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import holdfast
from holdfast.engine.verbs import Verbs

PAGE = (Path(__file__).parents[1] / "docs" / "client.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
FOR_HANDLES = {"find_started", "wait_for_result"}


def test_the_page_lists_exactly_the_verbs() -> None:
    listed = PAGE.split("`Client` has the verbs of `Engine`")[1].split("What only an engine does")[0]
    verbs = {name for name, one in vars(Verbs).items() if inspect.isfunction(one) and not name.startswith("_")}

    assert set(re.findall(r"`(\w+)`", listed)) == verbs - FOR_HANDLES


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_programs_import_what_is_there(program: str) -> None:
    module = compile(program, "client.md", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(module, ast.Module)
    imports = [one for one in module.body if isinstance(one, ast.ImportFrom) and one.module == "holdfast"]

    assert imports
    assert all(name.name in holdfast.__all__ for one in imports for name in one.names)
