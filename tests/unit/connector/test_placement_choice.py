from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyhudi.connector.placement.choice import estimated_bytes, local_cores, places
from support.seams import patch_seam

MIB = 1 << 20


def frame(master: str, size: int | None = None) -> Any:
    """Return what stands for a DataFrame of a session with this master, for which Spark estimates so many bytes."""
    session = SimpleNamespace(conf=SimpleNamespace(get=lambda key, default=None: {"spark.master": master}[key]))
    if size is None:
        return SimpleNamespace(sparkSession=session)
    plan = SimpleNamespace(stats=lambda: SimpleNamespace(sizeInBytes=lambda: size))
    query = SimpleNamespace(optimizedPlan=lambda: plan)
    return SimpleNamespace(sparkSession=session, _jdf=SimpleNamespace(queryExecution=lambda: query))


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[2]", 2),
        ("local[16, 4]", 16),
        ("local[*]", 6),
        ("local[*,2]", 6),
        ("local-cluster[2,1,800]", None),
        ("spark://host:7077", None),
        ("yarn", None),
        ("", None),
    ],
)
def test_a_local_master_says_how_many_cores_its_tasks_have(
    monkeypatch: pytest.MonkeyPatch, master: str, cores: int | None
) -> None:
    patch_seam(monkeypatch, "cores of the machine", lambda: 6)

    assert local_cores(frame(master).sparkSession) == cores


@pytest.mark.parametrize(
    ("master", "size", "placed"),
    [
        ("local[2]", 1 << 40, False),
        ("local[8]", None, False),
        ("local[9]", None, True),
        ("local[64]", 8 * MIB, False),
        ("local[64]", 8 * MIB + 1, True),
        ("yarn", 100, False),
        ("yarn", 1 << 40, True),
        ("yarn", None, True),
    ],
)
def test_rows_are_placed_where_tasks_merge_sooner_than_the_commit(master: str, size: int | None, placed: bool) -> None:
    """The commit has a thread for each of eight file groups; tasks of less than a mebibyte are put together."""
    assert places(frame(master, size), "auto") is placed
    assert places(frame(master, size), "always")
    assert not places(frame(master, size), "never")


def test_no_estimate_is_one_that_fails() -> None:
    broken = frame("yarn", 1)
    broken._jdf = SimpleNamespace()

    assert estimated_bytes(broken) is None
