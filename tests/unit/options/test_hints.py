"""What somebody reads who types another system's option: each hint names options that can be given, and they work."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from pyhudi.errors import UnknownOptionError
from pyhudi.options.catalogue import CATALOGUE, Effect, find_known
from pyhudi.options.hints import FAMILIES, HINTS, Hint, find_hint
from pyhudi.options.names import OPTIONS, name_of, nearest
from pyhudi.options.parsing import is_metadata, parse_options

EVERY = {**HINTS, **{f"{prefix}whatever": hint for prefix, hint in FAMILIES.items()}}
# What people give, and what nobody would.
GIVEN = [
    "true",
    "256",
    "0.5",
    "2026-11-21",
    "1795249815123",
    "DYNAMIC",
    "snappy",
    "upsert",
    "id,ts",
    "?",
    "",
    "{}",
    "-1",
]
# Where a hint leaves the value to the reader.
CHOSEN = {
    "as_of": "20261121083015123",
    "begin_time": "earliest",
    "end_time": "2026-11-21",
    "buckets": "8",
    "index_type": "BLOOM",
    "max_file_size": "120m",
    "write_id": "nightly-7",
    "based_on": "20261121083015123",
    "clean_commits": "20",
    "clean_hours": "48",
    "clean_file_versions": "2",
    "table_type": "MERGE_ON_READ",
    "clean_policy": "KEEP_LATEST_BY_HOURS",
    "keep_min_commits": "40",
    "keep_max_commits": "50",
}
NAMED = re.compile(r"\b(?:hoodie\.[\w.]+\w|as\.of\.instant|_note)")


def said(key: str, text: str) -> str:
    with pytest.raises(UnknownOptionError) as raised:
        parse_options({key: text})
    return f"{raised.value.what} {raised.value.todo}"


def is_refused(key: str) -> bool:
    known = None if name_of(key) else find_known(key)
    return known is not None and known.effect is Effect.REFUSED


@pytest.mark.parametrize("key", EVERY)
def test_what_a_hint_names_can_be_given_as_it_stands(key: str) -> None:
    for text in GIVEN:
        hint = EVERY[key]
        named = hint.options_with_values(text)
        message = said(key, text)

        assert set(NAMED.findall(message.replace(f"{key!r}", ""))) == {one for one, _ in named}
        chosen = {one: value or CHOSEN.get(str(name_of(one)), "") for one, value in named}
        parse_options({one: value for one, value in chosen.items() if value})
        for option, value in named:
            assert name_of(option) or is_metadata(option, "_")
            assert (f"{option}={value}" if value else option) in message


@pytest.mark.parametrize("key", EVERY)
def test_a_hint_is_about_something_else_than_our_own_options(key: str) -> None:
    assert name_of(key) is None
    assert find_known(key) is None


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("mergeSchema", "true", "hoodie.datasource.write.reconcile.schema=true lets its rows lack columns"),
        ("overwriteSchema", "true", "mode overwrite replaces the columns"),
        ("timestampAsOf", "2026-11-21 08:00:00", "as.of.instant=2026-11-21 08:00:00 shows"),
        ("timestampAsOf", "yesterday", "as.of.instant shows"),
        ("versionAsOf", "3", "as.of.instant takes the instant of a commit"),
        ("replaceWhere", "p = 'x'", "hoodie.datasource.write.operation=insert_overwrite with mode overwrite"),
        ("partitionOverwriteMode", "DYNAMIC", "hoodie.datasource.overwrite.mode=dynamic"),
        ("as-of-timestamp", "1795249815123", "as.of.instant=1795249815123"),
        ("snapshot-id", "10963874102873", "as.of.instant takes"),
        ("write.batch.size", "256", "hoodie.write.batch.size=256m does"),
        ("write.batch.size", "256.0", "hoodie.write.batch.size=256m does"),
        ("write.batch.size", "0.5", "hoodie.write.batch.size=512k does"),
        ("write.batch.size", "0.0001", "hoodie.write.batch.size=105 does"),
        ("write.task.max.size", "1024", "hoodie.write.task.max.size=1g does"),
        ("write.task.max.size", "1024.5", "hoodie.write.task.max.size=1049088k does"),
        ("write.task.max.size", "much", "hoodie.write.task.max.size does"),
        ("write.task.max.size", "inf", "hoodie.write.task.max.size does"),
        ("write.parquet.block.size", "120", "hoodie.parquet.block.size=120m"),
        (
            "table.type",
            "mor",
            "hoodie.datasource.write.table.type=MERGE_ON_READ does that here, when the table is made",
        ),
        ("table.type", "?", "hoodie.datasource.write.table.type does"),
        ("write.merge.mode", "copy-on-write", "hoodie.datasource.write.table.type=COPY_ON_WRITE does"),
        ("compaction.max_memory", "100", "Flink's compaction"),
        ("compaction.delta_commits", "3", "hoodie.compact.inline.max.delta.commits=3 does"),
        ("compaction.trigger.strategy", "num_or_time", "hoodie.compact.inline.trigger.strategy=NUM_OR_TIME does"),
        ("compaction.trigger.strategy", "?", "hoodie.compact.inline.trigger.strategy does"),
        ("compaction.async.enabled", "false", "unless hoodie.compact.inline=false"),
        ("compaction.schedule.enabled", "true", "hoodie.compact.schedule.inline=true plans"),
        ("index.type", "bloom", "hoodie.index.type=BLOOM does that here"),
        ("index.type", "FLINK_STATE", "hoodie.index.type does that here"),
        ("write.parquet.max.file.size", "120", "hoodie.parquet.max.file.size=120m is the size up to which"),
        ("write.target-file-size-bytes", "536870912", "hoodie.parquet.max.file.size=536870912 is"),
        ("payload.class", "org.apache.hudi.payload.AWSDmsAvroPayload", "payload.class=org.apache"),
        ("payload.class", "com.example.Mine", "hoodie.datasource.write.payload.class does"),
        ("preCombineField", "ts", "hoodie.table.ordering.fields=ts"),
    ],
)
def test_a_habit_is_told_what_does_that_here(key: str, text: str, words: str) -> None:
    message = said(key, text)

    assert words in message
    assert f"{key.lower()!r}, which belongs to " in message


def test_a_size_means_as_many_bytes_here_as_in_flink() -> None:
    for text, size in {"256": 1 << 28, "0.5": 1 << 19, "1.5": 3 << 19}.items():
        hint = find_hint("write.batch.size")
        assert hint is not None

        assert parse_options(dict(hint.options_with_values(text))).batch_size == size


REFUSED = [key for key, known in CATALOGUE.items() if known.effect is Effect.REFUSED]


@pytest.mark.parametrize("key", REFUSED[::6])
def test_no_slip_of_the_pen_leads_to_an_option_that_is_refused(key: str) -> None:
    near = nearest(key[:-1])

    assert near is None or not is_refused(near)


def test_what_to_use_in_place_of_a_value_is_a_value_that_is_done() -> None:
    for option in OPTIONS.values():
        words = option.instead.values() if isinstance(option.instead, Mapping) else [option.instead or ""]
        for first in (one.replace(",", " ").split(" ")[0] for one in words if one):
            assert first == "mode" or first in (option.supported or ())


def test_no_reason_for_refusing_an_option_sends_to_another() -> None:
    assert [known.why for known in CATALOGUE.values() if NAMED.search(known.why)] == []


def test_a_hint_without_options_says_that_the_option_goes() -> None:
    silent: list[Hint] = [hint for hint in EVERY.values() if not hint.options]

    assert all(hint.words.startswith("Leave it out: ") for hint in silent)
