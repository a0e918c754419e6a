"""Conditions of a filter as SQL, for both databases: values are always bound, never part of the text.

An attribute of an execution is read by a subquery of its own, by the execution's id: a list looks at the rows of one index
in their order, and ends with a full page. Planners cannot turn such a subquery into a join that would read all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from holdfast.filters.syntax import And, Attribute, Column, Condition, Field, Has, Not, OneOf, Or, Range, Value

MARK: Final = "/* where */"
"""Where the statements of lists take up the conditions of a filter."""

_COLUMNS: Final[Mapping[Column, str]] = {
    Column.STATUS: "executions.status",
    Column.WORKFLOW: "executions.workflow",
    Column.WORKFLOW_ID: "executions.workflow_id",
    Column.EXECUTION_ID: "executions.execution_id",
    Column.QUEUE: "executions.queue",
    Column.PARENT: "executions.parent_id",
    Column.CREATED: "executions.created_at",
    Column.CLOSED: "executions.closed_at",
}


class Dialect(msgspec.Struct, frozen=True):
    """What differs between the databases in the SQL of a filter."""

    attributes: str
    """The table of attributes, as a subquery names it."""
    org: str
    """The parameter that holds the org."""
    name_parameter: Callable[[int, Value], str]
    """How the n-th value that is bound is written."""


class Compiled(msgspec.Struct, frozen=True):
    """SQL in which the values are bound by number, and the values in that order."""

    text: str
    values: list[Value]

    def place_in(self, statement: str) -> str:
        """The statement of a list with these conditions in it."""
        return statement.replace(MARK, f"AND {self.text}" if self.text else "")


def compile_condition(condition: Condition | None, dialect: Dialect) -> Compiled:
    """A condition as SQL; nothing for None."""
    if condition is None:
        return Compiled("", [])
    compiler = _Compiler(dialect)
    text = compiler.compile(condition)
    return Compiled(text, compiler.values)


class _Compiler:
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.values: list[Value] = []

    def compile(self, condition: Condition) -> str:
        """One condition, in parentheses or by itself; it is true or false, never NULL."""
        match condition:
            case And(items):
                return "(" + " AND ".join(map(self.compile, items)) + ")"
            case Or(items):
                return "(" + " OR ".join(map(self.compile, items)) + ")"
            case Not(item):
                return f"(NOT {self.compile(item)})"
            case Has(field):
                return f"({self._read(field)} IS NOT NULL)"
            case OneOf(field, values):
                bound = ", ".join(map(self._bind, values))
                return f"coalesce({self._read(field)} IN ({bound}), FALSE)"
            case Range(field, low, high):
                return self._compile_range(field, low, high)

    def _compile_range(self, field: Field, low: Value | None, high: Value | None) -> str:
        read = self._read(field)
        bounds: list[Any] = [(read, ">=", low)] if low is not None else []
        bounds += [(read, "<", high)] if high is not None else []
        tests = [f"{one} {sign} {self._bind(value)}" for one, sign, value in bounds]
        return f"coalesce({' AND '.join(tests)}, FALSE)" if tests else f"({read} IS NOT NULL)"

    def _read(self, field: Field) -> str:
        if not isinstance(field, Attribute):
            return _COLUMNS[field]
        dialect = self._dialect
        return (
            f"(SELECT attributes.value FROM {dialect.attributes} WHERE attributes.execution_id = executions.execution_id "  # noqa: S608 - bound
            f"AND attributes.org = {dialect.org} AND attributes.kind = {self._bind(field.kind.value)} "
            f"AND attributes.name = {self._bind(field.name)} LIMIT 1)"
        )

    def _bind(self, value: Value) -> str:
        self.values.append(value)
        return self._dialect.name_parameter(len(self.values), value)
