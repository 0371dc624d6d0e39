"""The base of a class of tables: path, options, and the table's store."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

from ..errors import PyHudiError
from ..operations.words.text import html_table, in_html
from ..options.catalogue import Scope
from ..options.model import HudiOptions
from ..options.names import name_of
from ..options.parsing import texts_of
from ..options.sources import READING, ResolvedOptions, find_config, resolve_options
from ..storage import open_storage
from ..table.config import TableConfig
from .other_keywords import SHARED_KEYWORDS
from .other_names import NamesOtherCalls

if TYPE_CHECKING:
    from ..operations.services.means import Means

# What shows rows about a table: a DataFrame of Spark, or an Arrow table.
Frame = TypeVar("Frame")


class TableMethods(NamesOtherCalls, Generic[Frame]):
    """What each class of tables has; a subclass says where its options come from and how it shows rows.

    Args:
        path: The table's path, resolved.
        options: Options of every call.
    """

    _other_keywords = SHARED_KEYWORDS

    def __init__(self, path: str, options: Mapping[str, Any] | None = None) -> None:
        self._path = path
        self._options = dict(options or {})
        self._storage = open_storage(self._path, self.storage_options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._path!r}: {self._state()})"

    def _repr_html_(self) -> str:
        """Return the table and its properties as HTML for notebooks, or an error in place of the properties."""
        try:
            config = find_config(self._storage)
            facts = {} if config is None else _property_texts(config)
        except PyHudiError as error:
            facts = {"error": str(error)}
        return f"<p>{in_html(repr(self))}</p>{html_table((), facts.items())}"

    def _state(self) -> str:
        """Return the table's type, that there is no table yet, or as words the code of an error that reading raises."""
        try:
            config = find_config(self._storage)
        except PyHudiError as error:
            return error.code.lower().replace("_", " ")
        return "no table yet" if config is None else config.table_type

    @property
    def path(self) -> str:
        """The table's path."""
        return self._path

    @property
    def storage_options(self) -> Mapping[str, str]:
        """The options of the table's store: ``hoodie.pyhudi.storage.*`` without that prefix.

        Raises:
            OptionError: An option cannot be used.
        """
        return self._resolve({}, READING).options.storage_options

    @property
    def _session(self) -> Any:
        """The session whose settings are options, too."""
        return None

    def _frame(self, rows: pa.Table) -> Frame:
        """Return rows about the table as the class shows them: as a DataFrame, or as they are."""
        raise NotImplementedError

    def _changed(self) -> None:
        """Note that the rows of the table may have changed."""

    def _progress(self, what: str, options: HudiOptions) -> AbstractContextManager[None]:
        """Return a context that shows how far the call ``what`` is while it lasts; here it shows nothing."""
        return nullcontext()

    def _means(self, options: HudiOptions) -> Means:
        """Return how services of the table do their work: in this process, where a subclass may use Spark's tasks."""
        from ..operations.upkeep.after_write import means_of  # noqa: PLC0415 (see __init__.py)

        return means_of(options.write_settings(), application=options.application)

    def _resolve(self, options: Mapping[str, Any], scopes: frozenset[Scope], *, warn: bool = False) -> ResolvedOptions:
        """Return the options of a call, which outrank those of this object; options of other scopes do not count."""
        texts_of_call = texts_of(options)
        # The call may name an option by its short name, and the object by its long one.
        names_of_call = {name_of(key) for key in texts_of_call} - {None}
        own_texts = {key: text for key, text in texts_of(self._options).items() if name_of(key) not in names_of_call}
        texts = {**own_texts, **texts_of_call}
        return resolve_options(texts, self._path, scopes, session=self._session, warn=warn)


def _property_texts(config: TableConfig) -> dict[str, str]:
    """Return the properties that a notebook shows of a table, without those that it lacks."""
    facts = {
        "name": config.name,
        "type": config.table_type,
        "record key": ", ".join(config.record_key_fields) or "generated",
        "partitioned by": ", ".join(config.partition_fields),
        "ordered by": ", ".join(config.ordering_fields),
        "index": config.index_type,
        "buckets": config.bucket_count,
    }
    return {name: str(value) for name, value in facts.items() if value}
