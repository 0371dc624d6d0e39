"""`make release` on a repository of the test's own, with steps that stand for its checks and builds."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.scripts import script

ROOT = Path(__file__).parents[2]
made = script("release", ROOT / ".ci")
DAY = "2026-12-05"
PASSES, FAILS = (("true",),), (("true",), ("false",))
FILES = {
    "version.py": '"""The version."""\n\nVERSION = "0.1.0"\n',
    "README.md": 'pip install "dist/pyhudi-0.1.0-py3-none-any.whl[spark]"\n',
    "docs/places.md": "spark-submit --py-files pyhudi-0.1.0-py3-none-any.whl job.py\n",
    "docs/other.md": "pyhudi 0.1.0 was the first release.\n",
    "CHANGELOG.md": "# Changelog\n\nThe newest first.\n\n## 0.1.0 (2026-12-01)\n\nThe first.\n",
    "changes/README.md": "The rules.\n",
    "changes/sizes.added.md": "Added the argument `since` to `pyhudi.HudiTable.sizes`.\n",
    "changes/nan.fixed.md": "Fixed reads of `NaN`.\nThey returned null.\n",
}
UNRELEASED = "# Changelog\n\n## 0.1.0 (unreleased)\n\n### Tables\n\n- All of them.\n"


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(autouse=True)
def _as_git_is_by_default(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pass over what this machine's user told git, and the repository that a hook of git may run the tests for."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ada@example.org")
    yield


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository after its first release, with two fragments."""
    folder = tmp_path / "clone"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder)
    git(folder, "tag", "v0.1.0")
    return folder


def commit(root: Path, **texts: str) -> None:
    for name, text in texts.items():
        (root / f"{name}.md").write_text(text, encoding="utf-8")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Change files")


def contents(root: Path) -> dict[str, str]:
    return {name: (root / name).read_text(encoding="utf-8") for name in git(root, "ls-files").split()}


def test_a_release_is_a_commit_with_a_tag_and_is_not_published(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made.release(root, "0.2.0", DAY, steps=PASSES)

    assert git(root, "log", "--format=%s", "v0.1.0..main") == "Release 0.2.0"
    assert git(root, "cat-file", "-t", "v0.2.0") == "tag"
    assert git(root, "rev-parse", "v0.2.0^{commit}") == git(root, "rev-parse", "main")
    assert git(root, "status", "--porcelain") == ""
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  git push --atomic origin main v0.2.0",
        "  .venv/bin/python -m twine upload dist/*",
    ]


def test_the_version_is_set_where_it_is_said_and_on_pages_that_name_the_wheel(root: Path) -> None:
    made.release(root, "0.2.0", DAY, steps=PASSES)

    after = contents(root)
    assert made.version_of(root) == "0.2.0"
    assert after["version.py"] == FILES["version.py"].replace("0.1.0", "0.2.0")
    assert after["README.md"] == FILES["README.md"].replace("0.1.0", "0.2.0")
    assert after["docs/places.md"] == FILES["docs/places.md"].replace("0.1.0", "0.2.0")
    assert after["docs/other.md"] == FILES["docs/other.md"], "a sentence about a release stays"


def test_fragments_become_a_section_of_the_changelog_by_their_kinds(root: Path) -> None:
    made.release(root, "0.2.0", DAY, steps=PASSES)

    assert contents(root)["CHANGELOG.md"] == (
        "# Changelog\n\nThe newest first.\n\n"
        "## 0.2.0 (2026-12-05)\n\n"
        "### Added\n\n- Added the argument `since` to `pyhudi.HudiTable.sizes`.\n\n"
        "### Fixed\n\n- Fixed reads of `NaN`. They returned null.\n\n"
        "## 0.1.0 (2026-12-01)\n\nThe first.\n"
    )
    assert [path.name for path in (root / "changes").iterdir()] == ["README.md"]


@pytest.mark.parametrize("with_fragment", [False, True])
def test_a_section_that_is_not_released_gets_its_day_and_the_fragments(root: Path, with_fragment: bool) -> None:
    """As that of the first release, which was written by hand."""
    git(root, "tag", "--delete", "v0.1.0")
    git(root, "rm", "--quiet", "changes/nan.fixed.md", *([] if with_fragment else ["changes/sizes.added.md"]))
    commit(root, CHANGELOG=UNRELEASED)
    made.release(root, "0.1.0", DAY, steps=PASSES)

    added = "\n### Added\n\n- Added the argument `since` to `pyhudi.HudiTable.sizes`.\n" if with_fragment else ""
    assert contents(root)["CHANGELOG.md"] == UNRELEASED.replace("unreleased", DAY) + added
    assert git(root, "tag", "--list") == "v0.1.0"


