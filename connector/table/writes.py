"""The part of `HudiTable` that writes rows: given, or found by a condition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column

from ...methods.other_keywords import argument_or_condition
from ...methods.writes import BASED_ON, MISSING_OK, OPERATION, WRITE_ID, Rows, WriteMethods
from ...operations.read_rows import ReadRows
from ...operations.result import CommitResult, PastAttempts
from ...operations.write.retries import Retries
from ...options.sources import WRITING
from ...table.config.property_keys import MERGE_ON_READ
from ...table.files.logs.block_format import delete_order
from ...table.schema.columns import LOCATION, with_meta
from ...table.schema.fields import root_of
from ...table.table import open_table
from ...timeline.watermark import spell_moment
from ..conditions.condition import condition_predicates
from .frames import to_frame
from .made_from import NOTHING_READ, MadeFrom
from .notebook_progress import shown_retries
from .queries import TableQueries
from .service_tasks import application_of
from .shown_rows import AskedRows
from .writing import write_placed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame  # noqa: F401 (the shared methods are declared by its name)


class TableWrites(TableQueries, WriteMethods["DataFrame"]):
    """The methods of `HudiTable` that write rows."""

    def delete(
        self,
        which: Rows | Column | str | None = None,
        *,
        missing_ok: bool = True,
        condition: Column | str | None = None,
        **options: Any,
    ) -> CommitResult:
        """Delete rows by their keys or by a condition, as one instant.

        pyhudi evaluates a condition on the newest snapshot, and deletes the rows that it finds by key. If another
        writer has changed an affected file group in the meantime, or has written a row for which the condition holds,
        the write fails with `CommitConflictError` and can be run again. With ``hoodie.pyhudi.isolation=snapshot`` such
        a row stays.

        Args:
            which: Rows with the record key and partition columns; other columns are ignored. A table that generates its
                keys needs the meta columns instead, as read from the table. Or a condition, as a Column or as SQL text.
            missing_ok: Whether keys may be absent from the table; the result counts them as ``not_found``. Without,
                file groups of a merge-on-read table are written anew, so that Apache Hudi, too, loses each row of a key
                that inserts added several times.
            condition: Delta Lake's name for a condition, in place of ``which``.
            options: Options of this write.

        Returns:
            The instant, and the counts of deleted rows and of keys that the table lacks.

        Raises:
            KeyNotFoundError: A key is absent, and ``missing_ok`` is false.
            DuplicateKeyError: The table has several rows of a key, and the condition holds for some of them alone.
            InvalidOptionError: ``which`` is absent, or given beside ``condition``, or Spark does not understand the
                condition.
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        which = argument_or_condition("delete()", "which", which, condition)
        self._refuse_nothing(which)
        write_options = {OPERATION: "delete", **({} if missing_ok else {MISSING_OK: False}), **options}
        table = open_table(self._storage)
        config = table.config
        fields = LOCATION if config.generates_keys else (*config.record_key_fields, *config.partition_fields)
        needed = dict.fromkeys(map(root_of, fields))
        if not isinstance(which, (Column, str)):
            keys = to_frame(self._spark, which)
            return self._write(keys.select(*(name for name in keys.columns if name in needed)), write_options)
        serializable = self._is_serializable(write_options, config)

        def attempt(write_id: str, past: PastAttempts) -> CommitResult:
            """Read the rows that the condition holds for anew, and delete them by their keys."""
            # Read the timeline before the rows, so that the conflict check covers every commit in between.
            moment = spell_moment(table.timeline().completed)
            schema = self._columns()
            # A log file remembers how new the deleted row was, so that an older row which comes later is not shown.
            order = delete_order(config, schema) if config.table_type == MERGE_ON_READ else ()
            rows = self._find_rows(AskedRows([*dict.fromkeys([*needed, *order])], which, newest=True)).df()
            attempt_options = {**write_options, WRITE_ID: write_id}
            made_from = MadeFrom(moment, past=past, of_stored=not config.generates_keys, deletes_read=True)
            if not serializable:
                return self._write(rows, attempt_options, made_from)
            read_rows = ReadRows(condition_predicates(self._spark, which, with_meta(schema), self._path))
            return self._write(rows, attempt_options, replace(made_from, read=(read_rows,)))

        return self._retries(write_options).run(attempt)

    @property
    def _application(self) -> str:
        return application_of(self._spark)

    def _retries(self, options: Mapping[str, Any]) -> Retries:
        """Return what repeats a write with these options, which shows how far it is."""
        return shown_retries(self._storage, self._resolve(options, WRITING).options)

    def _write(self, df: Rows, options: Mapping[str, Any], made_from: MadeFrom = NOTHING_READ) -> CommitResult:
        """Write rows with the options of this call, and refresh the views that follow the table."""
        df = to_frame(self._spark, df, self._columns)
        based_on = {BASED_ON: made_from.moment} if made_from.moment else {}
        resolved = self._resolve({**options, **based_on}, WRITING, warn=True)
        commit_result = write_placed(df, self._path, self._storage, resolved, made_from=made_from)
        self._changed()
        return commit_result
