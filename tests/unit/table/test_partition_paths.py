"""Folder names of partition values, their dangers, and the way back."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyhudi.errors import PartitionValueError
from pyhudi.table.config import TableConfig
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.keys.partition_paths import check_safe, escape, format_segment, parse_partition_path, unescape

TIMESTAMP = {"hoodie.table.keygenerator.type": "TIMESTAMP"}
CUSTOM = {
    "hoodie.table.keygenerator.type": "CUSTOM",
    "hoodie.table.partition.fields": "p:SIMPLE,t:TIMESTAMP,q:simple",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM",
}
VALUES = st.text(st.characters(exclude_categories=("Cs",)))
FLAGS = st.booleans()


def config(*fields: str, hive_style: bool = False, url_encode: bool = False, **properties: str) -> TableConfig:
    made = TableConfig.new(
        TableSettings(
            name="t",
            record_key_fields=("id",),
            partition_fields=fields,
            hive_style=hive_style,
            url_encode=url_encode,
            index_type="BUCKET",
        )
    )
    return TableConfig({**made.properties, **properties})


@pytest.mark.parametrize(
    ("value", "escaped"),
    [
        ("é x/=%:y", "é x%2F%3D%25%3Ay"),
        ("a b}|&+\"#\\*?{[]^'", "a b}|&+%22%23%5C%2A%3F%7B%5B%5D%5E%27"),
        ("a,b:c", "a,b%3Ac"),
        ("\x01\x1f\x7f\n", "%01%1F%7F%0A"),
        ("日本.-_~!@$();<>`", "日本.-_~!@$();<>`"),
    ],
)
def test_a_value_is_escaped_as_by_apache_hudi(value: str, escaped: str) -> None:
    assert escape(value) == escaped


@given(VALUES)
def test_what_is_escaped_is_unescaped(value: str) -> None:
    assert unescape(escape(value)) == value


def test_a_percent_that_is_no_escape_stays() -> None:
    assert unescape("100%_%4_%zz%41") == "100%_%4_%zzA"


@pytest.mark.parametrize("value", [None, ""])
def test_null_and_empty_go_to_hives_default(value: str | None) -> None:
    assert format_segment(value, "p", config("p", url_encode=True)) == "__HIVE_DEFAULT_PARTITION__"
    assert format_segment(value, "p", config("p", hive_style=True)) == "p=__HIVE_DEFAULT_PARTITION__"


@pytest.mark.parametrize(
    ("value", "hive_style", "curable"),
    [
        ("..", False, False),
        (".", False, False),
        ("../other", False, True),
        ("a/../b", True, True),
        ("/etc", False, True),
        ("a/", False, True),
        ("a//b", False, True),
        ("/", True, True),
        (".hoodie", False, False),
        (".hoodie_partition_metadata", False, False),
        ("a/.hoodie/timeline", True, True),
        ("a\0b", False, True),
        ("é" * 128, False, False),
        ("a:b", False, True),
        ("a:b", True, True),
    ],
)
def test_a_dangerous_value_is_refused(value: str, hive_style: bool, curable: bool) -> None:
    with pytest.raises(PartitionValueError) as raised:
        check_safe(value, "p", config("p", hive_style=hive_style))

    assert repr(value) in raised.value.what
    assert ("hoodie.datasource.write.partitionpath.urlencode=true" in raised.value.todo) is curable


@pytest.mark.parametrize("value", ["a/b", "a/b:c", "...", "x.hoodie", "é" * 127, " ", "~", "a=b", "%2F", None, ""])
def test_a_harmless_value_passes(value: str | None) -> None:
    check_safe(value, "p", config("p"))


def test_a_colon_is_harmless_below_the_first_folder() -> None:
    check_safe("a:b", "q", config("p", "q"))


@given(st.lists(VALUES | st.none(), min_size=1, max_size=3), FLAGS)
def test_an_escaped_path_tells_its_values(values: list[str | None], hive_style: bool) -> None:
    assume(all(value not in ("", "__HIVE_DEFAULT_PARTITION__") for value in values))
    fields = [f"f{position}" for position in range(len(values))]
    table = config(*fields, hive_style=hive_style, url_encode=True)
    path = "/".join(format_segment(value, field, table) for field, value in zip(fields, values, strict=True))

    assert parse_partition_path(path, table) == dict(zip(fields, values, strict=True))


@pytest.mark.parametrize(
    ("path", "table", "expected"),
    [
        ("", config(), {}),
        ("a", config(), None),
        ("a/b", config("p"), {"p": "a/b"}),
        ("p=a/b", config("p", hive_style=True), {"p": "a/b"}),
        ("a/b", config("p", "q"), {"p": "a", "q": "b"}),
        ("a/b/c", config("p", "q"), None),
        ("p=1/q=__HIVE_DEFAULT_PARTITION__", config("p", "q", hive_style=True), {"p": "1", "q": None}),
        ("1/2", config("p", "q", hive_style=True), None),
        ("a%2Fb", config("p"), {"p": "a%2Fb"}),
        ("a%2Fb", config("p", url_encode=True), {"p": "a/b"}),
        ("2024/01/02", config("p", **TIMESTAMP), {}),
        ("p=2024/01/02", config("p", hive_style=True, **TIMESTAMP), {}),
        ("a/2024/01/b", config("p", "t", "q", **CUSTOM), {"p": "a", "q": "b"}),
        ("p=a/t=2024/01/q=b", config("p", "t", "q", hive_style=True, **CUSTOM), {"p": "a", "q": "b"}),
        (
            "p=a/t=2024%2F01/q=b",
            config("p", "t", "q", hive_style=True, url_encode=True, **CUSTOM),
            {"p": "a", "q": "b"},
        ),
        ("a/b/2024/01/b", config("p", "t", "q", **CUSTOM), None),
        ("a/b", config("p", "q", **{**CUSTOM, "hoodie.table.partition.fields": "p:SIMPLE,q"}), None),
        ("", config("p", **{"hoodie.table.keygenerator.type": "NON_PARTITION"}), {}),
        ("a", config("p", **{"hoodie.table.keygenerator.type": "com.acme.Mine"}), None),
        ("2024/01/02", config("p", **{"hoodie.datasource.write.slash.separated.date.partitioning": "true"}), None),
    ],
)
def test_a_path_tells_its_values_or_says_that_it_does_not(
    path: str, table: TableConfig, expected: dict[str, str | None] | None
) -> None:
    assert parse_partition_path(path, table) == expected


DANGEROUS = st.lists(
    st.sampled_from(["..", ".", "/", "a", "é", "\0", ":", "%", "=", ".hoodie", "x" * 200, "\n", ""]), max_size=6
)
ANY = DANGEROUS.map("".join) | VALUES


@given(st.lists(ANY | st.none(), min_size=1, max_size=3), FLAGS, FLAGS)
def test_no_value_leads_out_of_the_table(values: list[str | None], hive_style: bool, url_encode: bool) -> None:
    """Nor to Hudi's own files, nor to a folder that a file system refuses."""
    fields = [f"f{position}" for position in range(len(values))]
    table = config(*fields, hive_style=hive_style, url_encode=url_encode)
    try:
        for field, value in zip(fields, values, strict=True):
            check_safe(value, field, table)
    except PartitionValueError:
        assume(False)
    path = "/".join(format_segment(value, field, table) for field, value in zip(fields, values, strict=True))
    names = path.split("/")

    assert posixpath.normpath(f"/table/{path}") == f"/table/{path}"
    assert not path.startswith(".hoodie")
    assert all(name and not name.startswith(".hoodie") and "\0" not in name for name in names)
    assert max(len(name.encode()) for name in names) <= 255
    assert not url_encode or len(names) == len(values)


