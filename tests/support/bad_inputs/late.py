"""Writes that a healthy table refuses when they have published a file already, into the partition ``new``."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from pyhudi import errors
from support.bad_inputs.case import GOOD, KEYED, Case, changed, upsert
from support.bad_inputs.rows import FAIL, insert

NEW = changed("p", ["new", "new"])
DATED = changed("id", [0, 1], pa.date32())


@dataclass(frozen=True)
class Late(Case):
    """A bad input behind good ones.

    Attributes:
        merging: Whether it shows when rows are merged, so that the commit of a plain write has published files too.
    """

    merging: bool = True


LATE = [
    Late(
        "key that is there, in another task",
        errors.DuplicateKeyError,
        ("'a'", "'x'", "{path}"),
        insert([NEW, GOOD]),
    ),
    Late(
        "key that is there, behind the new partition of one task",
        errors.DuplicateKeyError,
        ("'a'", "'x'"),
        insert(pa.concat_tables([NEW, GOOD])),
    ),
    Late(
        "key that is there, in a table without ordering",
        errors.DuplicateKeyError,
        ("'b'", "'y'"),
        upsert([NEW, GOOD[1:]], settings=FAIL),
        table=replace(KEYED, ordering_fields=()),
    ),
    Late(
        "partition inside the new one",
        errors.PartitionValueError,
        ("'new/deeper'", "'new'"),
        upsert([NEW, changed("p", ["new/deeper", "x"])]),
    ),
    Late(
        "null key in another task",
        errors.NullKeyError,
        ("'id'", "row 1"),
        upsert([NEW, changed("id", ["a", None])]),
        merging=False,
    ),
    Late(
        "date of five digits in another task",
        errors.DataError,
        ("'id'", "years 1 to 9999"),
        upsert([DATED.set_column(1, "p", NEW["p"]), changed("id", [0, 2_932_897], pa.date32())]),
        good=DATED,
        merging=False,
    ),
]
