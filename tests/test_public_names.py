"""What users import: the names are there, documented, and nothing else is public by accident."""

from __future__ import annotations

import inspect

import pytest

import holdfast
from holdfast import errors


@pytest.mark.parametrize("name", holdfast.__all__)
def test_public_name_exists_and_is_documented(name: str) -> None:
    found = getattr(holdfast, name)

    assert inspect.getdoc(found)


def test_every_error_is_drawn_in_the_tree() -> None:
    tree = inspect.getdoc(errors)
    assert tree is not None
    classes = [name for name, one in vars(errors).items() if inspect.isclass(one) and issubclass(one, Exception)]

    assert [name for name in classes if name not in tree] == []


def test_every_error_is_importable_from_the_package() -> None:
    classes = [name for name, one in vars(errors).items() if inspect.isclass(one) and issubclass(one, Exception)]

    assert [name for name in classes if name not in holdfast.__all__] == []


def test_every_error_has_a_status_code() -> None:
    for one in vars(errors).values():
        if inspect.isclass(one) and issubclass(one, errors.HoldfastError):
            assert 400 <= errors.status_code(one.__new__(one)) < 600
