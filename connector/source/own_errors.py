"""Recognises errors of pyhudi by their text in Spark's errors, and files of a table that are gone while Spark reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import PyHudiError, StorageError, from_spark

# Spark 4 finds a path gone when it plans a scan, and a file gone in a task: when it opens it, or when it reads it.
_GONE = re.compile(
    r"(?:\[(?:PATH_NOT_FOUND|FAILED_READ_FILE\.FILE_NOT_EXIST)\]|NoSuchFileException: )"
    r"[^\n]*?(?P<path>\S+_\d+-\d+-\d+_\d{17}\.parquet)"
)


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise an error of pyhudi in the place of Spark's, if that carries one or says that a base file is gone."""
    try:
        yield
    except PyHudiError:
        raise
    except Exception as error:
        own_error = from_spark(error) or _error_of_removed_file(error)
        if own_error is None:
            raise
        raise own_error from error


def _error_of_removed_file(error: Exception) -> StorageError | None:
    """Return the error for a base file that is gone while Spark reads; None if Spark's error names none."""
    match = _GONE.search(str(error))
    if match is None:
        return None
    from ...table.files.names import RUN_AGAIN, met_at_file  # noqa: PLC0415 (what finds the data source imports this module)

    return StorageError(
        f"The base file {match['path']} was removed while Spark read it.",
        RUN_AGAIN,
        met=met_at_file(match["path"].rpartition("/")[2]),
    )
