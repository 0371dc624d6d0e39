"""The Avro schemas of the bodies of instants, as Apache Hudi 1.x generates them (``hudi-common/src/main/avro``)."""

from __future__ import annotations

from typing import Any

NAMESPACE = "org.apache.hudi.avro.model"

Type = str | list[Any] | dict[str, Any]
Field = dict[str, Any]

STRING: Type = {"type": "string", "avro.java.string": "String"}


def array(items: Type) -> Type:
    """Return the type of a list."""
    return {"type": "array", "items": items}


def mapping(values: Type) -> Type:
    """Return the type of a map with texts for keys."""
    return {"type": "map", "values": values, "avro.java.string": "String"}


def record(name: str, *fields: Field) -> dict[str, Any]:
    """Return a record's type; inside another record it takes that record's namespace."""
    return {"type": "record", "name": name, "fields": list(fields)}


def need(name: str, kind: Type) -> Field:
    """Return a field that has no default and may not be null."""
    return {"name": name, "type": kind}


def may(name: str, kind: Type) -> Field:
    """Return a field that may be null and is null by default."""
    return {"name": name, "type": ["null", kind], "default": None}


def null_or(name: str, kind: Type) -> Field:
    """Return a field that may be null and has no default."""
    return {"name": name, "type": ["null", kind]}


def default(name: str, kind: Type, value: object) -> Field:
    """Return a field with a default that may not be null."""
    return {"name": name, "type": kind, "default": value}


def version(number: int = 1) -> Field:
    """Return the field with which every record numbers its own schema."""
    return {"name": "version", "type": ["int", "null"], "default": number}


def longs(*names: str) -> list[Field]:
    """Return fields of numbers that may be null."""
    return [may(name, "long") for name in names]


def strings(*names: str) -> list[Field]:
    """Return fields of texts that may be null."""
    return [may(name, STRING) for name in names]


def _top(name: str, *fields: Field) -> dict[str, Any]:
    """Return the type of a whole body, with the namespace of Apache Hudi's models."""
    return {**record(name, *fields), "namespace": NAMESPACE}


_WRITE_STAT = record(
    "HoodieWriteStat",
    *strings("fileId", "path", "prevCommit"),
    *longs("numWrites", "numDeletes", "numUpdateWrites", "totalWriteBytes", "totalWriteErrors"),
    *strings("partitionPath"),
    *longs("totalLogRecords", "totalLogFiles", "totalUpdatedRecordsCompacted", "numInserts", "totalLogBlocks"),
    *longs("totalCorruptLogBlock", "totalRollbackBlocks", "fileSizeInBytes"),
    may("logVersion", "int"),
    *longs("logOffset"),
    *strings("baseFile"),
    may("logFiles", array(STRING)),
    may("cdcStats", mapping("long")),
    *strings("prevBaseFile"),
    *longs("minEventTime", "maxEventTime"),
    may("runtimeStats", record("HoodieRuntimeStats", *longs("totalScanTime", "totalCreateTime", "totalUpsertTime"))),
    *longs("totalLogFilesCompacted", "totalLogReadTimeMs", "totalLogSizeCompacted"),
    *strings("tempPath"),
    *longs("numUpdates"),
)

_COMMIT = [
    may("partitionToWriteStats", mapping(array(_WRITE_STAT))),
    may("compacted", "boolean"),
    may("extraMetadata", mapping(STRING)),
    version(),
    *strings("operationType"),
]

_SLICE = record(
    "HoodieSliceInfo",
    *strings("dataFilePath"),
    may("deltaFilePaths", array(STRING)),
    null_or("fileId", STRING),
    *strings("partitionPath", "bootstrapFilePath"),
    version(),
)

_CLUSTERING_GROUP = record(
    "HoodieClusteringGroup",
    may("slices", array(_SLICE)),
    may("metrics", mapping("double")),
    {"name": "numOutputFileGroups", "type": ["int", "null"], "default": 1},
    may("extraMetadata", mapping(STRING)),
    version(),
)

_CLUSTERING_STRATEGY = record(
    "HoodieClusteringStrategy", *strings("strategyClassName"), may("strategyParams", mapping(STRING)), version()
)

_CLUSTERING_PLAN = record(
    "HoodieClusteringPlan",
    may("inputGroups", array(_CLUSTERING_GROUP)),
    may("strategy", _CLUSTERING_STRATEGY),
    may("extraMetadata", mapping(STRING)),
    version(),
    may("preserveHoodieMetadata", "boolean"),
    may("missingSchedulePartitions", array(STRING)),
)

_INSTANT_INFO = record("HoodieInstantInfo", need("commitTime", STRING), need("action", STRING))

