from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import pyhudi
import pytest
from pyhudi.version import VERSION
from support.public_api import MODULES

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
        "ServicesResult",
        "TableError",
        "TableRows",
        "VersionResult",
        "__version__",
        "bucket_agg",
        "bucket_join",
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


def test_public_functions_and_classes_document_each_argument() -> None:
    undocumented = [line for name in MODULES for line in _undocumented(import_module(name))]
    assert undocumented == []


def _undocumented(module: ModuleType) -> Iterator[str]:
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    for name in getattr(module, "__all__", [one for one in own if not one.startswith("_")]):
        value = getattr(module, name)
        if inspect.isclass(value):
            members = [one for one in dir(value) if not one.startswith("_")]
            found = {f"{name}.{one}": getattr(value, one) for one in members}
            yield from (line for path, one in found.items() for line in _lacks(path, one))
            if not inspect.getdoc(value):
                yield f"{name}: no docstring"
        else:
            yield from _lacks(name, value)


def _lacks(path: str, value: object) -> Iterator[str]:
    """Yield what a function's docstring lacks: a sentence, or an argument where it lists arguments or has several."""
    if not inspect.isroutine(value) or not str(getattr(value, "__module__", "")).startswith("pyhudi"):
        return
    text, names = inspect.getdoc(value), [*inspect.signature(value).parameters]
    if not text:
        yield f"{path}: no docstring"
        return
    wanted = [name for name in names if name not in {"self", "cls", "args", "kwargs"}]
    listed = "Args:" in text
    if listed or len(wanted) > 2:
        yield from (f"{path}: {name} is not documented" for name in wanted if f"\n    {name}:" not in text)
