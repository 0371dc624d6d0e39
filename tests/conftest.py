"""What tests of several folders share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.s3 import S3Server


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