_ROLLBACK_REQUEST = record(
    "HoodieRollbackRequest",
    need("partitionPath", STRING),
    *strings("fileId", "latestBaseInstant"),
    default("filesToBeDeleted", array(STRING), []),
    may("logBlocksToBeDeleted", mapping("long")),
)

_ROLLBACK_PARTITION = record(
    "HoodieRollbackPartitionMetadata",
    need("partitionPath", STRING),
    need("successDeleteFiles", array(STRING)),
    need("failedDeleteFiles", array(STRING)),
    may("rollbackLogFiles", mapping("long")),
    may("logFilesFromFailedCommit", mapping("long")),
)

_CLEAN_FILE = record("HoodieCleanFileInfo", *strings("filePath"), may("isBootstrapBaseFile", "boolean"))

_ACTION_INSTANT = record(
    "HoodieActionInstant", need("timestamp", STRING), need("action", STRING), need("state", STRING)
)

_CLEAN_PARTITION = record(
    "HoodieCleanPartitionMetadata",
    need("partitionPath", STRING),
    need("policy", STRING),
    need("deletePathPatterns", array(STRING)),
    need("successDeleteFiles", array(STRING)),
    need("failedDeleteFiles", array(STRING)),
    may("isPartitionDeleted", "boolean"),
)

_SAVEPOINT_PARTITION = record(
    "HoodieSavepointPartitionMetadata", need("partitionPath", STRING), need("savepointDataFile", array(STRING))
)

_COMPACTION_OPERATION = record(
    "HoodieCompactionOperation",
    null_or("baseInstantTime", STRING),
    may("deltaFilePaths", array(STRING)),
    *strings("dataFilePath"),
    null_or("fileId", STRING),
    *strings("partitionPath"),
    may("metrics", mapping("double")),
    *strings("bootstrapFilePath"),
)

_COMPACTION_STRATEGY = record(
    "HoodieCompactionStrategy", *strings("compactorClassName"), may("strategyParams", mapping(STRING)), version()
)

COMMIT = _top("HoodieCommitMetadata", *_COMMIT)

REPLACE_COMMIT = _top("HoodieReplaceCommitMetadata", *_COMMIT, may("partitionToReplaceFileIds", mapping(array(STRING))))

# The part of a commit that describes its files.
_NAMED_FILE = record(
    "HoodieWriteStat", *strings("fileId", "path", "prevCommit"), *longs("numWrites", "numDeletes", "fileSizeInBytes")
)
COMMIT_FILES = _top(
    "HoodieCommitMetadata",
    may("partitionToWriteStats", mapping(array(_NAMED_FILE))),
    may("extraMetadata", mapping(STRING)),
)
REPLACE_COMMIT_FILES = _top(
    "HoodieReplaceCommitMetadata",
    may("partitionToWriteStats", mapping(array(_NAMED_FILE))),
    may("partitionToReplaceFileIds", mapping(array(STRING))),
    may("extraMetadata", mapping(STRING)),
)

REQUESTED_REPLACE = _top(
    "HoodieRequestedReplaceMetadata",
    *strings("operationType"),
    may("clusteringPlan", _CLUSTERING_PLAN),
    may("extraMetadata", mapping(STRING)),
    version(),
)

COMPACTION_PLAN = _top(
    "HoodieCompactionPlan",
    may("operations", array(_COMPACTION_OPERATION)),
    may("extraMetadata", mapping(STRING)),
    version(),
    may("strategy", _COMPACTION_STRATEGY),
    {"name": "preserveHoodieMetadata", "type": ["boolean", "null"], "default": False},
    may("missingSchedulePartitions", array(STRING)),
)

ROLLBACK_PLAN = _top(
    "HoodieRollbackPlan",
    may("instantToRollback", _INSTANT_INFO),
    may("RollbackRequests", array(_ROLLBACK_REQUEST)),
    version(),
)

_ROLLBACK = [
    need("startRollbackTime", STRING),
    need("timeTakenInMillis", "long"),
    need("totalFilesDeleted", "int"),
    need("commitsRollback", array(STRING)),
    need("partitionMetadata", mapping(_ROLLBACK_PARTITION)),
    version(),
    default("instantsRollback", array(_INSTANT_INFO), []),
]

ROLLBACK = _top("HoodieRollbackMetadata", *_ROLLBACK)

RESTORE_PLAN = _top(
    "HoodieRestorePlan",
    default("instantsToRollback", array(_INSTANT_INFO), []),
    {"name": "version", "type": ["int", "null"], "default": 2},
    *strings("savepointToRestoreTimestamp"),
)

