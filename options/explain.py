"""What `HudiTable.explain_options` shows: each option, its value, and where the value comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..errors import OptionError
from ..operations.words.text import html_table
from ..table.config import TableConfig
from .catalogue import Effect, Scope, find_known
from .lookup import INDEX_PREFIX
from .names import OPTIONS, OptionInfo, name_of
from .parsing import format_value, parse_options
from .secrets import STORAGE_PREFIX, masked
from .sources import GivenOption, ResolvedOptions

DEFAULT = "default"
# Options of the table from which a write may differ.
_OF_EACH_WRITE = {"isolation"}
TABLE = "the table's hoodie.properties"
GIVEN = "given"

_COLUMNS = ("option", "value", "from", "note")
_NOTES = {Effect.REFUSED: "", Effect.NOT_DONE: "not done: ", Effect.NO_MEANING: "without a meaning here: "}


@dataclass(frozen=True, slots=True)
class ExplainedOption:
    """One option of one table.

    Attributes:
        key: Apache Hudi's key if it has one.
        value: Text; empty if there is none. Secrets are starred out.
        source: ``given``, a setting of the session, a line of a defaults file, the table, or ``default``.
        note: Why the value is not used, or what else a user has to know.
    """

    key: str
    value: str
    source: str
    note: str = ""


class ExplainedOptions(tuple[ExplainedOption, ...]):
    """The options of one table, printed as a table of text and shown by notebooks as a table of HTML."""

    __slots__ = ()

    def find(self, key: str) -> ExplainedOption:
        """Return an option under any of its names, with the value that counts; raise KeyError if there is none."""
        lower = key.lower()
        names = {lower, OPTIONS[str(name_of(lower))].key} if name_of(lower) else {lower}
        for option in self:
            if option.key in names and not option.note.startswith("not used"):
                return option
        raise KeyError(key)

    def __repr__(self) -> str:
        rows = [_COLUMNS, *_cells(self)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
        rows.insert(1, tuple("-" * width for width in widths))
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return html_table(_COLUMNS, _cells(self))


def explain(resolved: ResolvedOptions, config: TableConfig | None, *, defaults: bool = True) -> ExplainedOptions:
    """Return each option with its value and source, without the unset options if ``defaults`` is False."""
    rows = [_explain(info, resolved, config) for info in OPTIONS.values()]
    rows += [_explain_other(option) for key, option in resolved.counting.items() if name_of(key) is None]
    rows += [
        ExplainedOption(
            _key_of(option.key), masked(option.key, option.text), option.place, f"not used: {option.unused}"
        )
        for option in resolved.unused
    ]
    return ExplainedOptions(row for row in rows if defaults or row.source != DEFAULT)


def _explain(info: OptionInfo, resolved: ResolvedOptions, config: TableConfig | None) -> ExplainedOption:
    """Explain an option of pyhudi: the value that counts, its source, and whether the table has another."""
    given = next((resolved.counting[key] for key in info.keys if key in resolved.counting), None)
    stored_text = next((config.properties[key] for key in info.keys if config and key in config.properties), None)
    in_table = info.scope is Scope.TABLE and stored_text is not None
    if given is None:
        value = stored_text if in_table else _default(info)
        return ExplainedOption(info.key, value or "", TABLE if in_table else DEFAULT)
    # The user gave the option under another of its names.
    notes = [f"as {given.key}"] if given.key != info.key else []
    if in_table and not _agree(info, given, str(stored_text)):
        refused = "" if info.name in _OF_EACH_WRITE else ", so that a write would be refused"
        notes.append(f"the table has {stored_text}{refused}")
    return ExplainedOption(info.key, masked(given.key, given.text), given.place or GIVEN, "; ".join(notes))


def _explain_other(given: GivenOption) -> ExplainedOption:
    """Explain an option that is none of pyhudi's own."""
    entry = find_known(given.key)
    note = ""
    if entry is not None:
        note = f"{_NOTES[entry.effect]}{entry.why}"
    elif not given.key.startswith((STORAGE_PREFIX, INDEX_PREFIX)):
        note = "kept in the commit's extra metadata"
    return ExplainedOption(given.key, masked(given.key, given.text), given.place or GIVEN, note)


def _agree(info: OptionInfo, given: GivenOption, stored_text: str) -> bool:
    """Return whether a given value and the table's value of an option mean the same."""
    try:
        given_value, stored_value = (
            getattr(parse_options({info.key: text}), info.name) for text in (given.text, stored_text)
        )
    except OptionError:
        return given.text == stored_text
    return bool(given_value == stored_value)


def _default(info: OptionInfo) -> str:
    """Return the text of a default, or the words for a default that is no value."""
    return info.otherwise if info.default is None else format_value(info.default)


def _key_of(key: str) -> str:
    """Return Apache Hudi's key of an option under any name; other keys stay."""
    name = name_of(key)
    return OPTIONS[name].key if name else key


def _cells(rows: Iterable[ExplainedOption]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        yield row.key, row.value or "–", row.source, row.note
