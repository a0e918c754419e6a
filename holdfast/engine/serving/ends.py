"""The ends of executions as they travel to clients, who make results or errors of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Duration
from holdfast.core.options import OnBlocked

if TYPE_CHECKING:
    from holdfast.engine.results import Ending
    from holdfast.engine.serving.server import Verb
    from holdfast.engine.use_cases.queries import Queries
    from holdfast.engine.use_cases.result_waits import ResultWaits


def make_end_verbs(
    queries: Queries, waits: ResultWaits, check_open: Callable[[], None], default: OnBlocked
) -> dict[str, Verb]:
    """The verbs that tell how executions ended. `default` is what a wait does about a blocked one unless it is told."""

    async def wait_for_ending(
        target: str, *, org: str = DEFAULT_ORG, timeout: Duration | None = None, on_blocked: OnBlocked | None = None
    ) -> Ending:
        check_open()
        return await waits.wait(org, target, timeout=timeout, on_blocked=default if on_blocked is None else on_blocked)

    async def find_ending(target: str, *, org: str = DEFAULT_ORG) -> list[Ending]:
        check_open()
        ending = await queries.ending(org, target)
        return [] if ending is None else [ending]

    return {"wait_for_ending": wait_for_ending, "find_ending": find_ending}
