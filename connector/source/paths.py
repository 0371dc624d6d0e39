"""Where a table is, spelled so that each of Spark's processes understands it.

A relative path and ``~`` mean something else in another working directory or under another user. Spark plans a
``df.write`` in a process beside the driver's JVM, whose directory a program may have left, and which on Spark Connect
is another machine's. What they mean there is what they mean everywhere in pyhudi.

A session that brings files along, as each one of Spark Connect does, has its processes started in a temporary folder of
its own, which goes when the session ends: a relative path means nothing there.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...errors import InvalidOptionError
from .own_errors import own_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AnyPath = str | os.PathLike[str]

# The data source's name.
FORMAT = "pyhudi"

# Asks the data source for no table, but for the path that it makes of the one that it is given.
ONLY_PATH = "hoodie.pyhudi.only.path"
# Given by `HudiTable.to_df` to the data source, which then reads as of this moment, and the slices with logs alone,
PINNED = "hoodie.pyhudi.read.pinned"
# unless it is given this, too.
WHOLE = "hoodie.pyhudi.read.whole"
# So is this: predicates; what certainly holds no row that satisfies them all is left out.
WHERE = "hoodie.pyhudi.read.where"
# Given by `HudiTable` with rows whose file groups it looked up: what that took.
LOOKED_UP = "hoodie.pyhudi.write.looked.up"
# And with rows that it made from the table's own: what becomes of them.
COUNTED = "hoodie.pyhudi.write.counted"

# Set by Spark (``PythonWorkerFactory``) for its Python processes: the name of the session's folder, or none.
_SESSION_FOLDER, _NONE = "SPARK_JOB_ARTIFACT_UUID", "default"


def absolute(path: AnyPath) -> str:
    """Return a table's path as this process understands it.

    Raises:
        InvalidOptionError: It names the home of a user whom this machine does not know, or is relative where this
            process stands in a temporary folder of the session.
    """
    text = _plain(path)
    if not _means_something_here(text):
        return text if _has_scheme(text) else os.path.normpath(text)
    expanded = os.path.expanduser(text)  # noqa: PTH111 (a Path would lose the slashes of other stores)
    if expanded.startswith("~"):
        raise InvalidOptionError(
            f"The path {text!r} names the home of a user whom this machine does not know.",
            "Give the path from the root on; a folder whose name begins with ~ is spelled ./~name.",
        )
    if not os.path.isabs(expanded) and os.environ.get(_SESSION_FOLDER, _NONE) != _NONE:  # noqa: PTH117
        raise InvalidOptionError(
            f"The path {text!r} is relative, and Spark works for this session in a temporary folder, as it does for "
            "each session of Spark Connect; a table there would go with the session.",
            "Give the path from the root on.",
        )
    return os.path.abspath(expanded)  # noqa: PTH100 (no links are followed)


def absolute_for(spark: SparkSession, path: AnyPath) -> str:
    """Return a table's path as a ``df.write`` of a session understands it.

    Raises:
        InvalidOptionError: As in `absolute`, where Spark's driver is.
    """
    text = _plain(path)
    if not _means_something_here(text):
        return absolute(text)
    with own_errors():
        return spark.read.format(FORMAT).option(ONLY_PATH, "true").load(text).columns[0]


def _plain(path: AnyPath) -> str:
    text = os.fspath(path)
    rest = text.removeprefix("file:")
    return text if os.path.isabs(rest) else rest  # noqa: PTH117


def _has_scheme(text: str) -> bool:
    return ":" in text.partition("/")[0]


def _means_something_here(text: str) -> bool:
    """Return whether what a path means depends on the process that reads it."""
    return not _has_scheme(text) and not os.path.isabs(text)  # noqa: PTH117
