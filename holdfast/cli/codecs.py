"""`--codec`: the codec of the engines, so that encoded values can be shown, and those that are sent are encoded."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from holdfast.engine.payload_codecs import PayloadCodec

Function = TypeVar("Function", bound=Callable[..., Any])

_KEY: Final = "holdfast.codec"


def codec_option(function: Function) -> Function:
    """Add the option --codec to a command. What it names is used by whatever opens the database."""
    return click.option(
        "--codec",
        callback=_load,
        expose_value=False,
        metavar="MODULE:NAME",
        help="The codec of the engines: an object, or what makes one when it is called.",
    )(function)


def find_codec() -> PayloadCodec | None:
    """The codec that the command was given, if it was."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(_KEY)


def _load(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    from holdfast.cli.modules import load_module
    from holdfast.engine.payload_codecs import check_codec
    from holdfast.errors import InvalidConfiguration

    module, separator, names = value.partition(":")
    if not separator or not module or not names:
        raise click.BadParameter(f"Expected MODULE:NAME, for instance app.codecs:codec, but it is '{value}'. Correct it.")
    try:
        found: Any = reduce(getattr, names.split("."), load_module(module))
    except AttributeError as error:
        raise click.BadParameter(f"Expected module '{module}' to have '{names}', but {error}. Correct it.") from error
    if isinstance(found, type) or not hasattr(found, "encode"):
        found = _make(found, value)
    try:
        check_codec(found if found is not None else ())
    except InvalidConfiguration as error:
        raise click.BadParameter(
            f"Expected '{value}' to be a codec, an object with async methods encode and decode, or to make one, but it is "
            f"{type(found).__name__}. See holdfast.PayloadCodec."
        ) from error
    ctx.meta[_KEY] = found


def _make(make: Any, value: str) -> Any:
    if not callable(make):
        return make
    try:
        return make()
    except Exception as error:
        raise click.BadParameter(
            f"Expected '{value}' to make a codec when it is called without arguments, but {type(error).__name__}: {error}. "
            "Name an object, or a function that makes it."
        ) from error
