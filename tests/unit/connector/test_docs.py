"""The pages that are made from the code are those that the code makes now, and no link leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import types
from support.public_api import public_names
from support.rules.pages import anchors, prose_words
from support.scripts import script

ROOT = Path(__file__).parents[3]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
]
# Pages that a reader takes in as a whole; tables, code and what is made from the code do not count.
SHORT_PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *(
        f"docs/{name}.md"
        for name in (
            "architecture",
            "concepts",
            "quickstart",
            "operations",
            "queries",
            "streams",
            "upkeep",
            "sorting",
            "joins",
            "coming-from",
            "command",
            "other-engines",
        )
    ),
]
MOST_WORDS = 1200
LINKING = [*PAGES, *(f"docs/decisions/{path.name}" for path in (ROOT / "docs" / "decisions").glob("*.md"))]
# What differs each time that a table is made: file ids but for the bucket, write tokens, instants, their hours, and
# column widths.
PASSING = re.compile(r"[0-9a-f]{32}|(?<=\d{8})-[0-9a-f-]{27}-0_\d+-\d+-\d+(?=_)|\d{17}|\d{10}(?=\.v\d)| {2,}(?=\S)")


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def test_the_list_of_options_is_current() -> None:
    """Make it anew with `python docs/make_options.py`."""
    assert read("docs/options.md") == script("make_options").page()


def test_the_reference_of_the_api_is_current() -> None:
    """Make it anew with `python docs/make_api.py`."""
    assert read("docs/api.md") == script("make_api").page()


def test_the_page_of_columns_is_current() -> None:
    """Make it anew with `python docs/make_columns.py`."""
    assert read("docs/columns.md") == script("make_columns").page()


def test_the_reference_has_all_that_is_public() -> None:
    """But for what Spark calls, what each error has, and what classes of indexes inherit and say no more of."""
    home = re.compile(r"^pyhudi\.(index\.base\.|index\.outside\.|errors\.|connector\.jobs\.)?")
    apart = re.compile(
        r"pyhudi\.testing|__version__$|(PyHudiDataSource|ComputedIndex|LookupIndex|OutsideIndex)\.|"
        r"\w+Error\.(code|from_text|text)$"
    )
    public = {line.partition("(")[0] for line in public_names() if line.startswith("pyhudi.")}
    names = {home.sub("", one) for one in public if not apart.search(one)}
    documented = script("make_api").documented()
    # What two classes of tables share has one entry.
    shared = {one for one in names if one.replace("arrow.Table.", "HudiTable.") in documented}

    assert names - shared - documented == set()


def test_links_within_the_reference_lead_to_its_entries() -> None:
    text = read("docs/api.md")

    assert len(anchors(text)) >= len(re.findall(r"^#+ ", text, re.MULTILINE))
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) - anchors(text) == set()


def test_the_page_of_log_lines_names_every_phase_of_a_write() -> None:
    paths = [*(ROOT / "operations/write").glob("*.py"), ROOT / "operations/transaction/life.py"]
    code = "".join(path.read_text(encoding="utf-8") for path in paths)
    sentence = re.search(r"Phases of a task are (.*?)\.", read("docs/logging.md"), re.DOTALL)

    assert sentence is not None
    assert set(re.findall(r"`(\w+)`", sentence[1])) == set(re.findall(r'\b(?:phase|add)\("(\w+)"', code))


def test_the_tables_of_types_are_current() -> None:
    """Make them anew with `python docs/make_types.py`."""
    page = read("docs/types.md")

    assert page == script("make_types").with_tables(page)


def test_every_type_of_this_spark_is_in_one_of_the_tables() -> None:
    made = script("make_types")
    mentioned = {kind.__name__ for one in made.STORED for kind in made.kinds(one.kind)}
    mentioned |= {kind.__name__ for one in made.REFUSED for kind in made.kinds(one)} | {"UserDefinedType"}
    type_names = {
        name
        for name, kind in vars(types).items()
        if isinstance(kind, type) and issubclass(kind, types.DataType) and not kind.__subclasses__()
    }

    assert type_names - {"StructField"} - mentioned == set()


def test_the_picture_of_a_table_is_current() -> None:
    """Make it anew with `python docs/make_layout.py`."""
    page = read("docs/concepts.md")
    made = script("make_layout")

    assert made.BEGIN in page
    assert PASSING.sub("*", page) == PASSING.sub("*", made.with_picture(page))


def test_the_table_of_who_may_be_at_work_beside_whom_is_current() -> None:
    """Make it anew with `python docs/make_concurrency.py`."""
    page = read("docs/concurrency.md")
    made = script("make_concurrency")

    assert made.BEGIN in page
    assert page == made.with_table(page)


def test_the_rules_of_columns_are_current() -> None:
    """Make them anew with `python docs/make_schema.py`."""
    page = read("docs/schema.md")

    assert page.count("made by docs/make_schema.py") == 2
    assert page == script("make_schema").page(page)


def test_the_architecture_has_a_sentence_for_each_package() -> None:
    drawn = read("docs/architecture.md").split("```")[1]
    sentences = dict(re.findall(r"^ *([\w/]+)/ +(\w.*)$", drawn, re.MULTILINE))
    tops = [path.parent for path in ROOT.glob("*/__init__.py")]
    packages = [path.parent for top in tops for path in top.rglob("__init__.py")]

    assert [one for one in packages if not any(f"/{one}".endswith(f"/{name}") for name in sentences)] == []


@pytest.mark.parametrize("page", LINKING)
def test_every_link_leads_somewhere(page: str) -> None:
    text = re.sub(r"^```.*?^```$", "", read(page), flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    missing = [target for target in targets if not ((ROOT / page).parent / target).exists()]

    assert missing == []


@pytest.mark.parametrize("page", LINKING)
def test_every_link_to_a_heading_leads_to_a_heading(page: str) -> None:
    text = re.sub(r"^```.*?^```$", "", read(page), flags=re.MULTILINE | re.DOTALL)
    missing = []
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", text):
        other = (ROOT / page).parent / target if target else ROOT / page
        if not other.exists() or anchor not in anchors(other.read_text(encoding="utf-8")):
            missing.append(f"{target}#{anchor}")

    assert missing == []


def test_code_tables_and_generated_blocks_are_no_prose() -> None:
    page = """# Five words: of a heading

