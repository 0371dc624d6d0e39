"""Write docs/api.md from the signatures and docstrings of what is public.

python docs/make_api.py
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyhudi
from pyhudi import arrow, errors
from pyhudi.arrow.merge import Merge
from pyhudi.connector import jobs
from pyhudi.connector.merge.builder import MergeBuilder
from pyhudi.index import base, outside
from pyhudi.methods.merging.builder import MergeClauses
from pyhudi.operations.inspect.explained_read import ExplainedRead
from pyhudi.operations.result import MetadataWritten, RepairedLog
from pyhudi.operations.version_change import PropertyChange
from pyhudi.reader.skipping.slices_to_read import Step
from pyhudi.table.schema.changes import SchemaChange

PAGE = Path(__file__).with_name("api.md")
WIDTH = 120
HEAD = """\
# API reference

<!-- made by docs/make_api.py -->

What users may rely on, from the docstrings of the code. `help(HudiTable.upsert)` prints the same text in a session.
§

| in signatures | what it takes |
|---|---|
| `Rows` | a DataFrame of Spark or of pandas, an Arrow table, or another object that offers an Arrow stream |
| `Rows` of `arrow.Table` | the same but a DataFrame of Spark; iterators of record batches, and datasets of pyarrow |
| `Frame` | what shows rows about a table: a DataFrame of `HudiTable`, an Arrow table of `arrow.Table` |
| `Columns` | a `StructType`, DDL text, or `Rows` whose columns count; of `arrow.Table` a `pyarrow.Schema` or `Rows` |
| `Where`, `Condition` | SQL text or a `Column`; `Where` also takes a dict with one value, or several, for each column |
| `Where` of `arrow.Table` | text, or a `pyarrow.compute.Expression` |
| `Side` | a `HudiTable` or `TableRows` |
| `OnColumns` | a column, several columns, or a dict with a column of the right side for each of the left side |
| `On` | SQL text or a `Column` over `source.` and `target.` columns, columns, or None for record key and partition |
| `On`, `Condition`, `Value` of `arrow.Table` | the same, with a `pyarrow.compute.Expression` in place of a `Column` |
| `Value` | SQL text, a `Column`, or a plain value other than text |
| `AnyPath`, `HasPath` | text or `os.PathLike`; an object with `path` and `storage_options`, such as `HudiTable` |
| `Buckets`, `Positions` | NumPy arrays of `int32` and of `int64` |
| `**options` | [options](options.md) by their keys: `**{"hoodie.pyhudi.write.id": "nightly-7"}` |
"""
SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "Make and find a table": ("create", "exists", "path", "schema", "storage_options"),
    "Write rows": ("upsert", "insert", "bulk_insert", "insert_overwrite", "overwrite", "stream"),
    "Change rows": ("update", "delete", "delete_partitions", "merge"),
    "Read": ("to_df", "explain", "sql", "create_view", "refresh_views"),
    "Look at a table": (
        "detail",
        "partitions",
        "files",
        "sizes",
        "suggest_buckets",
        "history",
        "timeline",
        "metadata",
        "activity",
        "last_commit",
        "explain_options",
        "validate",
        "savepoints",
    ),
    "Upkeep": (
        *("clean", "archive", "compact", "schedule_compaction", "log_compact", "schedule_log_compaction"),
        "compact_metadata",
        "sort",
        *("rollback", "savepoint", "delete_savepoint", "restore", "repair", "rescale_buckets", "run_services"),
        *("upgrade", "downgrade"),
        *("create_index", "drop_index"),
    ),
}
# What differs from `HudiTable`; all else the two classes share.
_OF_ARROW = (
    "create",
    "exists",
    "write",
    "append",
    "update",
    "delete",
    "merge",
    "read",
    "explain",
    "scan",
    "to_polars",
    "to_duckdb",
    "to_pandas",
    "schema",
)
_WITHOUT_SPARK = """\
`pyhudi.arrow`; [Tables without Spark](arrow.md) has examples. The methods that are not listed here are those of
`HudiTable`, from `upsert` to `run_services`: where they return a DataFrame, these return an Arrow table. `stream`,
`sql` and views need Spark."""
_PARTS = re.compile(r"^(Args|Attributes|Returns|Raises|Examples):$\n", re.MULTILINE)
_SPAN = re.compile(r"``(.+?)``|`([^`]+)`", re.DOTALL)
_ITEM = re.compile(r"^(\w[\w.]*): ", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """One entry of the page: a class, a function, a method or a property.

    Attributes:
        name: The name that its heading shows.
        value: What has the docstring.
        level: Of its heading.
        scope: The class whose members its docstring may name alone.
    """

    name: str
    value: Any
    level: int = 3
    scope: str = ""

    @property
    def anchor(self) -> str:
        """The heading's anchor, as GitHub makes it."""
        return re.sub(r"[^\w -]", "", self.name.lower()).replace(" ", "-")


