"""Options of a read."""

from __future__ import annotations

from datetime import date
from typing import Any

from ..errors import MissingOptionError, OptionConflictError
from ..reader.query import AS_OF, BEGIN, END, FULL_SCAN, AsOf, Changes, Query
from ..reader.streams.terms import START, BatchLimits, StreamTerms
from ..table.files.output import GIB, MIB
from .types import Count, Fields, OptionPart, PathGlob, QueryBegin, QueryTime, QueryType, Size, StreamStart, option

QUERY_TYPE = "hoodie.datasource.query.type"
_GLOB = "hoodie.datasource.read.incr.path.glob"
_SCHEMA_OF_END = "hoodie.datasource.read.schema.use.end.instanttime"


def options_of_query(
    call: str,
    path: str,
    *,
    as_of: str | date | None,
    since: str | date | None,
    until: str | date | None,
    read_optimized: bool,
) -> dict[str, Any]:
    """Return the options of the query that a call's arguments ask for; OptionConflictError if there is no such query.

    ``call`` is the name of the method, and ``path`` the table's, for the error. An argument that was not given is None.
    """
    if read_optimized and since is not None:
        raise OptionConflictError(
            f"{call}() of the table {path} got since={since!r} together with read_optimized, which reads the "
            "table as of the newest compaction.",
            "Leave since or read_optimized out.",
        )
    # For a snapshot it is None, which counts as not given.
    query_type = "read_optimized" if read_optimized else since and "incremental"
    return {QUERY_TYPE: query_type, AS_OF: as_of, BEGIN: since, END: until}