RESTORE = _top(
    "HoodieRestoreMetadata",
    need("startRestoreTime", STRING),
    need("timeTakenInMillis", "long"),
    need("instantsToRollback", array(STRING)),
    need("hoodieRestoreMetadata", mapping(array([record("HoodieRollbackMetadata", *_ROLLBACK), "null"]))),
    version(),
    default("restoreInstantInfo", array("HoodieInstantInfo"), []),
)

CLEANER_PLAN = _top(
    "HoodieCleanerPlan",
    may("earliestInstantToRetain", _ACTION_INSTANT),
    default("lastCompletedCommitTimestamp", STRING, ""),
    need("policy", STRING),
    may("filesToBeDeletedPerPartition", mapping(array(STRING))),
    version(),
    may("filePathsToBeDeletedPerPartition", mapping(array(_CLEAN_FILE))),
    may("partitionsToBeDeleted", array(STRING)),
    may("extraMetadata", mapping(STRING)),
)

CLEAN = _top(
    "HoodieCleanMetadata",
    need("startCleanTime", STRING),
    need("timeTakenInMillis", "long"),
    need("totalFilesDeleted", "int"),
    need("earliestCommitToRetain", STRING),
    default("lastCompletedCommitTimestamp", STRING, ""),
    need("partitionMetadata", mapping(_CLEAN_PARTITION)),
    version(),
    may("bootstrapPartitionMetadata", mapping("HoodieCleanPartitionMetadata")),
    may("extraMetadata", mapping(STRING)),
)

SAVEPOINT = _top(
    "HoodieSavepointMetadata",
    need("savepointedBy", STRING),
    need("savepointedAt", "long"),
    need("comments", STRING),
    need("partitionMetadata", mapping(_SAVEPOINT_PARTITION)),
    version(),
)


def _without_namespace(top: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a body as a field of another record, whose namespace it takes."""
    return {name: value for name, value in top.items() if name != "namespace"}


_COMPACTION_STAT = record(
    "HoodieCompactionWriteStat",
    *strings("partitionPath"),
    *longs("totalLogRecords", "totalLogFiles", "totalUpdatedRecordsCompacted"),
    may("hoodieWriteStat", "HoodieWriteStat"),
)

_COMPACTION = record(
    "HoodieCompactionMetadata", null_or("partitionToCompactionWriteStats", mapping(array(_COMPACTION_STAT)))
)

# A type is defined where it comes first, and named from then on: the commit comes before this.
_ARCHIVED_REPLACE_COMMIT = record(
    "HoodieReplaceCommitMetadata",
    may("partitionToWriteStats", mapping(array("HoodieWriteStat"))),
    *_COMMIT[1:],
    may("partitionToReplaceFileIds", mapping(array(STRING))),
)

_INDEX_PARTITION = record(
    "HoodieIndexPartitionInfo",
    version(),
    *strings("metadataPartitionPath", "indexUptoInstant"),
    may("extraMetadata", mapping(STRING)),
)

INDEX_PLAN = _top("HoodieIndexPlan", version(), may("indexPartitionInfos", array(_INDEX_PARTITION)))

INDEX_COMMIT = _top(
    "HoodieIndexCommitMetadata",
    version(),
    *strings("operationType"),
    may("indexPartitionInfos", array(_INDEX_PARTITION)),
)

# One state of an instant in the archive of table version 6, as Apache Hudi 1.2 writes it; 0.15 reads it by the names.
ARCHIVED_STATE = _top(
    "HoodieArchivedMetaEntry",
    may("hoodieCommitMetadata", _without_namespace(COMMIT)),
    may("hoodieCleanMetadata", _without_namespace(CLEAN)),
    may("hoodieCompactionMetadata", _COMPACTION),
    may("hoodieRollbackMetadata", _without_namespace(ROLLBACK)),
    may("hoodieSavePointMetadata", _without_namespace(SAVEPOINT)),
    *strings("commitTime", "actionType"),
    version(),
    may("hoodieCompactionPlan", _without_namespace(COMPACTION_PLAN)),
    may("hoodieCleanerPlan", _without_namespace(CLEANER_PLAN)),
    *strings("actionState"),
    may("hoodieReplaceCommitMetadata", _ARCHIVED_REPLACE_COMMIT),
    may("hoodieRequestedReplaceMetadata", _without_namespace(REQUESTED_REPLACE)),
    may("HoodieInflightReplaceMetadata", "HoodieCommitMetadata"),
    may("hoodieIndexCommitMetadata", _without_namespace(INDEX_COMMIT)),
    *strings("stateTransitionTime"),
)

# The part of it that says whose state it is.
ARCHIVED_STATE_OF = _top(
    "HoodieArchivedMetaEntry", *strings("commitTime", "actionType", "actionState", "stateTransitionTime")
)
