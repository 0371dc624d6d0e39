"""The arguments of public calls, checked by their annotations before any work begins.

A wrong argument fails with an error that names the call and the argument. Without this check Python would raise an
error somewhere in the work. Numbers, texts and flags of numpy count as Python's.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeAlias, TypeVar, cast

from ..errors import InvalidOptionError

# The greatest int of a JVM; no table has so many commits, buckets or rows.
MOST = (1 << 31) - 1
# The greatest number of bytes of a table.
MOST_BYTES = (1 << 63) - 1
# Characters of a value in an error.
_SHOWN = 80
# Parameters whose texts are paths below a table's root.
INSIDE = frozenset({"partitions", "paths", "accept_loss"})
# Parameters that take a path for Spark, as a text or as an object of pathlib.
_PATHS = frozenset({"checkpoint"})
# Arguments of commands that name files of a disk, whose names may be other bytes than UTF-8.
_FILES = frozenset({"path", "source", "output"})

Called = TypeVar("Called", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class CallArgument:
    """One argument of a call: the parameter's name and the value for it."""

    call: str
    name: str
    value: Any

    def wrong(self, advice: str) -> InvalidOptionError:
        """Return the error of a wrong argument, which shows the beginning of its value, with advice what to give."""
        shown = repr(self.value)
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
        return InvalidOptionError(f"{self.call} got {self.name}={shown}.", advice)


Check: TypeAlias = Callable[[CallArgument], Any]


def whole_number(argument: CallArgument, most: int = MOST) -> int:
    """Return a whole number from 0 on; raises `InvalidOptionError` for anything else, such as a flag, float or text."""
    value = _plain(argument.value)
    advice = f"Give a whole number from 0 to {most:,}."
    if isinstance(value, bool):
        raise argument.wrong(advice)
    try:
        number = operator.index(value)
    except TypeError:
        raise argument.wrong(advice) from None
    if not 0 <= number <= most:
        raise argument.wrong(advice)
    return number


