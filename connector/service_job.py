"""One table service as a job: no rows, hence neither Spark nor a JVM."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

from ..operations.result import ServiceResult
from ..operations.services.settings import CompactionSettings, LogCompactionSettings, Upkeep
from ..storage import Storage, open_storage
from .options.model import HudiOptions
from .options.sources import WRITING, resolve_options
from .source.paths import absolute

_Of = Callable[[Upkeep], "CompactionSettings | LogCompactionSettings"]
# Each service is imported when it is asked for: the others' are of no use to the job.


def run_service(service: str, path: str, given: Mapping[str, str], asked: Namespace) -> ServiceResult:
    """Carry out one table service.

    Args:
        service: Its name.
        path: The table's path.
        given: Options, as a write takes them.
        asked: What the command line says beside them.

    Raises:
        PyHudiError: It failed.
    """
    options, storage = _opened(path, given)
    return _SERVICES[service](storage, options, asked)


def run_validate(path: str, given: Mapping[str, str], *, deep: bool) -> list[dict[str, Any]]:
    """Return everything that is wrong with a table, one mapping for each finding.

    Args:
        path: The table's path.
        given: Options, as a write takes them.
        deep: Whether rows are read.

    Raises:
        PyHudiError: The table cannot be looked at.
    """
    from ..operations.inspect.validate import validate  # noqa: PLC0415

    findings: list[dict[str, Any]] = validate(_opened(path, given)[1], deep=deep).to_pylist()
    return findings


def _opened(path: str, given: Mapping[str, str]) -> tuple[HudiOptions, Storage]:
    path = absolute(path)
    options = resolve_options(given, path, WRITING).options
    return options, open_storage(path, options.storage_options, durable=options.durable)


def _clean(storage: Storage, options: HudiOptions, asked: Namespace) -> ServiceResult:
    from ..operations.services.clean import clean  # noqa: PLC0415

    settings = options.upkeep().clean
    return clean(storage, settings, metadata_enable=options.metadata_enable, dry_run=asked.dry_run)


def _archive(storage: Storage, options: HudiOptions, _: Namespace) -> ServiceResult:
    from ..operations.services.archive import archive  # noqa: PLC0415

    upkeep = options.upkeep()
    return archive(storage, upkeep.archive, upkeep.clean, metadata_enable=options.metadata_enable)


def _compact(of: _Of, storage: Storage, options: HudiOptions, _: Namespace) -> ServiceResult:
    from ..operations.services.compaction.compact import compact  # noqa: PLC0415
    from ..operations.write.inline import means_of  # noqa: PLC0415

    means = means_of(options.write_settings(), application=options.application)
    return compact(storage, of(options.upkeep()), means, metadata_enable=options.metadata_enable)


def _schedule_compaction(of: _Of, storage: Storage, options: HudiOptions, _: Namespace) -> ServiceResult:
    from ..operations.services.compaction.compact import schedule_compaction  # noqa: PLC0415

    patience = options.write_settings().patience
    return schedule_compaction(storage, of(options.upkeep()), patience, metadata_enable=options.metadata_enable)


def _repair(storage: Storage, options: HudiOptions, asked: Namespace) -> ServiceResult:
    from ..operations.services.compaction.repair import repair  # noqa: PLC0415
    from ..operations.write.inline import means_of  # noqa: PLC0415

    means = means_of(options.write_settings(), application=options.application)
    enabled = options.metadata_enable
    return repair(storage, asked.accept_loss, means, dry_run=asked.dry_run, metadata_enable=enabled)


def _rollback(storage: Storage, options: HudiOptions, asked: Namespace) -> ServiceResult:
    from ..operations.services.rollback import rollback  # noqa: PLC0415

    patience = options.write_settings().patience
    return rollback(storage, asked.instant, metadata_enable=options.metadata_enable, patience=patience)


def _savepoint(storage: Storage, _: HudiOptions, asked: Namespace) -> ServiceResult:
    from ..operations.services.savepoint import savepoint  # noqa: PLC0415

    return savepoint(storage, asked.instant, user=asked.user, comment=asked.comment)


def _delete_savepoint(storage: Storage, _: HudiOptions, asked: Namespace) -> ServiceResult:
    from ..operations.services.savepoint import delete_savepoint  # noqa: PLC0415

    return delete_savepoint(storage, asked.instant)


def _restore(storage: Storage, options: HudiOptions, asked: Namespace) -> ServiceResult:
    from ..operations.services.restore import restore  # noqa: PLC0415

    patience = options.write_settings().patience
    return restore(storage, asked.to, metadata_enable=options.metadata_enable, patience=patience)


_SERVICES: dict[str, Callable[[Storage, HudiOptions, Namespace], ServiceResult]] = {
    "clean": _clean,
    "archive": _archive,
    "compact": partial(_compact, attrgetter("compaction")),
    "schedule_compaction": partial(_schedule_compaction, attrgetter("compaction")),
    "log_compact": partial(_compact, attrgetter("log_compaction")),
    "schedule_log_compaction": partial(_schedule_compaction, attrgetter("log_compaction")),
    "repair": _repair,
    "rollback": _rollback,
    "savepoint": _savepoint,
    "delete_savepoint": _delete_savepoint,
    "restore": _restore,
}
