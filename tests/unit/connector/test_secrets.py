"""Secrets of a store, searched for in all that pyhudi shows of a write that succeeds and of writes that fail."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from pyhudi.connector.command import run
from pyhudi.connector.datasource import PyHudiDataSource
from pyhudi.connector.source.writer import HudiWriter
from pyhudi.errors import PyHudiError
from pyhudi.operations.planning.plan import plan_write
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.options.explain import explain
from pyhudi.options.parsing import PyHudiWarning, parse_options
from pyhudi.options.sources import WRITING, resolve_options
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from s3fs import S3FileSystem
from support.drawn.histories import part, row
from support.drive import task
from support.models.model import SCHEMA
from support.s3 import S3Server, new_url

PREFIX = "hoodie.pyhudi.storage."
NEEDLE = "vErYsEcReT"
ROWS = part(row("a", ts=1, value=1))
TABLE = {"recordkey": "id", "partitionby": "p", "orderby": "ts", "buckets": "2"}


def secrets_for(s3: S3Server) -> dict[str, str]:
    """Return options that reach the server, with a secret in every one that may hold some."""
    return {
        f"{PREFIX}endpoint_url": s3.endpoint,
        f"{PREFIX}region": "us-east-1",
        f"{PREFIX}key": f"{NEEDLE}-key",
        f"{PREFIX}secret": f"{NEEDLE}-secret",
        f"{PREFIX}secret.token": f"{NEEDLE}-token",
        f"{PREFIX}config_kwargs": f'{{"user_agent_extra": "{NEEDLE}-agent"}}',
    }


def text_of(error: BaseException) -> str:
    """Return all that Python, and Spark after it, would show of an error."""
    return f"{error!r}{error}{''.join(traceback.format_exception(error))}"


@pytest.fixture
def shown(caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """Give what pyhudi has logged so far."""
    caplog.set_level(logging.DEBUG, logger="pyhudi")
    return lambda: "".join(f"{one.getMessage()}{one.exc_text}" for one in caplog.records if one.name == "pyhudi")


def test_a_write_that_succeeds_shows_none(s3: S3Server, shown: Callable[[], str]) -> None:
    url, given = new_url(), {**TABLE, **secrets_for(s3)}
    resolved = resolve_options(given, url, WRITING)
    request = resolved.options.to_write_request(url, SCHEMA, overwrite=False)
    plan = plan_write(request)
    results = [task(plan, ROWS, 0)]
    commit_result = commit_write(plan, results)
    storage = plan.storage
    snapshot = open_snapshot(url, request.storage_options)
    explained = explain(resolved, load_config(storage))
    source = PyHudiDataSource({"path": url, **given})
    about = [resolved, request, plan, results, commit_result, storage, snapshot, explained, source, HudiWriter(plan)]
    text = "".join(f"{one!r}{one}{getattr(one, '_repr_html_', str)()}" for one in about)

    assert commit_result.inserts == 1
    assert dict(plan.storage.options)["secret"] == f"{NEEDLE}-secret"
    assert NEEDLE not in text + shown()


@pytest.mark.parametrize("quoted", ["-key", "-secret", "-token", "-agent"])
def test_a_write_whose_store_fails_shows_none(
    s3: S3Server, shown: Callable[[], str], monkeypatch: pytest.MonkeyPatch, quoted: str
) -> None:
    """What the store's client says of what it was given is told, but for the secret."""
    url = new_url()
    request = parse_options({**TABLE, **secrets_for(s3)}).to_write_request(url, SCHEMA, overwrite=False)
    plan = plan_write(request)
    result = task(plan, ROWS, 0)

    async def quote(*_: Any, **__: Any) -> None:
        try:
            raise KeyError(f"AWS4 Credential={NEEDLE}{quoted}/x")
        except KeyError as error:
            raise ValueError(f"Invalid header value b'Credential={NEEDLE}{quoted}/x'") from error

    monkeypatch.setattr(S3FileSystem, "_call_s3", quote)
    acts = [
        lambda: task(plan, ROWS, 1),
        lambda: commit_write(plan, [result]),
        lambda: abort_write(plan),
        lambda: open_snapshot(url, request.storage_options),
    ]
    for act in acts:
        with pytest.raises(PyHudiError) as raised:
            act()

        assert "Invalid header value b'Credential=***/x'" in str(raised.value)
        assert NEEDLE not in text_of(raised.value)
    assert NEEDLE not in shown()


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("s3://b/t", {f"{PREFIX}secret": f"{NEEDLE}1", f"{PREFIX}Secret": f"{NEEDLE}2"}),
        ("s3://b/t", {f"{PREFIX}key": f"{NEEDLE}1", f"{PREFIX}secret.key": f"{NEEDLE}2"}),
        ("s3://b/t", {f"{PREFIX}sekret": NEEDLE}),
        ("s3://b/t", {f"{PREFIX}client_kwargs": f"{{{NEEDLE}}}"}),
        (f"ftp://me:{NEEDLE}@host/t", {}),
        (f"s3://key:{NEEDLE}@b/t", {}),
        ("github://o:r@main/t", {f"{PREFIX}nobody_knows": NEEDLE}),
        ("nosuch://h/t", {f"{PREFIX}password": NEEDLE}),
        ("/t", {"hoodie.bootstrap.base.path": f"s3://key:{NEEDLE}@b/t"}),
        ("/t", {"hoodie.datasource.hive_sync.jdbcurl": f"jdbc:x;password={NEEDLE}", "hoodie.nothing": "1"}),
        ("/t", {"hoodie.datasource.write.payload.class": f"token={NEEDLE}"}),
        ("/t", {"buckets": f"password={NEEDLE}"}),
    ],
)
def test_options_that_are_refused_show_none(
    tmp_path: Any, shown: Callable[[], str], path: str, options: dict[str, str]
) -> None:
    path = path if ":" in path else f"{tmp_path}{path}"
    with pytest.raises(PyHudiError) as raised:
        open_storage(path, parse_options({**TABLE, **options}).storage_options)

    assert NEEDLE not in text_of(raised.value) + shown()


def test_what_is_accepted_and_not_done_shows_none(shown: Callable[[], str]) -> None:
    with pytest.warns(PyHudiWarning) as warned:
        parse_options({"hoodie.clustering.inline": f"password={NEEDLE}"}, warn=True)

    assert NEEDLE not in "".join(str(one.message) for one in warned) + shown()


def test_a_job_that_takes_an_option_amiss_shows_none() -> None:
    with pytest.raises(PyHudiError) as raised:
        run.pairs([f"{PREFIX}secret:{NEEDLE}"])

    assert f"'{PREFIX}secret'" in str(raised.value)
    assert NEEDLE not in text_of(raised.value)


def test_a_defaults_file_that_is_written_amiss_shows_none(
    tmp_path: Any, shown: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hudi-defaults.conf").write_text(f"{PREFIX}secret:{NEEDLE}\n{PREFIX}token {NEEDLE}\n")
    monkeypatch.setenv("HUDI_CONF_DIR", str(tmp_path))
    resolved = resolve_options({}, str(tmp_path / "t"), WRITING)

    assert resolved.options.storage_options == {"token": NEEDLE}
    assert "hudi-defaults.conf:1 is ignored" in shown()
    assert NEEDLE not in f"{resolved!r}{shown()}"
