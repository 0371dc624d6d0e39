"""Spells a table's path as this process resolves it: a relative path and ``~`` depend on its directory and user.

A session of Spark that ships files, as every Spark Connect session does, starts its processes in a temporary folder
that disappears with the session. Relative paths are refused there.
"""

from __future__ import annotations

import os
import re

from ..errors import InvalidOptionError

AnyPath = str | os.PathLike[str]

# Spark (``PythonWorkerFactory``) sets it in its Python processes to the name of the session's folder, or to _NONE.
_SESSION_FOLDER, _NONE = "SPARK_JOB_ARTIFACT_UUID", "default"


def absolute(path: AnyPath) -> str:
    """Return a table's path as this process resolves it.

    Raises `InvalidOptionError` for the home of an unknown user, and for a relative path in a session's temporary
    folder.
    """
    text = plain_path(path)
    if not depends_on_process(text):
        return _with_single_separators(text) if _has_scheme(text) else os.path.normpath(text)
    expanded = os.path.expanduser(text)  # noqa: PTH111 (a Path would lose the slashes of other stores)
    if expanded.startswith("~"):
        raise InvalidOptionError(
            f"The path {text!r} names the home of a user whom this machine does not know.",
            "Give the path from the root on; a folder whose name begins with ~ is spelled ./~name.",
        )
    if not os.path.isabs(expanded) and os.environ.get(_SESSION_FOLDER, _NONE) != _NONE:  # noqa: PTH117
        raise InvalidOptionError(
            f"The path {text!r} is relative, but this session works in a temporary folder, as every session of Spark "
            "Connect does. A table there would disappear with the session.",
            "Give the path from the root on.",
        )
    return os.path.abspath(expanded)  # noqa: PTH100 (no links are followed)


def plain_path(path: AnyPath) -> str:
    """Return a path as text; a path that depends on the process has no scheme before it.

    Its ``file:`` is left out, so that ``file:name`` and ``file:~/name`` count as relative, too.
    """
    text = os.fspath(path)
    without_scheme = text.removeprefix("file:")
    return text if os.path.isabs(without_scheme) else without_scheme  # noqa: PTH117


def _with_single_separators(url: str) -> str:
    """Return a URL with one slash between two names, as Spark and Apache Hudi read it; a store may keep two."""
    scheme, separator, rest = url.partition("://")
    return scheme + separator + re.sub("//+", "/", rest)


def _has_scheme(text: str) -> bool:
    return ":" in text.partition("/")[0]


def depends_on_process(text: str) -> bool:
    """Return whether a path leads elsewhere in another process: it is relative, or in the home of a user."""
    return not _has_scheme(text) and not os.path.isabs(text)  # noqa: PTH117
