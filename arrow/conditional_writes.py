"""The part of `pyhudi.arrow.Table` that changes rows by conditions: deletes, updates and merges."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from ..methods.other_keywords import argument_or_condition
from ..methods.writes import BASED_ON, MISSING_OK, OPERATION, Rows
from ..operations.result import CommitResult, PastAttempts
from ..operations.write_settings import RowOrigin
from ..options.sources import WRITING
from ..table.config.property_keys import MERGE_ON_READ
from ..table.files.logs.block_format import delete_order
from ..table.schema.columns import LOCATION, with_meta
from ..table.schema.fields import root_of
from ..table.table import open_table
from ..timeline.watermark import spell_moment
from .base import ArrowMethods
from .reading import ReadRequest
from .rows import given_rows
from .writing import RowWrite, TypedRows, run_again

if TYPE_CHECKING:
    from ..reader.row_filter import Where
    from .merge import Merge, MergeWork
    from .merging.matching import On


class ConditionalWrites(ArrowMethods):
    """The methods that change rows of the table by conditions."""

    def delete(
        self,
        which: Rows | Where | None = None,
        *,
        missing_ok: bool = True,
        condition: Where | None = None,
        **options: Any,
    ) -> CommitResult:
        """Delete rows by their keys or by a condition, as one instant.

        pyhudi evaluates a condition on the newest snapshot, and deletes the rows that it finds by key. If another
        writer has changed an affected file group in the meantime, or has written a row for which the condition holds,
        it evaluates the condition anew. With ``hoodie.pyhudi.isolation=snapshot`` such a row stays.

        Args:
            which: Rows with the record key and partition columns; other columns are ignored. A table that generates its
                keys needs the meta columns instead, as ``read(meta=True)`` shows them. Or a condition: text, or an
                expression of ``pyarrow.compute``.
            missing_ok: Whether keys may be absent from the table; the result counts them as ``not_found``.
            condition: Delta Lake's name for a condition, in place of ``which``.
            options: Options of this write.

        Returns:
            The instant, and the counts of deleted rows and of keys that the table lacks.

        Raises:
            KeyNotFoundError: A key is absent, and ``missing_ok`` is false.
            DuplicateKeyError: The table has several rows of a key, and the condition holds for some of them alone.
            InvalidOptionError: ``which`` is absent, or given beside ``condition``, or no condition on the table's
                columns.
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        from ..operations.read_rows import ReadRows  # noqa: PLC0415 (see methods/__init__.py)
        from ..reader.row_filter import read_where  # noqa: PLC0415 (see methods/__init__.py)

        which = argument_or_condition("delete()", "which", which, condition)
        self._refuse_nothing(which)
        self._require_table()
        write_options = {OPERATION: "delete", **({} if missing_ok else {MISSING_OK: False}), **options}
        table = open_table(self._storage)
        config = table.config
        fields = LOCATION if config.generates_keys else (*config.record_key_fields, *config.partition_fields)
        needed = list(dict.fromkeys(map(root_of, fields)))
        if not isinstance(which, (str, pc.Expression)):
            return self._write_rows(which, write_options, None, columns=needed)
        serializable = self._is_serializable(write_options, config)
        columns = with_meta(self._columns())
        condition = read_where(which, columns, self._path)
        resolved = self._resolve(write_options, WRITING, warn=True)

        def attempt(write_id: str, past: PastAttempts) -> CommitResult:
            """Read the rows that the condition holds for anew, and delete them by their keys."""
            # Read the timeline before the rows, so that the conflict check covers every commit in between.
            moment = spell_moment(table.timeline().completed)
            # A log file remembers how new the deleted row was, so that an older row which comes later is not shown.
            order = delete_order(config, self._columns()) if config.table_type == MERGE_ON_READ else ()
            rows = self._selection(ReadRequest([*dict.fromkeys([*needed, *order])], which, newest=True))
            read_rows = (ReadRows(tuple(condition.predicates)),) if serializable else ()
            resolved_again = self._resolve({**write_options, BASED_ON: moment}, WRITING)
            origin = RowOrigin(read=read_rows, deletes_read=True, of_stored=not config.generates_keys)
            write = RowWrite(self._path, self._storage, resolved_again, self._threads, origin=origin)
            return write.attempt(TypedRows(rows.schema, rows.batches, None), write_id, past)

        return run_again(self._storage, resolved, attempt)

    def merge(self, source: Rows, on: On = None, *, condition: On = None) -> Merge:
        """Return a merge of rows into the table; add clauses to it, then execute it as one instant.

        `Merge.execute` compares the rows with the table as it is at that time. If another writer has changed an
        affected file group in the meantime, or rows that the clauses are about, it reads both sides again, for at most
        ``hoodie.pyhudi.write.retry.max.seconds``. With ``hoodie.pyhudi.isolation=snapshot``, rows that other writers
        add later stay.

        Args:
            source: Rows with any columns, as `upsert` takes them.
            on: How rows match: a condition over ``source.`` and ``target.`` columns, as SQL text or as an expression of
                ``pyarrow.compute``; or one or several columns that both sides have; or None for the record key and the
                partition. A condition that equates no columns compares each row with each.
            condition: Delta Lake's name for ``on``.

        Returns:
            The merge, without a clause yet.

        Raises:
            InvalidOptionError: The source has no rows of Arrow, or ``on`` and ``condition`` are given both.

        Examples:
            >>> merge = table.merge(changes, "source.id = target.id")  # doctest: +SKIP
            >>> merge = merge.when_matched_delete("source.gone").when_matched_update_all()  # doctest: +SKIP
            >>> merge.when_not_matched_insert_all().execute()  # doctest: +SKIP
        """
        from .merge import Merge, MergeSource  # noqa: PLC0415 (see methods/__init__.py)

        matches = argument_or_condition("merge()", "on", on, condition)
        return Merge(self._work, MergeSource(given_rows(source)), matches)

    def update(
        self, set: Mapping[str, Any], where: Where | None = None, *, condition: Where | None = None, **options: Any
    ) -> CommitResult:
        """Change columns of the rows for which a condition holds, as one instant.

        pyhudi evaluates the condition on the newest snapshot, and again if another writer has changed an affected
        file group in the meantime, or has written a row for which the condition holds. With
        ``hoodie.pyhudi.isolation=snapshot`` such a row stays. A row whose key or partition changes moves.

        Args:
            set: The new values by column, or by field of a struct (``address.city``): SQL text, expressions of
                ``pyarrow.compute`` over the table's columns, or plain values other than text.
            where: The condition, as for `read`. None for all rows.
            condition: Delta Lake's name for ``where``.
            options: Options of this write.

        Returns:
            The instant, and the number of updated rows.

        Raises:
            DuplicateKeyError: A row would get the key of another row, or the table has several rows of a key.
            OlderRowError: A row would get a lesser ordering value.
            MissingColumnError: The table lacks a column.
            InvalidOptionError: ``where`` and ``condition`` are given both.
            OptionConflictError: The table generates its keys.
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        from .merge import update  # noqa: PLC0415 (see methods/__init__.py)

        return update(self._work, set, argument_or_condition("update()", "where", where, condition), options)

    @property
    def _work(self) -> MergeWork:
        from .merge import MergeWork  # noqa: PLC0415 (see methods/__init__.py)

        resolve = partial(self._resolve, scopes=WRITING)
        return MergeWork(self._path, self._storage, self._threads, resolve, self._is_serializable)
