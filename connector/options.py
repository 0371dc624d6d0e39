"""From the words of a user to `HudiOptions`: names resolved, values typed, and nothing overlooked.

Where notices go. An option that pyhudi accepts without doing what it asks is always reported: through the logger
``pyhudi`` (warnings for services that are not done, info for options without a meaning here), once per process and
option. Python's ``warnings`` raised in one of Spark's workers never reach the user, so they are used by the session
API alone, which parses the options in the user's own process and passes ``warn=True``.
"""

from __future__ import annotations

import difflib
import logging
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import ValidationError

from ..errors import InvalidOptionError, OptionConflictError, UnknownOptionError, UnsupportedOptionError
from . import option_types
from .option_catalogue import CATALOGUE, Effect, KnownKey, find_known
from .option_model import SECTIONS, HudiOptions

logger = logging.getLogger("pyhudi")

STORAGE_PREFIX = "hoodie.pyhudi.storage."
_PRIVATE = ("_hoodie.", "_.hoodie.")
_told: set[str] = set()


class PyHudiWarning(UserWarning):
    """An option was accepted, and pyhudi does not do what it asks."""


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """One option as its documentation shows it."""

    name: str
    section: str
    key: str
    aliases: tuple[str, ...]
    type: str
    default: Any
    doc: str
    since: str


def describe_options() -> list[OptionInfo]:
    """Return every option of pyhudi, in the order of the model."""
    return [
        OptionInfo(
            name=name,
            section=_section(name),
            key=extra["key"],
            aliases=tuple(extra["aliases"]),
            type=_type_words(name),
            default=HudiOptions.model_fields[name].default,
            doc=HudiOptions.model_fields[name].description or "",
            since=extra["since"],
        )
        for name, extra in _EXTRA.items()
    ]


def _section(name: str) -> str:
    return next((title for title, part in SECTIONS.items() if name in part.model_fields), next(iter(SECTIONS)))


def _type_words(name: str) -> str:
    annotations = {
        key: kind for part in (*SECTIONS.values(), HudiOptions) for key, kind in part.__annotations__.items()
    }
    kind = annotations[name].replace(" | None", "")
    if kind in _TYPE_WORDS:
        return _TYPE_WORDS[kind]
    return _either(_EXTRA[name].get("supported") or get_args(get_args(getattr(option_types, kind))[0]))


_TYPE_WORDS = {
    "str": "text",
    "bool": "true or false",
    "int": "number",
    "Count": "number",
    "Buckets": "number",
    "Annotated[float, Field(ge=0)]": "number",
    "Size": "bytes, or a number with k, m or g",
    "Fields": "column names, separated by commas",
    "Generator": "SIMPLE, COMPLEX or NON_PARTITION, or a Java class",
    "Payload": "Java class",
}
_EXTRA: dict[str, dict[str, Any]] = {
    name: field.json_schema_extra
    for name, field in HudiOptions.model_fields.items()
    if isinstance(field.json_schema_extra, dict)
}
_NAMES: dict[str, str] = {key: name for name, extra in _EXTRA.items() for key in (extra["key"], *extra["aliases"])}


def parse_options(options: Mapping[str, Any], *, warn: bool = False) -> HudiOptions:
    """Return the typed options.

    Args:
        options: As the user gave them; keys in any case, values text (or what ``str`` makes text of).
        warn: Whether notices are raised as Python warnings besides being logged; for the user's own process.

    Raises:
        UnknownOptionError: There is no option of that name.
        InvalidOptionError: A value does not fit its option.
        OptionConflictError: One option was given twice, under two names and with two values.
        UnsupportedOptionError: Apache Hudi knows the option or the value, and pyhudi does not do it yet.
    """
    given = {key.lower(): format_value(value) for key, value in options.items() if value is not None}
    if "provider" in given:
        raise UnsupportedOptionError(
            "A Hudi table cannot be put into Spark's catalog by CREATE TABLE … USING pyhudi: Spark tells a Python data "
            "source neither path nor options when such a table is used.",
            "Use spark.read.format('pyhudi').load(path), or CREATE TEMPORARY VIEW … USING pyhudi OPTIONS (path '…').",
        )
    prefix = given.get(_EXTRA["metadata_prefix"]["key"], HudiOptions.model_fields["metadata_prefix"].default)
    values: dict[str, Any] = {"storage_options": {}, "extra_metadata": {}}
    said_by: dict[str, str] = {}
    notices: list[tuple[str, str, KnownKey]] = []
    for key, text in given.items():
        name = _NAMES.get(key)
        if name is not None:
            _add(values, said_by, name, key, text)
        elif key.startswith(STORAGE_PREFIX):
            values["storage_options"][key[len(STORAGE_PREFIX) :]] = text
        elif prefix and key.startswith(prefix) and not key.startswith(_PRIVATE):
            values["extra_metadata"][key] = text
        elif (known := find_known(key)) is not None:
            _check_known(key, text, known)
            notices.append((key, text, known))
        else:
            raise _unknown(key)
    _check_together(values, said_by)
    _notify(notices, warn)
    return HudiOptions().model_copy(update=values)


