"""Put the tables of what a write may change into docs/schema.md, by asking the code that decides it.

python docs/make_schema.py
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyhudi.table.schema.casts import fits, fits_by_value, fits_if_whole
from pyhudi.table.schema.columns import canonical
from pyhudi.table.schema.evolution import EvolutionRules, evolve
from pyhudi.table.schema.types import sql_name

PAGE = Path(__file__).with_name("schema.md")
RULES = (EvolutionRules(), EvolutionRules(reconcile=True), EvolutionRules(set_null=True))

INT, LONG, TEXT = pa.int32(), pa.int64(), pa.string()
A, B, C = pa.field("a", INT), pa.field("b", TEXT), pa.field("c", LONG)
S_AB, S_A, S_ACB = (pa.field("s", pa.struct(fields)) for fields in ([A, B], [A], [A, C, B]))

CHANGES: dict[str, tuple[list[pa.Field], list[pa.Field]]] = {
    "the same in another order": ([A, B], [B, A]),
    "a new column": ([A, C], [A, B, C]),
    "a new column that may not be null": ([A], [A, B.with_nullable(False)]),
    "a new field in a struct, a list's or a map's too": ([S_AB], [S_ACB]),
    "a missing column": ([A, B], [A]),
    "a missing column that may not be null": ([A, B.with_nullable(False)], [A]),
    "a missing field": ([S_AB], [S_A]),
    "one missing, one new": ([A, B], [A, C]),
    "a wider type": ([A], [pa.field("a", LONG)]),
    "a narrower type": ([pa.field("a", LONG)], [A]),
    "may be null, and may not in the table": ([A.with_nullable(False)], [A]),
    "may not be null, and may in the table": ([A], [A.with_nullable(False)]),
    "a name in another case": ([A], [pa.field("A", INT)]),
    "another kind of column": ([S_AB], [pa.field("s", TEXT)]),
}
TYPES = [
    pa.bool_(),
    INT,
    LONG,
    pa.float32(),
    pa.float64(),
    pa.decimal128(5, 2),
    pa.decimal128(7, 2),
    TEXT,
    pa.binary(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
]


def changes() -> list[str]:
    """Return the table of columns that come, go and change."""
    lines = [
        "| the rows have | table | rows | by default | `reconcile.schema` | `set.null.for.missing.columns` |",
        "|---|---|---|---|---|---|",
    ]
    for what, (table, incoming) in CHANGES.items():
        cells = [outcome(pa.schema(table), pa.schema(incoming), rules) for rules in RULES]
        lines.append(f"| {what} | {shown(pa.schema(table))} | {shown(pa.schema(incoming))} | {' | '.join(cells)} |")
    return lines


def types() -> list[str]:
    """Return the table of types: the table's downwards, the rows' to the right."""
    lines = ["| | " + " | ".join(map(sql_name, TYPES)) + " |", "|---|" + ":-:|" * len(TYPES)]
    for ours in TYPES:
        cells = [cell(ours, theirs) for theirs in TYPES]
        lines.append(f"| **{sql_name(ours)}** | {' | '.join(cells)} |")
    return lines


def outcome(table: pa.Schema, incoming: pa.Schema, rules: EvolutionRules) -> str:
    """Return what becomes of a table's columns."""
    evolution = evolve(table, canonical(incoming), rules)
    if evolution.differences:
        return "refused: " + "; ".join(one.todo for one in evolution.differences)
    return "as it was" if evolution.schema == table else shown(evolution.schema)


def cell(ours: pa.DataType, theirs: pa.DataType) -> str:
    """Return what becomes of a column's type."""
    evolution = evolve(pa.schema([("v", ours)]), pa.schema([("v", theirs)]), EvolutionRules())
    if evolution.differences:
        return "–"
    if evolution.schema.field("v").type != ours:
        return f"→ {sql_name(theirs)}"
    by_value = fits_by_value(theirs, ours) or fits_if_whole(theirs, ours)
    return "(=)" if by_value and not fits(theirs, ours) else "="


def shown(schema: pa.Schema) -> str:
    """Return columns as DDL."""
    columns = [f"{one.name} {sql_name(one.type)}{'' if one.nullable else ' not null'}" for one in schema]
    return f"`{', '.join(columns)}`"


def page(text: str) -> str:
    """Return the page with both tables as they are now."""
    for name, lines in {"changes": changes(), "types": types()}.items():
        begin, end = f"<!-- {name}: made by docs/make_schema.py -->\n", f"<!-- /{name} -->\n"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = "\n".join((before + begin.rstrip(), *lines, end + after))
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
