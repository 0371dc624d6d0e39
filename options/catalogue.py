"""The keys of Apache Hudi that are no options of pyhudi, and what pyhudi does with each.

Source: the ``ConfigProperty`` constants of Apache Hudi 1.2.0, plus keys of older releases that jobs still carry.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Effect(Enum):
    """What pyhudi does with an option that it knows and does not have."""

    REFUSED = "any value but the default would change what is written or read, so it is an error"
    NOT_DONE = "asks for a service that pyhudi does not do yet: accepted with a warning, unless it is switched off"
    NO_MEANING = "concerns machinery that pyhudi does not have: accepted, and logged once"


class Scope(Enum):
    """What an option is about."""

    TABLE = "the table, which keeps it from its creation on"
    WRITE = "one write"
    LOOKUP = "the index, where it looks keys up"
    UPKEEP = "what keeps a table small"
    STREAM = "a streaming query"
    METRICS = "what a commit reports"
    READ = "one read"
    ANY = "any of them"


@dataclass(frozen=True, slots=True)
class KnownKey:
    """One key of Apache Hudi.

    Attributes:
        why: A clause that says what pyhudi does instead.
        default: Apache Hudi's default, lower-case; empty if it has none. Only refused keys have default and scope.
    """

    effect: Effect
    why: str
    default: str = ""
    scope: Scope = Scope.WRITE


def find_known(key: str) -> KnownKey | None:
    """Return the entry of a lower-case key; None if the catalogue has none."""
    entry = CATALOGUE.get(key)
    if entry is not None:
        return entry
    return next((family for prefix, family in FAMILIES.items() if key.startswith(prefix)), None)


_REFUSED: dict[tuple[Scope, str], str] = {
    (Scope.TABLE, "the key generator and the columns alone give the layout of keys and partitions"): """
        hoodie.datasource.write.drop.partition.columns=false
        hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled=false
        hoodie.datasource.write.slash.separated.date.partitioning=false
        hoodie.datasource.write.secondarykey.column=
        hoodie.write.complex.keygen.new.encoding=false
        hoodie.write.complex.keygen.validation.enable=true
        hoodie.keygen.datetime.parser.class=org.apache.hudi.keygen.parser.hoodiedatetimeparser
        hoodie.deltastreamer.keygen.datetime.parser.class=org.apache.hudi.keygen.parser.hoodiedatetimeparser
    """,
    (Scope.TABLE, "pyhudi takes numbers of buckets from rule files and the table's properties alone"): """
        hoodie.bucket.index.max.num.buckets=
        hoodie.bucket.index.min.num.buckets=
        hoodie.bucket.index.merge.threshold=0.2
        hoodie.bucket.index.split.threshold=2.0
        hoodie.bucket.index.partition.expressions=
        hoodie.bucket.index.partition.rule.type=regex
        hoodie.index.class=
    """,
    (Scope.TABLE, "rows are merged by the table's merge mode alone"): """
        hoodie.write.record.merge.custom.implementation.classes=
        hoodie.datasource.write.record.merger.impls=
        hoodie.write.record.merge.strategy.id=
        hoodie.record.merge.strategy.id=
        hoodie.datasource.write.record.merger.strategy=
        hoodie.compaction.record.merger.strategy=
        hoodie.write.partial.update.schema=
        hoodie.table.legacy.payload.class=
    """,
    (Scope.WRITE, "rows are written as the DataFrame has them, in the table's own columns"): """
        hoodie.avro.schema=
        hoodie.avro.schema.external.transformation=false
        hoodie.avro.schema.externaltransformation=false
        hoodie.avro.schema.validate=false
        hoodie.write.schema=
        hoodie.internal.schema=
        hoodie.schema.on.read.enable=false
        hoodie.datasource.write.schema.allow.auto.evolution.column.drop=false
        hoodie.table.create.schema=
        hoodie.bulkinsert.schema.ddl=
    """,
    (Scope.WRITE, "the operation alone says which rows and file groups are touched"): """
        hoodie.static.overwrite.partition.paths=
        hoodie.bulkinsert.overwrite.operation.type=
        hoodie.prewrite.cleaner.policy=none
    """,
    (Scope.UPKEEP, "a clean covers all partitions, and would delete more than the option allows"): """
        hoodie.clean.partition.filter.regex=
        hoodie.clean.partition.filter.selected=
        hoodie.cleaner.partition.filter.regex=
        hoodie.cleaner.partition.filter.selected=
    """,
    (Scope.TABLE, "tables are made of Parquet files with meta columns, without change data"): """
        hoodie.base.file.format=parquet
        hoodie.table.base.file.format=parquet
        hoodie.table.ro.file.format=parquet
        hoodie.table.log.file.format=hoodie_log
        hoodie.table.rt.file.format=hoodie_log
        hoodie.table.format=native
        hoodie.table.multiple.base.file.formats.enable=false
        hoodie.populate.meta.fields=true
        hoodie.allow.operation.metadata.field=false
        hoodie.partition.metafile.use.base.format=false
        hoodie.parquet.outputtimestamptype=timestamp_micros
        hoodie.parquet.write.utc-timezone.enabled=true
        hoodie.parquet.writelegacyformat.enabled=false
        hoodie.parquet.write.config.injector.class=
        hoodie.table.cdc.enabled=false
        hoodie.table.cdc.supplemental.logging.mode=data_before_after
        hoodie.bootstrap.base.path=
        hoodie.storage.layout.type=default
        hoodie.storage.layout.partitioner.class=
    """,
    (Scope.TABLE, "this part of the table's own description is pyhudi's to write"): """
        hoodie.archivelog.folder=archived
        hoodie.timeline.path=timeline
        hoodie.timeline.history.path=history
        hoodie.timeline.layout.version=2
        hoodie.table.initial.version=nine
        hoodie.table.checksum=
        hoodie.table.index.defs.path=
        hoodie.table.metadata.partitions=
        hoodie.table.metadata.partitions.inflight=
        hoodie.table.secondary.indexes.metadata=
    """,
    (Scope.WRITE, "a write commits all of its rows at once, and compares itself with others then"): """
        hoodie.auto.commit=true
        hoodie.write.concurrency.early.conflict.detection.enable=false
        hoodie.errortable.enable=false
        hoodie.precommit.validators=
        hoodie.prewrite.validators=
        hoodie.fileid.prefix.provider.class=org.apache.hudi.table.randomfileidprefixprovider
    """,
    (Scope.READ, "a read shows the rows of tables, and filters are given as .where(...)"): """
        hoodie.datasource.query.incremental.format=latest_state
        hoodie.datasource.read.create.filesystem.relation=false
        hoodie.datasource.read.extract.partition.values.from.path=false
        hoodie.datasource.read.incr.filters=
        hoodie.datasource.read.paths=
        hoodie.datasource.read.table.valued.function.filesystem.relation.subpath=
        hoodie.datasource.read.table.valued.function.timeline.relation=false
        hoodie.datasource.read.table.valued.function.timeline.relation.archived=false
    """,
}

# A reason, then for each prefix the endings of its keys.
_NOT_DONE = {
    "a write cleans and archives once it is complete, and not beside the next write": {
        "hoodie.clean.": "async async.enabled",
        "hoodie.archive.": "async",
    },
    "a clean finishes the previous clean": {"hoodie.clean.": "allow.multiple multiple.enabled"},
    "archiving stops at the first savepoint": {"hoodie.archive.": "beyond.savepoint"},
    "archiving goes by the number of commits": {"hoodie.archive.": "block.on.latest.clean.ectr"},
    "file groups stay as the writes leave them": {
        "hoodie.clustering.": "inline async.enabled schedule.inline enable.expirations",
        "hoodie.datasource.clustering.": "inline.enable async.enable",
        "hoodie.layout.optimize.": "enable",
    },
    "no partition is ever expired": {
        "hoodie.partition.ttl.": """inline management.strategy.type strategy.class strategy.days.retain
            strategy.max.delete.partitions strategy.partition.selected""",
    },
    "of the metadata table pyhudi keeps files, column_stats and partition_stats": {
        "hoodie.metadata.": """bloom.filter.enable global.record.level.index.enable index.async
            index.bloom.filter.enable index.expression.enable index.secondary.enable record.index.enable
            record.level.index.enable streaming.write.enabled""",
        "hoodie.": "index.name",
        "hoodie.expression.index.": "function range.metadata.storage.level type",
    },
    "pyhudi registers tables in no catalog": {
        "hoodie.datasource.": "hive_sync.enable meta.sync.enable",
        "hoodie.metaserver.": "enabled",
    },
    "pyhudi reports commits to no other system": {"hoodie.": "write.commit.callback.on"},
    "no copy of a rolled back instant is made": {"hoodie.rollback.": "instant.backup.enabled"},
}

_NO_MEANING = {
    "a commit pushes its metrics at once, and they stay at the gateway": {
        "hoodie.metrics.pushgateway.": "delete.on.shutdown random.job.name.suffix report.period.seconds",
        "hoodie.metrics.": "configs.properties executor.enable lock.enable",
    },
    "Spark decides how many tasks there are": {
        "hoodie.": """upsert.shuffle.parallelism insert.shuffle.parallelism delete.shuffle.parallelism
            finalize.write.parallelism file.listing.parallelism rollback.parallelism markers.delete.parallelism""",
        "hoodie.bulkinsert.": "shuffle.parallelism sort.suffix.record_key user.defined.partitioner.class",
    },
    "a clean deletes all that its policy lets go, and leaves no instant if that is nothing": {
        "hoodie.clean.": "max.commits.to.clean",
        "hoodie.write.": "empty.clean.interval.hours",
    },
    "threads of the process that cleans or archives delete the files": {
        "hoodie.clean.": "optimize.using.local.engine.context parallelism",
        "hoodie.cleaner.": "parallelism",
        "hoodie.archive.": "delete.parallelism",
    },
    "what is archived at once is one file of the archive, and the archive's levels say when files are merged": {
        "hoodie.commits.": "archival.batch",
        "hoodie.archive.": "merge.enable",
        "hoodie.timeline.": "compaction.target.file.max.bytes manifest.retained.versions",
    },
    "a service that fails is logged, and the write that it comes after stays complete": {
        "hoodie.": "fail.on.timeline.archiving fail.writes.on.inline.table.service.exception",
    },
    "a delete always removes every row of its key": {"hoodie.": "combine.before.delete"},
    "there is no timeline server, no JVM writer and no Hadoop file system": {
        "hoodie.embed.": """timeline.server timeline.server.async timeline.server.gzip timeline.server.port
            timeline.server.reuse.enabled timeline.server.threads""",
        "hoodie.markers.": "timeline_server_based.batch.interval_ms timeline_server_based.batch.num_threads",
        "hoodie.": """write.markers.type io.factory.class storage.class avro.write.support.class
            parquet.spark.row.write.support.class parquet.flink.rowdata.write.support.class
            parquet.field_id.write.enabled fs.atomic_creation.support time.generator.type
            time.generator.max_expected_clock_skew_ms writestatus.class write.merge.handle.class
            write.merge.handle.fallback write.concat.handle.class compact.merge.handle.class
            write.status.storage.level write.tagged.record.storage.level release.resource.on.completion.enable
            client.init.callback.classes sensitive.config.keys block.writes.on.speculative.execution
            table.partition_extractor_class datasource.partition_extractor_class schema.cache.enable""",
        "hoodie.consistency.": "check.enabled check.initial_interval_ms check.max_checks check.max_interval_ms",
        "hoodie.optimistic.": "consistency.guard.sleep_time_ms",
        "hoodie.write.buffer.": "limit.bytes record.cache.limit record.sampling.rate",
        "hoodie.write.executor.": "type disruptor.buffer.limit.bytes disruptor.wait.strategy",
        "hoodie.memory.": """compaction.fraction compaction.max.size dfs.buffer.max.size merge.fraction
            spillable.map.path writestatus.failure.fraction""",
        "hoodie.common.": "diskmap.compression.enabled spillable.diskmap.type",
        "_hoodie.": """metadata.ignore.spurious.deletes optimistic.consistency.guard.enable
            record.size.estimator.max.commits time.generator.reuse.enable""",
        "_.hoodie.": "allow.multi.write.on.same.instant",
    },
    "files are filled by bytes, and the bytes of a row are learned from the commits before": {
        "hoodie.": """parquet.compression.ratio copyonwrite.insert.auto.split copyonwrite.insert.split.size""",
        "hoodie.record.size.": "estimator.average.metadata.size estimator.class",
    },
    "Parquet pages are as PyArrow makes them": {"hoodie.parquet.": "page.size dictionary.enabled"},
    "a lookup searches sorted ranges, opens each file once, and shares them out among the tasks evenly": {
        "hoodie.bloom.index.": """bucketized.checking bucketized.checking.enable.dynamic.parallelism
            fileid.key.sorting.enable input.storage.level parallelism use.treebased.filter""",
        "hoodie.simple.index.": "input.storage.level parallelism",
        "hoodie.global.": "index.reconcile.parallelism simple.index.parallelism",
    },
    "ranges and filters are read from the files' footers": {"hoodie.bloom.index.": "use.metadata"},
    "it concerns the record index": {
        "hoodie.record.index.": "input.storage.level update.partition.path use.caching",
    },
    "every read and write of a bucketed table goes by its buckets": {
        "hoodie.bucket.index.": "query.pruning remote.partitioner.enable",
    },
    "it tunes how Apache Hudi keeps a metadata table": {
        "hoodie.metadata.": """auto.delete.partitions auto.initialize bloom.filter.dynamic.max.entries bloom.filter.fpp
            bloom.filter.num.entries bloom.filter.type clean.async cleaner.commits.retained compact.max.delta.commits
            compact.max.delta.seconds compact.trigger.strategy derive.from.datatable.clean.policy dir.filter.regex
            file.cache.max.size.mb global.record.level.index.max.filegroup.count
            global.record.level.index.min.filegroup.count index.bloom.filter.column.list
            index.bloom.filter.file.group.count index.bloom.filter.parallelism index.check.timeout.seconds
            index.column.stats.file.group.count
            index.column.stats.inmemory.projection.threshold index.column.stats.max.columns.to.index
            index.column.stats.parallelism index.column.stats.processing.mode.override index.drop
            index.expression.column index.expression.file.group.count index.expression.options
            index.expression.parallelism index.partition.stats.file.group.count index.partition.stats.parallelism
            index.secondary.column index.secondary.parallelism keep.max.commits keep.min.commits
            log.compaction.blocks.threshold log.compaction.enable max.deltacommits.when_pending max.init.parallelism
            max.logfile.size max.reader.buffer.size max.reader.memory metrics.enable
            optimized.log.blocks.scan.enable partitioned.record.index.max.filegroup.count
            partitioned.record.index.min.filegroup.count range.repartition.random.seed
            range.repartition.sampling.fraction range.repartition.target.records.per.partition
            record.index.enable.validation.on.initialization record.index.growth.factor
            record.index.max.filegroup.count record.index.max.filegroup.size record.index.min.filegroup.count
            record.level.index.defer.init record.level.index.max.filegroup.count
            record.level.index.min.filegroup.count record.preparation.parallelism repartition.default.partitions
            repartition.min.partitions.threshold spillable.map.path
            streaming.write.datatable.write.statuses.coalesce.divisor table.service.manager.actions
            table.service.manager.enabled write.concurrency.mode write.fail.on.table.service.failures""",
        "hoodie.log.compaction.": "enable",
    },
    "it tunes a table service that pyhudi does not run": {
        "hoodie.clustering.": """async.max.commits execution.strategy.class expiration.threshold.mins
            fail.on.pending.ingestion.during.conflict.resolution group.read.parallelism inline.max.commits
            max.parallelism plan.generation.use.local.engine.context plan.partition.filter.mode
            plan.strategy.binary.copy.schema.evolution.enable plan.strategy.class plan.strategy.cluster.begin.partition
            plan.strategy.cluster.end.partition plan.strategy.daybased.lookback.partitions
            plan.strategy.daybased.skipfromlatest.partitions plan.strategy.earliest.commit.to.cluster
            plan.strategy.file.slices.sort.by plan.strategy.max.bytes.per.group plan.strategy.max.num.groups
            plan.strategy.partition.regex.pattern plan.strategy.partition.selected
            plan.strategy.single.group.clustering.enabled plan.strategy.small.file.limit plan.strategy.sort.columns
            plan.strategy.target.file.max.bytes rollback.pending.replacecommit.on.conflict updates.strategy""",
        "hoodie.layout.optimize.": "build.curve.sample.size curve.build.method data.skipping.enable strategy",
        "hoodie.compaction.": "lazy.block.read plan.generator reverse.log.read",
        "hoodie.rollback.": "avoid.duplicate.plan instant.backup.dir using.markers",
        "hoodie.table.services.": "incremental.enabled",
        "hoodie.": "metricscompaction.log.blocks.on",
    },
    "it concerns file formats that a table of Parquet files does not have, or tunes what pyhudi does otherwise": {
        "hoodie.logfile.": "to.parquet.compression.ratio",
        "hoodie.hfile.": """block.cache.enabled block.cache.size block.cache.ttl.minutes block.size
            compression.algorithm max.file.size writes.allow.duplicates""",
        "hoodie.lance.": """max.file.size read.allocator.size.bytes read.metadata.allocator.size.bytes
            write.allocator.size.bytes write.flush.byte.watermark""",
        "hoodie.orc.": "block.size compression.codec max.file.size stripe.size",
        "hoodie.": """merge.use.record.positions write.record.positions datasource.merge.type read.blob.inline.mode
            cdc.file.group.iterator.memory.spill.bytes""",
    },
    "a failed write always fails as a whole and no write of pyhudi upgrades a table": {
        "hoodie.": """write.ignore.failed write.auto.upgrade write.can.ignore.post.commit.failures
            post.commit.failures.ignored fail.job.on.duplicate.data.file.detection skip.default.partition.validation
            merge.data.validation.enabled write.num.retries.on.conflict.failures
            write.track.event.time.watermark payload.event.time.field write.rolling.metadata.keys
            write.rolling.metadata.timeline.lookback.commits auto.adjust.lock.configs
            precommit.validators.equality.sql.queries precommit.validators.failure.policy
            precommit.validators.inequality.sql.queries precommit.validators.single.value.sql.queries
            precommit.validators.streaming.offset.tolerance.percentage""",
        "hoodie.write.concurrency.": """async.conflict.detector.initial_delay_ms async.conflict.detector.period_ms
            early.conflict.check.commit.conflict early.conflict.detection.strategy schema.conflict.resolution.enable""",
    },
    "it concerns streams, SQL statements or Spark's JVM readers": {
        "hoodie.datasource.write.": "row.writer.enable",
        "hoodie.datasource.read.": """file.index.list.partitions.from.catalog file.index.listing.mode
            file.index.listing.partition-path-prefix.analysis.enabled
            file.index.optimize.listing.using.path.filter incr.table.version
            partition.value.extractor.enabled streaming.table.version""",
        "hoodie.sql.": "bulk.insert.enable insert.mode",
        "hoodie.spark.": """polaris.catalog.class sql.insert.into.operation sql.merge.into.partial.updates
            sql.optimized.writes.enable""",
        "hoodie.": """file.index.enable file.index.cache.spillable.mem
            file.index.cache.use.spillable.map file.group.reader.enabled read.timeline.holes.resolution.policy""",
    },
    "a clustering or compaction changes no row, so that no query of changes shows it": {
        "hoodie.datasource.read.incr.": "skip_cluster skip_compact",
    },
    "tables are not bootstrapped": {
        "hoodie.clean.": "delete.bootstrap.base.file",
        "hoodie.cleaner.": "delete.bootstrap.base.file",
        "hoodie.bootstrap.": """data.queries.only full.input.provider index.class index.enable index.type mode.selector
            mode.selector.regex mode.selector.regex.mode parallelism partitionpath.translator.class""",
    },
}


def _entries() -> Iterator[tuple[str, KnownKey]]:
    """Yield each key of Apache Hudi that is no option of pyhudi, with what becomes of it."""
    for (scope, reason), lines in _REFUSED.items():
        for line in lines.split():
            key, _, default = line.partition("=")
            yield key, KnownKey(Effect.REFUSED, reason, default, scope)
    for effect, groups in ((Effect.NOT_DONE, _NOT_DONE), (Effect.NO_MEANING, _NO_MEANING)):
        for reason, prefixes in groups.items():
            for prefix, endings in prefixes.items():
                for ending in endings.split():
                    yield prefix + ending, KnownKey(effect, reason)


CATALOGUE: dict[str, KnownKey] = dict(_entries())

# Families without an end: their members are other systems' settings.
FAMILIES: dict[str, KnownKey] = {
    "hoodie.datasource.hive_sync.": KnownKey(Effect.NO_MEANING, "pyhudi registers tables in no catalog"),
    "hoodie.datasource.meta.sync.": KnownKey(Effect.NO_MEANING, "pyhudi registers tables in no catalog"),
    "hoodie.datasource.meta_sync.": KnownKey(Effect.NO_MEANING, "pyhudi registers tables in no catalog"),
    "hoodie.meta.sync.": KnownKey(Effect.NO_MEANING, "pyhudi registers tables in no catalog"),
    "hoodie.meta_sync.": KnownKey(Effect.NO_MEANING, "pyhudi registers tables in no catalog"),
    "hoodie.metaserver.": KnownKey(Effect.NO_MEANING, "pyhudi registers tables in no catalog"),
    **{
        f"hoodie.metrics.{reporter}.": KnownKey(Effect.NO_MEANING, "metrics go to a Prometheus gateway or a file alone")
        for reporter in ("cloudwatch", "datadog", "graphite", "jmx", "m3", "prometheus")
    },
    "hoodie.write.commit.callback.": KnownKey(Effect.NO_MEANING, "pyhudi reports commits to no other system"),
    "hoodie.write.lock.": KnownKey(Effect.NO_MEANING, "writers of pyhudi need no lock provider"),
    "hoodie.filesystem.": KnownKey(Effect.NO_MEANING, "there is no timeline server and no Hadoop file system"),
    "hoodie.errortable.": KnownKey(Effect.NO_MEANING, "a bad row fails the write"),
    "hoodie.table.service.manager.": KnownKey(Effect.NO_MEANING, "it tunes a table service that pyhudi does not run"),
    "hoodie.deltastreamer.": KnownKey(Effect.NO_MEANING, "it configures Apache Hudi's own ingestion tool"),
    "hoodie.streamer.": KnownKey(Effect.NO_MEANING, "it configures Apache Hudi's own ingestion tool"),
}
