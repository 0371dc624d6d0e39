"""Java's ``.properties`` text, as ``java.util.Properties`` loads and stores it."""

from __future__ import annotations

import re
from collections.abc import Mapping

# A natural line ends at \n, \r or \r\n; a backslash in front of the end carries the logical line on.
_LINE_END = re.compile(r"\r\n|\n|\r")
_LEADING = " \t\f"
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_SEPARATOR = re.compile(r"(?P<key>(?:\\.|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?", re.DOTALL)
_UNESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {
    "\t": "\\t",
    "\n": "\\n",
    "\r": "\\r",
    "\f": "\\f",
    "\\": "\\\\",
    "=": "\\=",
    ":": "\\:",
    "#": "\\#",
    "!": "\\!",
}
_FIRST_PRINTABLE, _LAST_PRINTABLE = 0x20, 0x7E
_BASIC_PLANE = 0xFFFF


def parse_properties(data: bytes) -> dict[str, str]:
    """Return the properties of ISO-8859-1 text, the last of equal keys; ValueError for a malformed unicode escape."""
    properties: dict[str, str] = {}
    for line in _logical_lines(data.decode("iso-8859-1")):
        match = _SEPARATOR.match(line)
        key = match["key"] if match else ""
        value = line[match.end() :] if match else line
        properties[_unescape(key)] = _unescape(value)
    return properties


def format_properties(properties: Mapping[str, str], comment: str) -> bytes:
    """Return the properties as ``java.util.Properties`` stores them, below a line of comment."""
    lines = [f"#{_escape_unprintable(comment)}"]
    lines += [f"{_escape(key, every_blank=True)}={_escape(value)}" for key, value in properties.items()]
    return ("\n".join(lines) + "\n").encode("ascii")


def _logical_lines(text: str) -> list[str]:
    """Return the lines of properties: continued lines joined, without blank lines and comments."""
    lines: list[str] = []
    joined = ""
    carried_on = False
    for natural in _LINE_END.split(text):
        stripped = natural.lstrip(_LEADING)
        if not carried_on and (not stripped or stripped[0] in "#!"):
            continue
        trailing = len(stripped) - len(stripped.rstrip("\\"))
        carried_on = trailing % 2 == 1
        joined += stripped[:-1] if carried_on else stripped
        if not carried_on:
            lines.append(joined)
            joined = ""
    if joined:
        # The text ends with a line that a backslash carries on.
        lines.append(joined)
    return lines


def _unescape(text: str) -> str:
    """Return a key or a value without its escapes; ValueError for a malformed unicode escape."""
    if "\\" not in text:
        return text

    def text_of(match: re.Match[str]) -> str:
        """Return the character that an escape means; ValueError for a ``u`` without four hex digits behind it."""
        code, letter = match.groups()
        if code is not None:
            return chr(int(code, 16))
        if letter == "u":
            raise ValueError(f"malformed \\u escape in {text!r}")
        return _UNESCAPED.get(letter, letter)

    # Characters beyond the basic plane come as two escapes.
    return _ESCAPE.sub(text_of, text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _escape(text: str, *, every_blank: bool = False) -> str:
    """Return a value with its special characters escaped; a key needs ``every_blank``, as a blank would end it."""
    escaped = "".join(_ESCAPED.get(char, char) for char in text)
    if every_blank:
        escaped = escaped.replace(" ", "\\ ")
    elif escaped.startswith(" "):
        escaped = "\\" + escaped
    return _escape_unprintable(escaped)


def _escape_unprintable(text: str) -> str:
    return "".join(char if _FIRST_PRINTABLE <= ord(char) <= _LAST_PRINTABLE else _units(char) for char in text)


def _units(char: str) -> str:
    """Return the unicode escapes of a character, one for each of its UTF-16 code units."""
    if ord(char) <= _BASIC_PLANE:
        return f"\\u{ord(char):04X}"
    lead, trail = divmod(ord(char) - 0x10000, 0x400)
    return f"\\u{0xD800 + lead:04X}\\u{0xDC00 + trail:04X}"
