"""All steps of the protocols that a change touches: what `make test-touched` runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from support.faults.steps import PROTOCOLS, ROOT, syntax_of


def touched(base: str, root: Path = ROOT) -> set[str]:
    """Return the protocols of which a module differs from that of another commit, by more than comments.

    Args:
        base: The commit.
        root: The folder of the repository, whose files are compared, committed or not.
    """
    names = {*_git(root, "diff", "--name-only", "--no-renames", base).splitlines()}
    names |= {*_git(root, "ls-files", "--others", "--exclude-standard").splitlines()}
    before = {*_git(root, "ls-tree", "-r", "--name-only", base).splitlines()}
    changed = set()
    for name in names:
        if name.endswith(".py") and any(_is_below(name, paths) for paths in PROTOCOLS.values()):
            old = syntax_of(_git(root, "show", f"{base}:{name}")) if name in before else ""
            new = syntax_of((root / name).read_text("utf-8")) if (root / name).exists() else ""
            changed |= {name} if old != new else set()
    return {protocol for protocol, paths in PROTOCOLS.items() if any(_is_below(one, paths) for one in changed)}


def _is_below(name: str, paths: Iterable[str]) -> bool:
    return any(name == path or name.startswith(f"{path}/") for path in paths)


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(branch: str, arguments: list[str]) -> int:
    """Try all steps of the protocols that differ from where this branch left another; print what that takes."""
    base = _git(ROOT, "merge-base", "HEAD", branch).strip()
    protocols = ",".join(sorted(touched(base)))
    if not protocols:
        sys.stdout.write(f"No protocol differs from {base[:8]}, where this branch left {branch}.\n")
        return 0
    sys.stdout.write(f"These protocols differ from {base[:8]}, where this branch left {branch}: {protocols}\n")
    sys.stdout.flush()
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", *arguments]
    ended = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYHUDI_ALL_STEPS": protocols}, check=False)
    sys.stdout.write(f"All steps of {protocols} took {time.monotonic() - began:.0f} s.\n")
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
