"""What the files that compile nodes of one topic ask of the compiler, which knows them all."""

from __future__ import annotations

from typing import Protocol

from holdfast.feel import syntax
from holdfast.feel.operators import Evaluate
from holdfast.feel.scopes import Scope
from holdfast.feel.spots import Spot
from holdfast.feel.types import Types


class NodeCompiler(Protocol):
    """Compiles the parts of a node, of whatever kind, for the function that compiles the node itself."""

    types: Types | None
    """Types that a DMN model defines, by which `instance of` and typed parameters go."""

    def spot(self, node: syntax.Node) -> Spot:
        """Where a node begins, for warnings."""

    def compile(self, node: syntax.Node, scope: Scope) -> Evaluate:
        """The closure that evaluates a node, given a frame with the places of `scope`."""
