"""The figures of a commit under Apache Hudi's names, written to a text file for a collector or pushed to a gateway.

Sources: ``HoodieMetrics``, and ``DropwizardExports`` for the form of a name with dots in Prometheus.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...storage import open_storage
from ...storage.base import split
from ...table.config import TableConfig
from ...table.table import Table
from ...timeline.clock import parse_time
from ...timeline.instants import Instant
from ...timeline.metadata.models import CommitMetadata, WriteStat
from ..result import ARCHIVE, CLEAN, CommitResult, ServiceResult
from ..write_settings import MetricsSettings

logger = logging.getLogger("pyhudi")

# Seconds that a push may take, because the caller of the completed commit waits.
_PUSH_S = 2.0
_NEW = "null"
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9:_]")
_SUMS: Mapping[str, tuple[str, Callable[[WriteStat], int]]] = {
    "totalFilesInsert": ("File groups that the commit made.", lambda stat: stat.prev_commit in {None, _NEW}),
    "totalFilesUpdate": ("File groups that it changed.", lambda stat: stat.prev_commit not in {None, _NEW}),
    "totalRecordsWritten": ("Rows in its files, those that stayed as they were included.", lambda s: s.num_writes),
    "totalUpdateRecordsWritten": ("Rows that took the place of others.", lambda stat: stat.num_update_writes),
    "totalInsertRecordsWritten": ("New rows.", lambda stat: stat.num_inserts),
    "totalRecordsDeleted": ("Rows taken away.", lambda stat: stat.num_deletes),
    "totalBytesWritten": ("Bytes of its files.", lambda stat: stat.total_write_bytes),
    "totalLogFilesCompacted": ("Log files that it merged.", lambda stat: stat.total_log_files_compacted),
}
_OF_SERVICES = {CLEAN: ("numFilesDeleted", "files"), ARCHIVE: ("numInstantsArchived", "instants")}


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure with its name and its meaning."""

    name: str
    value: float
    help: str

    @property
    def prometheus_name(self) -> str:
        """The name as Prometheus allows it."""
        name = _NOT_IN_NAMES.sub("_", self.name)
        return f"_{name}" if name[:1].isdigit() else name


def report_commit(settings: MetricsSettings, config: TableConfig, table: Table, result: CommitResult) -> None:
    """Report a completed commit to the file and to the gateway, if the settings name one; a failure is only logged.

    ``config`` are the table's properties by the plan of the write, and ``result`` includes the results of the services
    after the commit.
    """
    for target, report in ((settings.file, write_file), (settings.gateway, push)):
        try:
            if target:
                report(settings, config.name, _read_metrics(settings, config, table, result))
        except Exception as error:  # noqa: BLE001 (the commit is complete)
            reason = str(error) or type(error).__name__
            logger.warning(
                "table %s: the figures of the commit %s did not get to %s: %s",
                table.path,
                result.instant,
                target,
                reason,
            )


def _read_metrics(settings: MetricsSettings, config: TableConfig, table: Table, result: CommitResult) -> list[Metric]:
    """Return the figures of a commit by its completed file; raise `LookupError` if it was archived."""
    timeline = table.timeline()
    instant = timeline.find(result.instant)
    if instant is None:
        raise LookupError("the instant has left the timeline")
    metadata = timeline.files.read_commit(instant)
    return list(metrics_of(settings.prefix or config.name, instant, config, metadata, result))


