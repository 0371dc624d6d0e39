"""Clusterings as Apache Hudi plans them, which pyhudi does not carry out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyhudi.operations.services.rollback import rollback
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.files.file_group import FileSlice
from pyhudi.table.table import Table
from pyhudi.timeline.clock import next_time
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.models import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringStrategy,
    RequestedReplaceMetadata,
    SliceInfo,
)

EXECUTION = "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy"


def request_clustering(path: Path | str, file_slices: Sequence[FileSlice], action: str = "clustering") -> str:
    """Plan a clustering of some file slices into one file group, and return its requested time."""
    storage = open_storage(str(path))
    config = load_config(storage)
    timeline = Table(storage, config).timeline()
    slices = [
        SliceInfo(
            data_file_path=None if file_slice.base is None else storage.uri(file_slice.base.path),
            delta_file_paths=[storage.uri(log.path) for log in file_slice.logs],
            file_id=file_slice.file_id,
            partition_path=file_slice.partition_path,
            bootstrap_file_path="",
        )
        for file_slice in file_slices
    ]
    body = RequestedReplaceMetadata(
        operation_type="CLUSTER",
        clustering_plan=ClusteringPlan(
            input_groups=[ClusteringGroup(slices=slices, metrics={})],
            strategy=ClusteringStrategy(strategy_class_name=EXECUTION, strategy_params={}),
            extra_metadata={},
            preserve_hoodie_metadata=True,
        ),
        extra_metadata={},
        version=1,
    )
    at = next_time(0, timeline.greatest_time(), config.timezone)
    timeline.files.request(Instant(at, action, State.REQUESTED), timeline.files.codec.encode(body))
    return at


def take_back(path: Path | str, at: str) -> None:
    """Take a planned clustering back."""
    rollback(open_storage(str(path)), at)
