"""What the tests rely on when they talk to Apache Hudi."""

from __future__ import annotations

from pathlib import Path

import pytest
from interop.apache_hudi import ApacheHudi, ApacheHudiError
from interop.scenarios import UNPARTITIONED

pytestmark = pytest.mark.interop


def test_what_apache_hudi_refuses_reaches_the_test_as_text_and_the_next_command_works(
    apache: ApacheHudi, tmp_path: Path
) -> None:
    rows = UNPARTITIONED.table(UNPARTITIONED.rows(range(3), 1, ts=1))
    wrong = {**UNPARTITIONED.table_options, "hoodie.datasource.write.recordkey.field": "absent"}

    with pytest.raises(ApacheHudiError, match='recordKey value: "null" for field: "absent"'):
        apache.write(tmp_path / "table", rows, wrong)

    assert apache.call("ping")["spark"].startswith("3.5.")
