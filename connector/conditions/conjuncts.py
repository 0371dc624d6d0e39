"""A condition's text cut at the ``AND`` that stand outside of everything; what is not sure to be one is not cut.

Spark is asked afterwards whether the parts mean what the whole did, so that a text which is cut in the wrong place
costs files that are read and no rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_PIECE = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`)"""
    r"""|(?P<word>\w+)|(?P<open>[(\[])|(?P<close>[)\]])|(?P<odd>--|/\*|['"`\\])|(?P<rest>\s+|.)""",
    re.DOTALL,
)


def conjuncts(text: str) -> list[str]:
    """Return the texts that a condition is the conjunction of; itself alone where it is none, or too strange."""
    ends = [0]
    depth = cases = betweens = 0
    for match in _PIECE.finditer(text):
        word = match["word"].upper() if match["word"] else ""
        if match["odd"] or (word == "R" and text[match.end() : match.end() + 1] in {"'", '"'}):
            return [text]
        depth += bool(match["open"]) - bool(match["close"])
        cases += (word == "CASE") - (word == "END" and cases > 0)
        if depth or cases:
            continue
        if word == "OR":
            return [text]
        betweens += word == "BETWEEN"
        if word == "AND":
            if betweens:
                betweens -= 1
            else:
                ends += [match.start(), match.end()]
    parts = list(_between([*ends, len(text)], text))
    return parts if all(parts) else [text]


def _between(ends: list[int], text: str) -> Iterator[str]:
    for start, end in zip(ends[::2], ends[1::2], strict=True):
        yield text[start:end].strip()