@pytest.mark.parametrize(
    ("value", "plainly", "escaped"),
    [
        ("a b", "a b", "a b"),
        ("a.b", "a.b", "a.b"),
        (".a", ".a", ".a"),
        ("...", "...", "..."),
        ("a=b", "a=b", "a%3Db"),
        ("100%", "100%", "100%25"),
        ("\u00e9", "\u00e9", "\u00e9"),
        ("e\u0301", "e\u0301", "e\u0301"),
        ("a/b", "a/b", "a%2Fb"),
        ("/a", None, "%2Fa"),
        ("a/", None, "a%2F"),
        ("a//b", None, "a%2F%2Fb"),
        ("a/../b", None, "a%2F..%2Fb"),
        (".", None, None),
        ("..", None, None),
        (".hoodie", None, None),
        (".hoodie_x", None, None),
        ("a:b", None, "a%3Ab"),
        ("a\tb\n", "a\tb\n", "a%09b%0A"),
        ("a\0b", None, "a%00b"),
        ("x" * 255, "x" * 255, "x" * 255),
        ("x" * 256, None, None),
        (":" * 85, None, "%3A" * 85),
        (":" * 86, None, None),
        ("é" * 128, None, None),
    ],
)
def test_each_value_of_the_documented_table(value: str, plainly: str | None, escaped: str | None) -> None:
    """docs/keys.md shows these; None stands for a refusal."""
    for url_encode, expected in ((False, plainly), (True, escaped)):
        table = config("p", url_encode=url_encode)
        if expected is None:
            with pytest.raises(PartitionValueError):
                check_safe(value, "p", table)
        else:
            check_safe(value, "p", table)
            assert format_segment(value, "p", table) == expected


@pytest.mark.parametrize("value", [".", "..", ".hoodie"])
def test_a_name_in_front_makes_a_folder_like_any_other(value: str) -> None:
    check_safe(value, "p", config("p", hive_style=True))
