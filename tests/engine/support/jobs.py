"""Jobs asked for by code, as the interpreter of processes asks for them: for tests of activities alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast import Context, Retry
from holdfast.activities.definitions import make_options
from holdfast.core.options import JobDetails
from holdfast.core.signatures import make_job_input


def run_job(
    ctx: Context,
    name: str,
    variables: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
    **options: Any,
) -> asyncio.Future[Any]:
    """Ask for the job of a task called 'Charge card', with the id 'Task_1'; without options it has one attempt."""
    given = make_options(**{"retry": Retry(max_attempts=1), **options})
    job = JobDetails("Task_1", dict(headers or {}))
    encoded = make_job_input({key: msgspec.Raw(msgspec.json.encode(value)) for key, value in variables.items()})
    return ctx._issuer.run_activity(name, encoded, msgspec.structs.replace(given, job=job), Any, "Charge card")
