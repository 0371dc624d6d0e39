"""From a user's texts to `HudiOptions`: names resolved, values typed, nothing overlooked.

The logger ``pyhudi`` reports each option that pyhudi accepts without doing what it asks, once per process: a warning
for a service that is not done, info for an option without a meaning here. Python's ``warnings`` raised in one of
Spark's workers never reach the user. Only the session API, which parses the options in the user's own process, passes
``warn=True``.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from ..errors import InvalidOptionError, OptionConflictError, UnknownOptionError, UnsupportedOptionError
from ..operations.planning.table_terms import NO_UPDATE_MODE
from ..table.config.payloads import PAYLOADS
from .catalogue import Effect, KnownKey, find_known
from .hints import find_hint
from .lookup import INDEX_PREFIX, index_options
from .model import HudiOptions
from .names import OPTIONS, OptionInfo, either, name_of, nearest
from .secrets import STORAGE_PREFIX, masked, storage_options

logger = logging.getLogger("pyhudi")

_METADATA_PREFIX = OPTIONS["metadata_prefix"]
_PRIVATE = ("_hoodie.", "_.hoodie.")
# Pairs of options that set the same thing.
SAME_THING = (("merge_mode", "payload"), ("key_generator_type", "key_generator_class"))
# A payload class sets the partial update mode, too.
_SAID_TWICE = (*SAME_THING, ("partial_update_mode", "payload"))
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_LITERAL = re.compile(r"'([^']*)'")
# By the validator's kind of error, what it means.
_REASONS = {
    "int_parsing": "it is no whole number",
    "int_from_float": "it is no whole number",
    "float_parsing": "it is no number",
    "bool_parsing": "it is neither true nor false",
    "bool_type": "it is neither true nor false",
}
_BOUNDS = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
_reported: set[str] = set()


class PyHudiWarning(UserWarning):
    """An option was accepted, and pyhudi does not do what it asks."""


def parse_options(options: Mapping[str, Any], *, warn: bool = False) -> HudiOptions:
    """Return the typed options; see `parse_with_notices`."""
    return parse_with_notices(options, warn=warn)[0]


def parse_with_notices(
    options: Mapping[str, Any], *, warn: bool = False, places: Mapping[str, str] | None = None
) -> tuple[HudiOptions, tuple[str, ...]]:
    """Return the typed options, and a sentence for each that pyhudi accepts without doing what it asks.

    Keys may be in any case. With ``warn``, in the user's own process, notices are Python warnings, too. ``places`` has,
    by key, the source of an option that the operation itself did not get. Raises OptionError.
    """
    texts = texts_of(options)
    if "provider" in texts:
        raise UnsupportedOptionError(
            "A Hudi table cannot be put into Spark's catalog by CREATE TABLE … USING pyhudi: Spark tells a Python data "
            "source neither path nor options when such a table is used.",
            "Use spark.read.format('pyhudi').load(path), or CREATE TEMPORARY VIEW … USING pyhudi OPTIONS (path '…').",
        )
    prefix = metadata_prefix(texts)
    values: dict[str, Any] = {
        "storage_options": storage_options(texts),
        "extra_metadata": {},
        "index_options": index_options(texts),
    }
    key_by_name: dict[str, str] = {}
    notices: list[tuple[str, str, KnownKey]] = []
    for key, text in texts.items():
        name = name_of(key)
        shown_option = f"{key}={masked(key, text)!r}" + (f" of {places[key]}" if places and key in places else "")
        if name is not None:
            _add(values, key_by_name, name, key, _parse_value(name, shown_option, text))
        elif key.startswith((STORAGE_PREFIX, INDEX_PREFIX)):
            # `storage_options` and `index_options` took these.
            continue
        elif is_metadata(key, prefix):
            values["extra_metadata"][key] = text
        elif (entry := find_known(key)) is not None:
            _refuse_undone(shown_option, text, entry)
            notices.append((key, text, entry))
        else:
            raise _unknown_option(key, text)
    _check_together(values, key_by_name)
    return HudiOptions().model_copy(update=values), _notify(notices, warn)


def texts_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options by lower-case key as the texts that Spark carries, without None.

    Raises OptionConflictError if two keys differ in case alone and have two values.
    """
    texts: dict[str, str] = {}
    for key, value in options.items():
        if value is None:
            continue
        lower, text = key.lower(), format_value(value)
        if texts.setdefault(lower, text) != text:
            raise OptionConflictError(
                f"The option {lower} was given twice, in two cases and with two values, "
                f"{masked(lower, texts[lower])!r} and {masked(lower, text)!r}.",
                "Give only one of the two values.",
            )
    return texts


def path_of(options: Mapping[str, Any]) -> str | None:
    """Return the path among unparsed options; None if there is none."""
    texts = texts_of(options)
    return next((texts[key].strip() for key in OPTIONS["path"].keys if key in texts), None)


def metadata_prefix(texts: Mapping[str, str]) -> str:
    """Return the prefix of the keys that a commit keeps in its extra metadata; empty for no key."""
    return texts.get(_METADATA_PREFIX.key, _METADATA_PREFIX.default)


def is_metadata(key: str, prefix: str) -> bool:
    """Return whether a commit keeps a key in its extra metadata; an empty prefix keeps none."""
    return bool(prefix) and key.startswith(prefix) and not key.startswith(_PRIVATE)


