"""What tests of several folders share."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path

import pytest
from hypothesis import settings
from support.direct_s3 import ask_directly
from support.faults.steps import ALL_OF
from support.places import Place
from support.s3 import S3Server, new_url
from support.share import ONE_OF, WHOLE, share_of, taken

# The tests' many small queries never repay Java's second compiler, nor a collector with threads of its own. Each Java
# that a test starts, in whatever way, finds this. Without that compiler Java keeps a fifth of the room for code, which
# a suite outgrows: from then on it looks for code to throw away, and compiles it anew. And it collects all garbage
# whenever it has loaded some more classes, four times until Spark has carried out its first statements. Half of the
# work until then is to load classes, which `make` has put in an archive; a Java of other classes passes it over, and
# would say so where others wait for its words.
ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
os.environ.setdefault(
    "JDK_JAVA_OPTIONS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=256m"
    + (f" -XX:SharedArchiveFile={ARCHIVE} -Xlog:disable" if ARCHIVE.exists() else ""),
)

# A busy machine takes its time over any example, and no test asserts one.
settings.register_profile("pyhudi", deadline=None, max_examples=share_of(100))
settings.load_profile("pyhudi")

TESTS = Path(__file__).parent
# All other tests are of what lies below connector/, which needs no engine.
THROUGH_SPARK = [
    TESTS / one for one in ("spark", "interop", "unit/connector", "unit/test_public_api.py", "unit/test_seams.py")
]
# The thousands of small files that tests make and delete cost a disk more time than the code that writes them; where
# memory serves as one, it does. What differs between file systems is tests/unit/storage's to ask, on the disk.
MEMORY, DISK = Path("/dev/shm"), tempfile.gettempdir()  # noqa: S108
ROOM = 4 << 30
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


class NoSpark(MetaPathFinder):
    """Fails every import of Spark in this process."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        """Fail where the module is Spark's."""
        if name.partition(".")[0] in {"pyspark", "py4j"}:
            raise ImportError(f"{name} is imported in a process without Spark (--spark=no)", name=name)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--spark",
        choices=("no", "only"),
        help="no: run what needs no engine, in a process in which every import of pyspark fails; only: run the rest",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.option.spark == "no":
        assert "pyspark" not in sys.modules
        sys.meta_path.insert(0, NoSpark())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out folders of which the marks that are asked for take nothing: each run collects thousands of tests."""
    through = any(one == collection_path or one in collection_path.parents for one in THROUGH_SPARK)
    leads_there = any(collection_path in one.parents for one in THROUGH_SPARK)
    if through if config.option.spark == "no" else config.option.spark and not (through or leads_there):
        return True
    if collection_path.parent != TESTS or not collection_path.is_dir():
        return None
    asked, is_interop = config.option.markexpr, collection_path.name == "interop"
    return ("not interop" in asked and is_interop) or (asked == "interop" and not is_interop) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to `make test-slow` what repeats a test with another seed, and the mistakes that test the tests."""
    first: dict[str, int] = {}
    for item in items:
        seed = item.callspec.params.get("seed") if hasattr(item, "callspec") else None
        again = isinstance(seed, int) and seed != first.setdefault(item.nodeid.partition("[")[0], seed)
        # What the marks of other targets leave to these stays with them.
        elsewhere = any(map(item.get_closest_marker, ("long", "oldest")))
        if not elsewhere and (again or item.path.name.startswith("test_mutations")):
            item.add_marker(pytest.mark.slow)
    if ONE_OF > 1:
        _leave_cases_to_ci(config, items)
    if ALL_OF:
        _leave_other_protocols(config, items)


def _leave_cases_to_ci(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take a share of the cases of each test, of those that a run without slow tests has."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not any(map(item.get_closest_marker, ("slow", "long", "interop", "browser"))):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left = {
        one
        for name, all_of in cases.items()
        if all_of[0].path not in WHOLE
        for one in {*all_of} - {*taken(name, all_of)}
    }
    config.hook.pytest_deselected(items=[one for one in items if one in left])
    items[:] = [one for one in items if one not in left]


def _leave_other_protocols(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take the tests of the protocols of which all steps are asked for."""
    left = {one for one in items if not ALL_OF & {name for mark in one.iter_markers("steps") for name in mark.args}}
    config.hook.pytest_deselected(items=[*left])
    items[:] = [one for one in items if one not in left]


@pytest.fixture
def tmp_path_on_disk() -> Iterator[Path]:
    """A folder that is in memory nowhere: for what is too large, and for what is about disks."""
    with tempfile.TemporaryDirectory(dir=DISK, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="session", autouse=True)
def waits_for_no_disk() -> Iterator[None]:
    """Spare the thousands of writes of this process the disk's time; what is flushed is test_power_cuts.py's to ask."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """One S3 for all tests, to which the environment leads."""
    server = S3Server()
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield server
    server.stop()


@pytest.fixture
def direct_s3(s3: S3Server) -> Iterator[S3Server]:
    """The same S3 for tests that ask nothing of the road to it, which this process goes no more."""
    with pytest.MonkeyPatch.context() as patch:
        ask_directly(patch, s3)
        yield s3


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where a test's tables go: a folder of this machine, or one on S3."""
    return _place(request, tmp_path)


@pytest.fixture(params=["local"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """The same for tests of which only those marked by `ALSO_ON_S3` or `some_on_s3` go to S3, where they are slow."""
    return _place(request, tmp_path)


def _place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "local":
        return tmp_path
    request.getfixturevalue("direct_s3")
    return new_url().removesuffix("/t")
