"""The Python of a page and what it prints, as the page shows it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps(page: str) -> list[tuple[str, str | None]]:
    """Return each Python snippet of a page with the output that follows it, None where the page shows none."""
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    following = [*blocks[1:], ("python", "")]
    return [
        (text, after[1] if after[0] == "text" else None)
        for (kind, text), after in zip(blocks, following, strict=True)
        if kind == "python"
    ]


def check_page(page: str, tmp_path: Path) -> None:
    """Run the Python of a page, in a folder of its own in the place of /tmp, and compare what it prints."""
    namespace: dict[str, object] = {}
    for snippet, expected in steps(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(snippet.replace("/tmp/", f"{tmp_path}/"), page, "exec"), namespace)  # noqa: S102, S108

        if expected is not None:
            assert printed.getvalue().strip() == expected.strip(), snippet
