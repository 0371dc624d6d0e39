"""Cuts a text of SQL into tokens that know their places."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import InvalidOptionError

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*")"""
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYDF])?)(?![\w.])"
    r"|(?P<quoted>`(?:[^`]|``)+`)|(?P<word>[^\W\d]\w*)|(?P<mark><=>|==|<=|>=|<>|!=|\|\||[=<>(),.+*/-]))",
    re.IGNORECASE | re.DOTALL,
)
# What a backslash makes of the character behind it, as Spark reads texts; any other character is itself.
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[01][0-7]{2}|.)|(['\"])\2", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
# Words of the language: a column of such a name needs backticks.
KEYWORDS = frozenset({"AND", "BETWEEN", "FALSE", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "TRUE"})


@dataclass(frozen=True, slots=True)
class SqlToken:
    """A token; ``at`` is the place of its first character in the text, from 0."""

    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """The keyword that it may be, in capitals, or the mark; empty for a constant or a quoted name."""
        return self.text.upper() if self.kind in {"word", "mark"} else ""

    @property
    def name(self) -> str | None:
        """The name that it may be; None for a constant or a mark."""
        if self.kind == "quoted":
            return self.text[1:-1].replace("``", "`")
        return self.text if self.kind == "word" else None

    @property
    def constant(self) -> str:
        """The text of a constant, without its quotes; ValueError or OverflowError if an escape is of no character."""
        if self.kind != "text":
            return self.text
        units = _ESCAPE.sub(_unescaped, self.text[1:-1])
        # An escape is a unit of UTF-16, as in Spark: two of them may be one character.
        return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


class SqlTokens:
    """The tokens of a text, read from the first to the last.

    Args:
        text: The text.
        what: What the text is, for errors, such as ``The condition``.
        hint: What errors advise.
    """

    def __init__(self, text: str, what: str, hint: str) -> None:
        self._text = text
        self._what = what
        self._hint = hint
        self._tokens = self._read_tokens()
        self._position = 0

    def peek(self) -> SqlToken:
        """Return the next token, and stay before it."""
        return self._tokens[self._position]

    def next(self) -> SqlToken:
        """Return the next token, and pass over it; the token of the end comes again and again."""
        token = self.peek()
        self._position += token.kind != "end"
        return token

    def back(self) -> None:
        """Go back to the token before."""
        self._position -= 1

    def skip(self, *words: str) -> bool:
        """Pass over keywords or marks if they come next, all of them."""
        coming = [token.word for token in self._tokens[self._position : self._position + len(words)]]
        if coming != [*words]:
            return False
        self._position += len(words)
        return True

    def skip_any(self, words: Sequence[str]) -> str | None:
        """Pass over the first of some keywords or marks that comes next, and return it."""
        return next((word for word in words if self.skip(word)), None)

    def expect(self, mark: str) -> None:
        """Pass over a keyword or mark; raise if it does not come next."""
        if not self.skip(mark):
            raise self.wrong(f"lacks {mark!r}")

    def expect_end(self) -> None:
        """Raise if the text has more tokens."""
        if self.peek().kind != "end":
            raise self.wrong("has something behind its end")

    def wrong(self, problem: str, at: SqlToken | None = None) -> InvalidOptionError:
        """Return the error of a text that cannot be read at a token, by default the next."""
        token = self.peek() if at is None else at
        where = "at its end" if token.kind == "end" else f"at character {token.at + 1}, before {token.text!r}"
        return InvalidOptionError(f"{self._what} {self._text!r} {problem}, {where}.", self._hint)

    def _read_tokens(self) -> list[SqlToken]:
        """Return all tokens and the end; raise for a character that begins none."""
        tokens, at = [], 0
        while self._text[at:].strip():
            match = _TOKEN.match(self._text, at)
            if match is None:
                place = len(self._text) - len(self._text[at:].lstrip())
                raise InvalidOptionError(
                    f"{self._what} {self._text!r} cannot be read from character {place + 1} on, which is "
                    f"{self._text[place:][:20]!r}.",
                    "Write texts in single quotes, and odd names of columns in backticks.",
                )
            kind = match.lastgroup or ""
            tokens.append(SqlToken(kind, match[kind], match.start(kind)))
            at = match.end()
        return [*tokens, SqlToken("end", "", len(self._text))]


def _unescaped(escape: re.Match[str]) -> str:
    """Return what an escape, or a doubled quote, in a text stands for."""
    if escape[2]:
        # A quote that is written twice, inside of quotes.
        return escape[2]
    word = escape[1]
    if len(word) > 1:
        return chr(int(word[1:], 16) if word[0] in "uU" else int(word, 8))
    return _ESCAPED.get(word, word)
