"""What options say of cleaning, archiving and streams: Apache Hudi's names, defaults and rules."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest
from pyhudi.errors import InvalidOptionError, OptionConflictError, UnsupportedOptionError
from pyhudi.operations.service_settings import (
    LOG_COUNT,
    NUM_OR_TIME,
    ArchiveSettings,
    CleanSettings,
    CompactionSettings,
    Upkeep,
)
from pyhudi.operations.streams.batch import StreamSettings
from pyhudi.options.parsing import parse_options


def upkeep(**given: object) -> Upkeep:
    """What a write is told of upkeep; ``a__b`` stands for ``hoodie.a.b``."""
    options = {f"hoodie.{name.replace('__', '.')}": value for name, value in given.items()}
    return parse_options(options).to_write_request("/t", pa.schema([]), overwrite=False).write.upkeep


def test_nothing_said_is_apache_hudis_default() -> None:
    assert upkeep() == Upkeep()


def test_every_setting_has_its_option() -> None:
    given = upkeep(
        clean__automatic=False,
        clean__policy="keep_latest_by_hours",
        clean__commits__retained=4,
        clean__fileversions__retained=5,
        clean__hours__retained=6,
        clean__trigger__max__commits=7,
        clean__trigger__strategy="num_commits",
        clean__incremental__enabled=False,
        archive__automatic=False,
        keep__min__commits=8,
        keep__max__commits=9,
        timeline__compaction__batch__size=2,
    )

    assert given == Upkeep(
        CleanSettings(False, "KEEP_LATEST_BY_HOURS", 4, 5, 6, 7, False), ArchiveSettings(False, 8, 9, 2)
    )


def test_the_older_names_say_the_same() -> None:
    given = upkeep(
        cleaner__policy="KEEP_LATEST_FILE_VERSIONS",
        cleaner__commits__retained=4,
        cleaner__fileversions__retained=5,
        cleaner__hours__retained=6,
        clean__max__commits=7,
        cleaner__incremental__mode=False,
    )

    assert given.clean == CleanSettings(True, "KEEP_LATEST_FILE_VERSIONS", 4, 5, 6, 7, False)


def test_every_setting_of_a_compaction_has_its_option() -> None:
    given = upkeep(
        compact__inline=False,
        compact__schedule__inline=True,
        compact__inline__trigger__strategy="num_or_time",
        compact__inline__max__delta__commits=2,
        compact__inline__max__delta__seconds=3,
        compaction__strategy="org.apache.hudi.table.action.compact.strategy.LogFileNumBasedCompactionStrategy",
        compaction__target__io=4,
        compaction__logfile__size__threshold=5,
        compaction__logfile__num__threshold=6,
        compaction__daybased__target__partitions=7,
        compaction__partition__path__regex="^a/",
    )

    assert given.compaction == CompactionSettings(False, True, NUM_OR_TIME, 2, 3, LOG_COUNT, 4, 5, 6, 7, "^a/")


def test_a_strategy_that_pyhudi_does_not_do_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedOptionError, match="CompositeCompactionStrategy"):
        upkeep(compaction__strategy="CompositeCompactionStrategy")
    with pytest.raises(InvalidOptionError, match="regular expression"):
        upkeep(compaction__partition__path__regex="(")


def test_without_table_services_a_write_does_none_of_them() -> None:
    given = upkeep(table__services__enabled=False, compact__schedule__inline=True)

    assert not given.clean.automatic
    assert not given.archive.automatic
    assert not given.compaction.inline
    assert not given.compaction.schedule_inline


def test_archiving_must_not_begin_with_what_it_leaves() -> None:
    with pytest.raises(OptionConflictError, match=r"keep\.max\.commits is 20 and hoodie\.keep\.min\.commits is 20"):
        upkeep(keep__max__commits=20)


@pytest.mark.parametrize(("least", "kept"), [(3, 5), (5, 5), (6, 6)])
def test_commits_whose_slices_are_kept_stay_on_the_timeline(
    least: int, kept: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Apache Hudi's archiver adds as many, to the least and to the most."""
    with caplog.at_level(logging.WARNING, "pyhudi"):
        given = upkeep(clean__commits__retained=3, keep__min__commits=least, keep__max__commits=least + 2)

    assert (given.archive.min_commits, given.archive.max_commits) == (kept, kept + 2)
    assert ("5 commits stay on the timeline" in caplog.text) == (least == 3)


@pytest.mark.parametrize(
    ("trigger", "kept"),
    [
        ("NUM_COMMITS", 7),
        ("NUM_COMMITS_AFTER_LAST_REQUEST", 7),
        ("NUM_AND_TIME", 7),
        ("NUM_OR_TIME", 7),
        ("TIME_ELAPSED", None),
    ],
)
def test_delta_commits_stay_where_somebody_counts_them(trigger: str, kept: int | None) -> None:
    given = upkeep(compact__inline__trigger__strategy=trigger, compact__inline__max__delta__commits=7)

    assert given.archive.delta_commits == kept


def test_slices_kept_by_their_number_keep_no_commits_on_the_timeline() -> None:
    given = upkeep(clean__policy="KEEP_LATEST_FILE_VERSIONS", keep__min__commits=2, keep__max__commits=3)

    assert given.archive == ArchiveSettings(True, 2, 3)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("hoodie.clean.policy", "KEEP_ALL"),
        ("hoodie.clean.commits.retained", "0"),
        ("hoodie.keep.min.commits", "many"),
        ("hoodie.clean.trigger.strategy", "TIME_ELAPSED"),
    ],
)
def test_what_no_clean_can_do_is_no_value(key: str, text: str) -> None:
    with pytest.raises(InvalidOptionError, match=key):
        parse_options({key: text})


def test_a_clean_of_some_partitions_alone_is_refused() -> None:
    """It would delete from the others too."""
    with pytest.raises(UnsupportedOptionError, match="would delete more than the option allows"):
        parse_options({"hoodie.clean.partition.filter.selected": "2024"})


def test_every_setting_of_a_stream_has_its_option() -> None:
    said = {
        "hoodie.datasource.write.streaming.checkpoint.identifier": "trips",
        "hoodie.datasource.write.streaming.retry.count": "4",
        "hoodie.datasource.write.streaming.retry.interval.ms": "500",
        "hoodie.datasource.write.streaming.ignore.failed.batch": "true",
        "hoodie.datasource.write.streaming.disable.compaction": "true",
        "hoodie.pyhudi.stream.upkeep.ms": "250",
    }

    settings = parse_options(said).stream_settings()

    assert settings == StreamSettings("trips", 4, 0.5, ignores_failures=True, compacts=False, upkeep_s=0.25)
    assert [settings.wait_s(number) for number in range(3)] == [0.5, 1.0, 2.0]
    assert parse_options({}).stream_settings() == StreamSettings()
    assert not parse_options({"hoodie.datasource.compaction.async.enable": "false"}).stream_settings().compacts


def test_the_bytes_that_known_keys_may_take_are_those_of_the_option() -> None:
    request = parse_options({"hoodie.pyhudi.index.cache.bytes": "64m"}).to_write_request(
        "/t", pa.schema([]), overwrite=False
    )

    assert request.write.lookup.cache_bytes == 64 << 20