@dataclass(frozen=True)
class Section:
    """A heading without a docstring of its own, and the text below it."""

    title: str
    text: str = ""
    level: int = 2


def members(kind: type) -> list[str]:
    """Return the names of a class's own public methods and properties, in the order of the code."""
    fields = {one.name for one in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    return [
        name
        for name, value in vars(kind).items()
        if not name.startswith("_")
        and name not in fields
        and (callable(value) or isinstance(value, (property, classmethod, staticmethod)))
    ]


def _class(kind: type, *names: str, level: int = 3) -> Iterator[Entry]:
    yield Entry(kind.__name__, kind, level, kind.__name__)
    for name in names or members(kind):
        yield _member(kind, name, level + 1)


def _member(kind: type, name: str, level: int) -> Entry:
    return Entry(f"{kind.__name__}.{name}", inspect.getattr_static(kind, name), level, kind.__name__)


def parts() -> Iterator[Entry | Section]:
    """Return all that the page holds, in order."""
    yield Section("Tables")
    yield Entry("HudiTable", pyhudi.HudiTable, 3, "HudiTable")
    for subject, names in SUBJECTS.items():
        yield Section(subject, level=3)
        yield from (_member(pyhudi.HudiTable, name, 4) for name in names)
    yield Section("Tables without Spark", _WITHOUT_SPARK)
    yield Entry("arrow.Table", arrow.Table, 3, "arrow.Table")
    for name in _OF_ARROW:
        yield Entry(f"arrow.Table.{name}", inspect.getattr_static(arrow.Table, name), 4, "arrow.Table")
    yield Entry("arrow.write", arrow.write)
    yield Entry("arrow.read", arrow.read)
    yield Section(
        "Merges",
        "`HudiTable.merge` returns a `MergeBuilder`; [merge and update](merge.md) has examples. `arrow.Table.merge` "
        "returns a `Merge`, which has the same methods.",
    )
    yield from _class(MergeBuilder, *members(MergeClauses), "execute")
    yield from _class(Merge, "execute")
    yield Section("Results", "`print` shows a result as one sentence: see [logging and progress](logging.md).")
    for kind in (
        pyhudi.CommitResult,
        pyhudi.ServiceResult,
        pyhudi.ServicesResult,
        pyhudi.VersionResult,
        PropertyChange,
        MetadataWritten,
        RepairedLog,
        SchemaChange,
        base.LookupFigures,
        ExplainedRead,
        Step,
    ):
        yield from _class(kind)
    yield Section("Placement and buckets")
    yield Entry("colocate", pyhudi.colocate)
    yield Entry("suggest_buckets", pyhudi.suggest_buckets)
    yield Section("Joins by bucket", "[Joins](joins.md) has examples, and what tables need.")
    yield Entry("bucket_join", pyhudi.bucket_join)
    yield Entry("bucket_agg", pyhudi.bucket_agg)
    yield from _class(pyhudi.TableRows)
    yield Section("The data source", 'What `format("pyhudi")` finds. Spark calls its methods.')
    yield Entry("PyHudiDataSource", pyhudi.PyHudiDataSource, 3, "PyHudiDataSource")
    yield Section("Errors", _errors())
    yield from _class(errors.MetInstant)
    yield Entry("from_spark", errors.from_spark)
    yield from _class(errors.PyHudiError)
    yield from _class(errors.SchemaMismatchError)
    yield from _class(errors.ColumnDifference)
    yield Entry("PyHudiWarning", pyhudi.PyHudiWarning)
    yield Section("For authors of an index", f"`pyhudi.index.base`. {_paragraph(base.__doc__)}")
    for kind in (base.Index, base.ComputedIndex, base.LookupIndex, base.KeyedRows, base.Tags, base.GroupKeys):
        yield from _class(kind)
    yield Section("For authors of an outside index", f"`pyhudi.index.outside`. {_paragraph(outside.__doc__)}")
    for kind in (outside.OutsideIndex, outside.News):
        yield from _class(kind)
    yield Section("Jobs", "`pyhudi.connector.jobs`. [Places](places.md#jobs-with-exit-codes) has the exit codes.")
    yield Entry("main", jobs.main)
    yield Entry("command", jobs.command)
    yield Entry("exit_code", jobs.exit_code)


def _paragraph(text: str | None) -> str:
    return " ".join(inspect.cleandoc(text or "").partition("\n\n")[0].split())


def _errors() -> str:
    lines = [
        "`OptionError`, `DataError`, `RetryError` and `TableError` say what the caller can do. Every other class",
        "derives from these four. [Errors](errors.md) has causes and cures.",
        "",
        "| class | of | code | meaning |",
        "|---|---|---|---|",
    ]
    for name in errors.__all__:
        kind = getattr(errors, name)
        if inspect.isclass(kind) and issubclass(kind, errors.PyHudiError):
            root = kind.__mro__[1].__name__
            lines.append(
                f'| <a id="{name.lower()}"></a>`{name}` | `{root}` | `{kind.code}` | {_paragraph(kind.__doc__)} |'
            )
    return "\n".join(lines)


class Links:
    """Turns a docstring's code spans into Markdown, with links to the entries that they name."""

    def __init__(self, entries: list[Entry]) -> None:
        self._anchors = {entry.name: entry.anchor for entry in entries}
        for entry in entries:
            if dataclasses.is_dataclass(entry.value):
                for one in dataclasses.fields(entry.value):
                    self._anchors.setdefault(f"{entry.name}.{one.name}", entry.anchor)
        for name in errors.__all__:
            self._anchors.setdefault(name, name.lower())

    def anchor(self, name: str, scope: str = "") -> str | None:
        """Return the anchor of a name, as a docstring of the class ``scope`` writes it."""
        bare = name.removesuffix("()").removeprefix("pyhudi.")
        candidates = (f"{scope}.{bare}", bare, f"HudiTable.{bare}")
        return next((self._anchors[one] for one in candidates if one in self._anchors), None)

    def mark(self, text: str, scope: str, own: str = "") -> str:
        """Return text with its spans as Markdown; ``own`` is the anchor of the entry that has the text."""

        def span(found: re.Match[str]) -> str:
            if found[1] is not None:
                return f"`{' '.join(found[1].split())}`"
            anchor = self.anchor(found[2], scope)
            code = f"`{' '.join(found[2].split())}`"
            return code if anchor in {None, own} else f"[{code}](#{anchor})"

        return _SPAN.sub(span, text)


def signature(entry: Entry) -> str:
    """Return the call of a function or constructor, without the quotes that annotations have as text."""
    value = entry.value
    function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
    if inspect.isclass(function):
        ours = _owner(function).__module__.startswith("pyhudi.")
        if dataclasses.is_dataclass(function) or getattr(function, "_is_protocol", False) or not ours:
            return ""
        function = _owner(function).__init__  # type: ignore[misc]
    elif not callable(function):
        return ""
    shown, bare = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in {"self", "cls"}:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            bare = True
        if parameter.kind is parameter.KEYWORD_ONLY and not bare:
            shown.append("*")
            bare = True
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        kind = "" if parameter.annotation is parameter.empty else f": {_type(parameter.annotation)}"
        default = "" if parameter.default is parameter.empty else f"{' = ' if kind else '='}{parameter.default!r}"
        shown.append(f"{star}{parameter.name}{kind}{default}")
    given = inspect.signature(function).return_annotation
    returns = "" if inspect.isclass(value) or given is inspect.Signature.empty else f" -> {_type(given)}"
    name = entry.name
    line = f"{name}({', '.join(shown)}){returns}"
    if len(line) > WIDTH:
        line = f"{name}(\n" + "".join(f"    {one},\n" for one in shown) + f"){returns}"
    return f"```py\n{line}\n```"


def _owner(kind: type) -> type:
    return next(one for one in kind.__mro__ if "__init__" in vars(one))


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _filled(text: str, indent: str = "", first: str | None = None) -> str:
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _prose(text: str, links: Links, entry: Entry) -> str:
    return "\n\n".join(
        f"```text\n{textwrap.dedent(one)}\n```"
        if one.startswith("    ")
        else _filled(links.mark(one.removesuffix("::"), entry.scope, entry.anchor))
        for one in text.strip("\n").split("\n\n")
        if one.strip()
    )


def _items(text: str, links: Links, entry: Entry, part: str) -> str:
    """Return the items of Args, Attributes or Raises as a list."""
    lines = []
    cells = _ITEM.split(textwrap.dedent(text))
    for name, what in zip(cells[1::2], cells[2::2], strict=True):
        anchor = links.anchor(name) if part == "Raises" else None
        shown = f"`{name}`" if anchor is None else f"[`{name}`](#{anchor})"
        lines.append(_filled(f"- {shown}: {links.mark(what, entry.scope, entry.anchor)}", "  ", ""))
    return "\n".join(lines)


def _entry(entry: Entry, links: Links) -> Iterator[str]:
    yield f"{'#' * entry.level} `{entry.name}`"
    call = signature(entry)
    if call:
        yield call
    value = entry.value
    text = inspect.cleandoc((value.fget if isinstance(value, property) else value).__doc__ or "")
    head, *rest = _PARTS.split(text)
    yield _prose(head, links, entry)
    for part, body in zip(rest[::2], rest[1::2], strict=True):
        if part == "Examples":
            code = re.sub(r"^>>> |  # doctest: \+SKIP$", "", textwrap.dedent(body).strip(), flags=re.MULTILINE)
            yield f"```py\n{code}\n```"
        elif part == "Returns":
            yield _filled(f"Returns: {links.mark(textwrap.dedent(body), entry.scope, entry.anchor)}")
        else:
            yield f"{part}:\n\n{_items(body, links, entry, part)}"


def page() -> str:
    """Return the page."""
    page_parts = list(parts())
    entries = [one for one in page_parts if isinstance(one, Entry)]
    links = Links(entries)
    exported = ", ".join(links.mark(f"`{name}`", "") for name in pyhudi.__all__)
    blocks = [HEAD.replace("§", _filled(f"`pyhudi` exports {exported}.")).strip()]
    for part in page_parts:
        if isinstance(part, Entry):
            blocks += [block for block in _entry(part, links) if block]
            continue
        blocks.append(f"{'#' * part.level} {part.title}")
        if part.text:
            blocks.append(links.mark(part.text, "") if "\n" in part.text else _filled(links.mark(part.text, "")))
    return "\n\n".join(blocks) + "\n"


def documented() -> set[str]:
    """Return the names of all entries, with the fields of dataclasses."""
    names: set[str] = set()
    names |= set(errors.__all__)  # the table of errors has a line for each
    for part in parts():
        if isinstance(part, Entry):
            names.add(part.name)
            if dataclasses.is_dataclass(part.value):
                names |= {f"{part.name}.{each.name}" for each in dataclasses.fields(part.value)}
    return names


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
