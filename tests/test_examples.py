"""Every example runs as it stands, in a process of its own, and prints what it shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

EXPECTED = {
    "hello.py": """
        Hello, Ann!
        WorkflowStarted > ActivityScheduled > ActivityCompleted > WorkflowCompleted
        Hello, Ann!
    """,
    "conversation.py": """
        a new conversation
        the same conversation
        the same conversation
        Ann, you said: hi
        Ann, you said: how are you?
        Ann, you said: bye
        a new conversation
    """,
    "searching.py": """
        large and open: claim-2 claim-0
        policy P-7: claim-1 claim-2
        decided: 1
    """,
    "events.py": """
        kept: True, [OrderPaid(order=1, amount=10)]
        order 1: paid 10
        order 3: paid 30
        waits found: 1
        order 2: not paid on Monday
    """,
    "messages.py": """
        refused: nobody waits for it
        refused: it is kept already
        started: True
        tea for 10
    """,
    "broadcast.py": """
        delivered: 3, started: 1
        north sells tea for 3
        failed: NoShelf
        south sells tea for 3
        nobody waits now: 0
    """,
    "order_saga.py": """
        order-1: courier for order-1
        refunded: 4200 cents for order-2
        released: stock for order-2
        order-2: given up because of NoCourier
    """,
    "schedules.py": """
        daily: Sun 04:00 Mon 04:00 Tue 04:00
        tick: ended, 3 fired, 2 skipped
        now: weekly at Sun 13:00
        weekly-2030-04-01T09:00:00Z -> weekly at Mon 09:00
        daily-2030-04-01T04:00:00Z -> daily at Mon 04:00
        weekly-2030-03-31T13:00:00Z-manual -> weekly at Sun 13:00
    """,
    "updates.py": """
        left: 70
        once more: 70
        Expected update 'withdraw' to be accepted, but its validator refused it: ValueError: only 70 are left
        asked: 70
        closed with 70 and asked again: 70
    """,
    "pausing.py": """
        paused, 1 waits: the address is wrong
        Ann gets tea and milk
    """,
    "approval.py": """
        eve may not claim it
        a form without a decision is refused
        900: bought (fine)
        ['created by None', 'claimed by ann', 'completed by ann']
    """,
    "approval_with_timeout.py": """
        100: approved by Ann
        200: recalled
        300: nobody decided in time
        400: nobody decided in time
    """,
    "fan_out_children.py": """
        {'one.txt': 6, 'two.txt': 4, 'three.txt': None}
        analyse/one.txt completed
        analyse/three.txt failed
        analyse/two.txt completed
    """,
    "retries_and_heartbeats.py": """
        attempt 2 copied pages 4 to 5
        ['ConnectionError after 3 attempts', 'no heartbeat']
    """,
    "continue_as.py": """
        total: 55
        continued: 5 events
        continued: 5 events
        continued: 5 events
        completed: 4 events
    """,
    "testing_with_virtual_time.py": """
        ann: subscribed to gold
        ben: trial is over
        it is 2030-01-31
    """,
    "versioning_with_patched.py": """
        ann: letter to Ann
        ben: mail to Ben
    """,
    "transactional_start.py": """
        refused: out of stock
        order-1: [('order-1', 'shipped')], 4 in stock
    """,
    "order_process.py": """
        shipped as A-1-2, paid by Ann
        released 1
        given up
    """,
    "code_and_diagram.py": """
        Inn in Rome for 94
        stay at home
    """,
    "cancel_and_cleanup.py": """
        training on machine-7
        accepted: True
        training stopped
        returned machine-7
        cancelled
    """,
}


def test_every_example_has_its_expected_output() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_example_prints_what_it_shows(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]

    process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)

    assert process.returncode == 0, process.stderr
    assert [line.strip() for line in process.stdout.splitlines()] == [
        line.strip() for line in EXPECTED[name].strip().splitlines()
    ]
    assert "Traceback" not in process.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", EXPECTED)
def test_example_fits_a_screen_or_two_and_says_its_idea_first(name: str) -> None:
    lines = (EXAMPLES / name).read_text().splitlines()

    assert 20 <= len(lines) <= 60
    assert lines[0].startswith('"""')
    assert lines[0].endswith('."""')
