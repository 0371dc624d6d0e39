"""What becomes of a table's columns when a write's differ: one table of every kind of difference, and its outcome."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.table.schema.evolution import EvolutionRules

DEFAULT, RECONCILE, SET_NULL = EvolutionRules(), EvolutionRules(reconcile=True), EvolutionRules(set_null=True)
BOTH = EvolutionRules(reconcile=True, set_null=True)
TO_TEXT = EvolutionRules(number_to_text=True)
RULES = {"default": DEFAULT, "reconcile": RECONCILE, "set null": SET_NULL, "number to text": TO_TEXT}

REFUSED = "!"


@dataclass(frozen=True)
class Difference:
    """One way in which a write's columns differ from a table's.

    Attributes:
        name: Says how.
        table: The table's columns.
        incoming: The write's.
        default: The table's columns after the write, or `REFUSED` and for each column what to do about it.
        reconcile: The same with ``hoodie.datasource.write.reconcile.schema``; empty where nothing is different.
        set_null: The same with ``hoodie.write.set.null.for.missing.columns``.
        hudi: What Apache Hudi 1.2 does otherwise by default; empty where it does the same.
        to_text: The table's columns after a write with ``hoodie.pyhudi.schema.number.to.text``, as Apache Hudi leaves
            them by default; empty where the option changes nothing.
    """

    name: str
    table: str
    incoming: str
    default: str
    reconcile: str = ""
    set_null: str = ""
    hudi: str = ""
    to_text: str = ""

    def outcome(self, rules: EvolutionRules) -> str:
        """Return what should come of it."""
        if rules.number_to_text and self.to_text:
            return self.to_text
        given = self.set_null if rules.set_null else self.reconcile if rules.reconcile else ""
        return given or self.default


def keeps(table: str, incoming: str, hudi: str = "") -> Difference:
    """A type that is widened to the table's."""
    return Difference(f"{incoming} into {table}", f"v {table}", f"v {incoming}", f"v {table}", hudi=hudi)


def widens(table: str, incoming: str) -> Difference:
    """A type to which the table's is widened."""
    return Difference(f"{table} becomes {incoming}", f"v {table}", f"v {incoming}", f"v {incoming}")


def keeps_its_numbers(table: str) -> Difference:
    """Text in a column of numbers, which becomes text by the option alone."""
    kept = "! v: cast it to float" if table == "float" else f"v {table}"
    return Difference(f"{table} becomes string", f"v {table}", "v string", kept, to_text="v string")


def refuses(table: str, incoming: str, hudi: str = "") -> Difference:
    """A type that does not fit the table's."""
    return Difference(f"{incoming} for {table}", f"v {table}", f"v {incoming}", f"! v: cast it to {table}", hudi=hudi)


def takes_whole(table: str, incoming: str, hudi: str) -> Difference:
    """A floating type whose whole numbers the table's column of whole numbers takes, as it is."""
    return Difference(f"{incoming} for {table}", f"v {table}", f"v {incoming}", f"v {table}", hudi=hudi)


