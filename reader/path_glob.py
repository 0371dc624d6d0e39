"""Path patterns of incremental queries, with the meaning of Hadoop's ``GlobPattern``."""

from __future__ import annotations

import re

_MEANINGS = {"*": ".*", "?": "."}


def compile_glob(pattern: str) -> re.Pattern[str]:
    """Return an expression that fully matches a path whose end matches the pattern; raises ValueError.

    ``*`` and ``?`` match any characters, slashes included; ``[a-z]`` and ``{a,b}`` are choices, and ``[^a-z]`` or
    ``[!a-z]`` is any other character; a backslash outside of brackets makes the next character literal.
    """
    parts, braces, position = [".*"], 0, 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == "\\" and position < len(pattern):
            parts.append(re.escape(pattern[position]))
            position += 1
        elif character in _MEANINGS:
            parts.append(_MEANINGS[character])
        elif character == "[":
            negation = "^" if pattern[position : position + 1] in {"!", "^"} else ""
            position += len(negation)
            # A choice has at least one character, so that a ] may be its first.
            end = pattern.find("]", position + 1)
            if end < 0:
                raise ValueError("a [ in the pattern is not closed")
            parts.append(f"[{negation}{_escaped(pattern[position:end])}]")
            position = end + 1
        elif character == "{":
            parts.append("(?:")
            braces += 1
        elif character == "}" and braces:
            parts.append(")")
            braces -= 1
        else:
            parts.append("|" if character == "," and braces else re.escape(character))
    if braces:
        raise ValueError("a { in the pattern is not closed")
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error as error:
        raise ValueError(f"the pattern's brackets hold no choice ({error})") from error


def _escaped(choice: str) -> str:
    """Return the characters of a choice as an expression's choice takes them."""
    return choice.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace("^", "\\^")
