"""Starts as they travel to the process that owns a database: a workflow by its name, with arguments as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from holdfast.code.bound_workflows import BoundWorkflow, check_call, list_options, unbind
from holdfast.code.definitions import Workflow
from holdfast.core import payloads
from holdfast.core.ids import check_identifier
from holdfast.core.options import naming_options, separate_options
from holdfast.engine.use_cases.delivery import take_input
from holdfast.errors import UnknownWorkflow

LARGEST: Final = 512 * 1024 * 1024
"""More than any engine takes: which limit counts, the owner says."""


def encode_start(
    workflow: Workflow[..., Any] | BoundWorkflow[Any] | str,
    args: tuple[Any, ...],
    keywords: Mapping[str, Any],
    names: frozenset[str],
) -> tuple[str, Any, msgspec.Raw, dict[str, Any]]:
    """A start's workflow by name, the type of its result, its arguments as a JSON array, and all that is named."""
    options, named = separate_options(keywords, names | {"org"})
    call = unbind(workflow, args, named)
    check_call(call, list_options(call, workflow, options.keys() - {"org"}, options["org"]))
    workflow, given, kwargs = call
    if "workflow_input" in options:
        given = take_input(given, kwargs, options.pop("workflow_input"))
    if isinstance(workflow, Workflow):
        with naming_options(names):
            encoded = workflow.encode_input(given, kwargs, LARGEST)
        return workflow.name, workflow.result_hint, encoded.data, options
    if not isinstance(workflow, str):
        raise UnknownWorkflow(
            f"Expected a workflow or the name of one, but got {getattr(workflow, '__name__', workflow)!r}. Decorate it with "
            "@workflow, or pass its name."
        )
    what = f"the arguments of workflow '{check_identifier(workflow, 'the name of a workflow')}'"
    for name, value in kwargs.items():
        options[name] = payloads.encode(value, f"argument '{name}' of workflow '{workflow}'", LARGEST).data
    return workflow, Any, payloads.encode(list(given), what, LARGEST).data, options
