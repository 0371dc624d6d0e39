"""Write docs/options.md from the model of the options, so that the page lists what there is.

python docs/make_options.py
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from pyhudi.options.catalogue import CATALOGUE, FAMILIES, Effect, Scope
from pyhudi.options.lookup import INDEX_PREFIX
from pyhudi.options.names import OptionInfo, describe_options
from pyhudi.options.parsing import format_value
from pyhudi.options.secrets import STORAGE_PREFIX

PAGE = Path(__file__).with_name("options.md")
THEIRS = Path(__file__).parents[1] / "tests" / "fixtures" / "options" / "hudi-1.2.0.tsv"

SECTIONS = {
    Scope.ANY: ("Any operation", "They belong to reads and writes alike."),
    Scope.TABLE: (
        "The table",
        "They describe a table when it is created. Later writes need none of them. A value that disagrees\n"
        "with the table is an error, whose message shows both values.",
    ),
    Scope.WRITE: ("One write", "They say how one write goes about its work."),
    Scope.LOOKUP: (
        "Lookups",
        "They say how a write finds keys and where it puts new keys, if the [index](indexes.md) looks keys up. A\n"
        "bucket index needs none of them.",
    ),
    Scope.UPKEEP: (
        "Upkeep",
        "They say how a table is [kept small](upkeep.md), after each write and by jobs of their own.",
    ),
    Scope.STREAM: (
        "Streams",
        "They say how a streaming query writes its batches, see [Streams](streams.md).",
    ),
    Scope.METRICS: (
        "Metrics",
        "They say what a commit reports, and where to, see [Metrics](metrics.md).",
    ),
    Scope.READ: ("Reading", "They belong to `spark.read`."),
}
TEMPLATE = """\
<!-- Made by docs/make_options.py: change the models in options/, not this page. -->

# Options

Every option has Apache Hudi's own key, so that the options of a Hudi job keep working; some have a short name, too.
The case of keys does not matter. An unknown key is an error that names the nearest key. For a key of Delta Lake's,
Iceberg's or Flink's the error says [what to use instead](coming-from.md). Two names of one option with two values are
an error, too.

