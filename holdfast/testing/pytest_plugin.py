"""A plugin for pytest: each case of a file `*.process-test.json` is a test.

    # conftest.py
    pytest_plugins = ["holdfast.testing.pytest_plugin"]

or `pytest -p holdfast.testing.pytest_plugin`. Without it, a test can carry a whole file out by itself:

    from holdfast.testing import run_process_cases

    def test_orders() -> None:
        run_process_cases("orders/order.process-test.json").check()
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast.errors import HoldfastError
from holdfast.testing.coverage import Coverage
from holdfast.testing.process_cases import ProcessCase
from holdfast.testing.process_runs import CaseSource, load_cases, run_apart, run_case

ENDING: Final = ".process-test.json"
"""How the names of case files end."""


class CaseFailure(Exception):
    """Why a case failed, for the report of pytest."""


class CaseItem(pytest.Item):
    """One test case of a process, as a test of pytest."""

    def __init__(self, *, source: CaseSource, case: ProcessCase, **node: Any) -> None:
        super().__init__(**node)
        self._source = source
        self._case = case

    def runtest(self) -> None:
        """Carry the case out, and raise if it does not hold."""
        outcome = run_apart(run_case(self._case, self._source, Coverage()))
        if not outcome.has_passed:
            raise CaseFailure(outcome.describe())

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What went wrong, without a traceback through Holdfast if it is the case that failed."""
        if isinstance(excinfo.value, CaseFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the case is, for reports."""
        return self.path, None, f"case: {self.name}"


class CaseModule(pytest.File):
    """A case file as a collection of tests."""

    def collect(self) -> Iterator[CaseItem]:
        """The cases of the file, each as a test."""
        try:
            source = load_cases(self.path)
        except HoldfastError as error:
            raise self.CollectError(error.message) from error
        for case in source.cases:
            yield CaseItem.from_parent(self, name=case.name, source=source, case=case)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> CaseModule | None:
    """Take the files whose names end as case files do."""
    return CaseModule.from_parent(parent, path=file_path) if file_path.name.endswith(ENDING) else None
