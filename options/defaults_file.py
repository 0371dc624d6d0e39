"""``hudi-defaults.conf``: options that a machine's administrator gives to every job.

Source: ``org.apache.hudi.common.config.DFSPropertiesConfiguration`` (``loadGlobalProps``, ``addPropsFromStream``) of
Apache Hudi 1.2: it reads the file below ``/etc/hudi/conf`` first, then the file in the folder that the environment
names; of two lines with one key the later counts. If that parser silently loses a line (blanks in front of a key, a
key without a value), pyhudi reads it or warns.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import InvalidOptionError, PyHudiError
from ..storage import open_storage

logger = logging.getLogger("pyhudi")

FOLDER_VARIABLE = "HUDI_CONF_DIR"
FILE_NAME = "hudi-defaults.conf"
FOLDER_OF_THE_MACHINE = "/etc/hudi/conf"

_BLANKS = re.compile(r"\s+")
_LINE_END = re.compile(r"\r\n|\n|\r")
_INCLUDE = "include"


@dataclass(frozen=True, slots=True)
class Line:
    """One setting of a defaults file; ``place`` is the file's path and the line's number."""

    key: str
    value: str
    place: str


def read_defaults() -> list[Line]:
    """Return the settings of this machine's defaults files, in their order.

    Raises InvalidOptionError if the environment names a folder without such a file, or a file includes itself, and
    StorageError.
    """
    lines = _lines_of_the_machine()
    folder = os.environ.get(FOLDER_VARIABLE, "").rstrip("/")
    # The lines of the machine's folder are there already.
    if folder and folder.removeprefix("file://") != FOLDER_OF_THE_MACHINE:
        try:
            lines += _read_lines(f"{folder}/{FILE_NAME}", ())
        except FileNotFoundError as error:
            raise InvalidOptionError(
                f"The environment variable {FOLDER_VARIABLE} names {folder}, which has no file {FILE_NAME}.",
                "Put the file there, or unset the variable before Spark starts.",
            ) from error
    return lines


def _lines_of_the_machine() -> list[Line]:
    """Return the settings of the file for the whole machine; none if it is absent or unusable, which is logged."""
    path = f"{FOLDER_OF_THE_MACHINE}/{FILE_NAME}"
    try:
        return list(_read_lines(path, ()))
    except FileNotFoundError:
        return []
    except PyHudiError as error:
        # A job's user cannot mend the machine's file, and Apache Hudi continues without it, too.
        logger.warning("The defaults in %s are not used: %s", path, error)
        return []


def _read_lines(path: str, including: tuple[str, ...]) -> Iterator[Line]:
    """Yield a file's settings, with those of included files in the place of the include lines.

    ``including`` are the paths of the files that led here by include lines, the outermost first.
    """
    if path in including:
        raise InvalidOptionError(
            f"The defaults file {path} includes itself, by way of {' and '.join(including)}.",
            "Remove one of the include lines.",
        )
    folder = path.rpartition("/")[0]
    # The file is the storage's root, which may be a symbolic link: systems install configuration by links.
    text = open_storage(path).read("").decode("utf-8", "replace")
    for number, line in enumerate(_LINE_END.split(text), 1):
        place = f"{path}:{number}"
        flat = _BLANKS.sub(" ", line).strip()
        if not flat or flat.startswith("#"):
            continue
        key, separator, value = flat.partition("=" if "=" in flat else " ")
        key, value = key.strip(), value.strip()
        if not separator or not key:
            logger.warning("%s is ignored, as it has no key and value", place)
        elif key == _INCLUDE and separator == "=":
            included = value if value.startswith("/") or ":" in value else f"{folder}/{value}"
            try:
                yield from _read_lines(included, (*including, path))
            except FileNotFoundError as error:
                raise InvalidOptionError(
                    f"{place} includes {included}, and there is no such file.", "Correct the line."
                ) from error
        else:
            yield Line(key, value, place)
