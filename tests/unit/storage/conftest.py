"""What a storage does is asked of the disk, which knows more file systems than memory does."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def tmp_path(tmp_path_on_disk: Path) -> Path:
    """A folder on the disk."""
    return tmp_path_on_disk
