"""The answer of a source about a query's file slices, and the base files that it has judged."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...table.files.file_group import FileSlice


@dataclass(frozen=True, slots=True)
class JudgedFiles:
    """The paths of base files whose footers would add nothing: about keys, and about bounds of columns."""

    keys: Collection[str] = frozenset()
    bounds: Collection[str] = frozenset()

    def joined(self, other: JudgedFiles) -> JudgedFiles:
        """Return the files that two sources have judged."""
        return JudgedFiles(
            frozenset(self.keys) | frozenset(other.keys), frozenset(self.bounds) | frozenset(other.bounds)
        )


NOTHING = JudgedFiles()


@dataclass(frozen=True, slots=True)
class Answer:
    """The slices, in their order, that can hold wanted rows, and what the source judged."""

    slices: Sequence[FileSlice]
    judged: JudgedFiles = NOTHING


class SliceSource(Protocol):
    """Says which file slices can hold rows of a query."""

    @property
    def name(self) -> str:
        """The name of its partition of the metadata table."""

    def slices_left(self, slices: Sequence[FileSlice], judged: JudgedFiles) -> Answer | None:
        """Return the slices that can hold such rows, given what other sources judged; None without an answer."""


def base_paths(slices: Sequence[FileSlice]) -> frozenset[str]:
    """Return the paths of the slices' base files."""
    return frozenset(file_slice.base.path for file_slice in slices if file_slice.base is not None)
