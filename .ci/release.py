"""Makes a release of pyhudi up to its upload: version, changelog, checks, packages, commit and tag.

``make release VERSION=0.2.0`` runs this file, which needs Python and git alone. ``docs/releasing.md`` says how.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STEPS = (("make", "check"), ("make", "dist"))
KINDS = ("added", "changed", "removed", "fixed")
MOST_SENTENCES = 4
LONGEST_LINE = 119
_WIDTH = 120
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_SET_VERSION = re.compile(r'^(VERSION = ")(\d+\.\d+\.\d+)(")$', re.MULTILINE)
_WHEEL = re.compile(r"(?<=\bpyhudi-)\d+\.\d+\.\d+(?=-py3-none-any\.whl)")
_HEADING = re.compile(r"^## (\S+) \(([^)]+)\)$", re.MULTILINE)
_UNRELEASED = "unreleased"
_NAME = re.compile(r"([\w-]+)\.([a-z]+)\.md")


class RefusedError(Exception):
    """No release can be made; the text has a line for each reason."""


def git(root: Path, *arguments: str) -> str:
    """Return what git prints."""
    process = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if process.returncode:
        raise RefusedError(f"git {' '.join(arguments)}: {process.stderr.strip()}")
    return process.stdout.rstrip("\n")


def version_of(root: Path) -> str:
    """Return the version that the package has: version.py is the only place that says it."""
    line = _SET_VERSION.search(_text(root / "version.py"))
    if line is None:
        raise RefusedError('version.py has no line such as VERSION = "0.1.0".')
    return line[2]


def wheels_on(page: str) -> set[str]:
    """Return the versions of the wheels that a page names."""
    return {*_WHEEL.findall(page)}


def pages_with_wheels(root: Path) -> list[Path]:
    """Return the pages that tell users which wheel to install."""
    pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    return [page for page in pages if wheels_on(page.read_text(encoding="utf-8"))]


def fragments_in(root: Path) -> dict[str, str]:
    """Return the texts of the fragments, by the names of their files."""
    files = sorted(path for path in (root / "changes").glob("*") if path.name != "README.md")
    return {path.name: path.read_text(encoding="utf-8") for path in files}


def flaws(name: str, text: str) -> list[str]:
    """Return what is wrong with a fragment; ``changes/README.md`` has the rules."""
    parts = _NAME.fullmatch(name)
    sentences = len(re.findall(r"[.!?](?=\s|$)", re.sub(r"`[^`]*`", "name", text)))
    applies_by_flaw = {
        f"its name is not NAME.kind.md, with a kind of {', '.join(KINDS)}": parts is None or parts[2] not in KINDS,
        "it does not end in a full stop": not text.rstrip().endswith("."),
        f"it has more than {MOST_SENTENCES} sentences": sentences > MOST_SENTENCES,
        f"it has a line of more than {LONGEST_LINE} characters": max(map(len, text.splitlines() or [""]))
        > LONGEST_LINE,
        "it has a heading, a list or a second paragraph": re.search(r"^(#|[-*] |\s*$)", text.strip(), re.MULTILINE)
        is not None,
    }
    return [f"changes/{name}: {flaw}." for flaw, applies in applies_by_flaw.items() if applies]


def refusals(root: Path, version: str) -> list[str]:
    """Return why no release of this version can be made of what is in the folder."""
    if not _VERSION.fullmatch(version):
        return [f"{version!r} is no version such as 0.2.0."]
    reasons = []
    branch = git(root, "branch", "--show-current")
    if branch != "main":
        reasons.append(f"Releases are made on the branch main; this is {branch or 'no branch'}.")
    if changed := git(root, "status", "--porcelain"):
        reasons.append(f"There are changes without a commit:\n{changed}")
    if git(root, "tag", "--list", f"v{version}"):
        reasons.append(f"The tag v{version} exists.")
    now = version_of(root)
    if _numbers(version) < _numbers(now):
        reasons.append(f"{version} comes before {now}, which version.py has.")
    texts = fragments_in(root)
    reasons += [flaw for name, text in texts.items() for flaw in flaws(name, text)]
    newest = _HEADING.search((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    if newest is None:
        reasons.append("CHANGELOG.md has no heading such as ## 0.1.0 (unreleased).")
    elif newest[2] != _UNRELEASED and newest[1] == version:
        reasons.append(f"CHANGELOG.md has {version} already.")
    elif newest[2] == _UNRELEASED and newest[1] != version:
        reasons.append(f"CHANGELOG.md has a section of {newest[1]}, which is not released.")
    elif newest[2] != _UNRELEASED and not texts:
        reasons.append("changes/ has no fragment, so no user would notice this release.")
    return reasons


def joined(changelog: str, version: str, day: str, fragments: dict[str, str]) -> str:
    """Return the changelog with a section of this version, which ends with the fragments.

    If the changelog has the section as unreleased, its heading gets the day.
    """
    lines = list[str]()
    for kind in KINDS:
        texts = [text for name, text in fragments.items() if name.endswith(f".{kind}.md")]
        lines += [f"### {kind.capitalize()}", "", *map(_item, texts), ""] if texts else []
    added = "\n".join(lines)
    unreleased, heading = f"## {version} ({_UNRELEASED})", f"## {version} ({day})"
    before, mark, after = changelog.partition(unreleased)
    if mark:
        own, later_mark, older = after.partition("\n## ")
        own = f"{own.rstrip()}\n\n{added}" if added else own
        return f"{before}{heading}{own.rstrip()}\n" + (f"\n## {older}" if later_mark else "")
    before, mark, after = changelog.partition("\n## ")
    return f"{before}\n{heading}\n\n{added}{mark}{after}"


def planned(root: Path, version: str, day: str) -> dict[str, str | None]:
    """Return the files that a release changes: their new texts by their paths, None for those that it deletes."""
    fragments = fragments_in(root)
    texts = {"version.py": _SET_VERSION.sub(rf"\g<1>{version}\g<3>", _text(root / "version.py"))}
    texts["CHANGELOG.md"] = joined(_text(root / "CHANGELOG.md"), version, day, fragments)
    for page in pages_with_wheels(root):
        texts[page.relative_to(root).as_posix()] = _WHEEL.sub(version, _text(page))
    changed: dict[str, str | None] = {path: text for path, text in texts.items() if text != _text(root / path)}
    return changed | {f"changes/{name}": None for name in fragments}


def release(
    root: Path, version: str, day: str, *, steps: Sequence[Sequence[str]] = STEPS, dry_run: bool = False
) -> None:
    """Make a release up to its upload, and print the two commands that a person runs then.

    Args:
        root: The repository.
        version: The version to release.
        day: The day in the changelog.
        steps: Commands that check and build what is released; if one fails, everything is as it was.
        dry_run: Whether to print what would change, and to change nothing.

    Raises:
        RefusedError: The version cannot be released, or a step failed.
    """
    if reasons := refusals(root, version):
        raise RefusedError("\n".join(reasons))
    files = planned(root, version, day)
    if dry_run:
        for path, text in files.items():
            print(f"would {'delete' if text is None else 'change'} {path}")
        print(*(f"would run {' '.join(step)}" for step in steps), sep="\n")
        print(f"would commit and tag v{version}")
        return
    try:
        _change(root, files)
        for step in steps:
            _run(root, step)
        _refuse_other_changes(root, {*files})
        git(root, "commit", "--quiet", "--message", f"Release {version}", "--", *files)
    except BaseException:
        git(root, "restore", "--source=HEAD", "--staged", "--worktree", "--", *files)
        raise
    git(root, "tag", "--annotate", f"v{version}", "--message", f"pyhudi {version}")
    print(f"pyhudi {version} is committed, tagged and built. Publish it by these two commands:")
    print(f"  git push --atomic origin main v{version}")
    print("  .venv/bin/python -m twine upload dist/*")


def _change(root: Path, files: dict[str, str | None]) -> None:
    for path, text in files.items():
        if text is None:
            (root / path).unlink()
        else:
            (root / path).write_text(text, encoding="utf-8")
    # The packages are built of what git tracks.
    git(root, "add", "--all", "--", *files)


def _run(root: Path, step: Sequence[str]) -> None:
    try:
        subprocess.run(step, cwd=root, check=True)
    except subprocess.CalledProcessError as error:
        raise RefusedError(f"{' '.join(step)} failed, so nothing is released and all files are as before.") from error


def _refuse_other_changes(root: Path, files: set[str]) -> None:
    """Refuse what changed while the steps were at work: the packages may not hold what the tag names."""
    changed = git(root, "status", "--porcelain", "--no-renames", "-z").split("\0")
    if others := sorted({entry[3:] for entry in changed if entry} - files):
        raise RefusedError(f"While the steps ran, others changed {', '.join(others)}.")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _item(text: str) -> str:
    whole = " ".join(text.split())
    lines = textwrap.wrap(
        whole, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines)


def main() -> int:
    """Make the release that the command line asks for."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument("version", nargs="?", help="the version to release; without it that of version.py")
    parser.add_argument("--dry-run", action="store_true", help="print what would change, and change nothing")
    given = parser.parse_args()
    today = datetime.now(timezone.utc).date().isoformat()
    try:
        release(ROOT, given.version or version_of(ROOT), today, dry_run=given.dry_run)
    except RefusedError as error:
        print(f"make release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
