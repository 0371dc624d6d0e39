"""What tests of several folders share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.places import Place
from support.s3 import S3Server, new_url


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """One S3 for all tests, to which the environment leads."""
    server = S3Server()
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield server
    server.stop()


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where a test's tables go: a folder of this machine, or one on S3."""
    if request.param == "local":
        return tmp_path
    request.getfixturevalue("s3")
    return new_url().removesuffix("/t")
