from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.storage.base import is_sidecar, temporary_name
from pyhudi.timeline.instants import Instant, State, action_group
from pyhudi.timeline.layout import LayoutV2

FIXTURES = Path(__file__).parents[2] / "fixtures" / "timeline"
R, I, C = State  # noqa: E741
T = "20261120224644250"
U = "20261120224645000"

# The table of names in Apache Hudi's timeline layout 2: action, requested, inflight, completed.
NAMES = [
    ("commit", f"{T}.commit.requested", f"{T}.inflight", f"{T}_{U}.commit"),
    ("deltacommit", f"{T}.deltacommit.requested", f"{T}.deltacommit.inflight", f"{T}_{U}.deltacommit"),
    ("replacecommit", f"{T}.replacecommit.requested", f"{T}.replacecommit.inflight", f"{T}_{U}.replacecommit"),
    ("clustering", f"{T}.clustering.requested", f"{T}.clustering.inflight", f"{T}_{U}.replacecommit"),
    ("compaction", f"{T}.compaction.requested", f"{T}.compaction.inflight", f"{T}_{U}.commit"),
    ("logcompaction", f"{T}.logcompaction.requested", f"{T}.logcompaction.inflight", f"{T}_{U}.deltacommit"),
    ("clean", f"{T}.clean.requested", f"{T}.clean.inflight", f"{T}_{U}.clean"),
    ("rollback", f"{T}.rollback.requested", f"{T}.rollback.inflight", f"{T}_{U}.rollback"),
    ("restore", f"{T}.restore.requested", f"{T}.restore.inflight", f"{T}_{U}.restore"),
    ("savepoint", None, f"{T}.savepoint.inflight", f"{T}_{U}.savepoint"),
    ("indexing", f"{T}.indexing.requested", f"{T}.indexing.inflight", f"{T}_{U}.indexing"),
]


@pytest.mark.parametrize(("action", "requested", "inflight", "completed"), NAMES)
def test_names_are_apache_hudis(action: str, requested: str | None, inflight: str, completed: str) -> None:
    layout = LayoutV2()
    pending = [(requested, Instant(T, action, R)), (inflight, Instant(T, action, I))]
    for name, instant in pending:
        if name is not None:
            assert layout.format(instant) == name
            assert layout.parse(name) == instant

    assert layout.format(Instant(T, action, C, U)) == completed
    assert layout.parse(completed) == Instant(T, action_group(action), C, U)


@pytest.mark.parametrize("name", [file.name for file in sorted((FIXTURES / "v9").iterdir())])
def test_every_file_of_apache_hudi_is_an_instant_that_formats_back(name: str) -> None:
    layout = LayoutV2()
    instant = layout.parse(name)

    assert instant is not None
    assert layout.format(instant) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "hoodie.properties",
        "history",
        f"{T}",
        f"{T}.commit.inflight",
        f"{T}.commit.requested.6f9e1c0e-5a0f-4a7e-9f0b-0a8f1c1b2d3e",
        f"{T}_{U}.commit.6f9e1c0e-5a0f-4a7e-9f0b-0a8f1c1b2d3e",
        f"{T}_{U}.commit.requested",
        f"{T}_{U}.inflight",
        f"{T}_{U}.clustering",
        f"{T}_{U}.compaction",
        f"{T}_.commit",
        f"_{U}.commit",
        f"{T}.commit ",
        f"{T}.commit\n",
        f"{T}_{U}.schemacommit",
        f"{T}.savepoint.requested",
        f".{T}_{U}.commit.crc",
        "٢٠٢٦.commit",
    ],
)
def test_other_names_are_no_instants(name: str) -> None:
    assert LayoutV2().parse(name) is None


def test_a_file_in_the_making_is_no_instant_but_a_sidecar() -> None:
    assert LayoutV2().parse(temporary_name()) is None
    assert is_sidecar(temporary_name())


def test_a_completed_file_without_completion_time_is_completed_all_the_same() -> None:
    assert LayoutV2().parse(f"{T}.commit") == Instant(T, "commit", C)


def test_times_of_the_metadata_table_parse_leniently() -> None:
    assert LayoutV2().parse("00000000000000000010.deltacommit.requested") == Instant(
        "00000000000000000010", "deltacommit", R
    )


def test_a_completed_file_of_a_half_done_upgrade_is_found_and_is_not_whole() -> None:
    layout, half_done = LayoutV2(), Instant(T, "commit", C)

    assert layout.parse(layout.format(half_done)) == half_done
    assert [layout.is_whole(one) for one in (half_done, layout.completed(half_done, T))] == [False, True]


@given(
    st.sampled_from([row[0] for row in NAMES]),
    st.sampled_from(list(State)),
    st.from_regex(r"[0-9]{14,20}", fullmatch=True),
    st.from_regex(r"[0-9]{17}", fullmatch=True),
)
def test_parsing_undoes_formatting(action: str, state: State, requested: str, completion: str) -> None:
    if action == "savepoint" and state == State.REQUESTED:
        return
    layout = LayoutV2()
    instant = Instant(requested, action, state, completion if state == State.COMPLETED else None)
    expected = Instant(requested, instant.group, state, completion) if state == State.COMPLETED else instant

    assert layout.parse(layout.format(instant)) == expected
