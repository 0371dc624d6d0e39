"""The options of pyhudi: their names, their scopes, their descriptions."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from . import types as option_types
from .catalogue import CATALOGUE, Effect, Scope
from .model import PARTS, HudiOptions


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """One option as its documentation shows it.

    Attributes:
        name: The field of `HudiOptions`.
        otherwise: What a default of None means, in words; empty for nothing.
        supported: The values that pyhudi does, if Apache Hudi has more.
        unsupported: Apache Hudi's values that pyhudi does not do, if ``supported`` does not list all valid values.
        instead: What to use in place of an unsupported value, or of each.
        since: The first version of pyhudi that has it.
    """

    name: str
    scope: Scope
    key: str
    aliases: tuple[str, ...]
    type: str
    default: Any
    otherwise: str
    supported: tuple[Any, ...] | None
    unsupported: tuple[Any, ...]
    instead: str | Mapping[str, str] | None
    doc: str
    since: str

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.key, *self.aliases)

    def is_done(self, value: Any) -> bool:
        """Return whether pyhudi does what a valid value asks."""
        if self.unsupported:
            return value not in self.unsupported
        return self.supported is None or value in self.supported


def describe_options() -> list[OptionInfo]:
    """Return every option of pyhudi, in the order of the model."""
    return list(OPTIONS.values())


def name_of(key: str) -> str | None:
    """Return the field of `HudiOptions` that a lower-case key fills; None if it fills none."""
    return _NAMES.get(key)


def nearest(key: str) -> str | None:
    """Return the accepted key that a misspelt key resembles most; None if it resembles none."""
    # A key of Apache Hudi that pyhudi refuses would be no help.
    accepted = (name for name, known in CATALOGUE.items() if known.effect is not Effect.REFUSED)
    near = difflib.get_close_matches(key, [*_NAMES, *accepted], n=1, cutoff=0.6)
    return near[0] if near else None


def either(values: Iterable[Any]) -> str:
    """Return the values as a list for people: a, b or c."""
    words = list(map(str, values))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _describe(scope: Scope, name: str, annotation: str) -> OptionInfo:
    """Return the description of the field ``name`` of `HudiOptions`; ``annotation`` is the text of the field's type.

    ``scope`` says what the option is for, such as the table or one write.
    """
    field, extra = HudiOptions.model_fields[name], _schema_extra(name)
    supported = extra.get("supported")
    return OptionInfo(
        name=name,
        scope=scope,
        key=extra["key"],
        aliases=tuple(extra["aliases"]),
        type=_type_words(annotation.replace(" | None", ""), supported),
        default=field.default,
        otherwise=extra["otherwise"],
        supported=None if supported is None else tuple(supported),
        unsupported=tuple(extra.get("unsupported", ())),
        instead=extra.get("instead"),
        doc=field.description or "",
        since=extra["since"],
    )


def _schema_extra(name: str) -> dict[str, Any]:
    """Return what `option` noted of a field."""
    return cast("dict[str, Any]", HudiOptions.model_fields[name].json_schema_extra or {})


def _type_words(annotation: str, supported: Iterable[Any] | None) -> str:
    """Return the words for the type of an option: a general word, or its values."""
    # A number of which pyhudi does some values alone is described by these values.
    if annotation in _TYPE_WORDS and (annotation != "int" or supported is None):
        return _TYPE_WORDS[annotation]
    # Any other annotation names a type of `types` that is made of a Literal, whose values these are.
    return either(supported or get_args(get_args(getattr(option_types, annotation))[0]))


_TYPE_WORDS = {
    "str": "text",
    "bool": "true or false",
    "int": "number",
    "Count": "number",
    "Threshold": "number",
    "Pattern": "regular expression",
    "Buckets": "number",
    "Annotated[float, Field(ge=0)]": "number",
    "Size": "bytes, or a number with k, m or g",
    "SizeOrNone": "bytes, or a number with k, m or g",
    "Share": "number",
    "IndexType": "BUCKET, SIMPLE, GLOBAL_SIMPLE, BLOOM, GLOBAL_BLOOM or [your own](indexes.md#an-index-of-your-own)",
    "Fields": "column names, separated by commas",
    "PartitionFields": "column names, separated by commas",
    "Patterns": "partition paths, separated by commas",
    "Generator": "SIMPLE, COMPLEX, NON_PARTITION, TIMESTAMP or CUSTOM, or a Java class",
    "PayloadName": "Java class",
    "PathGlob": "path pattern",
    "QueryTime": "time, see [Times](times.md)",
    "StreamStart": "time, see [Times](times.md), or `earliest` or `latest`",
    "QueryBegin": "time, see [Times](times.md), or `earliest`",
}

OPTIONS: dict[str, OptionInfo] = {
    name: _describe(scope, name, kind)
    for scope, part in PARTS.items()
    for name, kind in part.__annotations__.items()
    if "key" in _schema_extra(name)
}
_NAMES: dict[str, str] = {key: name for name, info in OPTIONS.items() for key in info.keys}
