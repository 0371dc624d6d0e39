"""What is recorded of Apache Hudi's writes is what it still does: some of the cases are put to it again."""

from __future__ import annotations

from pathlib import Path

import pytest
from interop.apache_hudi import ApacheHudi, ApacheHudiError
from interop.recorded_answers import left_by_apache, merged_by_apache, told_by_apache
from support.recorded import commit_statistics, duplicates, ordering_pairs
from support.recorded.recorded_writes import DUPLICATES, ORDERINGS, STATISTICS, Recorded

pytestmark = pytest.mark.interop

# So many of the writes that are recorded are put to it again; all are held against pyhudi without it.
EACH = 7


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded.unpack(tmp_path_factory.mktemp("recorded"))


@pytest.mark.parametrize(
    "case",
    [*duplicates.SAME[::EACH], duplicates.FAILING[0], duplicates.NEIGHBOUR_FAILS],
    ids=str,
)
def test_the_rows_that_are_recorded_stay(
    apache: ApacheHudi, recorded: Recorded, tmp_path: Path, case: duplicates.Case
) -> None:
    table = recorded.copy_of(DUPLICATES, tmp_path / "t")
    assert left_by_apache(apache, table, case) == recorded.answers[DUPLICATES][str(case)]


def test_a_commit_says_what_is_recorded(apache: ApacheHudi, recorded: Recorded, tmp_path: Path) -> None:
    case, table = commit_statistics.CASES[0], recorded.copy_of(STATISTICS, tmp_path / "t")
    assert told_by_apache(apache, table, case) == recorded.answers[STATISTICS][case.operation]


def test_ordering_values_compare_as_is_recorded(apache: ApacheHudi, recorded: Recorded, tmp_path: Path) -> None:
    assert merged_by_apache(apache, tmp_path / "t", "float") == recorded.answers[ORDERINGS]["float"]


@pytest.mark.parametrize("name", ordering_pairs.FAILING)
def test_what_apache_hudi_cannot_order_it_still_cannot(tmp_path: Path, apache: ApacheHudi, name: str) -> None:
    """When this fails, the documentation of ordering columns has to change."""
    kind, values, words = ordering_pairs.FAILING[name]
    first, second = ordering_pairs.writes(kind, values)
    apache.write(tmp_path / "t", first, ordering_pairs.OPTIONS)
    with pytest.raises(ApacheHudiError, match=words):
        apache.write(tmp_path / "t", second, ordering_pairs.OPTIONS)
