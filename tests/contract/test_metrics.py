"""The figures of commits: what their files say, under Apache Hudi's names, and what becomes of a report that fails."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import InvalidOptionError, UnsupportedOptionError
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings, Upkeep
from pyhudi.operations.write_settings import MetricsSettings
from pyhudi.options.parsing import parse_options
from support.drawn.histories import LOGGED, TABLE, part
from support.drive import write
from support.seams import patch_seam
from support.threads import HANGS_S

GATEWAY = {
    "hoodie.metrics.on": "true",
    "hoodie.metrics.reporter.type": "PROMETHEUS_PUSHGATEWAY",
}
FIRST = [("k1", "a", 1), ("k2", "a", 1), ("k3", "b", 1)]
SECOND = [("k1", "a", 2), ("k4", "b", 2)]


def rows(rows: list[tuple[str, str, int]]) -> pa.Table:
    return part(*({"id": key, "p": partition, "ts": ts, "value": ts} for key, partition, ts in rows))


def reported(path: Path) -> dict[str, float]:
    """Return what a collector reads in a file, which has a kind and a help line for each figure."""
    lines = path.read_text(encoding="utf-8").splitlines()
    values = [line for line in lines if not line.startswith("#")]
    assert len(lines) == 3 * len(values)
    return {name: float(value) for name, value in (line.split() for line in values)}


def to_file(path: Path) -> WriteSettings:
    return WriteSettings(metrics=MetricsSettings(file=str(path), prefix="t"))


@pytest.mark.parametrize(("made", "action"), [(TABLE, "commit"), (LOGGED, "deltacommit")], ids=["cow", "mor"])
def test_a_file_has_the_figures_of_the_newest_commit(tmp_path: Path, made: object, action: str) -> None:
    path, target = tmp_path / "table", tmp_path / "t.prom"
    first = write(path, [rows(FIRST)], table=made, settings=to_file(target))
    of_first = reported(target)
    second = write(path, [rows(SECOND)], settings=to_file(target))
    of_second = reported(target)

    files = [file for file in path.rglob("*") if file.is_file() and ".hoodie" not in file.parts]
    of_commit = [file for file in files if f"_{first.instant}" in file.name]
    assert of_first[f"t_{action}_totalRecordsWritten"] == 3
    assert of_first[f"t_{action}_totalInsertRecordsWritten"] == 3
    assert of_first[f"t_{action}_totalPartitionsWritten"] == 2
    assert of_first[f"t_{action}_totalFilesInsert"] == first.files + first.log_files == len(of_commit)
    assert of_first[f"t_{action}_totalBytesWritten"] == sum(file.stat().st_size for file in of_commit)
    assert of_second[f"t_{action}_commitTime"] > of_first[f"t_{action}_commitTime"]
    assert of_second[f"t_{action}_duration"] > 0
    assert of_second["t_pyhudi_attempts"] == second.attempts == 1
    assert {f"t_pyhudi_seconds_{phase.replace('.', '_')}" for phase in second.seconds} <= of_second.keys()
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_services_after_a_commit_report_what_they_took_away(tmp_path: Path) -> None:
    upkeep = Upkeep(CleanSettings(commits=1), ArchiveSettings(min_commits=2, max_commits=3))
    settings = WriteSettings(metrics=MetricsSettings(file=f"{tmp_path}/figures/", prefix=""), upkeep=upkeep)
    (tmp_path / "figures").mkdir()
    totals = Counter[str]()
    for turn in range(8):
        result = write(tmp_path / "trips", rows([("k1", "a", turn)]), table=TABLE, settings=settings)
        [target] = (tmp_path / "figures").iterdir()
        name, metric_values = target.stem, reported(target)
        by_name = {service.service: service for service in result.services}
        for service, figure, counted in (
            ("clean", "numFilesDeleted", "files"),
            ("archive", "numInstantsArchived", "instants"),
        ):
            taken = getattr(by_name[service], counted) if service in by_name else 0
            assert metric_values.get(f"{name}_{service}_{figure}", 0) == taken
            totals[service] += taken
    assert min(totals["clean"], totals["archive"]) > 0


def test_a_report_that_fails_is_one_line_and_fails_no_commit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no-folder").touch()
    settings = WriteSettings(metrics=MetricsSettings(file=f"{tmp_path}/no-folder/t.prom", gateway="127.0.0.1:1"))
    with caplog.at_level(logging.WARNING, "pyhudi"):
        result = write(tmp_path / "t", rows(FIRST), table=TABLE, settings=settings)

    assert result.inserts == 3
    lines = [record.getMessage() for record in caplog.records]
    assert [f"the figures of the commit {result.instant} did not get to" in line for line in lines] == [True, True]
    assert [target in line for target, line in zip(("t.prom", "127.0.0.1:1"), lines, strict=True)] == [True, True]
    assert all(record.exc_info is None for record in caplog.records)


@contextmanager
def gateway(answers: threading.Event) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Serve a gateway that notes what it gets, and answers once it may."""
    got: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            got.append((self.path, body))
            answers.wait(HANGS_S)
            self.send_response(202)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", got
    finally:
        answers.set()
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_gateway_gets_the_figures_in_the_group_of_the_job_and_its_labels(tmp_path: Path) -> None:
    answers = threading.Event()
    answers.set()
    with gateway(answers) as (address, got):
        host, port = address.split(":")
        options = parse_options(
            {
                **GATEWAY,
                "hoodie.metrics.pushgateway.host": host,
                "hoodie.metrics.pushgateway.port": port,
                "hoodie.metrics.pushgateway.job.name": "nightly",
                "hoodie.metrics.pushgateway.report.labels": "team:data, stage: prod",
                "hoodie.metrics.reporter.metricsname.prefix": "9 lives",
            }
        )
        write(tmp_path / "t", rows(FIRST), table=TABLE, settings=WriteSettings(metrics=options.metrics_settings()))

    [(path, body)] = got
    assert path == "/metrics/job/nightly/stage/prod/team/data"
    assert "_9_lives_commit_totalRecordsWritten 3.0" in body.splitlines()


