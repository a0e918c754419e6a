"""What a workflow may give to a child beside its arguments: one list of options for `start_child` and `run_child`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypedDict

import msgspec

from holdfast.core.chains import Chain
from holdfast.core.ids import check_identifier, check_label
from holdfast.core.instants import Duration
from holdfast.core.options import ParentClose
from holdfast.core.references import BusinessReference, check_reference
from holdfast.core.retry import RetryPolicy
from holdfast.core.start_checks import check_chain, check_texts
from holdfast.errors import InvalidConfiguration


class ChildOptions(TypedDict, total=False):
    """The options of a child. All other keyword arguments of `start_child` and `run_child` are the workflow's own."""

    workflow_id: str | None
    """Unique among the open executions of an org. Default: the child's execution id."""
    parent_close: ParentClose | str
    """What becomes of the child if its parent closes first. Default: 'cancel' for `run_child`, else 'abandon'."""
    name: str
    """What the history shows for the child."""
    execution_timeout: Duration | None
    """How long the child may take, with all its runs, as in `engine.start`."""
    run_timeout: Duration | None
    """The same for each single run."""
    retry: RetryPolicy | None
    """How a failed run of the child is followed by another, as in `engine.start`."""
    metadata: Mapping[str, str] | None
    """Texts by name, which are shown with the child. Those of its parent are not handed on."""
    headers: Mapping[str, str] | None
    """What the child hands on, as in `engine.start`. Default: what its parent does."""
    business_reference: BusinessReference | None
    """What the child is about, as in `engine.start`. Default: what its parent is about."""


CHILD_OPTIONS: Final = ChildOptions.__optional_keys__


class CheckedChildOptions(msgspec.Struct, frozen=True, gc=False):
    """The options of a child after they were checked."""

    policy: ParentClose
    workflow_id: str | None = None
    label: str = ""
    propagates: bool | None = None
    """Whether its end without a result is raised; None: as the engine says."""
    chain: Chain | None = None
    metadata: dict[str, str] = {}
    headers: dict[str, str] | None = None
    """None: those of its parent."""
    reference: BusinessReference | None = None
    """None: that of its parent."""


def check_child_options(
    options: Mapping[str, Any], default_policy: ParentClose, propagates: bool | None, limit: int
) -> CheckedChildOptions:
    """The options of a child. Raises InvalidIdentifier, InvalidDuration, InvalidConfiguration or InvalidArguments."""
    if propagates not in (None, True, False):
        raise InvalidConfiguration(f"Expected propagate_child_failures to be True, False or None, but it is {propagates!r}.")
    if not options:
        return CheckedChildOptions(default_policy, propagates=propagates)
    workflow_id, headers = options.get("workflow_id"), options.get("headers")
    if workflow_id is not None:
        check_identifier(workflow_id, "the workflow id of a child")
    return CheckedChildOptions(
        _check_policy(options.get("parent_close", default_policy)),
        workflow_id,
        check_label(options.get("name", ""), "a child"),
        propagates,
        check_chain(options.get("execution_timeout"), options.get("run_timeout"), options.get("retry")),
        check_texts(options.get("metadata"), "metadata", limit, may_be_pairs=True),
        None if headers is None else check_texts(headers, "headers", limit, may_be_pairs=True),
        check_reference(options.get("business_reference")),
    )


def _check_policy(parent_close: Any) -> ParentClose:
    try:
        return ParentClose(parent_close)
    except ValueError:
        raise InvalidConfiguration(
            f"Expected parent_close to be 'abandon', 'cancel' or 'terminate', but it is {parent_close!r}."
        ) from None
