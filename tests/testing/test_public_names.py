"""What `holdfast.testing` offers is documented, and pytest does not take it for tests."""

from __future__ import annotations

import inspect

import pytest

from holdfast import testing


@pytest.mark.parametrize("name", [name for name in testing.__all__ if name != "HistorySource"])
def test_a_name_is_there_and_documented(name: str) -> None:
    assert inspect.getdoc(getattr(testing, name))


def test_names_are_sorted() -> None:
    assert sorted(testing.__all__) == testing.__all__


def test_the_engine_for_tests_is_no_test() -> None:
    assert testing.TestEngine.__test__ is False
