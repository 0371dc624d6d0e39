"""Options by which `HudiTable` tells the data source what it knows; others may try to give them."""

from __future__ import annotations

from typing import Any

import pytest
from pyhudi.connector.source.carried_options import parse_carried
from pyhudi.connector.source.paths import BUCKETS, COUNTED, LOOKED_UP, PAST, PINNED
from pyhudi.errors import InvalidOptionError
from pyhudi.index.base import LookupFigures
from pyhudi.operations.carried_values import spell
from pyhudi.operations.result import PastAttempts, RowCounts
from pyhudi.reader.buckets.bucket_groups import BucketChoice
from pyhudi.timeline.watermark import Tally, Watermark
from pyhudi.timeline.writers.patience import Waited

CARRIED: list[tuple[str, Any]] = [
    (PINNED, Watermark("2", "1", frozenset({"a", "b"}), Tally(7, "c", "d"), "e")),
    (LOOKED_UP, LookupFigures(files=4, candidates=3, false_positives=2, bytes=900, seconds=1.5)),
    (PAST, PastAttempts(attempts=2, waited=Waited(0.5, ("b", "a")))),
    (BUCKETS, BucketChoice(divisor=14, remainders=(3, 5))),
    (COUNTED, RowCounts(inserts=1, updates=2, deletes=3, moved=1)),
]


@pytest.mark.parametrize(("option", "value"), CARRIED)
def test_what_was_noted_is_read_back(option: str, value: Any) -> None:
    assert parse_carried(type(value), option, spell(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "{}", "20260101000000000", "earliest", '{"older": 1}', '{"completed_until":"2"}',
        '{"files":1,"seconds":1,"other":1}', '{"divisor":0,"remainders":[]}',
        '{"bytes":1,"candidates":1,"false_positives":0,"files":1,"seconds":"soon"}',
    ],
)  # fmt: skip
@pytest.mark.parametrize(("option", "value"), CARRIED)
def test_what_others_give_is_refused_by_the_option(option: str, value: Any, text: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"{option}.* Leave it out"):
        parse_carried(type(value), option, text)
