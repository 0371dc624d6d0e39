"""Bad inputs as data: what a user may ask of a table and be refused, each with the error that says so."""

from __future__ import annotations

from support.bad_inputs.answers import ANSWERS
from support.bad_inputs.case import GOOD, KEYED, Act, Case, new_table
from support.bad_inputs.columns import COLUMNS
from support.bad_inputs.creations import CREATIONS
from support.bad_inputs.late import LATE, Late
from support.bad_inputs.options import OPTIONS
from support.bad_inputs.others import OTHERS
from support.bad_inputs.queries import QUERIES
from support.bad_inputs.rows import ROWS
from support.bad_inputs.undoing import UNDOING

__all__ = [
    "ANSWERS",
    "COLUMNS",
    "CREATIONS",
    "GOOD",
    "KEYED",
    "LATE",
    "OPTIONS",
    "OTHERS",
    "QUERIES",
    "ROWS",
    "UNDOING",
    "Act",
    "Case",
    "Late",
    "new_table",
]
