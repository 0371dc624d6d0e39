"""A clustering that Apache Hudi planned, and carries out after pyhudi has written round it."""

from __future__ import annotations

from pathlib import Path

import pytest
from interop.apache_hudi import ApacheHudi
from pyhudi.errors import ConcurrentWriteError
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from pyhudi.timeline.held import clustered_groups
from support.drawn.lookups import APART, TABLE, homes, rows
from support.drive import rows_of, write

pytestmark = pytest.mark.interop

OPTIONS = "hoodie.metadata.enable=false,hoodie.datasource.write.recordkey.field=id"


def test_apache_hudi_carries_out_what_we_wrote_round(apache: ApacheHudi, tmp_path: Path) -> None:
    """It replaces what it planned to, and nothing that was written meanwhile is gone or there twice."""
    table = tmp_path / "t"
    for key in (1, 2):
        write(table, rows(key, value=1), table=TABLE, settings=APART)
    apache.sql("set hoodie.metadata.enable=false")
    apache.sql(f"call run_clustering(op => 'schedule', path => '{table}', options => '{OPTIONS}')")
    storage = open_storage(str(table))
    held = {file_id for _, file_id in clustered_groups(open_table(storage).timeline())}
    assert held == set.union(*(homes(table)[key] for key in ("k1", "k2")))

    write(table, [rows(3, value=2), rows(1, value=2, p="b")], settings=WriteSettings())
    with pytest.raises(ConcurrentWriteError, match="holds the file group"):
        write(table, rows(1, value=2))
    write(table, rows(3, value=3))
    before = rows_of(table, "p", "id", "value")
    apache.sql(f"call run_clustering(op => 'execute', path => '{table}', options => '{OPTIONS}')")

    timeline = open_table(storage).timeline()
    assert [one.action for one in timeline.writes].count("replacecommit") == 1
    assert not timeline.pending or not clustered_groups(timeline)
    assert not held & set.union(*homes(table).values())
    assert (
        rows_of(table, "p", "id", "value") == before == [("a", "k1", 1), ("a", "k2", 1), ("a", "k3", 3), ("b", "k1", 2)]
    )
    assert sorted((row["p"], row["id"], row["value"]) for row in apache.read(table).to_pylist()) == before
    assert write(table, rows(1, 2, 3, value=4)).updates == 3
