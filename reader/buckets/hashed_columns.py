"""Which columns decide a row's bucket, and whether equal values of two tables have equal hashes.

Apache Hudi hashes texts that it parses out of the record key (`index/key_parser.py`, `index/bucket.py`). So two rows
with equal values are in buckets that belong together only if both tables spell the values alike, and if no text holds
what the parser takes for the next field of the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...errors import InvalidOptionError, MissingColumnError, OptionConflictError, UnsupportedTableError
from ...table.config import TableConfig
from ...table.config import property_keys as key
from ...table.config.key_types import KeyGeneratorType
from ...table.config.property_keys import NEWEST_VERSION
from ...table.schema.fields import find_field
from ...table.schema.types import is_text, sql_name

ADVICE = "Let Spark move the rows: join or group the DataFrames that HudiTable.to_df() returns."
_MARKS = ",:"
TEXT, DATE = "text", "date"


@dataclass(frozen=True, slots=True)
class Doubts:
    """Columns of the record key whose values may have other hashes than equal values in other rows.

    Attributes:
        texts: Texts, which must hold no separator and no placeholder of a record key.
        dates: Hashed dates, of which writers spell those before 1582-10-15 in different ways.
    """

    texts: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HashedColumns:
    """How the rows of a table are hashed.

    Attributes:
        fields: The columns of the record key, in its order.
        hashed: Those that are hashed, in the same order.
        kinds: What each hashed column holds; columns of one kind spell equal values alike.
        texts: The columns of the record key that hold texts.
        is_named: Whether a record key holds the names of its fields.
    """

    path: str
    fields: tuple[str, ...]
    hashed: tuple[str, ...]
    kinds: tuple[str, ...]
    types: tuple[str, ...]
    texts: tuple[str, ...]
    is_named: bool

    @classmethod
    def of(cls, config: TableConfig, schema: pa.Schema, path: str) -> HashedColumns:
        """Return which columns of a table with a record key decide a row's bucket, and how.

        ``config`` and ``schema`` are the table's, and ``path`` names it in errors. Raises UnsupportedTableError if keys
        may spell equal values in different ways, so that their rows may be in different buckets.
        """
        fields = config.record_key_fields
        chosen = config.hash_fields or fields
        hashed = tuple(field for field in fields if field in chosen)
        types = {field: _type_of(schema, field, path) for field in fields}
        kinds = [_spelling_kind(types[field]) for field in hashed]
        unsure_columns = [field for field, kind in zip(hashed, kinds, strict=True) if kind is None]
        # Columns that are not hashed count, too: such a value may look like a further field of the key, and so change
        # what is hashed.
        unsure_columns += [field for field, kind in types.items() if not _has_known_marks(kind)]
        if unsure_columns:
            raise UnsupportedTableError(
                f"The record key of the table {path} has the column {unsure_columns[0]!r} of type "
                f"{sql_name(types[unsure_columns[0]])}. Its "
                "values have several spellings in keys, so equal values may be in different buckets.",
                ADVICE,
            )
        if config.names_key_field is None or _has_two_spellings(config):
            raise UnsupportedTableError(
                f"The table {path} of version {config.version} may spell its record keys in two ways "
                f"({key.COMPLEX_KEY_ENCODING}), so equal values may be in different buckets.",
                ADVICE,
            )
        texts = tuple(field for field in fields if is_text(types[field]))
        if config.has_two_key_rules and texts:
            raise UnsupportedTableError(
                f"The table {path} is, or was before an upgrade, of version {key.NEWEST_FLAT_VERSION}, and its record "
                f"key has the column {texts[0]!r}. Writers of that version hash text with a comma or a colon in two "
                "ways, so equal values may be in different buckets. No rewrite of the table ends that.",
                f"{ADVICE} Or insert its rows into a new table, of version {NEWEST_VERSION}, and join that.",
            )
        return cls(
            path,
            fields,
            hashed,
            tuple(kind for kind in kinds if kind is not None),
            tuple(sql_name(types[field]) for field in hashed),
            texts,
            len(fields) > 1 or bool(config.names_key_field),
        )

    @property
    def hashes_names(self) -> bool:
        """Whether the hash depends on the names of the key's fields, because Hudi's parser does not cut the key."""
        return self.is_named and (len(self.fields) == 1 or any(mark in name for name in self.fields for mark in _MARKS))

    @property
    def deciding(self) -> tuple[str, ...]:
        """The columns whose values decide the hash, whatever they hold."""
        if self.hashes_names:
            return self.fields
        return tuple(field for field in self.fields if field in self.hashed or field in self.texts)

    def dates(self) -> tuple[str, ...]:
        """Return the hashed columns of dates."""
        return tuple(field for field, kind in zip(self.hashed, self.kinds, strict=True) if kind == DATE)

    def check_names(self, names: Sequence[str], call: str) -> None:
        """Raise InvalidOptionError if the columns of a join or an aggregation lack a hashed column."""
        missing_columns = [field for field in self.hashed if field not in names]
        if missing_columns:
            raise InvalidOptionError(
                f"{call} of the table {self.path} goes by {', '.join(names)}, which lacks "
                f"{', '.join(missing_columns)}. The table's buckets are made of {', '.join(self.hashed)}, so rows that "
                "belong together are spread over all buckets.",
                f"Name these columns too. Or else: {ADVICE[0].lower()}{ADVICE[1:]}",
            )


def doubts_of_one(side: HashedColumns, names: Sequence[str]) -> Doubts:
    """Return what must be checked so that rows of one table with equal values of some columns share a bucket."""
    side.check_names(names, "bucket_agg()")
    # Then all that is hashed is equal, whatever the texts hold.
    if all(field in names for field in side.deciding):
        return Doubts(dates=side.dates())
    _refuse_hashed_names(side)
    return Doubts(side.texts, side.dates())


def doubts_of_two(left: HashedColumns, right: HashedColumns, pairs: Sequence[tuple[str, str]]) -> tuple[Doubts, Doubts]:
    """Return what must be checked of each side so that rows which agree in all pairs of columns have equal hashes.

    ``left`` and ``right`` say how the two tables hash their rows; each pair names a column of the left table and one of
    the right. The result names, for each side, the columns whose values may hash otherwise than equal values. Raises
    InvalidOptionError if the pairs lack a hashed column, OptionConflictError if the tables hash otherwise.
    """
    left.check_names([mine for mine, _ in pairs], "bucket_join()")
    right.check_names([theirs for _, theirs in pairs], "bucket_join()")
    partners = dict(pairs)
    partners_of_hashed = tuple(partners[field] for field in left.hashed)
    if partners_of_hashed != right.hashed:
        raise OptionConflictError(
            f"The table {left.path} is bucketed by {', '.join(left.hashed)}, which are to equal "
            f"{', '.join(partners_of_hashed)}, and "
            f"the table {right.path} by {', '.join(right.hashed)}: in another order or number, so that equal rows are "
            "in unlike buckets.",
            ADVICE,
        )
    for mine, kind, theirs, other in zip(left.types, left.kinds, right.types, right.kinds, strict=True):
        if kind != other:
            raise OptionConflictError(
                f"The columns {', '.join(left.hashed)} of the table {left.path} include a {mine} where the table "
                f"{right.path} has a {theirs}. Record keys spell these types differently, so equal rows are in unlike "
                "buckets.",
                ADVICE,
            )
    is_same_key = (left.fields, left.hashed, left.is_named) == (right.fields, right.hashed, right.is_named)
    # Then all that is hashed is equal, whatever the texts hold. A column may hold texts in one of the tables alone.
    if is_same_key and all(partners.get(field) == field for field in (*left.deciding, *right.deciding)):
        return Doubts(dates=left.dates()), Doubts(dates=right.dates())
    _refuse_hashed_names(left)
    _refuse_hashed_names(right)
    return Doubts(left.texts, left.dates()), Doubts(right.texts, right.dates())


def _refuse_hashed_names(side: HashedColumns) -> None:
    """Raise OptionConflictError if the hash depends on the names of the key's fields, too."""
    if side.hashes_names:
        raise OptionConflictError(
            f"The record keys of the table {side.path} hold the names of their fields {', '.join(side.fields)}, which "
            "are hashed with the values: only rows with all of these columns alike are sure to share a bucket.",
            ADVICE,
        )


