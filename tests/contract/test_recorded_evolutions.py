"""Each kind of change of columns does the same here as in Apache Hudi, by the bytes and the answers that it left."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyhudi.operations.planning.request import TableSettings
from support.drawn.evolving import read_rows
from support.drive import write
from support.recorded.ddl import show
from support.recorded.evolutions import REFUSED, TO_TEXT, Difference
from support.recorded.recorded_evolutions import BUCKETS, CASES, Recorded, columns_of, next_rows, spelled
from support.write_settings import write_settings


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded.unpack(tmp_path_factory.mktemp("recorded"))


def test_each_case_is_recorded(recorded: Recorded) -> None:
    assert list(recorded.answers) == [one.name for one in CASES]
    assert len(CASES) > 100


@pytest.mark.parametrize("case", [pytest.param(one, id=one.name.replace(" ", "-")) for one in CASES])
def test_a_change_does_the_same_as_in_apache_hudi(tmp_path: Path, recorded: Recorded, case: Difference) -> None:
    """Or what is known to be different is different: a cure would be noticed.

    Numbers become text with the option alone; each other case needs none.
    """
    answer, after = recorded.answers[case.name], recorded.after(case)
    known_difference = case.hudi.partition(",")[0]
    outcome = case.outcome(TO_TEXT)
    assert (answer is None) == (outcome.startswith(REFUSED) and not known_difference)
    if answer is None:
        return

    assert show(columns_of(after).remove(0).remove(0)) == (known_difference or outcome)
    if not known_difference:
        ours = tmp_path / "ours"
        shutil.copytree(recorded.base(case), ours)
        settings = write_settings(number_to_text=bool(case.to_text))
        write(ours, next_rows(case), table=TableSettings(bucket_count=BUCKETS), settings=settings)
        assert columns_of(ours) == columns_of(after)
        assert spelled(read_rows(ours)) == spelled(read_rows(after)) == answer
