"""Queries that a healthy table refuses, and those that ask for more of its past than it keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pyhudi import errors
from pyhudi.options.parsing import parse_options
from pyhudi.reader.query import AS_OF, BEGIN, END, FULL_SCAN
from pyhudi.reader.snapshot import open_snapshot
from support.bad_inputs.case import GOOD, SCHEMA, Act, Case, ask
from support.drive import write
from support.made.cleaning import archive, clean

TYPE = "hoodie.datasource.query.type"
GLOB = "hoodie.datasource.read.incr.path.glob"
END_SCHEMA = "hoodie.datasource.read.schema.use.end.instanttime"
CHANGES = {TYPE: "incremental"}


def read(given: Mapping[str, object]) -> Callable[[Path], Act]:
    """Read with the options that a user types."""

    def prepare(path: Path) -> Act:
        def act() -> object:
            options = parse_options(given)
            return open_snapshot(str(path), query=options.to_query()).plan(SCHEMA, (), 1 << 20)

        return act

    return prepare


def times_of_the_first(path: Path) -> dict[str, str]:
    first = open_snapshot(str(path)).timeline.writes[0]
    return {"first": first.requested_time, "done": first.visible_since}


def cleaned(given: Mapping[str, object]) -> Callable[[Path], Act]:
    """Read a table that was written twice more and then cleaned, with options that may name its {first} commit."""

    def prepare(path: Path) -> Act:
        times = times_of_the_first(path)
        for _ in range(2):
            write(path, GOOD)
        clean(path, retain=1)
        return read({key: str(value).format(**times) for key, value in given.items()})(path)

    return prepare


def archived(given: Mapping[str, object], *, told: bool = True) -> Callable[[Path], Act]:
    """Read a table of three writes, two of them archived, with options that may name its {first} commit."""

    def prepare(path: Path) -> Act:
        times = times_of_the_first(path)
        for _ in range(2):
            write(path, GOOD)
        archive(path, 2, told=told)
        return read({key: str(value).format(**times) for key, value in given.items()})(path)

    return prepare


def planned_before_a_clean(path: Path) -> Act:
    """Plan a read with the moment of a query, as tasks do, after the files of that moment were cleaned away."""
    moment = open_snapshot(str(path)).timeline.watermark()
    for _ in range(2):
        write(path, GOOD)
    clean(path, retain=1)
    return lambda: open_snapshot(str(path), watermark=moment).plan(SCHEMA, (), 1 << 20)


QUERIES = [
    *(
        Case(f"{key} {text}", errors.InvalidOptionError, (f"{key}={text!r}",), read({**CHANGES, key: text}))
        for key, text in {
            TYPE: "realtime",
            AS_OF: "2026-02-30",
            BEGIN: "latest",
            END: "earliest",
            GLOB: "a[bc",
            FULL_SCAN: "perhaps",
            END_SCHEMA: "sometimes",
        }.items()
    ),
    Case("changes without a begin", errors.MissingOptionError, (BEGIN, "earliest"), read(CHANGES)),
    Case("changes with an end alone", errors.MissingOptionError, (BEGIN,), read({**CHANGES, END: "2026-01-01"})),
    Case(
        "changes as of an instant",
        errors.OptionConflictError,
        (AS_OF, END),
        read({**CHANGES, BEGIN: "0", AS_OF: "2026-01-01"}),
    ),
    *(
        Case(f"{key} of no incremental query", errors.OptionConflictError, (key, f"{TYPE}=incremental"), read(given))
        for key, given in {
            BEGIN: {BEGIN: "000"},
            END: {END: "2026-01-01", TYPE: "snapshot"},
            GLOB: {GLOB: "/a/*", TYPE: "read_optimized"},
            END_SCHEMA: {END_SCHEMA: "true", AS_OF: "2026-01-01"},
        }.items()
    ),
    Case(
        "a window that ends before it begins",
        errors.OptionConflictError,
        ("{path}", "2026-01-02", "2026-01-01", END),
        read({**CHANGES, BEGIN: "2026-01-02", END: "2026-01-01"}),
    ),
    *(
        Case(f"a write with {key}", errors.OptionConflictError, (key, "A write"), ask({**given, key: value}))
        for key, value, given in (
            (TYPE, "incremental", {}),
            (AS_OF, "2026-01-01", {}),
            (BEGIN, "000", CHANGES),
            (END, "2026-01-01", {}),
            (GLOB, "/a/*", {}),
        )
    ),
    Case(
        "as of a time before the table",
        errors.UnreadableTimeError,
        ("{path}", "2020-01-01", "before its timeline begins", "first instant", AS_OF),
        read({AS_OF: "2020-01-01"}),
    ),
    Case(
        "as of an archived commit of which the archive tells nothing",
        errors.UnreadableTimeError,
        ("{path}", "before its timeline begins", "archive does not show that time", "first instant", AS_OF),
        archived({AS_OF: "{first}"}, told=False),
    ),
    Case(
        "changes since an archived commit",
        errors.UnreadableTimeError,
        ("{path}", "the archive does not say", "first readable begin", BEGIN, FULL_SCAN),
        archived({**CHANGES, BEGIN: "{first}"}, told=False),
    ),
    Case(
        "changes until an archived commit",
        errors.UnreadableTimeError,
        ("{path}", "are archived", "first readable end", END),
        archived({**CHANGES, BEGIN: "earliest", END: "{done}"}),
    ),
    Case(
        "as of what was cleaned",
        errors.UnreadableTimeError,
        ("{path}", "cleaning has taken away 2 of the files", "first instant", AS_OF),
        cleaned({AS_OF: "{first}"}),
    ),
    Case(
        "changes that were cleaned",
        errors.UnreadableTimeError,
        ("{path}", "cleaning has taken away 2 of the files", "first readable end", END),
        cleaned({**CHANGES, BEGIN: "earliest", END: "{done}"}),
    ),
    Case(
        "table as it was before it was cleaned",
        errors.UnreadableTimeError,
        ("{path}", "when this DataFrame was made", "Make the DataFrame anew"),
        planned_before_a_clean,
    ),
]
