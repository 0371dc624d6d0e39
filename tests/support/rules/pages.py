"""How many words of prose a page has, and to which of its headings a link can lead."""

from __future__ import annotations

import re
from collections import Counter

_FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.DOTALL | re.MULTILINE)
_GENERATED = re.compile(r"^<!-- [\w -]+:.*?^<!-- (?:/\w+|end) -->$", re.DOTALL | re.MULTILINE)
# A paragraph of indented lines is code, unless it is a list inside a list.
_INDENTED = re.compile(r"(?:\A|\n\n)(?! *(?:[-*]|\d+\.) )(?: {4,}.*(?:\n|\Z))+", re.MULTILINE)
_TABLE = re.compile(r"^ *\|.*$", re.MULTILINE)
_TARGET = re.compile(r"\]\([^)]*\)")
_HEADING = re.compile(r"^#+ (.+?) *$", re.MULTILINE)
_NAMED = re.compile(r'<a id="([^"]+)">')


def prose_words(page: str) -> int:
    """Return how many words a page has outside of its code, tables and generated blocks."""
    for apart in (_GENERATED, _FENCE, _INDENTED, _TABLE, _TARGET):
        page = apart.sub("\n\n", page) if apart is not _TARGET else apart.sub("", page)
    return sum(any(sign.isalnum() for sign in word) for word in page.split())


def anchors(page: str) -> set[str]:
    """Return the anchors of a page as GitHub makes them of its headings, and those that it names itself."""
    headings = _HEADING.findall(_FENCE.sub("", page))
    page_anchors, times = set(_NAMED.findall(page)), Counter[str]()
    for heading in headings:
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-")
        page_anchors.add(f"{anchor}-{times[anchor]}" if times[anchor] else anchor)
        times[anchor] += 1
    return page_anchors
