"""Which steps of a protocol tests break off at, and which protocols a change touches."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.faults import steps
from support.faults.steps import PROTOCOLS, ROOT, chosen, modules_of, source_of, syntax_of
from support.faults.touched import touched

# Folders whose modules take steps, but for those that name, count or measure.
TAKE_STEPS = (
    "operations/following",
    "operations/meeting",
    "operations/rollback",
    "operations/services",
    "operations/streams",
    "operations/transaction",
    "operations/upkeep",
    "operations/write",
    "timeline/archive",
    "timeline/writers",
)
TAKE_NONE = {
    "operations/services/__init__.py",
    "operations/services/throughput.py",
}


def test_each_stretch_of_steps_has_one_that_is_tried() -> None:
    for seed in map(str, range(50)):
        found = chosen(range(100), 5, seed)

        assert [number // 5 for number in found] == [*range(20)]


def test_another_source_tries_other_steps_and_all_of_them_in_time() -> None:
    tried = [chosen(range(100), 5, f"{source} test") for source in range(50)]

    assert len({*map(tuple, tried)}) == 50
    assert {number for numbers in tried for number in numbers} == {*range(100)}
    assert tried[7] == chosen(range(100), 5, "7 test"), "each run takes the same"


@pytest.mark.parametrize("every", [1, 2, 7, 100])
def test_some_step_is_tried_however_few_there_are(every: int) -> None:
    for seed in map(str, range(20)):
        assert 0 < len(chosen(range(6), every, seed)) <= 6
    assert chosen(range(6), 1, "") == [*range(6)]
    assert chosen([], every, "") == []


def test_the_steps_change_with_what_a_module_does_and_not_with_what_it_says() -> None:
    source = '"""One."""\n\ndef first(a: int) -> int:\n    """Return a."""\n    return a + 1\n'
    other_words = '"""Two."""\n\ndef first(a: int) -> int:  # why\n    return (a + 1)\n'

    assert syntax_of(source) == syntax_of(other_words)
    assert syntax_of(source) != syntax_of(source.replace("+ 1", "+ 2"))


def test_each_module_that_takes_steps_is_of_a_protocol() -> None:
    """Or a change of it would try no other steps, and `make test-touched` would pass it over."""
    named = {one.relative_to(ROOT).as_posix() for protocol in PROTOCOLS for one in modules_of(protocol)}
    there = {one.relative_to(ROOT).as_posix() for folder in TAKE_STEPS for one in (ROOT / folder).rglob("*.py")}

    assert there - named == TAKE_NONE
    assert all((ROOT / path).exists() for paths in PROTOCOLS.values() for path in paths)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose only commit has a module of two protocols, and one of none."""
    paths = {"sort": ("sorting", "shared.py"), "write": ("writing.py", "shared.py")}
    monkeypatch.setattr(steps, "ROOT", tmp_path)
    monkeypatch.setattr("support.faults.touched.PROTOCOLS", paths)
    monkeypatch.setattr(steps, "PROTOCOLS", paths)
    (tmp_path / "sorting").mkdir()
    for name in ("sorting/sort.py", "writing.py", "shared.py", "other.py"):
        (tmp_path / name).write_text("a = 1\n")
    as_a_user = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], [*as_a_user, "commit", "-qm", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "source", "protocols"),
    [
        ("other.py", "a = 2\n", set()),
        ("writing.py", "# why\na = 1\n", set()),
        ("writing.py", "a = 2\n", {"write"}),
        ("writing.py", None, {"write"}),
        ("shared.py", "a = 2\n", {"sort", "write"}),
        ("sorting/new.py", "a = 2\n", {"sort"}),
    ],
)
def test_a_change_touches_the_protocols_of_its_modules(
    repository: Path, name: str, source: str | None, protocols: set[str]
) -> None:
    before = {protocol: source_of(protocol) for protocol in steps.PROTOCOLS}
    (repository / name).unlink() if source is None else (repository / name).write_text(source)
    (repository / name).with_suffix(".txt").touch()

    assert touched("HEAD", repository) == protocols
    if source is not None:
        assert {one for one in before if before[one] != source_of(one)} == protocols
