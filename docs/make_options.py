"""Write docs/options.md from the model of the options, so that the page lists what there is.

python docs/make_options.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pyhudi.connector.option_catalogue import CATALOGUE, Effect
from pyhudi.connector.options import STORAGE_PREFIX, OptionInfo, describe_options

PAGE = Path(__file__).with_name("options.md")

SECTIONS = {
    "The table": "They describe a table when it is created. Later writes need none of them; one that disagrees\n"
    "with the table is refused, and the message shows both values.",
    "One write": "They say how one write goes about its work.",
    "Reading": "They belong to `spark.read`.",
}
TEMPLATE = """\
<!-- Made by docs/make_options.py: change the models in connector/*_options.py, not this page. -->

# Options

Every option has Apache Hudi's own key, so that the options of a Hudi job go on working; some have a short name besides.
Keys are understood in any case. A name that nobody knows is an error that shows the nearest one; one option given under
two names with two values is an error too.

{sections}

## Families of keys

`{storage}*` is handed to fsspec, which opens stores other than the local disk; what follows the prefix
is the name that fsspec knows. Keys that begin with `_` (see `hoodie.datasource.write.commitmeta.key.prefix`) are kept
in the commit's extra metadata.

## Options of Apache Hudi that pyhudi does not have

pyhudi knows {known} further keys of Apache Hudi 1.2.0 and of older releases. None is overlooked:

| keys | what becomes of them |
|---:|---|
{effects}
"""
UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"))


def section_of(options: Sequence[OptionInfo]) -> dict[str, list[OptionInfo]]:
    """Return the options by section, each in the order of the model."""
    return {name: [one for one in options if one.section == name] for name in SECTIONS}


def row(option: OptionInfo) -> str:
    """Return an option's line of the table."""
    names = [f"`{option.key}`", *(f"`{name}`" for name in option.aliases)]
    return f"| {'<br>'.join(names)} | {option.type} | {default_of(option)} | {option.doc} |"


def default_of(option: OptionInfo) -> str:
    """Return an option's default as people write it."""
    value = option.default
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if option.type.startswith("bytes"):
        factor, unit = next(one for one in UNITS if value % one[0] == 0)
        return f"{value // factor} {unit}"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def page() -> str:
    """Return the whole page."""
    sections = []
    for name, options in section_of(describe_options()).items():
        head = ["| option, other names | value | default | meaning |", "|---|---|---|---|"]
        sections.append("\n".join([f"## {name}", "", SECTIONS[name], "", *head, *map(row, options)]))
    counts = Counter(known.effect for known in CATALOGUE.values())
    effects = "\n".join(f"| {counts[effect]} | {effect.value} |" for effect in Effect)
    return TEMPLATE.format(
        sections="\n\n".join(sections), storage=STORAGE_PREFIX, known=len(CATALOGUE), effects=effects
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
