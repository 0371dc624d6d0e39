"""What Apache Hudi 1.2 makes of writes: who stays of several rows of a key, which ordering value wins, what is counted.

The archive holds the tables before the writes and, by subject and case, the answers.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.recorded.hudi_options import SMALL

ARCHIVE = Path(__file__).parents[2] / "fixtures" / "writes" / "apache_hudi_1_2.tar.xz"
ANSWERS = "answers.json"
# The subjects; the tables before the writes of the first two have their names.
DUPLICATES, STATISTICS, ORDERINGS = "duplicates", "statistics", "orderings"
OPTIONS = {
    DUPLICATES: {**SMALL, "hoodie.bucket.index.num.buckets": "1"},
    STATISTICS: {**SMALL, "hoodie.bucket.index.num.buckets": "2"},
}


@dataclass(frozen=True)
class Recorded:
    """The unpacked archive.

    Attributes:
        folder: Where it is.
        answers: Of each subject what Apache Hudi made of each case. Of duplicates the names of the rows that stayed, or
            the words with which it refused; of statistics what the commit says; of orderings each key's row.
    """

    folder: Path
    answers: Mapping[str, Mapping[str, Any]]

    @classmethod
    def unpack(cls, folder: Path) -> Recorded:
        """Unpack the archive into a folder."""
        shutil.unpack_archive(ARCHIVE, folder)
        return cls(folder, json.loads((folder / ANSWERS).read_text(encoding="utf-8")))

    def copy_of(self, subject: str, to: Path) -> Path:
        """Return a copy of the table before a write."""
        return Path(shutil.copytree(self.folder / subject, to))