def _number(argument: CallArgument) -> float:
    """Return a finite number from 0 on; raise `InvalidOptionError` for anything else."""
    value = _plain(argument.value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise argument.wrong("Give a finite number that is not negative.")
    return value


def _flag(argument: CallArgument) -> bool:
    """Return True or False; raise `InvalidOptionError` for anything else, such as 0 or a text."""
    value = _plain(argument.value)
    if not isinstance(value, bool):
        raise argument.wrong("Give True or False.")
    return value


def text(argument: CallArgument) -> str:
    """Return a text without NUL characters that UTF-8 can encode; for a parameter in `INSIDE`, a path below the root.

    Raises `InvalidOptionError` for anything else. A path of pathlib counts as text for a parameter in `_PATHS`.
    """
    value = argument.value
    if argument.name in _PATHS and hasattr(value, "__fspath__"):
        value = value.__fspath__()
    if not isinstance(value, str):
        raise argument.wrong("Give a text.")
    if "\0" in value:
        raise argument.wrong("Give a text without NUL characters.")
    if argument.name not in _FILES:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise argument.wrong("Give a text that UTF-8 can encode.") from None
    if argument.name in INSIDE and (value.startswith("/") or ".." in value.split("/")):
        raise argument.wrong("Give paths below the table's path, without '..'.")
    return value


def _time(argument: CallArgument) -> str | date:
    """Return a date as it is, and any other value as a text, checked by `text`."""
    return argument.value if isinstance(argument.value, date) else text(argument)


def _texts(argument: CallArgument) -> Any:
    """Return texts, each checked by `text`; an iterable that may end at its first use becomes a list.

    A single text is refused: it is no list.
    """
    value = argument.value
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise argument.wrong("Give a list of texts.")
    texts = [text(CallArgument(argument.call, argument.name, each)) for each in value]
    return value if isinstance(value, list | tuple) else texts


def _text_or_texts(argument: CallArgument) -> Any:
    """Return a single text, or several, checked by `text`."""
    return text(argument) if isinstance(argument.value, str) else _texts(argument)


def _path(argument: CallArgument) -> Any:
    """Return a table's path as it is, after a check: a text, which may be relative, or an object of pathlib."""
    path = argument.value.__fspath__() if hasattr(argument.value, "__fspath__") else argument.value
    if not isinstance(path, str) or not path or "\0" in path:
        raise argument.wrong("Give a path, as a text that is not empty and has no NUL, or as an object of pathlib.")
    return argument.value


def _mapping(argument: CallArgument) -> Any:
    """Return a dictionary. Raises `InvalidOptionError` for anything else, and names arguments in the wrong order."""
    if not isinstance(argument.value, Mapping):
        if (argument.call, argument.name) == ("update()", "set"):
            raise argument.wrong("The new values come first, the condition second: call update(set, where).")
        raise argument.wrong("Give a dictionary.")
    return argument.value


def _bytes_or_rows(argument: CallArgument) -> Any:
    """Return a number of bytes after a check that refuses texts and None, and a value such as a DataFrame as it is."""
    value = _plain(argument.value)
    countable = isinstance(value, int | float | str | bytes) or value is None
    return whole_number(argument, MOST_BYTES) if countable else value


def _table_or_path(argument: CallArgument) -> Any:
    """Return an opened table as it is, and anything else as a path, checked by `_path`."""
    return argument.value if hasattr(argument.value, "storage_options") else _path(argument)


def _columns_or_condition(argument: CallArgument) -> Any:
    """Return the name of a column, a condition as text, or anything of Spark, which checks it later."""
    value = _plain(argument.value)
    if isinstance(value, bool | int | float | bytes | Mapping):
        raise argument.wrong("Give a condition, a column or a list of columns.")
    return text(argument) if isinstance(value, str) else argument.value


# By the annotation of a parameter, without its "| None".
CHECKS: Mapping[str, Check] = {
    "int": whole_number,
    "float": _number,
    "bool": _flag,
    "str": text,
    "str | date": _time,
    "Sequence[str]": _texts,
    "str | Sequence[str]": _text_or_texts,
    "AnyPath": _path,
    "HasPath | AnyPath": _table_or_path,
    "DataFrame | int": _bytes_or_rows,
    "On": _columns_or_condition,
    "Column | str": _columns_or_condition,
    "Mapping[str, Any]": _mapping,
    "Mapping[str, Value]": _mapping,
}


def kind_of(parameter: inspect.Parameter) -> str:
    """Return the annotation of a parameter, without its "| None"."""
    return str(parameter.annotation).removesuffix(" | None")


def checked(call: Called) -> Called:
    """Return a call that checks its arguments by `CHECKS` first; a constructor has the name of its class in errors.

    An argument's check is that of its annotation: it returns the value to call with, or raises `InvalidOptionError`. A
    call without such annotations is returned as it is.
    """
    signature = inspect.signature(call)
    parameters = signature.parameters
    kinds = {key: kind_of(parameter) for key, parameter in parameters.items()}
    checks = {key: CHECKS[kind] for key, kind in kinds.items() if kind in CHECKS}
    if not checks:
        return call

    @functools.wraps(call)
    def checked_call(*args: Any, **kwargs: Any) -> Any:
        """Check the arguments that were given, then call with the values that the checks return."""
        # `wraps` replaces the docstring by that of the call.
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            # Let Python name the argument that is missing or too many.
            return call(*args, **kwargs)
        shown = f"{type(args[0]).__name__ if call.__name__ == '__init__' else call.__name__}()"
        for key, check in checks.items():
            if key not in bound.arguments:
                continue
            value = bound.arguments[key]
            if parameters[key].kind is inspect.Parameter.VAR_POSITIONAL:
                bound.arguments[key] = tuple(check(CallArgument(shown, key, each)) for each in value)
            # If None is the default, a caller who gives None leaves the argument out.
            elif value is not None or parameters[key].default is not None:
                bound.arguments[key] = check(CallArgument(shown, key, value))
        return call(*bound.args, **bound.kwargs)

    return cast("Called", checked_call)


def _plain(value: Any) -> Any:
    """Return a scalar of numpy as one of Python, without an import of numpy."""
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () else value
