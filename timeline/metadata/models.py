"""The bodies of instants as models: Apache Hudi's records with Python names.

A field that a file lacks, or in which it has null, takes the default that Apache Hudi's own reader gives it. Fields
that a newer Hudi added are ignored.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel


class InstantModel(BaseModel):
    """A record of the timeline; Python names in the code, Hudi's names in the file."""

    # A process needs few of the models, and builds each at its first use.
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _nulls_are_absent(cls, values: Any) -> Any:
        """Return the fields of a record without nulls, so that each null gets its field's default."""
        # pydantic refuses what is no record.
        if isinstance(values, dict):
            return {name: value for name, value in values.items() if value is not None}
        return values


# Apache Hudi looks the name up in an enum: a name in lower case makes every later open of the table fail.
OperationType = Annotated[str, AfterValidator(str.upper)]


class RuntimeStats(InstantModel):
    """How long writing one file took, in milliseconds."""

    total_scan_time: int | None = None
    total_create_time: int | None = None
    total_upsert_time: int | None = None


class WriteStat(InstantModel):
    """What one write did to one file group (``HoodieWriteStat``).

    Attributes:
        prev_commit: Instant of the previous slice; the text "null" for a new file group.
        num_writes: Rows in the new file.
        num_deletes: Rows of the previous slice that are gone.
        file_size_in_bytes: Incremental reads skip a file without it.
    """

    file_id: str | None = None
    path: str | None = None
    prev_commit: str | None = None
    num_writes: int = 0
    num_deletes: int = 0
    num_update_writes: int = 0
    total_write_bytes: int = 0
    total_write_errors: int = 0
    partition_path: str | None = None
    total_log_records: int = 0
    total_log_files: int | None = None
    total_updated_records_compacted: int = 0
    num_inserts: int = 0
    total_log_blocks: int = 0
    total_corrupt_log_block: int = 0
    total_rollback_blocks: int = 0
    file_size_in_bytes: int = 0
    log_version: int | None = None
    log_offset: int | None = None
    base_file: str | None = None
    log_files: list[str] | None = None
    cdc_stats: dict[str, int] | None = None
    prev_base_file: str | None = None
    min_event_time: int | None = None
    max_event_time: int | None = None
    runtime_stats: RuntimeStats | None = None
    total_log_files_compacted: int = 0
    total_log_read_time_ms: int = 0
    total_log_size_compacted: int = 0
    temp_path: str | None = None
    num_updates: int = 0


class CommitMetadata(InstantModel):
    """The body of a completed commit or deltacommit (``HoodieCommitMetadata``).

    ``extra_metadata`` has the Avro schema of the data columns under "schema", and the writer's own keys.
    """

    partition_to_write_stats: dict[str, list[WriteStat]] = {}
    compacted: bool = False
    extra_metadata: dict[str, str] = {}
    version: int | None = None
    operation_type: OperationType | None = None

    @property
    def replaced(self) -> dict[str, list[str]]:
        return {}


class ReplaceCommitMetadata(CommitMetadata):
    partition_to_replace_file_ids: dict[str, list[str]] = {}

    @property
    def replaced(self) -> dict[str, list[str]]:
        return self.partition_to_replace_file_ids


class CommitSummary(InstantModel):
    extra_metadata: dict[str, str] = {}
    operation_type: OperationType | None = None


class SliceInfo(InstantModel):
    """A file slice that a clustering reads; paths are full URIs."""

    data_file_path: str | None = None
    delta_file_paths: list[str] | None = None
    file_id: str | None = None
    partition_path: str | None = None
    bootstrap_file_path: str | None = None
    version: int | None = 1


class ClusteringGroup(InstantModel):
    slices: list[SliceInfo] = []
    metrics: dict[str, float] | None = None
    num_output_file_groups: int | None = 1
    extra_metadata: dict[str, str] | None = None
    version: int | None = 1


class ClusteringStrategy(InstantModel):
    strategy_class_name: str | None = None
    strategy_params: dict[str, str] | None = None
    version: int | None = 1


class ClusteringPlan(InstantModel):
    input_groups: list[ClusteringGroup] = []
    strategy: ClusteringStrategy | None = None
    extra_metadata: dict[str, str] | None = None
    version: int | None = 1
    preserve_hoodie_metadata: bool | None = None
    missing_schedule_partitions: list[str] | None = None


class RequestedReplaceMetadata(InstantModel):
    operation_type: OperationType | None = None
    clustering_plan: ClusteringPlan | None = None
    extra_metadata: dict[str, str] | None = None
    version: int | None = None


class CompactionOperation(InstantModel):
    """A file slice that a compaction merges into a base file; log files are in reading order.

    Apache Hudi fails without some of the ``metrics``.
    """

    base_instant_time: str | None = None
    delta_file_paths: list[str] = []
    data_file_path: str | None = None
    file_id: str | None = None
    partition_path: str | None = None
    metrics: dict[str, float] | None = None
    bootstrap_file_path: str | None = None