def format_value(value: Any) -> str:
    """Return an option's value as the text that Spark carries."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


def _add(values: dict[str, Any], said_by: dict[str, str], name: str, key: str, text: str) -> None:
    value = _parse(name, key, text)
    if name in values and values[name] != value:
        raise OptionConflictError(
            f"{said_by[name]} and {key} are two names of one option and were given two values, "
            f"{_shown(values[name])} and {_shown(value)}.",
            "Give only one of them.",
        )
    values.setdefault(name, value)
    said_by.setdefault(name, key)


def _parse(name: str, key: str, text: str) -> Any:
    try:
        value = getattr(HudiOptions.model_validate({name: text}), name)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise InvalidOptionError(
            f"The option {key}={text!r} cannot be used: {reason}. {HudiOptions.model_fields[name].description}",
            "Correct the value or leave the option out.",
        ) from error
    supported = _EXTRA[name].get("supported")
    if supported is not None and value not in supported:
        raise UnsupportedOptionError(
            f"The option {key}={text!r} asks for something that pyhudi does not do yet.",
            f"Use {_EXTRA[name]['instead'] or _either(supported)}, or Apache Hudi.",
        )
    return value


def _check_known(key: str, text: str, known: KnownKey) -> None:
    if known.effect is Effect.REFUSED and text.strip().lower() not in {known.default, ""}:
        raise UnsupportedOptionError(
            f"The option {key}={text!r} of Apache Hudi is not done by pyhudi yet: {known.why}.",
            "Leave the option out if that will do; use Apache Hudi if it will not.",
        )


def _check_together(values: Mapping[str, Any], said_by: Mapping[str, str]) -> None:
    for one, other in (("merge_mode", "payload_mode"), ("key_generator_type", "key_generator_class")):
        if one in values and other in values and values[one] != values[other]:
            raise OptionConflictError(
                f"{said_by[one]} says {_shown(values[one])} and {said_by[other]} means {_shown(values[other])}.",
                "Give only one of them.",
            )


def _unknown(key: str) -> UnknownOptionError:
    candidates = [*_NAMES, *CATALOGUE]
    near = difflib.get_close_matches(key, candidates, n=1, cutoff=0.6)
    hint = f"Did you mean {near[0]}? Correct" if near else "Correct"
    return UnknownOptionError(f"There is no option {key!r}.", f"{hint} the name, or leave the option out.")


def _notify(notices: Iterable[tuple[str, str, KnownKey]], warn: bool) -> None:
    for key, text, known in notices:
        if known.effect is Effect.NOT_DONE and text.strip().lower() != "false":
            message = f"The option {key}={text} is accepted, but pyhudi does not do it yet: {known.why}."
            if warn:
                warnings.warn(message, PyHudiWarning, stacklevel=4)
            if key not in _told:
                logger.warning(message)
        elif known.effect is Effect.NO_MEANING and key not in _told:
            logger.info("The option %s has no meaning for pyhudi: %s.", key, known.why)
        _told.add(key)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return repr(",".join(value))
    return repr(getattr(value, "value", value))


def _either(values: Iterable[Any]) -> str:
    words = list(map(str, values))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