def _type_of(schema: pa.Schema, field: str, path: str) -> pa.DataType:
    """Return the type of a column of the record key; MissingColumnError if the table lacks it."""
    column = find_field(schema, field)
    if column is None:
        raise MissingColumnError(
            f"The table {path} has no column {field!r}, which its record key is made of.",
            "Write rows to the table first, or correct its properties.",
        )
    return column.type


def _spelling_kind(kind: pa.DataType) -> str | None:
    """Return the kind of a type's values, among which equal values have one text; None for several spellings."""
    types = pa.types
    if types.is_integer(kind) or (types.is_decimal(kind) and kind.scale == 0):
        return "whole number"
    if types.is_boolean(kind):
        return "truth value"
    if types.is_date(kind):
        return DATE
    return TEXT if is_text(kind) else None


def _has_known_marks(kind: pa.DataType) -> bool:
    """Return whether values of a type cannot be taken for a further field of a record key, or are texts.

    A further field takes both separators, a comma and a colon. Texts, which may hold them, are checked one by one.
    """
    types = pa.types
    return _spelling_kind(kind) is not None or bool(
        types.is_decimal(kind) or types.is_floating(kind) or types.is_timestamp(kind)
    )


def _has_two_spellings(config: TableConfig) -> bool:
    """Return whether the table may hold rows of releases with another spelling of keys; its note is about writes."""
    if config.key_generator is not KeyGeneratorType.COMPLEX or len(config.record_key_fields) != 1:
        return False
    return key.COMPLEX_KEY_ENCODING in config.properties
