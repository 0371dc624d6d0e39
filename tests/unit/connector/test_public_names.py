from __future__ import annotations

import subprocess
import sys

import pyhudi
import pytest
from pyhudi.version import VERSION

pytestmark = pytest.mark.oldest


def test_the_public_names_are_these() -> None:
    assert pyhudi.__all__ == [
        "CommitResult",
        "DataError",
        "HudiTable",
        "OptionError",
        "PyHudiDataSource",
        "PyHudiError",
        "PyHudiWarning",
        "RetryError",
        "ServiceResult",
        "TableError",
        "__version__",
        "colocate",
        "from_spark",
        "suggest_buckets",
    ]
    assert set(pyhudi.__all__) <= set(dir(pyhudi))


@pytest.mark.parametrize("name", pyhudi.__all__)
def test_every_public_name_leads_somewhere(name: str) -> None:
    assert getattr(pyhudi, name) is not None


def test_the_version_is_the_stamp_of_base_files() -> None:
    assert pyhudi.__version__ == VERSION


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="HudiTabel"):
        _ = pyhudi.HudiTabel


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("pyhudi", {"pyspark", "pyarrow", "pydantic", "numpy"}),
        ("pyspark_pyhudi", {"pyarrow.parquet", "pydantic", "numpy", "fastavro"}),
    ],
)
def test_spark_finds_the_data_source_without_importing_what_a_look_up_does_not_need(
    module: str, unwanted: set[str]
) -> None:
    def imported_by(names: str) -> set[str]:
        code = f"import sys, {names}; print(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    # Some versions of Spark import some of it themselves.
    inevitable = imported_by("pyspark.sql.datasource") if module == "pyspark_pyhudi" else set()

    assert imported_by(module) & unwanted <= inevitable