STRUCTURES = [
    Difference("nothing", "v int, w string", "v int, w string", "v int, w string"),
    Difference("other order", "v int, w string", "w string, v int", "v int, w string"),
    Difference(
        "other order in a struct", "s struct<a:int,b:string>", "s struct<b:string,a:int>", "s struct<a:int,b:string>"
    ),
    Difference("new column at the end", "v int", "v int, w string", "v int, w string"),
    Difference("new column in the middle", "v int, x int", "v int, w string, x int", "v int, x int, w string"),
    Difference("new struct", "v int", "v int, s struct<a:int not null>", "v int, s struct<a:int not null>"),
    Difference(
        "new field in the middle of a struct",
        "s struct<a:int,b:string>",
        "s struct<a:int,c:bigint,b:string>",
        "s struct<a:int,b:string,c:bigint>",
    ),
    Difference(
        "new field in a struct in a list",
        "l array<struct<a:int>>",
        "l array<struct<a:int,b:string>>",
        "l array<struct<a:int,b:string>>",
    ),
    Difference(
        "new field in a struct in a map",
        "m map<string,struct<a:int>>",
        "m map<string,struct<a:int,b:string>>",
        "m map<string,struct<a:int,b:string>>",
    ),
    Difference(
        "new column that may not be null",
        "v int",
        "v int, w string not null",
        "v int, w string",
    ),
    Difference(
        "new field that may not be null",
        "s struct<a:int>",
        "s struct<a:int,b:string not null>",
        "s struct<a:int,b:string>",
    ),
    Difference(
        "new fields that may not be null, in a list and in a map",
        "l array<struct<a:int>>, m map<string,struct<a:int>>",
        "l array<struct<a:int,b:string not null>>, m map<string,struct<a:int,b:string not null>>",
        "l array<struct<a:int,b:string>>, m map<string,struct<a:int,b:string>>",
    ),
    Difference("missing column", "v int, w string", "v int", "! w: add it", "v int, w string", "v int, w string"),
    Difference(
        "missing column that may not be null",
        "v int, w string not null",
        "v int",
        "! w: add it, for it may not be null",
        set_null="v int, w string",
    ),
    Difference(
        "missing field",
        "s struct<a:int,b:string>",
        "s struct<a:int>",
        "! s.b: add it",
        "s struct<a:int,b:string>",
        "s struct<a:int,b:string>",
    ),
    Difference(
        "missing field in a struct in a list",
        "l array<struct<a:int,b:string>>",
        "l array<struct<a:int>>",
        "! l.element.b: add it",
        "l array<struct<a:int,b:string>>",
        "l array<struct<a:int,b:string>>",
    ),
    Difference(
        "missing field in a struct in a map",
        "m map<string,struct<a:int,b:string>>",
        "m map<string,struct<a:int>>",
        "! m.value.b: add it",
        "m map<string,struct<a:int,b:string>>",
        "m map<string,struct<a:int,b:string>>",
    ),
    Difference(
        "missing field that may not be null",
        "s struct<a:int,b:string not null>",
        "s struct<a:int>",
        "! s.b: add it, for it may not be null",
        set_null="s struct<a:int,b:string>",
    ),
    Difference(
        "one missing and one new",
        "v int, w string",
        "v int, z string",
        "! w: add it",
        "v int, w string, z string",
        "v int, w string, z string",
    ),
    Difference(
        "one field missing and one new",
        "s struct<a:int,b:string>",
        "s struct<a:int,c:bigint>",
        "! s.b: add it",
        "s struct<a:int,b:string,c:bigint>",
        "s struct<a:int,b:string,c:bigint>",
    ),
    Difference("new, and another wider", "v int", "v bigint, w string", "v bigint, w string"),
    Difference("new, and another narrower", "v bigint", "v int, w string", "v bigint, w string"),
    Difference(
        "missing, and another wider",
        "v int, w string",
        "v bigint",
        "! w: add it",
        "v bigint, w string",
        "v bigint, w string",
    ),
    Difference("name in another case", "v int", "V int", "! v: rename V, which differs in case"),
    Difference(
        "field in another case",
        "s struct<a:int,b:int>",
        "s struct<A:int,b:int>",
        "! s.a: rename s.A, which differs in case",
    ),
    Difference("not null into a nullable column", "v int", "v int not null", "v int"),
    Difference(
        "nullable into a column that may not be null",
        "v int not null",
        "v int",
        "v int",
        "v int not null",
        "v int not null",
    ),
    Difference(
        "nullable field into one that may not be null",
        "s struct<a:int not null>",
        "s struct<a:int>",
        "s struct<a:int>",
        "s struct<a:int not null>",
        "s struct<a:int not null>",
    ),
    Difference(
        "nullable elements and values into such as may not be null",
        "l array<int not null>, m map<string,int not null>",
        "l array<int>, m map<string,int>",
        "l array<int>, m map<string,int>",
        "l array<int not null>, m map<string,int not null>",
        "l array<int not null>, m map<string,int not null>",
    ),
    Difference(
        "wider field",
        "s struct<a:int,b:string>",
        "s struct<a:string,b:string>",
        "s struct<a:int,b:string>",
        to_text="s struct<a:string,b:string>",
    ),
    Difference("wider elements", "l array<int>", "l array<bigint>", "l array<bigint>"),
    Difference(
        "wider values",
        "m map<string,int>",
        "m map<string,string>",
        "m map<string,int>",
        to_text="m map<string,string>",
    ),
    Difference("narrower elements", "l array<bigint>", "l array<int>", "l array<bigint>"),
    Difference("another type of elements", "l array<int>", "l array<boolean>", "! l.element: cast it to int"),
    Difference("struct for string", "v string", "v struct<a:int>", "! v: make it a string"),
    Difference("string for struct", "v struct<a:int>", "v string", "! v: make it a struct<a:int>"),
    Difference("list for struct", "v struct<a:int>", "v array<int>", "! v: make it a struct<a:int>"),
    Difference("map for struct", "v struct<a:int>", "v map<string,int>", "! v: make it a struct<a:int>"),
    Difference("list for string", "v string", "v array<int>", "! v: make it a string"),
    Difference(
        "several",
        "a int, b int, c string",
        "a boolean, c date, d int not null",
        "! a: cast it to int; b: add it",
        "! a: cast it to int",
        "! a: cast it to int",
    ),
]
TYPES = [
    widens("int", "bigint"),
    Difference("int becomes double", "v int", "v double", "v int", to_text="v double"),
    keeps_its_numbers("int"),
    keeps_its_numbers("bigint"),
    widens("float", "double"),
    keeps_its_numbers("float"),
    widens("decimal(5,2)", "decimal(7,2)"),
    widens("decimal(5,2)", "decimal(7,4)"),
    widens("decimal(5,2)", "decimal(20,4)"),
    keeps("int", "tinyint"),
    keeps("int", "smallint"),
    keeps("bigint", "int"),
    keeps("float", "int"),
    keeps("float", "bigint"),
    keeps("double", "int"),
    keeps("double", "bigint"),
    keeps("double", "float"),
    keeps("string", "int"),
    keeps("string", "bigint"),
    keeps("string", "float"),
    keeps("string", "double"),
    keeps("string", "decimal(5,2)"),
    keeps("string", "date"),
    keeps("string", "binary"),
    keeps("binary", "string"),
    keeps("date", "string"),
    keeps("decimal(7,2)", "decimal(5,2)"),
    keeps("decimal(7,4)", "decimal(5,2)"),
    keeps("decimal(5,2)", "int"),
    keeps("decimal(5,2)", "bigint"),
    keeps("decimal(5,2)", "double"),
    keeps("decimal(5,2)", "float"),
    keeps("decimal(5,2)", "string"),
    takes_whole("int", "float", "v float, and whole numbers beyond 2^24 are rounded"),
    takes_whole("bigint", "float", "v float, and whole numbers beyond 2^24 are rounded"),
    takes_whole("bigint", "double", "v double, and whole numbers beyond 2^53 are rounded"),
    refuses("double", "string", "v string, and what was an int before is spelt so or so"),
    refuses("bigint", "timestamp", "v timestamp, and numbers are taken for microseconds"),
    refuses("bigint", "timestamp_ntz", "v timestamp_ntz, and numbers are taken for microseconds"),
    refuses("decimal(7,2)", "decimal(7,4)"),
    refuses("decimal(7,4)", "decimal(7,2)"),
    *(
        refuses(table, incoming)
        for table, others in {
            "boolean": "int bigint float double string binary date timestamp timestamp_ntz decimal(5,2)",
            "int": "boolean binary date timestamp timestamp_ntz decimal(20,4)",
            "bigint": "boolean binary date decimal(20,4)",
            "float": "boolean binary date timestamp timestamp_ntz decimal(20,4)",
            "double": "boolean binary date timestamp timestamp_ntz decimal(20,4)",
            "string": "boolean timestamp timestamp_ntz",
            "binary": "boolean int bigint float double date timestamp timestamp_ntz decimal(5,2)",
            "date": "boolean int bigint float double binary timestamp timestamp_ntz decimal(5,2)",
            "timestamp": "boolean int bigint float double string binary date timestamp_ntz decimal(20,4)",
            "timestamp_ntz": "boolean int bigint float double string binary date timestamp decimal(20,4)",
            "decimal(5,2)": "boolean binary date timestamp timestamp_ntz",
        }.items()
        for incoming in others.split()
    ),
]
MATRIX = [*STRUCTURES, *TYPES]