class ReadOptions(OptionPart):
    """What one read shows, and how."""

    columns: Fields | None = option(
        None,
        "The columns to read, in this order.",
        "columns",
        "hoodie.pyhudi.read.columns",
        otherwise="all",
    )
    meta: bool = option(
        True,
        "Show Hudi's five meta columns in a read that does not name `columns`. Without them a temporary view takes "
        "`INSERT INTO view VALUES (…)`.",
        "hoodie.pyhudi.read.meta",
        "meta",
    )
    query_type: QueryType = option(
        "snapshot",
        "`snapshot` shows the whole table, `incremental` the rows that changed, and `read_optimized` base files "
        "alone, which are as old as the newest compaction. In a copy-on-write table, base files are the whole table.",
        QUERY_TYPE,
        "hoodie.datasource.view.type",
    )
    as_of: QueryTime | None = option(
        None,
        "Read the table as of this time, with every write that was requested until then, even if it completed later.",
        AS_OF,
        "as_of",
    )
    begin_time: QueryBegin | None = option(
        None, "An incremental query shows what completed after this time.", BEGIN, "since"
    )
    end_time: QueryTime | None = option(
        None,
        "An incremental query shows what completed until this time, as it was then. Without it the query ends now.",
        END,
        "until",
    )
    incremental_glob: PathGlob = option(
        "", "An incremental query reads only files whose paths end with a match of this pattern.", _GLOB
    )
    incremental_full_scan: bool = option(
        False,
        "Let an incremental query search the whole table if the archive does not say what the commits wrote.",
        FULL_SCAN,
    )
    incremental_end_schema: bool = option(
        False,
        "Let an incremental query show the columns that the table had at the query's end, instead of its present "
        "columns.",
        _SCHEMA_OF_END,
    )
    split_size: Size = option(
        128 * MIB, "About how many bytes of files one task reads at most.", "hoodie.pyhudi.read.split.size"
    )
    pushes_filters: bool = option(
        False,
        "Use the filters that Spark pushes into this `load()` to skip partitions, buckets, files and row groups. "
        "Spark pushes filters if `spark.sql.python.filterPushdown.enabled` is true (4.1 and later). It then plans "
        "every query on one `load()` with the last filter that it pushed, so use each `load()` for one query.",
        "hoodie.pyhudi.read.filter.pushdown",
    )
    skips_files: bool = option(
        True,
        "Skip files by what the metadata table and the footers say of their columns. Partitions and buckets are "
        "skipped without this option, too.",
        "hoodie.enable.data.skipping",
    )
    merge_memory: Size = option(
        GIB,
        "Bytes that a task may take to merge one base file with its log files. Further rows of the log files wait on "
        "disk.",
        "hoodie.memory.merge.max.size",
    )

    stream_start: StreamStart = option(
        "earliest",
        "A streaming read with a new checkpoint begins after this completion time. `earliest` reads all rows, "
        "`latest` only what completes from now on.",
        START.lower(),
    )
    stream_commits: Count | None = option(
        None,
        "How many commits a batch of a streaming read has at most. Compactions do not count.",
        "hoodie.pyhudi.stream.max.commits.per.trigger",
        "maxcommitspertrigger",
        otherwise="no limit",
    )
    stream_bytes: Size | None = option(
        None,
        "How many bytes of files the commits of one batch of a streaming read wrote at most. A batch has at least "
        "one commit.",
        "hoodie.pyhudi.stream.max.bytes.per.trigger",
        "maxbytespertrigger",
        otherwise="no limit",
    )

    @property
    def bases_alone(self) -> bool:
        """Whether a read skips log files."""
        return self.query_type == "read_optimized"

    def to_query(self) -> Query | None:
        """Return what the read shows; None for the table as it is now.

        Raises MissingOptionError for an incremental query without a beginning, and OptionConflictError.
        """
        if self.query_type == "incremental":
            return self._query_of_changes()
        for key, value in self._values_for_changes().items():
            if value:
                raise OptionConflictError(
                    f"The option {key} belongs to an incremental query, and this is a {self.query_type} query.",
                    f"Add {QUERY_TYPE}=incremental, or leave the option out.",
                )
        return None if self.as_of is None else AsOf(self.as_of)

    def to_stream(self) -> StreamTerms:
        """Return the terms of a stream: its start, limits of a batch, files that count, and whether to scan in full.

        Raises OptionConflictError for an option that only a batch read obeys, such as a moment or a window of time.
        """
        options_of_batch_reads = {
            AS_OF: self.as_of,
            BEGIN: self.begin_time,
            END: self.end_time,
            _SCHEMA_OF_END: self.incremental_end_schema,
            f"{QUERY_TYPE}=read_optimized": self.bases_alone,
        }
        if self.query_type == "incremental":
            raise OptionConflictError(
                f"A streaming read was given {QUERY_TYPE}=incremental, and it is incremental without it: each batch "
                "has what completed since the batch before.",
                f"Leave it out; {START} takes the time after which the stream begins, as {BEGIN} does in a batch read.",
            )
        for key, value in options_of_batch_reads.items():
            if value:
                raise OptionConflictError(
                    f"The option {key} belongs to a batch read, and a streaming read shows what changes.",
                    f"Leave it out; {START} says where a stream begins.",
                )
        return StreamTerms(
            self.stream_start,
            BatchLimits(self.stream_commits, self.stream_bytes),
            self.incremental_glob,
            self.incremental_full_scan,
        )

    def refuse_query(self) -> None:
        """Raise OptionConflictError if a write got options of a query."""
        options_of_query = {AS_OF: self.as_of, **self._values_for_changes()}
        given_keys = [key for key, value in options_of_query.items() if value]
        if self.query_type == "incremental":
            given_keys.insert(0, QUERY_TYPE)
        if given_keys:
            raise OptionConflictError(
                f"A write was given {', '.join(given_keys)}, which say what a read shows: of a table as it was, or of "
                f"its changes, nothing can be written.",
                "Leave them out; to write through a temporary view, make it without them.",
            )

    def _query_of_changes(self) -> Changes:
        """Return the query of an incremental read; refuses a moment beside it, and a window without a beginning."""
        if self.as_of is not None:
            raise OptionConflictError(
                f"The option {AS_OF} shows the table at one time, {QUERY_TYPE}=incremental what changed between two.",
                f"Leave out either option, or give the window's end as {END}.",
            )
        if self.begin_time is None:
            raise MissingOptionError(
                f"An incremental query needs {BEGIN}, the time after which commits are shown.",
                f"Add it; {BEGIN}=earliest shows the rows of all commits. A streaming read is incremental as it is: "
                f"leave {QUERY_TYPE} out there, and say by {START} where it begins.",
            )
        return Changes(
            begin=self.begin_time,
            end=self.end_time,
            path_glob=self.incremental_glob,
            full_scan=self.incremental_full_scan,
            schema_of_end=self.incremental_end_schema,
        )

    def _values_for_changes(self) -> dict[str, object]:
        """Return, by key, the values of the options that an incremental query alone has; None if not given."""
        return {
            BEGIN: self.begin_time,
            END: self.end_time,
            _GLOB: self.incremental_glob,
            _SCHEMA_OF_END: self.incremental_end_schema,
        }