def test_the_sections_of_older_releases_stay_below_one_that_is_not_released() -> None:
    text = made.joined(f"{UNRELEASED}\n## 0.0.1 (2026-01-01)\n\nOld.\n", "0.1.0", DAY, {"a.fixed.md": "Fixed b.\n"})

    assert text.partition("### Tables")[2] == (
        "\n\n- All of them.\n\n### Fixed\n\n- Fixed b.\n\n## 0.0.1 (2026-01-01)\n\nOld.\n"
    )


def test_steps_find_the_files_of_the_release_as_git_tracks_them(root: Path, tmp_path: Path) -> None:
    copy, tracked = tmp_path / "version.py", tmp_path / "tracked"
    steps = [("cp", "version.py", str(copy)), ("sh", "-c", f"git ls-files > {tracked}")]
    made.release(root, "0.2.0", DAY, steps=steps)

    assert 'VERSION = "0.2.0"' in copy.read_text(encoding="utf-8")
    assert "changes/nan.fixed.md" not in tracked.read_text(encoding="utf-8")


def test_a_step_that_fails_leaves_everything_as_it_was(root: Path) -> None:
    before = contents(root), git(root, "rev-parse", "main")
    with pytest.raises(made.RefusedError, match="false failed"):
        made.release(root, "0.2.0", DAY, steps=FAILS)

    assert (contents(root), git(root, "rev-parse", "main")) == before
    assert git(root, "status", "--porcelain") == ""
    assert git(root, "tag", "--list") == "v0.1.0"


def test_a_file_that_changes_while_the_steps_run_is_kept_and_refused(root: Path) -> None:
    """The packages may not hold it."""
    with pytest.raises(made.RefusedError, match=r"others changed docs/other\.md"):
        made.release(root, "0.2.0", DAY, steps=[("sh", "-c", "echo new > docs/other.md")])

    assert contents(root) == {**FILES, "docs/other.md": "new\n"}


def test_a_dry_run_says_what_would_change_and_changes_nothing(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made.release(root, "0.2.0", DAY, steps=FAILS, dry_run=True)

    assert contents(root) == FILES
    assert git(root, "status", "--porcelain") == ""
    said = capsys.readouterr().out.splitlines()
    assert "would change version.py" in said
    assert "would delete changes/sizes.added.md" in said
    assert said[-1] == "would commit and tag v0.2.0"


def as_it_is(root: Path) -> None:
    pass


def dirty(root: Path) -> None:
    (root / "new.py").touch()


def on_a_branch(root: Path) -> None:
    git(root, "switch", "--quiet", "--create", "topic")


def without_a_branch(root: Path) -> None:
    git(root, "switch", "--quiet", "--detach")


def tagged(root: Path) -> None:
    git(root, "tag", "v0.2.0")


def without_fragments(root: Path) -> None:
    git(root, "rm", "--quiet", "changes/nan.fixed.md", "changes/sizes.added.md")
    git(root, "commit", "--quiet", "--message", "Delete fragments")


def with_a_strange_fragment(root: Path) -> None:
    (root / "changes" / "x.better.md").write_text("Made it better.\n", encoding="utf-8")
    commit(root)


def unreleased(root: Path) -> None:
    commit(root, CHANGELOG=UNRELEASED)


def without_a_heading(root: Path) -> None:
    commit(root, CHANGELOG="# Changelog\n")


@pytest.mark.parametrize(
    ("spoil", "version", "says"),
    [
        (dirty, "0.2.0", "changes without a commit:\n?? new.py"),
        (on_a_branch, "0.2.0", "this is topic"),
        (without_a_branch, "0.2.0", "this is no branch"),
        (tagged, "0.2.0", "tag v0.2.0 exists"),
        (without_fragments, "0.2.0", "no fragment"),
        (with_a_strange_fragment, "0.2.0", "changes/x.better.md: its name"),
        (unreleased, "0.2.0", "section of 0.1.0, which is not released"),
        (without_a_heading, "0.2.0", "no heading"),
        (as_it_is, "0.0.9", "comes before 0.1.0"),
        (as_it_is, "0.1.0", "tag v0.1.0 exists.\nCHANGELOG.md has 0.1.0 already"),
        (as_it_is, "v0.2", "no version such as 0.2.0"),
        (as_it_is, "0.2.0; true", "no version such as 0.2.0"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_no_release_can_be_made_of_is_refused_by_name(
    root: Path, spoil: Callable[[Path], None], version: str, says: str
) -> None:
    spoil(root)
    before = contents(root), git(root, "rev-parse", "HEAD"), git(root, "tag", "--list")
    with pytest.raises(made.RefusedError) as raised:
        made.release(root, version, DAY, steps=PASSES)

    assert says in str(raised.value)
    assert (contents(root), git(root, "rev-parse", "HEAD"), git(root, "tag", "--list")) == before
