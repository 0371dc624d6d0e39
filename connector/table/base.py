"""The base of the parts of `HudiTable`: the session, and what it does for the table's methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from threading import RLock
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...methods.base import TableMethods
from ...methods.other_keywords import SHARED_KEYWORDS, TIMES, VERSIONS, Keywords, keywords_of_create, keywords_of_reads
from ...methods.other_names import calls_of_tables
from ...methods.paths import AnyPath
from ...operations.services.means import Means
from ...options.model import HudiOptions
from ..source.paths import absolute_for
from .frames import from_arrow, make_active
from .notebook_progress import shown_in_notebook
from .service_tasks import spark_means

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE_CALLS = {
    **calls_of_tables("HudiTable", "spark, path", "to_df"),
    **{name: f"pyhudi.arrow.Table(path).{name}()" for name in ("to_polars", "to_duckdb", "to_pandas")},
}
TABLE_KEYWORDS: Keywords = {
    "create": keywords_of_create("spark, path"),
    "to_df": keywords_of_reads("to_df", "to_df().limit(n)"),
    "create_view": {
        "create_view(name, as_of=...)": f"{VERSIONS} {TIMES}",
        "create_view(name, columns=...)": "select selected_fields cols fields",
        "create_view(name), which replaces a view of that name": "replace",
        "create_view(name, newest=True)": "latest follow live refresh",
    },
    **SHARED_KEYWORDS,
}


class TableBase(TableMethods["DataFrame"]):
    """The session and the views that follow the table."""

    _other_calls = TABLE_CALLS
    _other_keywords = TABLE_KEYWORDS
    _takes_session = True

    def __init__(self, spark: SparkSession, path: AnyPath, options: Mapping[str, Any] | None = None) -> None:
        self._spark = spark
        super().__init__(absolute_for(spark, path), options)
        # By name of each view that follows the table: its columns, None for all, and the DataFrame that it shows now.
        self._following: dict[str, tuple[Sequence[str] | None, DataFrame]] = {}
        # Held from the read of the table until its view shows it, so that of two threads the later read is shown.
        self._views_lock = RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_views_lock"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        # Spark Connect pickles a table with a function that uses it; a lock cannot be pickled.
        self.__dict__.update(state, _views_lock=RLock())

    @property
    def _session(self) -> SparkSession:
        return self._spark

    def _frame(self, rows: pa.Table) -> DataFrame:
        return from_arrow(self._spark, rows)

    def _progress(self, what: str, options: HudiOptions) -> AbstractContextManager[None]:
        return shown_in_notebook(f"{what} {self._path}", switched_on=options.notebook_progress)

    def _means(self, options: HudiOptions) -> Means:
        make_active(self._spark)
        return spark_means(self._spark, options)
