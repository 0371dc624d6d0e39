from __future__ import annotations

from pathlib import Path

import pytest
from pyhudi.options.catalogue import CATALOGUE, FAMILIES, Effect, find_known
from pyhudi.options.names import describe_options
from pyhudi.options.parsing import format_value, parse_options

LIST = Path(__file__).parents[2] / "fixtures" / "options" / "hudi-1.2.0.tsv"
OURS = {name for info in describe_options() for name in (info.key, *info.aliases)}
# Where we chose another default than Apache Hudi, or none; docs/options.md shows theirs beside ours.
CHOSEN = {
    "key_generator_type",  # theirs is SIMPLE in name and inferred from the columns in fact
    "key_generator_class",
    "combine_before_insert",  # theirs is false in name, and true beside insert.drop.duplicates
    "buckets",  # theirs is 256 a partition, which makes very small files
    "time_input_zone",  # theirs and the next are UTC in name and that of the machine in fact
    "time_zone",
    "timezone",  # times in UTC mean the same on every machine
    "index_column_stats",  # theirs is false in name, and true where Spark writes
    "metadata_enable",  # theirs is true, by which each table gets a metadata table
    "failed_writes",  # theirs takes any pending write for dead, also one that is alive
    "concurrency_mode",  # theirs lets two writers lose rows without a word
    "compression",  # smaller and faster than gzip
    "bloom_filter",  # as the index asks it
    "filter_false_positives",  # the same number, spelt otherwise
    "application",
    "compact_inline",  # theirs is false in name, and true where Spark writes to a merge-on-read table
    "compaction_strategy",  # the same class, without its package
    "incremental_full_scan",  # theirs searches the newest snapshot and so misses what changed since
}
# A family of which pyhudi does some members, which are looked for first.
OF_OLDER_RELEASES = {key for key in OURS if key.startswith("hoodie.deltastreamer.keygen.timebased.")}
# Apache Hudi has two opinions of these.
TWO_DEFAULTS = {"hoodie.parquet.writelegacyformat.enabled"}


def declared() -> list[tuple[str, str]]:
    """Every key that Apache Hudi declares, alternatives too, lower-case, with its default."""
    lines = [line.split("\t") for line in LIST.read_text(encoding="utf-8").splitlines()]
    return [(name.lower(), default) for key, default, others in lines for name in (key, *others.split(",")) if name]


def test_every_option_of_apache_hudi_is_known() -> None:
    unknown = {key for key, _ in declared() if key not in OURS and find_known(key) is None}

    assert len(declared()) > 700
    assert unknown == set()


def test_no_option_of_apache_hudi_is_refused_at_its_default() -> None:
    for key, default in declared():
        if key not in OURS and default and not key.startswith("_"):
            parse_options({key: default})


def test_refused_options_carry_apache_hudis_default() -> None:
    defaults = {key: default.lower() for key, default in declared() if default}
    wrong = {
        key: known.default
        for key, known in CATALOGUE.items()
        if known.effect is Effect.REFUSED and key in defaults and key not in TWO_DEFAULTS
        if known.default != defaults[key]
    }

    assert wrong == {}


def test_the_catalogue_holds_none_of_our_own_options() -> None:
    assert OURS & set(CATALOGUE) == set()
    known = OF_OLDER_RELEASES | {"hoodie.write.lock.wait_time_ms"}  # the only one of the locks' that has a meaning
    assert not [key for key in OURS - known for prefix in FAMILIES if key.startswith(prefix)]


def test_defaults_are_those_of_apache_hudi_unless_chosen_otherwise() -> None:
    theirs = {key: default.lower() for key, default in declared() if default}
    ours = {
        info.name: (info.otherwise if info.default is None else format_value(info.default)).lower()
        for info in describe_options()
        if info.key in theirs
    }

    different = {info.name for info in describe_options() if info.key in theirs and ours[info.name] != theirs[info.key]}

    assert len(ours) > 20
    assert different == CHOSEN


def test_every_entry_is_lower_case_and_says_why() -> None:
    assert all(key == key.lower() and known.why for key, known in (*CATALOGUE.items(), *FAMILIES.items()))


@pytest.mark.parametrize(
    ("key", "effect"),
    [
        ("hoodie.clean.async.enabled", Effect.NOT_DONE),
        ("hoodie.clean.partition.filter.regex", Effect.REFUSED),
        ("hoodie.metadata.record.index.enable", Effect.NOT_DONE),
        ("hoodie.datasource.hive_sync.enable", Effect.NOT_DONE),
        ("hoodie.datasource.hive_sync.anything", Effect.NO_MEANING),
        ("hoodie.embed.timeline.server", Effect.NO_MEANING),
        ("hoodie.table.cdc.enabled", Effect.REFUSED),
    ],
)
def test_well_known_options_have_the_effect_that_people_should_expect(key: str, effect: Effect) -> None:
    option = find_known(key)

    assert option is not None
    assert option.effect is effect
