"""Stored rows that are cut by file group into new base files, with all of their meta columns but the file's name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace

import pyarrow as pa

from ..table.files.names import FileGroupId
from .data_files import BaseOutput, DataFiles, FileFormat
from .written_file import WrittenFile


def write_cut_files(
    files: DataFiles,
    groups: Mapping[int, FileGroupId],
    form: FileFormat,
    pieces: Iterable[tuple[int, pa.RecordBatch]],
    *,
    in_order: bool,
) -> list[WrittenFile]:
    """Write and publish a base file for each file group that gets rows.

    Pieces name file groups by their numbers in ``groups``, such as the new buckets of a rescale.
    Pieces that come ``in_order`` of their numbers need one open file at a time. Else all files grow at once, and each
    holds the rows of a row group in memory. If rows are sorted, the sorters of the files share the bound of memory.
    """
    if not in_order:
        form = replace(form, sorters=max(len(groups), 1))
    with ExitStack() as opened:
        growing: dict[int, BaseOutput] = {}
        written: list[WrittenFile] = []
        for number, rows in pieces:
            if number not in growing:
                if in_order:
                    written += _publish_all(growing)
                growing[number] = opened.enter_context(BaseOutput(files, groups[number], form, None))
            growing[number].keep(rows)
        return written + _publish_all(growing)


def _publish_all(growing: dict[int, BaseOutput]) -> list[WrittenFile]:
    """Publish the finished files of new file groups, return them, and empty ``growing``."""
    outputs = list(growing.values())
    growing.clear()
    return [output.publish(None) for output in outputs]
