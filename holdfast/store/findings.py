"""What a check of a store finds: what is wrong, and what only a newer Holdfast can read, which is not wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from holdfast.errors import CorruptStore, NewerFormat


class Newer(msgspec.Struct, frozen=True, gc=False):
    """A sentence about something that a newer Holdfast wrote, and that this one cannot judge."""

    sentence: str


Finding: TypeAlias = str | Newer
"""A sentence about what is wrong, or about what is newer."""


class Findings(msgspec.Struct, frozen=True):
    """Everything that a check found, a sentence each."""

    problems: list[str]
    newer: list[str]


def describe_unreadable(name: str, error: CorruptStore | NewerFormat) -> Finding:
    """What to report about something that could not be decoded."""
    sentence = f"{name}: {error.message}"
    return Newer(sentence) if isinstance(error, NewerFormat) else sentence


def split_findings(findings: Iterable[Finding]) -> Findings:
    """What is wrong and what is newer, each in the order of the check."""
    found = Findings([], [])
    for one in findings:
        if isinstance(one, Newer):
            found.newer.append(one.sentence)
        else:
            found.problems.append(one)
    return found
