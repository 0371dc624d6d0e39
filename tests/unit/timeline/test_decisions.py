from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi.storage.local import LocalStorage
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.writers import decisions
from pyhudi.timeline.writers.decisions import BucketRuleText, Decision, DecisionKind
from pyhudi.timeline.writers.first_steps import (
    MOST_TO_MAKE,
    DeleteFile,
    FirstSteps,
    MakeFile,
    PublishFile,
    ReplaceFile,
)

T, LATER = "20261120224644250", "20261120224645000"
DONE = Instant(T, "commit", State.COMPLETED, LATER)
COMMIT = Decision(
    DecisionKind.MAKE, DONE, b"a body\nof \x00 bytes", {"hoodie.table.name": "t"}, {"a": "b", "c": None}, maker="m"
)
FIRST = FirstSteps(
    (MakeFile(".hoodie/a/b", b"\x00\xff"), PublishFile("n-b", ".hoodie/a/c", 3, 7)),
    {"hoodie.x": "", "hoodie.y": None},
    ("files",),
    ("column_stats",),
    ("partition_stats",),
)
FOLLOWED = replace(COMMIT, first=(FIRST, FirstSteps(())))


@pytest.mark.parametrize(
    "decision",
    [
        COMMIT,
        FOLLOWED,
        Decision(DecisionKind.MAKE, Instant(T, "rollback", State.REQUESTED), b""),
        Decision(DecisionKind.GIVE_UP, Instant(T, "replacecommit", State.INFLIGHT)),
        Decision(DecisionKind.CLOSE, Instant(T, "commit", State.INFLIGHT), partitions=("", "a/b", "ü")),
    ],
    ids=["commit", "commit with first steps", "rollback", "give up", "close"],
)
def test_a_decision_is_read_as_it_was_written(decision: Decision) -> None:
    assert Decision.parse(decision.encode()) == decision


def test_a_decision_that_is_not_whole_is_none() -> None:
    """Half of it, or one damaged byte, must not become the body of a completed file, or another file's name."""
    data = COMMIT.encode()

    assert [size for size in range(len(data)) if Decision.parse(data[:size]) is not None] == []
    flipped = [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(len(data))]
    assert [at for at, one in enumerate(flipped) if Decision.parse(one) is not None] == []


def test_a_decision_of_a_newer_format_is_none_and_tells_its_number() -> None:
    """Whatever it says: its first line is all that releases have in common."""
    head, _, body = COMMIT.encode().partition(b"\n")[2].partition(b"\n")
    fields = json.loads(head)
    assert fields["format"] == 1
    for later in ({**fields, "format": 5}, {"format": 5, "does": "something new"}):
        content = json.dumps(later).encode() + b"\n" + body
        data = f"{zlib.crc32(content):08x}\n".encode() + content

        assert Decision.parse(data) is None
        assert decisions.format_of(data) == 5
    assert decisions.format_of(COMMIT.encode()) == 1
    assert decisions.format_of(data[:-1]) == 1, "it is not whole"


def test_fields_that_a_decision_gained_are_passed_over() -> None:
    content = COMMIT.encode().partition(b"\n")[2].replace(b'{"format"', b'{"mood": [1], "format"', 1)

    assert Decision.parse(f"{zlib.crc32(content):08x}\n".encode() + content) == COMMIT


@pytest.mark.parametrize(
    ("word", "other"),
    [
        (f'"{T}"', '"../../x"'),
        (f'"{LATER}"', '"1/2"'),
        ('"commit"', '"../commit"'),
        ('"COMPLETED"', '"INFLIGHT"'),
        ('"COMPLETED"', '"DONE"'),
        ('"MAKE"', '"BREAK"'),
        ('{"a": "b", "c": null}', "[" * 90_000),
        ('{"a": "b", "c": null}', '{"a": 1}'),
        ('{"hoodie.table.name": "t"}', '{"a": null}'),
        ('".hoodie/a/b"', '".hoodie/../a.parquet"'),
        ('".hoodie/a/c"', '"a/c.parquet"'),
        ('".hoodie/a/c"', '".hoodie//c"'),
        ('"n-b"', '"../n"'),
        ('"n-b"', "null"),
        ('"size": 3', '"size": "3"'),
        ('"AP8="', '"AP8"'),
        ('{"hoodie.x": "", "hoodie.y": null}', '{"hoodie.x": 1}'),
    ],
)
def test_a_decision_that_somebody_else_made_up_names_no_other_file(word: str, other: str) -> None:
    content = FOLLOWED.encode().partition(b"\n")[2]
    assert word.encode() in content
    forged = content.replace(word.encode(), other.encode(), 1)

    assert Decision.parse(f"{zlib.crc32(forged):08x}\n".encode() + forged) is None


def test_a_decision_with_first_steps_alone_has_the_newest_format() -> None:
    assert decisions.format_of(COMMIT.encode()) == 1
    assert decisions.format_of(FOLLOWED.encode()) == 4


def test_steps_of_each_kind_and_partitions_that_come_and_go_are_read_as_they_were_written() -> None:
    steps = (ReplaceFile(".hoodie/a", b"new", 7), ReplaceFile(".hoodie/b", b"", None), DeleteFile(".hoodie/c"))
    first = FirstSteps(steps, {}, ("column_stats",), ("files",), ("partition_stats",))
    decision = replace(COMMIT, kind=DecisionKind.TAKE_STEPS, first=(first,))

    assert Decision.parse(decision.encode()) == decision


def test_a_decision_that_no_process_could_read_is_not_made() -> None:
    with pytest.raises(ValueError, match="drop_index"):
        replace(COMMIT, instant=replace(COMMIT.instant, action="drop_index")).encode()


def test_a_rule_of_buckets_that_an_earlier_release_decided_is_read() -> None:
    content = COMMIT.encode().partition(b"\n")[2]
    rule = b'"format": 2, "rule": {"default": 4, "expressions": [["^a$", 8]]}'
    content = content.replace(b'"format": 1', rule, 1)

    found = Decision.parse(f"{zlib.crc32(content):08x}\n".encode() + content)

    assert found == replace(COMMIT, rule=BucketRuleText(4, (("^a$", 8),)))


def test_a_decision_holds_few_bytes_of_files() -> None:
    half = MakeFile(".hoodie/a", bytes(MOST_TO_MAKE // 2))
    replace(COMMIT, first=(FirstSteps((half,)), FirstSteps((half,)))).encode()
    with pytest.raises(ValueError, match="1,048,577"):
        replace(COMMIT, first=(FirstSteps((half, half)), FirstSteps((MakeFile(".hoodie/b", b"1"),)))).encode()


def test_numbers_are_those_of_files_that_look_like_one(tmp_path: Path) -> None:
    storage = LocalStorage.open(str(tmp_path))
    assert decisions.numbers(storage) == []
    for name in ("000000000002", "000000000010", "7", "x", "1" * 19, "-3"):
        storage.write(f"{decisions.FOLDER}/{name}", b"")

    assert decisions.numbers(storage) == [2, 7, 10]
    assert decisions.path_of(10) == f"{decisions.FOLDER}/000000000010"
