"""Which rule is in force at a moment: the greatest whose instant is complete then, in the timeline or its archive."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import pytest
from pyhudi.errors import TableConfigError
from pyhudi.storage import Storage, open_storage
from pyhudi.table.buckets.numbers import (
    FIRST,
    BucketRule,
    bucket_numbers,
    delete_bucket_rule,
    rule_files,
    write_bucket_rule,
)
from pyhudi.table.config import create_config
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.table import Table, open_table
from pyhudi.timeline.archive.lsm_writer import Row, append
from pyhudi.timeline.instants import Instant, State

CONFIGS = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
# Requested times, and for each the time of its completion.
EARLY, LATE, LAST = "20260101000000000", "20260201000000000", "20260301000000000"


def done(time: str, action: str = "replacecommit") -> Instant:
    return Instant(time, action, State.COMPLETED, f"{time[:-1]}9")


@pytest.fixture
def storage() -> Iterator[Storage]:
    opened = open_storage(f"memory://{uuid.uuid4().hex}")
    yield opened
    opened.delete_folder("")


def made(storage: Storage, *instants: Instant, version: int = 9) -> Table:
    """Return a table of two buckets with some instants, whose bodies nothing reads here."""
    settings = TableSettings(name="t", record_key_fields=("id",), bucket_count=2, version=version)
    create_config(storage, TableConfig.new(settings))
    table = open_table(storage)
    for one in instants:
        storage.write(table.instants.path(one), b"")
    return table


def in_force(table: Table, path: str = "p") -> int | None:
    return bucket_numbers(table, table.timeline()).of(path)


def test_a_table_without_rules_has_the_number_of_its_properties(storage: Storage) -> None:
    numbers = bucket_numbers(made(storage), made(storage).timeline())

    assert (numbers.of("p"), numbers.default, numbers.unknown) == (2, 2, "")
    assert not numbers.differ
    assert not numbers.by_rule


@pytest.mark.parametrize("version", [8, 9])
def test_the_greatest_completed_rule_counts_at_each_moment(storage: Storage, version: int) -> None:
    table = made(storage, done(EARLY), done(LATE), version=version)
    for rule in (BucketRule(FIRST, 2), BucketRule(EARLY, 4), BucketRule(LATE, 4, (("^p$", 8),))):
        write_bucket_rule(table, rule)
    now = table.timeline()

    assert in_force(table) == 8
    assert bucket_numbers(table, now).of("q") == 4
    assert bucket_numbers(table, now).differ
    assert bucket_numbers(table, now.as_of_request(EARLY)).of("p") == 4
    assert bucket_numbers(table, now.as_of_completion(EARLY)).of("p") == 2
    assert storage.exists(f"{CONFIGS}/{LATE}.hashing_config") == (version == 9)


def test_a_rule_waits_for_the_completed_file_of_its_instant(storage: Storage) -> None:
    pending = Instant(EARLY, "replacecommit", State.INFLIGHT)
    table = made(storage, pending.at(State.REQUESTED))
    write_bucket_rule(table, BucketRule(FIRST, 2))
    steps = [in_force(table)]

    write_bucket_rule(table, BucketRule(EARLY, 4))
    steps.append(in_force(table))
    storage.write(table.instants.path(pending), b"")
    steps.append(in_force(table))
    storage.write(table.instants.path(done(EARLY)), b"")
    steps.append(in_force(table))

    assert steps == [2, 2, 2, 4]


def test_the_rule_of_an_instant_that_was_rolled_back_makes_the_number_unknown(storage: Storage) -> None:
    table = made(storage, done(EARLY, "commit"), done(LAST, "commit"))
    write_bucket_rule(table, BucketRule(FIRST, 2))
    write_bucket_rule(table, BucketRule(LATE, 4))

    numbers = bucket_numbers(table, table.timeline())

    assert numbers.of("p") is None
    assert f"{LATE}.hashing_config" in numbers.unknown
    delete_bucket_rule(table, LATE)
    assert in_force(table) == 2


def test_a_rule_of_pyhudi_alone_is_passed_over_where_its_instant_was_rolled_back(storage: Storage) -> None:
    table = made(storage, done(EARLY, "commit"), version=8)
    write_bucket_rule(table, BucketRule(FIRST, 2))
    write_bucket_rule(table, BucketRule(LATE, 4))

    assert in_force(table) == 2


def test_a_rule_that_came_after_the_timeline_was_read_is_of_a_later_moment(storage: Storage) -> None:
    table = made(storage, done(EARLY, "commit"))
    write_bucket_rule(table, BucketRule(FIRST, 2))
    before = table.timeline()
    write_bucket_rule(table, BucketRule(LATE, 4))
    storage.write(table.instants.path(done(LATE)), b"")

    assert bucket_numbers(table, before).of("p") == 2
    assert in_force(table) == 4


@pytest.mark.parametrize("before", [True, False])
def test_an_archived_rescale_counts_and_an_unknown_older_instant_does_not(storage: Storage, before: bool) -> None:
    table = made(storage, done(LAST, "commit"))
    write_bucket_rule(table, BucketRule(FIRST, 2))
    write_bucket_rule(table, BucketRule(EARLY, 4))
    append(table.archive, [Row(done(EARLY if before else LATE), b"body")])

    # Readers take every instant before the first of the timeline for complete; the archive knows better.
    assert in_force(table) == (4 if before else None)


def test_a_pinned_moment_keeps_its_number_after_archiving(storage: Storage) -> None:
    table = made(storage, done(EARLY, "commit"))
    write_bucket_rule(table, BucketRule(FIRST, 2))
    pinned = table.timeline().watermark()
    write_bucket_rule(table, BucketRule(LATE, 4))
    append(table.archive, [Row(done(EARLY, "commit"), b"body"), Row(done(LATE), b"body")])
    storage.delete(table.instants.path(done(EARLY, "commit")))
    storage.write(table.instants.path(done(LAST, "commit")), b"")
    now = table.timeline()
    then = now.as_of(table.archive.seen_at(now, pinned))

    assert bucket_numbers(table, then).of("p") == 2
    assert bucket_numbers(table, now).of("p") == 4


def test_a_first_rescale_of_apache_hudi_leaves_no_number_for_the_time_before(storage: Storage) -> None:
    table = made(storage, Instant(EARLY, "replacecommit", State.INFLIGHT))
    write_bucket_rule(table, BucketRule(EARLY, 4))

    numbers = bucket_numbers(table, table.timeline())

    assert numbers.of("p") is None
    assert EARLY in numbers.unknown


def test_rules_that_apache_hudi_archived_still_tell_the_past(storage: Storage) -> None:
    table = made(storage, done(EARLY), done(LATE))
    for time, number in ((FIRST, 2), (EARLY, 4)):
        write_bucket_rule(table, BucketRule(time, number))
        path = f"{CONFIGS}/{time}.hashing_config"
        storage.write(path.replace("configs", "archive"), storage.read(path))
        storage.delete(path)
    write_bucket_rule(table, BucketRule(LATE, 8))

    assert in_force(table) == 8
    assert bucket_numbers(table, table.timeline().as_of_request(EARLY)).of("p") == 4


def test_a_damaged_rule_and_a_newer_format_are_named_and_no_number_is_guessed(storage: Storage) -> None:
    table = made(storage, done(EARLY), version=8)
    path = f".hoodie/.pyhudi/buckets/{EARLY}.json"
    storage.write(path, b"{")
    damaged = bucket_numbers(table, table.timeline())
    content = json.loads(BucketRule(EARLY, 4).encode(own=True))
    storage.write(path, json.dumps({**content, "format": 99}).encode())
    newer = bucket_numbers(table, table.timeline())

    assert path in damaged.unknown
    assert path in newer.unknown
    assert damaged.of("p") is newer.of("p") is None


def test_a_rule_is_made_once(storage: Storage) -> None:
    table = made(storage)
    for _ in range(2):
        write_bucket_rule(table, BucketRule(EARLY, 4, (("^p$", 8),)))
    path = f"{CONFIGS}/{EARLY}.hashing_config"
    compact = json.dumps(json.loads(storage.read(path)), separators=(",", ":")).encode()
    storage.write(path, compact)
    write_bucket_rule(table, BucketRule(EARLY, 4, (("^p$", 8),)))

    assert storage.read(path) == compact
    with pytest.raises(TableConfigError, match="says other numbers"):
        write_bucket_rule(table, BucketRule(EARLY, 5))


def test_other_files_beside_the_rules_are_no_rules(storage: Storage) -> None:
    table = made(storage)
    write_bucket_rule(table, BucketRule(FIRST, 3))
    for name in ("x.hashing_config", f"{EARLY}.tmp"):
        storage.write(f"{CONFIGS}/{name}", b"")

    assert [one.instant_time for one in rule_files(table)] == [FIRST]
    assert in_force(table) == 3


def test_a_table_made_in_version_8_keeps_its_own_rules_after_an_upgrade(storage: Storage) -> None:
    table = made(storage, done(EARLY), version=8)
    write_bucket_rule(table, BucketRule(EARLY, 4))
    upgraded = Table(storage, TableConfig({**table.config.properties, "hoodie.table.version": "9"}))

    assert bucket_numbers(upgraded, upgraded.timeline()).of("p") == 4
