"""The checker of shapes finds what is too large, says where and what to do, and leaves the named exceptions alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.shape import MANY_METHODS, MANY_PARAMETERS, ROOT, check_file, check_tree


def write_class(name: str, methods: int) -> str:
    return f"class {name}:\n" + "".join(f"    def m{number}(self): ...\n" for number in range(methods))


def write_constructor(name: str, parameters: str) -> str:
    return f"class {name}:\n    def __init__({parameters}): ...\n"


def check(text: str, path: str = "bench/one.py") -> list[str]:
    return [str(violation) for violation in check_file(text, path)]


@pytest.mark.parametrize("path", ["bench/one.py", "holdfast/store/one.sql"])
def test_file_of_more_than_600_lines_is_reported(path: str) -> None:
    line = "# words\n" if path.endswith(".py") else "-- words\n"

    assert check(line * 600, path) == []
    assert check(line * 601, path) == [f"{path}:601: The file has 601 lines, more than 600. Split it by topic."]


def test_class_of_more_than_25_methods_is_reported() -> None:
    assert check(write_class("Wide", 25)) == []
    assert check("\n" + write_class("Wide", 26)) == [
        "bench/one.py:2: Class Wide has 26 methods, more than 25. Give a part of its work to a class of its own."
    ]


def test_overloads_of_a_method_count_once() -> None:
    assert check(write_class("Wide", 25) + "    def m0(self): ...\n") == []


def test_constructor_of_more_than_6_parameters_is_reported() -> None:
    assert check(write_constructor("Wide", "self, a, b, c, /, d, *rest, e, f, **options")) == []
    (violation,) = check(write_constructor("Wide", "self, a, b, c, /, d, *, e, f, g"))
    assert violation == (
        "bench/one.py:2: The constructor of Wide has 7 parameters, more than 6. "
        "Put those that belong together into a value of their own."
    )


def test_fields_of_a_value_are_no_constructor() -> None:
    assert check("class Value:\n" + "".join(f"    f{number}: int\n" for number in range(9))) == []


def test_docstrings_of_five_words_or_fewer_are_reported_where_users_read_them() -> None:
    text = '"""Gathers it."""\nclass A:\n    """A thing of five words."""\n    def b(self):\n        """Does it."""\n'

    assert [found.line for found in check_file(text, "holdfast/one.py")] == [1, 3, 5]
    assert check(text, "holdfast/one.py")[2] == (
        'holdfast/one.py:5: The docstring of A.b has fewer than 6 words: "Does it." '
        "Name its subject, so that it can be read on hover."
    )
    assert check(text, "tests/one.py") == []


def test_docstrings_of_private_names_may_be_short() -> None:
    text = 'def _a():\n    """Does it."""\nclass _B:\n    """Is it."""\n    def c(self):\n        """Has it."""\n'

    assert check(text, "holdfast/one.py") == []


@pytest.mark.parametrize("name", sorted({*MANY_METHODS, *MANY_PARAMETERS}))
def test_exception_names_a_class_that_is_there(name: str) -> None:
    path, class_name = name.split(":")
    module = ast.parse((ROOT / path).read_text())

    assert class_name in [node.name for node in ast.walk(module) if isinstance(node, ast.ClassDef)]


def test_exception_holds_for_its_own_file_alone() -> None:
    text = write_class("Engine", 26)

    assert check(text, "holdfast/engine/engine.py") == []
    assert len(check(text, "holdfast/engine/other.py")) == 1


def test_all_python_and_sql_files_of_the_folders_are_looked_at(tmp_path: Path) -> None:
    for path in ("holdfast/a/one.py", "holdfast/b.sql", "tests/c.py", "tests/c.txt", "docs/d.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("\n" * 601)

    found = check_tree(tmp_path)

    assert [violation.path for violation in found] == ["holdfast/a/one.py", "holdfast/b.sql", "tests/c.py"]
