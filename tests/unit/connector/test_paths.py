from __future__ import annotations

from pathlib import Path

import pytest
from pyhudi.errors import InvalidOptionError
from pyhudi.methods.paths import absolute


def test_a_path_is_spelled_so_that_any_process_understands_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")

    assert absolute("a/b") == absolute("./a//b/") == absolute("file:a/b") == f"{tmp_path}/a/b"
    assert absolute("~/a") == "/home/somebody/a"
    assert absolute(Path("/a/b")) == absolute("/a/c/../b") == "/a/b"
    assert absolute("s3://bucket/a") == absolute("s3://bucket//a") == "s3://bucket/a"
    assert absolute("file:/a/b") == "file:/a/b"
    assert absolute("./~a") == f"{tmp_path}/~a"
    with pytest.raises(InvalidOptionError, match="~nobody-of-that-name/a"):
        absolute("~nobody-of-that-name/a")
    monkeypatch.setenv("SPARK_JOB_ARTIFACT_UUID", "5360c447-5038-4132-b285-3d9ee406c8b5")
    assert absolute("~/a") == "/home/somebody/a"
    with pytest.raises(InvalidOptionError, match="temporary folder"):
        absolute("a/b")