def format_value(value: Any) -> str:
    """Return an option's value as the text that Spark carries."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    if isinstance(value, datetime):
        # A text without fractions of a second would mean the last moment of that second.
        return value.isoformat(timespec="microseconds")
    return str(value)


def _add(values: dict[str, Any], key_by_name: dict[str, str], name: str, key: str, value: Any) -> None:
    """Add an option's value by its ``name``; OptionConflictError if another key of the option gave another value.

    ``key_by_name`` has the key that gave each value.
    """
    if name in values and values[name] != value:
        raise OptionConflictError(
            f"{key_by_name[name]} and {key} are two names of one option and were given two values, "
            f"{_quoted(values[name])} and {_quoted(value)}.",
            "Give only one of the two names.",
        )
    values.setdefault(name, value)
    key_by_name.setdefault(name, key)


def _reason(failure: Mapping[str, Any], option: OptionInfo) -> str:
    """Return why a value does not fit its option, in words of pyhudi's own and not in the validator's.

    ``failure`` is an error of pydantic's.
    """
    failure_type, bounds = failure["type"], failure.get("ctx", {})
    if failure_type == "literal_error":
        return f"it is none of {either(option.supported or _LITERAL.findall(bounds['expected']))}"
    if failure_type in _BOUNDS:
        words, bound = _BOUNDS[failure_type]
        return f"it must be {words} {bounds[bound]}"
    return _REASONS.get(failure_type) or str(failure["msg"]).removeprefix("Value error, ")


def _parse_value(name: str, shown_option: str, text: str) -> Any:
    """Return the typed value of an option, called ``shown_option`` in errors; refuses values that are not done.

    ``name`` is the option's field of `HudiOptions`, and ``text`` is the value as the user spelled it. Raises
    `InvalidOptionError` for a value that the option cannot have, and `UnsupportedOptionError` for a value of Apache
    Hudi that pyhudi does not do yet.
    """
    option = OPTIONS[name]
    try:
        value = getattr(HudiOptions.model_validate({name: text.strip()}), name)
    except ValidationError as error:
        doc = _LINK.sub(r"\1", option.doc)
        raise InvalidOptionError(
            f"The option {shown_option} cannot be used: {_reason(error.errors()[0], option)}. {doc}",
            "Correct the value or leave the option out.",
        ) from error
    if not option.is_done(value):
        instead = option.instead.get(value) if isinstance(option.instead, Mapping) else option.instead
        raise UnsupportedOptionError(
            f"The option {shown_option} asks for something that pyhudi does not do yet.",
            f"Use {instead or either(option.supported or ())}, or Apache Hudi.",
        )
    return value


def _refuse_undone(shown_option: str, text: str, entry: KnownKey) -> None:
    """Refuse an option of Apache Hudi that pyhudi does not do, unless it has the default or no value."""
    if entry.effect is Effect.REFUSED and text.strip().lower() not in {entry.default, ""}:
        raise UnsupportedOptionError(
            f"The option {shown_option} of Apache Hudi is not done by pyhudi yet: {entry.why}.",
            "Leave the option out if that will do; use Apache Hudi if it will not.",
        )


def _check_together(values: Mapping[str, Any], key_by_name: Mapping[str, str]) -> None:
    """Raise OptionConflictError if two options give one thing different values.

    ``values`` are typed, by the name of the option, and ``key_by_name`` has the keys that gave them.
    """
    for name, other_name in _SAID_TWICE:
        if name not in values or other_name not in values:
            continue
        # A payload class implies several options, and means no partial update mode if it implies none.
        implied_value = (
            getattr(PAYLOADS[values[other_name]], name) or NO_UPDATE_MODE
            if other_name == "payload"
            else values[other_name]
        )
        if values[name] != implied_value:
            raise OptionConflictError(
                f"{key_by_name[name]} says {_quoted(values[name])} and {key_by_name[other_name]} means "
                f"{_quoted(implied_value)}.",
                "Give only one of the two options.",
            )


def _unknown_option(key: str, text: str) -> UnknownOptionError:
    """Return the error for an unknown option, with what to use in place of it if another system has it."""
    hint = find_hint(key)
    if hint is not None:
        return UnknownOptionError(f"There is no option {key!r}, which belongs to {hint.system}.", hint.advice(text))
    near = nearest(key)
    advice = f"Did you mean {near}? Correct" if near else "Correct"
    return UnknownOptionError(f"There is no option {key!r}.", f"{advice} the name, or leave the option out.")


def _notify(notices: Iterable[tuple[str, str, KnownKey]], warn: bool) -> tuple[str, ...]:
    """Report each option that pyhudi accepts without doing what it asks; return the sentences of the warnings."""
    messages: list[str] = []
    for key, text, entry in notices:
        if entry.effect is Effect.NOT_DONE and text.strip().lower() != "false":
            message = f"The option {key}={masked(key, text)} is accepted, but pyhudi does not do it yet: {entry.why}."
            messages.append(message)
            if warn:
                # The level is that of the user's own line, above the calls of this module and of the session API.
                warnings.warn(message, PyHudiWarning, stacklevel=5)
            if key not in _reported:
                logger.warning(message)
                _reported.add(key)
        elif entry.effect is Effect.NO_MEANING and key not in _reported:
            logger.info("The option %s has no meaning for pyhudi: %s.", key, entry.why)
            _reported.add(key)
    return tuple(messages)


def _quoted(value: Any) -> str:
    """Return a value as an error shows it."""
    if isinstance(value, tuple):
        return repr(",".join(value))
    return repr(getattr(value, "value", value))