def metrics_of(
    prefix: str, instant: Instant, config: TableConfig, metadata: CommitMetadata, result: CommitResult
) -> Iterator[Metric]:
    """Yield the figures of a commit and of the services after it, under names that begin with ``prefix``.

    ``metadata`` is the content of the completed ``instant``, and ``result`` is what the caller of the commit gets.
    ``config`` has the time zone of the instant's times. Names with "pyhudi" after the prefix are those for which Apache
    Hudi has none.
    """
    commit_prefix, own_prefix = f"{prefix}.{instant.action}", f"{prefix}.pyhudi"
    stats = [stat for group in metadata.partition_to_write_stats.values() for stat in group]
    partitions = sum(1 for group in metadata.partition_to_write_stats.values() if group)
    yield Metric(f"{commit_prefix}.totalPartitionsWritten", partitions, "Partitions with new files.")
    for name, (text, count) in _SUMS.items():
        yield Metric(f"{commit_prefix}.{name}", sum(map(count, stats)), text)
    begin_ms = parse_time(instant.requested_time, config.timezone)
    yield Metric(f"{commit_prefix}.commitTime", begin_ms, "The instant's requested time, milliseconds since 1970.")
    if instant.completion_time:
        duration_ms = parse_time(instant.completion_time, config.timezone) - begin_ms
        yield Metric(
            f"{commit_prefix}.duration", duration_ms, "Milliseconds from the requested to the completed instant."
        )
    for service in result.services:
        yield from _service_metrics(prefix, service)
    yield Metric(f"{own_prefix}.attempts", result.attempts, "How often the commit merged its rows.")
    yield Metric(f"{own_prefix}.writesMet", len(result.met), "Writes of the same data for which the commit waited.")
    yield Metric(f"{own_prefix}.deletesNotFound", result.not_found, "Deletes that removed nothing.")
    yield Metric(f"{own_prefix}.insertsDropped", result.dropped, "Rows left out because their key was there.")
    yield Metric(f"{own_prefix}.fileGroupsReplaced", result.replaced, "File groups taken away as a whole.")
    failed = sum(bool(service.error) for service in result.services)
    yield Metric(f"{own_prefix}.servicesFailed", failed, "Table services after the commit that failed.")
    for phase, seconds in sorted(result.seconds.items()):
        yield Metric(f"{own_prefix}.seconds.{phase}", seconds, f"Seconds of the phase {phase}.")


def _service_metrics(prefix: str, service: ServiceResult) -> Iterator[Metric]:
    """Yield the figures of one service after the commit; none if it changed nothing, or failed."""
    if not service.changed or service.error:
        return
    yield Metric(f"{prefix}.{service.service}.duration", round(service.seconds * 1000), "Milliseconds of the service.")
    if service.service in _OF_SERVICES:
        name, counted = _OF_SERVICES[service.service]
        yield Metric(f"{prefix}.{service.service}.{name}", getattr(service, counted), "What the service took away.")


def write_file(settings: MetricsSettings, table: str, metrics: Iterable[Metric]) -> None:
    """Write the file in Prometheus's text format, version 0.0.4; a collector sees the old file or the new, whole."""
    lines = []
    for metric in metrics:
        name = metric.prometheus_name
        lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} gauge", f"{name} {metric.value}"]
    folder, file = split(settings.file)
    file = file or f"{_NOT_IN_NAMES.sub('_', table)}.prom"
    open_storage(folder).write(file, "\n".join([*lines, ""]).encode(), durable=False)


def push(settings: MetricsSettings, table: str, metrics: Iterable[Metric]) -> None:
    """Push the figures to a gateway of Prometheus, where they replace those of the same names.

    ``settings`` name the gateway, its job and its labels; ``table`` is the table's name, the job if they name none.
    Raises `TimeoutError` if the gateway is slow, and any error of the push.
    """
    from prometheus_client import CollectorRegistry, Gauge, pushadd_to_gateway  # noqa: PLC0415 (the extra metrics)

    registry = CollectorRegistry()
    for metric in metrics:
        Gauge(metric.prometheus_name, metric.help, registry=registry).set(metric.value)
    failures: list[BaseException] = []

    def send() -> None:
        """Push the figures, and note an error for the thread that waits."""
        try:
            pushadd_to_gateway(
                settings.gateway, settings.job or table, registry, dict(settings.labels), timeout=_PUSH_S
            )
        except BaseException as error:  # noqa: BLE001 (the caller raises it)
            failures.append(error)

    # A timeout of urllib is for each of its steps, and a name server may take longer than all steps.
    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    sender.join(_PUSH_S)
    if sender.is_alive():
        raise TimeoutError(f"it took more than {_PUSH_S} s")
    if failures:
        raise failures[0]