class CompactionStrategy(InstantModel):
    compactor_class_name: str | None = None
    strategy_params: dict[str, str] | None = None
    version: int | None = 1


class CompactionPlan(InstantModel):
    """The plan of a compaction or log compaction. ``version`` 2 names files by name, 1 by path."""

    operations: list[CompactionOperation] = []
    extra_metadata: dict[str, str] | None = None
    version: int | None = 1
    strategy: CompactionStrategy | None = None
    preserve_hoodie_metadata: bool | None = False
    missing_schedule_partitions: list[str] | None = None


class InstantInfo(InstantModel):
    commit_time: str
    action: str


class RollbackRequest(InstantModel):
    """The files, as full URIs, that a rollback will delete in one partition."""

    partition_path: str
    file_id: str | None = None
    latest_base_instant: str | None = None
    files_to_be_deleted: list[str] = []
    log_blocks_to_be_deleted: dict[str, int] | None = None


class RollbackPlan(InstantModel):
    instant_to_rollback: InstantInfo | None = None
    # Apache Hudi spells this field, and no other, with a capital.
    rollback_requests: list[RollbackRequest] = Field(default=[], alias="RollbackRequests")
    version: int | None = 1


class RollbackPartition(InstantModel):
    partition_path: str
    success_delete_files: list[str] = []
    failed_delete_files: list[str] = []
    rollback_log_files: dict[str, int] | None = None
    log_files_from_failed_commit: dict[str, int] | None = None


class RollbackMetadata(InstantModel):
    start_rollback_time: str
    time_taken_in_millis: int
    total_files_deleted: int
    commits_rollback: list[str]
    partition_metadata: dict[str, RollbackPartition]
    version: int | None = 1
    instants_rollback: list[InstantInfo] = []


class RestorePlan(InstantModel):
    """The plan of a restore. ``instants_to_rollback`` holds the newest instant first."""

    instants_to_rollback: list[InstantInfo] = []
    version: int | None = 2
    savepoint_to_restore_timestamp: str | None = None


class RestoreMetadata(InstantModel):
    """The body of a completed restore. ``hoodie_restore_metadata``: rollbacks by requested time."""

    start_restore_time: str
    time_taken_in_millis: int
    instants_to_rollback: list[str]
    hoodie_restore_metadata: dict[str, list[RollbackMetadata]]
    version: int | None = 1
    restore_instant_info: list[InstantInfo] = []


class ActionInstant(InstantModel):
    timestamp: str
    action: str
    state: str


class CleanFileInfo(InstantModel):
    """A file that a clean will delete; the path is a full URI."""

    file_path: str | None = None
    is_bootstrap_base_file: bool | None = None


class CleanerPlan(InstantModel):
    earliest_instant_to_retain: ActionInstant | None = None
    last_completed_commit_timestamp: str = ""
    policy: str
    files_to_be_deleted_per_partition: dict[str, list[str]] | None = None
    version: int | None = 2
    file_paths_to_be_deleted_per_partition: dict[str, list[CleanFileInfo]] | None = None
    partitions_to_be_deleted: list[str] | None = None
    extra_metadata: dict[str, str] | None = None


class CleanPartition(InstantModel):
    """The files, by name, that a clean deleted in one partition."""

    partition_path: str
    policy: str
    delete_path_patterns: list[str] = []
    success_delete_files: list[str] = []
    failed_delete_files: list[str] = []
    is_partition_deleted: bool | None = None


class CleanMetadata(InstantModel):
    start_clean_time: str
    time_taken_in_millis: int
    total_files_deleted: int
    earliest_commit_to_retain: str
    last_completed_commit_timestamp: str = ""
    partition_metadata: dict[str, CleanPartition]
    version: int | None = 2
    bootstrap_partition_metadata: dict[str, CleanPartition] | None = None
    extra_metadata: dict[str, str] | None = None


class IndexPartitionInfo(InstantModel):
    """A partition of the metadata table that an indexing builds, from all instants of the table up to one."""

    version: int | None = 1
    metadata_partition_path: str | None = None
    index_upto_instant: str | None = None
    extra_metadata: dict[str, str] | None = None


class IndexPlan(InstantModel):
    version: int | None = 1
    index_partition_infos: list[IndexPartitionInfo] = []


class IndexCommitMetadata(InstantModel):
    version: int | None = 1
    operation_type: OperationType | None = None
    index_partition_infos: list[IndexPartitionInfo] = []


class SavepointPartition(InstantModel):
    partition_path: str
    savepoint_data_file: list[str]


class SavepointMetadata(InstantModel):
    """The body of a completed savepoint. ``savepointed_at`` is in epoch milliseconds."""

    savepointed_by: str
    savepointed_at: int
    comments: str
    partition_metadata: dict[str, SavepointPartition]
    version: int | None = 1
