"""What a storage does is asked of the disk, which knows more file systems than memory does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.s3 import S3Server


@pytest.fixture
def tmp_path(tmp_path_on_disk: Path) -> Path:
    """A folder on the disk."""
    return tmp_path_on_disk


@pytest.fixture
def s3(s3: S3Server) -> Iterator[S3Server]:
    """What S3 does is asked of moto alone."""
    s3.moto_alone = True
    yield s3
    s3.moto_alone = False
