"""The three readers that must agree on every table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import hudi
import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.scenarios import META, Model, Row, Scenario, as_rows, without_file_names
from pyspark.sql import SparkSession
from support.readers import read_without_spark


def read_hudi_rs(table: Path) -> pa.Table:
    """Return a snapshot as hudi-rs reads it, meta columns first; it tells no columns of a table without rows."""
    batches = [pa.record_batch(batch) for batch in hudi.HudiTable(str(table)).read()]
    return pa.Table.from_batches(batches) if batches else pa.table({})


def read_pyhudi(spark: SparkSession, table: Path) -> pa.Table:
    """Return a snapshot as pyhudi reads it through Spark, meta columns first."""
    return spark.read.format("pyhudi").load(str(table)).toArrow()


@dataclass(frozen=True)
class Readers:
    """pyhudi on Spark, Apache Hudi on its Spark, and hudi-rs."""

    spark: SparkSession
    apache: ApacheHudi

    def by_apache(self, table: Path, scenario: Scenario) -> pa.Table:
        """Return a snapshot as Apache Hudi reads it, columns that it shows as text in their own types."""
        theirs = self.apache.read(table)
        for name in scenario.texts_to_apache:
            column = theirs[name].cast(scenario.schema.field(name).type)
            theirs = theirs.set_column(theirs.column_names.index(name), name, column)
        return theirs

    def all_of(self, table: Path, scenario: Scenario, *, by_spark: bool = True) -> dict[str, pa.Table]:
        """Return a snapshot by each of them; hudi-rs must fail where it is known to, so that a cure is noticed.

        Args:
            table: The table.
            scenario: Its shape.
            by_spark: Whether pyhudi reads through Spark; else as Spark's tasks do, in a hundredth of the time.
        """
        ours = read_pyhudi(self.spark, table) if by_spark else read_without_spark(table)
        snapshots = {"pyhudi": ours, "Apache Hudi": self.by_apache(table, scenario)}
        if scenario.hudi_rs_fails is None:
            snapshots["hudi-rs"] = read_hudi_rs(table)
        else:
            with pytest.raises(BaseException, match=scenario.hudi_rs_fails):  # a panic is no Exception
                read_hudi_rs(table)
        return snapshots

    def check(self, table: Path, model: Model, *, by_spark: bool = True) -> None:
        """Hold every reader against the model, and the readers against each other on what each writer invents."""
        snapshots = self.all_of(table, model.scenario, by_spark=by_spark)
        for reader, content in snapshots.items():
            assert content.column_names[: len(META)] == META, reader
            assert set(content.column_names) == {*META, *model.scenario.schema.names}, reader
        rows = {reader: as_rows(content) for reader, content in snapshots.items()}
        for reader, theirs in rows.items():
            difference = _difference(without_file_names(theirs), model.expected())
            assert not difference, f"{reader} differs from the model:\n{difference}"
        for reader, theirs in rows.items():
            assert theirs == rows["Apache Hudi"], reader
        numbers = [row["_hoodie_commit_seqno"] for row in rows["pyhudi"]]
        assert len(set(numbers)) == len(numbers)


def _difference(found: Sequence[Row], expected: Sequence[Row]) -> str:
    """Return the first rows that are on one side only, as text; empty when both sides are alike."""
    lines = [f"  found    {row}" for row in found if row not in expected][:3]
    lines += [f"  expected {row}" for row in expected if row not in found][:3]
    if not lines and len(found) != len(expected):
        lines = [f"  {len(found)} rows found, {len(expected)} expected"]
    return "\n".join(lines)
