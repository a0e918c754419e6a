"""Processes driven to their end by chance: everything that can happen next may be the next thing that happens."""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import Final

from holdfast.bpmn.records import decode_records
from holdfast.bpmn.views import AuditKind, expand
from holdfast.core.events import ProcessAdvanced
from tests.bpmn.support.playing import PlayedProcess

SEEDS: Final = int(os.environ.get("HOLDFAST_ORACLE_SEEDS", "0"))
"""How many seeds each oracle tries; 0: as many as fit into a normal run."""
FIRST: Final = int(os.environ.get("HOLDFAST_ORACLE_FIRST", "0"))
BATCH: Final = 20
"""How many seeds one test tries."""
MOST_STEPS: Final = 3_000


def list_batches(normal: int) -> list[range]:
    """The seeds of each test, where a normal run tries so many."""
    last = FIRST + (SEEDS or normal)
    return [range(first, min(first + BATCH, last)) for first in range(FIRST, last, BATCH)]


def drive(play: PlayedProcess, random: Random) -> None:
    """Let jobs return in any order, and time pass when nothing else can happen, until the process ends."""
    for _ in range(MOST_STEPS):
        if play.is_closed:
            return
        jobs = list(play.execution.activities)
        if jobs:
            play.trigger(play.element_of(random.choice(jobs)))
        else:
            play.fire()
    raise AssertionError(f"still open after {MOST_STEPS} steps: {play.waits}")


def list_completed(play: PlayedProcess) -> list[str]:
    """The ids of the elements that completed, in order; the process itself aside."""
    made = [one.records for one in play.events if isinstance(one, ProcessAdvanced)]
    lines = expand(record for each in made for record in decode_records(each))
    return [one.element for one in lines if one.kind is AuditKind.LEFT and one.element != play.process.id]


def count_completed(play: PlayedProcess) -> Counter[str]:
    """How often each element completed."""
    return Counter(list_completed(play))
