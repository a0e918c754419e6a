"""S1 under load: numbered signals by every way, over nodes that put most of them off; long with HOLDFAST_FAULTS_LONG=1."""

from __future__ import annotations

import os
from typing import Final

from tests.faults.ordered_senders import Stress, run_stress

SHORT: Final = Stress(executions=6, senders=3, signals=12, events=300)
LONG: Final = Stress(executions=10, senders=200, signals=50, events=10_000)
"""100,000 signals."""


async def test_S1_numbered_signals_of_many_senders_arrive_in_order(postgres_url: str) -> None:
    stress = LONG if os.environ.get("HOLDFAST_FAULTS_LONG") else SHORT

    sent, found = await run_stress(postgres_url, stress)

    assert found == []
    print(f"{sent} signals in order")
