"""Which sentences of the code's texts and of the pages hide their subjects, told by words that stand in for a name.

A pattern stays here as long as nearly all of its hits, read by hand, are sentences that a name makes clearer.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_VERBS = "is|was|has|does|may|can"
_PREPOSITIONS = "of|in|on|at|by|for|from|into|than|as|after|before|without|under|over|between|behind|below"
_AFTER_ONE = f"that|which|who|{_VERBS}|{_PREPOSITIONS}"
_BEFORE_ONE = "the|this|that|each|every|any|no|another|other|older|newer|last|first|next"
PATTERNS = {
    "a person without a name": r"(?:whoever|whomever|somebody|someone|anybody|anyone|nobody|everybody)\b",
    "'one' as a pronoun": rf"one (?:that|which|who|{_VERBS}|of which)\b",
    "'one' after a determiner": rf"(?:{_BEFORE_ONE}) one(?=\s*[.,;:!?)]|\s+(?:{_AFTER_ONE})\b)",
    "a passive of telling": r"(?:is|are|was|were|be|been) (?:told|said|asked|meant|left(?! out))\b",
    "'told apart', 'told by'": r"told (?:apart|of|by)\b",
    "'stands' for 'is'": r"(?:stands?|stood)\b(?!-| (?:in )?for\b| still\b)",
    "'goes on' for 'continues'": r"(?:go|goes|going|went) on\b",
}
_ANY = {name: re.compile(rf"(?<![\w-]){pattern}", re.IGNORECASE) for name, pattern in PATTERNS.items()}
# What is not prose: code, quotes, links' targets.
_APART = re.compile(r"``.*?``|`[^`]*`|\"[^\"]*\"|\]\([^)]*\)|<!--.*?-->", re.DOTALL)
_FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.DOTALL | re.MULTILINE)
_GENERATED = re.compile(r"<!-- begin (\S+).*?<!-- end \1.*?-->", re.DOTALL)
_WORDS = 4


@dataclass(frozen=True, slots=True)
class Hit:
    """A sentence that hides its subject.

    Attributes:
        where: The file and the line at which its text begins.
        pattern: Which of `PATTERNS` it has.
        sentence: The words around it.
    """

    where: str
    pattern: str
    sentence: str


def hits_in(path: Path, shown: str) -> Iterator[Hit]:
    """Return the sentences of a module or a page that hide their subjects.

    Args:
        path: The file.
        shown: What hits call it.
    """
    text = path.read_text(encoding="utf-8")
    for line, prose in _of_page(text) if path.suffix == ".md" else _of_module(text):
        # What is cut out keeps its place, so that two words do not meet across it.
        clean = " ".join(_APART.sub(" § ", prose).split())
        for name, pattern in _ANY.items():
            for found in pattern.finditer(clean):
                yield Hit(f"{shown}:{line}", name, clean[max(0, found.start() - 60) : found.end() + 50])


def _of_page(text: str) -> Iterator[tuple[int, str]]:
    """Return the paragraphs of a page with their lines, code and generated blocks apart."""
    for apart in (_GENERATED, _FENCE):
        text = apart.sub(lambda found: "\n" * found[0].count("\n"), text)
    line = 1
    for paragraph in re.split(r"(\n\s*\n)", text):
        if paragraph.strip():
            yield line, paragraph
        line += paragraph.count("\n")


def _of_module(text: str) -> Iterator[tuple[int, str]]:
    """Return the comments, docstrings and sentences of a module with their lines."""
    yield from _comments(text)
    tree = ast.parse(text)
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            said = "".join(str(part.value) if isinstance(part, ast.Constant) else " § " for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            said = node.value
        else:
            continue
        if len(said.split()) >= _WORDS:
            yield node.lineno, said


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Return the comments of a module, those on lines of their own that follow each other as one text."""
    first, last, parts = 0, -1, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, said = token.start[0], token.string.lstrip("#: ")
        if line != last + 1:
            if parts:
                yield first, " ".join(parts)
            first, parts = line, []
        last = line
        parts.append(said)
    if parts:
        yield first, " ".join(parts)
