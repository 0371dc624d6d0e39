"""Keys of a secondary index: the value of the column, ``$``, and the record key.

A backslash precedes each backslash, ``$`` and NUL in both. A null is NUL alone. Source: ``SecondaryIndexKeyUtils``.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

NULL, END = "\0", "$"
_ESCAPED = r"([\\$\x00])"
# What precedes the record key, and what an escape is.
_BEFORE_KEY = r"(?s)^(?:[^\\$]|\\.)*\$"
_ESCAPE = r"(?s)\\(.)"


def escaped(texts: pa.StringArray) -> pa.StringArray:
    """Return texts as keys spell them."""
    return pc.replace_substring_regex(texts, _ESCAPED, r"\\\1")


def beginnings(values: pa.StringArray) -> pa.StringArray:
    """Return how the keys of rows with some values begin."""
    return pc.binary_join_element_wise(pc.fill_null(escaped(values), NULL), END, "")


def escaped_record_keys(keys: pa.StringArray) -> pa.StringArray:
    """Return the part of keys behind their values."""
    return pc.replace_substring_regex(keys, _BEFORE_KEY, "")


def record_keys_in(keys: pa.StringArray) -> pa.StringArray:
    """Return the record keys that keys of the index name."""
    return pc.replace_substring_regex(escaped_record_keys(keys), _ESCAPE, r"\1")