def test_a_gateway_that_does_not_answer_is_given_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_seam(monkeypatch, "seconds of a push of metrics", 0.3)
    with gateway(threading.Event()) as (address, got), caplog.at_level(logging.WARNING, "pyhudi"):
        result = write(
            tmp_path / "t", rows(FIRST), table=TABLE, settings=WriteSettings(metrics=MetricsSettings(gateway=address))
        )
        # The server may read what was sent once the write has given it up.
        while not got:
            threading.Event().wait(0.01)

    assert result.inserts == 3
    assert len(got) == 1
    [line] = [record.getMessage() for record in caplog.records]
    assert "did not get to" in line


@pytest.mark.parametrize(
    "given",
    [
        {"hoodie.metrics.on": "true"},
        {"hoodie.metrics.on": "true", "hoodie.metrics.reporter.type": "DATADOG"},
        {**GATEWAY, "hoodie.metrics.reporter.class": "com.acme.Reporter"},
    ],
    ids=["by default", "by type", "by class"],
)
def test_other_reporters_are_refused_by_name_where_figures_are_to_be_pushed(given: dict[str, str]) -> None:
    with pytest.raises(UnsupportedOptionError) as raised:
        parse_options(given).metrics_settings()
    named = given.get("hoodie.metrics.reporter.class") or given.get("hoodie.metrics.reporter.type", "GRAPHITE")
    assert named in str(raised.value)
    assert parse_options({**given, "hoodie.metrics.on": "false"}).metrics_settings() == MetricsSettings()


def test_labels_are_pairs_and_a_push_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidOptionError, match="team"):
        parse_options({**GATEWAY, "hoodie.metrics.pushgateway.report.labels": "team"}).metrics_settings()
    patch_seam(monkeypatch, "find a package", lambda name: None)
    with pytest.raises(InvalidOptionError, match=r"pyhudi\[metrics\]"):
        parse_options(GATEWAY).metrics_settings()
