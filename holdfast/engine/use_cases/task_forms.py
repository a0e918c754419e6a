"""The form of a human task against the JSON Schema in its row: an early answer, for which no code of the workflow is needed.

What a schema cannot say is found by the turn that decides on the completion: it reads the form as the type of the task. The
schema refuses nothing that the type takes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from holdfast.core.payloads import CONFIDENCE
from holdfast.engine.schema_checks import find_misfit, make_validator
from holdfast.errors import TaskFormMismatch
from holdfast.store.tasks import decode_body

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

    from holdfast.core.payloads import Payload
    from holdfast.store.tasks import TaskRow


def check_form(row: TaskRow, form: Payload) -> None:
    """Raises TaskFormMismatch if what was filled in does not fit the JSON Schema of the form."""
    body = decode_body(row)
    validator = _make_validator(bytes(body.form_check))
    misfit = None if validator is None else find_misfit(validator, msgspec.json.decode(form.data))
    if misfit is None:
        return
    found, where = misfit
    raise TaskFormMismatch(
        f"Expected the form of task {row.task_id} ('{row.name}') to be {body.form}, but "
        f"{'a value of it does not fit' if CONFIDENCE else found}"
        f"{f' at {where}' if where else ''}. Send what its form_schema describes; nothing was changed."
    )


@lru_cache(maxsize=256)
def _make_validator(schema: bytes) -> Draft202012Validator | None:
    return make_validator(msgspec.json.decode(schema))
