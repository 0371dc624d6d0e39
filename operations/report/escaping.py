"""Escapes text from a table before a page shows it: one function for HTML, and one for JSON inside of HTML."""

from __future__ import annotations

import json
from typing import Any

from ..words.text import in_html

__all__ = ["in_html", "json_in_html", "shown"]

MOST_SHOWN = 120
# HTML parsers could take these for markup or the end of the block, and old script parsers for the end of a line.
_IN_JSON = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


def shown(text: str) -> str:
    """Return a text for HTML, without its middle if it is long."""
    half = MOST_SHOWN // 2
    return in_html(text if len(text) <= MOST_SHOWN else f"{text[:half]} … {text[-half:]}")


def json_in_html(value: Any) -> str:
    """Return a value as JSON for a block of data inside a page."""
    return json.dumps(value, separators=(",", ":"), default=str).translate(_IN_JSON)