- [Where options come from](#where-options-come-from)
{contents}
- [Families of keys](#families-of-keys)
- [Options of Apache Hudi that pyhudi does not have](#options-of-apache-hudi-that-pyhudi-does-not-have)

## Where options come from

The first source that has an option counts:

1. what is given to the operation: `option(…)`, the arguments of `HudiTable` and of its methods;
2. the session, by `spark.conf.set("hoodie.…", …)` or `"spark.hoodie.…"`: seen by `HudiTable`, and by neither
   `df.write` nor `spark.read`, because Spark gives a Python data source no session;
3. `hudi-defaults.conf`, Apache Hudi's own file for a machine's defaults;
4. the default, in the tables below.

What an operation gets is a demand: pyhudi has to know the key, and the value has to agree with the table. The session
and the file address every table at once, so they only fill in options that the operation did not get. Their options
under [The table](#the-table) describe new tables and leave existing tables alone, and an unknown key of theirs causes a
warning. But a value that would count, and that pyhudi cannot follow, is an error that names the file and the line.

`hudi-defaults.conf` is looked for where Apache Hudi looks: in the folder (or URL) that the environment variable
`HUDI_CONF_DIR` names, and before that in `/etc/hudi/conf`; of two lines with one key the later one counts. Each line
holds `key value` or `key=value`, `#` begins a comment, and `include=other.conf` reads another file in between. There is
[a template](../conf/hudi-defaults.conf). The file is read on Spark's driver when an operation is planned, never on
executors. Set the variable before the session starts; on Spark Connect that of the server counts for `df.write` and
`spark.read`, and that of the client for `HudiTable`. `hoodie.pyhudi.defaults.enabled=false` does without the file.

`HudiTable.explain_options()` shows each option's value for a table, and its source:

```text
>>> table.explain_options(defaults=False, orderby="ts")
{example}
```

{sections}

## Families of keys

`{storage}*` says how stores other than the local disk are reached: [S3](object-stores.md), or what fsspec
opens, whose own names then follow the prefix. Each name may follow `{storage}secret.` instead, which
[Spark does not show](object-stores.md#secrets). Keys that begin with `_` (see
`hoodie.datasource.write.commitmeta.key.prefix`) are kept in the commit's extra metadata. `{index}*` is for
[an index of your own](indexes.md#an-index-of-your-own), which gets them without the prefix.

## Options of Apache Hudi that pyhudi does not have

pyhudi knows {known} further keys of Apache Hudi 1.2.0 and of older releases. None is overlooked.

{catalogue}
"""
EXAMPLE = """\
option                            value   from                                     note
--------------------------------  ------  ---------------------------------------  ----------
path                              /trips  given
hoodie.table.name                 trips   the table's hoodie.properties
…
hoodie.table.ordering.fields      ts      given                                    as orderby
hoodie.write.batch.size           64m     the session's hoodie.write.batch.size
hoodie.parquet.compression.codec  snappy  /etc/hudi/conf/hudi-defaults.conf:3"""
EFFECTS = {
    Effect.REFUSED: ("Refused", "Any value but the default would change what is written or read, so it is an error."),
    Effect.NOT_DONE: (
        "Not done yet",
        "They ask for services that pyhudi does not do: accepted with a warning, unless they are switched off.",
    ),
    Effect.NO_MEANING: (
        "Without a meaning",
        "They concern machinery that pyhudi does not have: accepted, and logged once.",
    ),
}
UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"))


def theirs() -> dict[str, str]:
    """Return Apache Hudi's own defaults by key."""
    lines = (line.split("\t") for line in THEIRS.read_text(encoding="utf-8").splitlines())
    return {key: default for key, default, _ in lines if default}


def row(option: OptionInfo, defaults: dict[str, str]) -> str:
    """Return an option's line of the table."""
    names = [f"`{option.key}`", *(f"`{name}`" for name in option.aliases)]
    default = default_of(option)
    if differs(option, defaults):
        default += f"<br>Apache Hudi: `{defaults[option.key]}`"
    return f"| {'<br>'.join(names)} | {option.type} | {default} | {option.doc} | {option.since} |"


def differs(option: OptionInfo, defaults: dict[str, str]) -> bool:
    """Return whether Apache Hudi has another default."""
    ours = option.otherwise if option.default is None else format_value(option.default)
    return option.key in defaults and ours.lower() != defaults[option.key].lower()


def default_of(option: OptionInfo) -> str:
    """Return an option's default as people write it."""
    value = option.default
    if value is None:
        return option.otherwise or "–"
    if value == "":
        return "–"
    if option.type.startswith("bytes"):
        factor, unit = next(one for one in UNITS if value % one[0] == 0)
        return f"{value // factor} {unit}"
    return f"`{value:g}`" if isinstance(value, float) else f"`{format_value(value)}`"


def section(scope: Scope) -> str:
    """Return the section of the options about one thing."""
    title, words = SECTIONS[scope]
    head = ["| option, other names | value | default | meaning | since |", "|---|---|---|---|---|"]
    defaults = theirs()
    rows = [row(option, defaults) for option in describe_options() if option.scope is scope]
    return "\n".join([f"## {title}", "", words, "", *head, *rows])


def keys_without(effect: Effect) -> str:
    """Return the section of the keys that have one effect, by reason."""
    title, words = EFFECTS[effect]
    by_reason: dict[str, list[str]] = defaultdict(list)
    for key, option in CATALOGUE.items():
        if option.effect is effect:
            default = f" ({option.default})" if option.default else ""
            by_reason[option.why].append(f"`{key}`{default}")
    for prefix, option in FAMILIES.items():
        if option.effect is effect:
            by_reason[option.why].append(f"`{prefix}*`")
    lines = [f"| {why} | {', '.join(sorted(keys))} |" for why, keys in by_reason.items()]
    head = [
        "| because | keys, with their defaults |" if effect is Effect.REFUSED else "| because | keys |",
        "|---|---|",
    ]
    return "\n".join([f"### {title}", "", words, "", *head, *lines])


def page() -> str:
    """Return the whole page."""
    titles = [title for title, _ in SECTIONS.values()]
    return TEMPLATE.format(
        contents="\n".join(f"- [{title}](#{title.lower().replace(' ', '-')})" for title in titles),
        example=EXAMPLE,
        sections="\n\n".join(map(section, SECTIONS)),
        storage=STORAGE_PREFIX,
        index=INDEX_PREFIX,
        known=len(CATALOGUE),
        catalogue="\n\n".join(map(keys_without, EFFECTS)),
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
