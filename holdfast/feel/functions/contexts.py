"""Functions over contexts: DMN 10.3.4.10, with paths of keys as Camunda has them.

No context that is given is ever changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.feel.functions.signatures import Form, form
from holdfast.feel.running import Fail, Run
from holdfast.feel.values import Value

Context = dict[str, Value]

_SMALL: Final = 240
_ENTRY: Final = 240
_PLACE: Final = 60
"""Bytes of a context with few entries, of an entry as a context, and of the place of an entry."""
_SHOWN: Final = 60
"""Characters of a key that a warning shows."""


def get_value(run: Run, context: Context, key: str) -> Value:
    """`get value`: the entry of one key. Raises Fail if there is none."""
    if key not in context:
        raise Fail(f"the context has no entry {key[:_SHOWN]!r}")
    return context[key]


def get_nested_value(run: Run, context: Context, keys: list[Value]) -> Value:
    """`get value` (Camunda), by the keys of nested contexts; null for no keys."""
    run.spend(len(keys))
    value: Value = context if keys else None
    for key in _require_keys(keys):
        if type(value) is not dict or key not in value:
            raise Fail(f"there is no context with an entry {key[:_SHOWN]!r}")
        value = value[key]
    return value


def get_entries(run: Run, context: Context) -> list[Context]:
    """`get entries`: a context with `key` and `value` for each entry."""
    run.spend(len(context), _ENTRY * len(context))
    return [{"key": key, "value": value} for key, value in context.items()]


def make_context(run: Run, entries: list[Value]) -> Context:
    """`context`: of entries as `get entries` gives them; no key may come twice."""
    run.spend(len(entries), _SMALL + _ENTRY * len(entries))
    context: Context = {}
    for entry in entries:
        if type(entry) is not dict or "value" not in entry or type(entry.get("key")) is not str:
            raise Fail("an entry is not a context with a string for its key, and a value")
        if entry["key"] in context:
            raise Fail(f"the key {entry['key'][:_SHOWN]!r} is there twice")
        context[entry["key"]] = entry["value"]
    return context


def put_value(run: Run, context: Context, key: str, value: Value) -> Context:
    """`context put`: the context with that entry, in place of the one with that key or else at its end."""
    run.spend(len(context), _SMALL + _PLACE * len(context))
    return {**context, key: value}


def put_nested_value(run: Run, context: Context, keys: list[Value], value: Value) -> Context:
    """`context put`, by the keys of nested contexts; those that are not there, or null, are made, as Camunda does."""
    if not keys:
        raise Fail("there are no keys")
    whole: Context = {}
    at, source = whole, context
    *outer, last = _require_keys(keys)
    for key in outer:
        run.spend(len(source) + 1, _SMALL + _PLACE * len(source))
        inner = source.get(key)
        if inner is not None and type(inner) is not dict:
            raise Fail(f"the entry {key[:_SHOWN]!r} is not a context")
        at.update(source)
        at[key] = {}
        at, source = at[key], inner or {}
    at.update(put_value(run, source, last, value))
    return whole


def merge_contexts(run: Run, *contexts: Value) -> Context:
    """`context merge`: all entries of all contexts; of two with one key, the later one."""
    merged: Context = {}
    for context in contexts:
        if type(context) is not dict:
            raise Fail("an item is not a context")
        run.spend(len(context) + 1, _PLACE * (len(context) + 3))
        merged.update(context)
    return merged


def _require_keys(keys: list[Value]) -> list[str]:
    if any(type(key) is not str for key in keys):
        raise Fail("a key is not a string")
    return keys


_PUT: Final = (
    form(put_value, ("context", "context"), ("key", "string"), ("value", "any?")),
    form(put_nested_value, ("context", "context"), ("keys", "list"), ("value", "any?")),
)
_MERGE: Final = (form(merge_contexts, ("contexts", "any?"), is_variadic=True),)

CONTEXTS: Final[Mapping[str, tuple[Form, ...]]] = {
    "get value": (
        form(get_value, ("m", "context"), ("key", "string")),
        form(get_value, ("context", "context"), ("key", "string")),
        form(get_nested_value, ("context", "context"), ("keys", "list")),
    ),
    "get entries": (
        form(get_entries, ("m", "context")),
        form(get_entries, ("context", "context")),
    ),
    "context": (form(make_context, ("entries", "list")),),
    "context put": _PUT,
    "put": _PUT,
    "context merge": _MERGE,
    "put all": _MERGE,
}
"""By name. The specification calls the first parameter `m`, Camunda calls it `context`; it has old names for two of them."""