A [link](to/a/page.md#heading) counts `as text`:

    code(does, not)

```python
nor = this
```

| nor | a table |
|---|---|

<!-- picture: made by a script -->
nor what a script makes
<!-- /picture -->

- a list
    - and a list inside
"""

    assert prose_words(page) == 16


def test_anchors_are_those_that_github_makes() -> None:
    page = """# What's `new`, and [where](page.md)
## Twice
## Twice
<a id="named"></a>
```sh
# no heading
```
"""

    assert anchors(page) == {"whats-new-and-where", "twice", "twice-1", "named"}


@pytest.mark.parametrize("page", SHORT_PAGES)
def test_a_page_for_newcomers_is_short(page: str) -> None:
    """Depth belongs on a page of its own subject, behind a link."""
    assert prose_words(read(page)) <= MOST_WORDS


@pytest.mark.parametrize("page", PAGES)
def test_every_file_and_name_of_the_code_exists(page: str) -> None:
    """A page that speaks of a module, a folder or a public name speaks of one that is there."""
    import pyhudi

    text = read(page)
    modules = re.findall(
        r"`((?:connector|operations|writer|reader|index|table|timeline|storage|tests|docs)/[\w/]*\.?\w*)`", text
    )
    names = re.findall(r"`(?:pyhudi\.)?(HudiTable|colocate|suggest_buckets|from_spark|PyHudiDataSource)\b", text)

    assert [one for one in modules if not (ROOT / one).exists()] == []
    assert [one for one in names if not hasattr(pyhudi, one)] == []
