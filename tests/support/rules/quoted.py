"""Versions, times and counts that pages quote, each with the one place that it comes from.

Line breaks count as spaces, so that a pattern finds a sentence wherever its lines end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
# Packages at the root whose modules are no code of pyhudi's.
_APART = {"pyspark_pyhudi"}
_SHARES = {"2": "half", "3": "third", "4": "quarter", "5": "fifth"}


def exact(fact: str) -> str:
    """Spell a fact as its origin does."""
    return fact


def minor(version: str) -> str:
    """Spell a version without its third number."""
    return ".".join(version.split(".")[:2])


def major(version: str) -> str:
    """Spell a version by its first number."""
    return version.partition(".")[0]


def share(one_of: str) -> str:
    """Spell one of so many parts: a third."""
    return _SHARES[one_of]


@dataclass(frozen=True)
class Place:
    """Where a fact is in a file.

    Attributes:
        path: The file, below the root of the repository.
        pattern: What the fact is in; its group is the fact.
        spelt: How the file spells the fact of its origin.
    """

    path: str
    pattern: str
    spelt: Callable[[str], str] = exact

    def facts(self, root: Path) -> list[str]:
        """Return what the file says, once for each hit; commas inside of numbers do not count."""
        text = " ".join((root / self.path).read_text(encoding="utf-8").split())
        return [fact.replace(",", "") for fact in re.findall(self.pattern, text)]


@dataclass(frozen=True)
class Quoted:
    """A fact that other files repeat.

    Attributes:
        what: Names it.
        origin: The place that decides.
        pages: The places that repeat it.
    """

    what: str
    origin: Place
    pages: tuple[Place, ...]

    def faults(self, root: Path = ROOT) -> list[str]:
        """Return what is wrong: files that say something else than the origin, or nothing that the pattern finds."""
        facts = set(self.origin.facts(root))
        if len(facts) != 1:
            return [f"{self.origin.path} says {sorted(facts) or 'nothing'} by {self.origin.pattern!r}"]
        fact = facts.pop()
        faults = []
        for page in self.pages:
            quoted, wanted = page.facts(root), page.spelt(fact)
            if not quoted:
                faults.append(f"{page.path} has nothing that {page.pattern!r} finds")
            wrong = [other for other in quoted if other != wanted]
            faults += [f"{page.path} says {other}, and {self.origin.path} {wanted}" for other in wrong]
        return faults


_APACHE_HUDI = r"Apache Hudi (1\.[1-9]\d*\.\d+)"
_APACHE_HUDI_1_0 = r"Apache Hudi (1\.0\.\d+)"
_HUDI_RS = r"hudi-rs (\d+\.\d+)\.\d+"
_PYTHON = r"Python (3\.\d+),? or newer"
_TIME_OF_TESTS = r"(about \w+ minutes on two quiet cores)"

FACTS = (
    Quoted(
        "the time of make test",
        Place("Makefile", rf"test: ## Run the tests, {_TIME_OF_TESTS}"),
        (
            Place("README.md", rf"`make test` runs the tests \({_TIME_OF_TESTS}"),
            Place("CONTRIBUTING.md", rf"make test # [^#]*?{_TIME_OF_TESTS}"),
        ),
    ),
    Quoted(
        "the release of Apache Hudi that tests and benchmarks meet",
        Place("tests/interop/apache_hudi.py", r'release: str = "([\d.]+)"'),
        (
            Place("benchmarks/systems.py", r"hudi-spark3\.5-bundle_2\.12:([\d.]+)"),
            *(Place(page, _APACHE_HUDI) for page in ("README.md", "docs/keys.md", "docs/operations.md")),
            Place("docs/types.md", _APACHE_HUDI),
            Place("docs/performance.md", r"Apache Hudi is (\d+\.\d+\.\d+)"),
            Place("docs/comparison.md", r"Apache Hudi (\d+\.\d+) on Spark", minor),
        ),
    ),
    Quoted(
        "the release of Apache Hudi that has version 8 as its own",
        Place("tests/interop/test_version_8.py", r'release="([\d.]+)"'),
        tuple(Place(page, _APACHE_HUDI_1_0) for page in ("docs/versions.md", "docs/merge-on-read.md")),
    ),
    Quoted(
        "the release of hudi-rs that tests meet",
        Place("pyproject.toml", r'"hudi==(\d+\.\d+)\.\*"'),
        (
            *(Place(page, _HUDI_RS) for page in ("README.md", "docs/types.md", "docs/other-engines.md")),
            Place("docs/comparison.md", r"tests of pyhudi meet (\d+\.\d+)\.\d+"),
            *(Place(page, r"hudi-rs (\d+\.\d+) ") for page in ("docs/keys.md", "docs/merge-on-read.md")),
        ),
    ),
    Quoted(
        "the release of Delta Lake that is measured",
        Place("benchmarks/systems.py", r"delta-spark_2\.13:([\d.]+)"),
        (Place("docs/performance.md", r"Delta Lake (\d+\.\d+\.\d+)"),),
    ),
    Quoted(
        "the release of Iceberg that is measured",
        Place("benchmarks/systems.py", r"iceberg-spark-runtime-4\.0_2\.13:([\d.]+)"),
        (
            Place("docs/performance.md", r"Iceberg (\d+\.\d+\.\d+)"),
            Place("docs/comparison.md", r"Iceberg (\d+\.\d+) with PyIceberg", minor),
        ),
    ),
    Quoted(
        "the oldest Spark",
        Place("Makefile", r"pyspark\[connect\]==(\d+\.\d+)\.\*"),
        (
            Place("pyproject.toml", r"pyspark(?:\[connect\])?>=(\d+\.\d+),"),
            Place("Makefile", r"the oldest Spark, (\d+\.\d+)"),
            Place("docs/places.md", r"\| Spark \| (\d+\.\d+) and later"),
            Place("docs/places.md", r"`make test-spark40` runs on (\d+\.\d+)"),
            Place("docs/clusters.md", r"\| Spark (\d+\.\d+) or newer"),
            Place("docs/streams.md", r"Spark (\d+\.\d+) and later have both"),
            Place("docs/sql.md", r"Spark (\d+\.\d+) to 4\.\d+ lets"),
            Place("README.md", r"from Spark (\d+) through PySpark", major),
            Place("docs/quickstart.md", r"brings PySpark (\d+) along", major),
        ),
    ),
    Quoted(
        "the oldest Python",
        Place("pyproject.toml", r'requires-python = ">=(3\.\d+)"'),
        (
            *(Place(page, _PYTHON) for page in ("Makefile", "README.md", "docs/quickstart.md", "docs/clusters.md")),
            Place("docs/places.md", r"\| Python \| (3\.\d+) and later"),
        ),
    ),
    Quoted(
        "the oldest Java",
        Place("docs/places.md", r"\| Java \| (\d+) and later"),
        (
            Place("README.md", r"Java (\d+) and Python"),
            *(Place(page, r"Java (\d+) or newer") for page in ("docs/quickstart.md", "docs/clusters.md")),
        ),
    ),
    Quoted(
        "the version of pyhudi",
        Place("version.py", r'VERSION = "([\d.]+)"'),
        (
            Place("README.md", r"This is version (\d+\.\d+)\.", minor),
            Place("docs/places.md", r"pyhudi-([\d.]+)-py3-none-any\.whl"),
        ),
    ),
    Quoted(
        "the interleavings of a module's run",
        Place("tests/contract/test_interleavings.py", r"MANY, SOME = \d+, (\d+)"),
        (Place("docs/testing.md", r"runs (\d+) seeds"),),
    ),
    Quoted(
        "the interleavings of make test-long",
        Place("Makefile", r"\bSEEDS \?= (\d+)"),
        (
            Place("Makefile", r"by ([\d,]+) seeds"),
            Place("tests/contract/test_interleavings.py", r'"PYHUDI_SEEDS", "(\d+)"'),
            Place("CONTRIBUTING.md", r"([\d,]+) interleavings"),
        ),
    ),
    Quoted(
        "the minutes of the storms of make test-long",
        Place("Makefile", r"\bMINUTES \?= (\d+)"),
        (
            Place("tests/faults/test_long_storms.py", r'"PYHUDI_STORM_MINUTES", "(\d+)"'),
            Place("CONTRIBUTING.md", r"(\d+) minutes of real processes"),
            Place("docs/testing.md", r"storms for (\d+) minutes"),
        ),
    ),
    Quoted(
        "the share of make test",
        Place("Makefile", r"PYHUDI_ONE_OF=(\d+)"),
        (
            Place("Makefile", r"repeats with other values this takes a (\w+)", share),
            Place("tests/support/share.py", r"`make test` a (\w+)", share),
            Place("CONTRIBUTING.md", r"`make test` takes a (\w+)", share),
        ),
    ),
    Quoted(
        "the seconds for which a write is tried again",
        Place("docs/options.md", r"`hoodie\.pyhudi\.write\.retry\.max\.seconds` \| number \| `(\d+)`"),
        (Place("docs/concurrency.md", r"`hoodie\.pyhudi\.write\.retry\.max\.seconds` \((\d+)\)"),),
    ),
)


def _layers(root: Path) -> list[Path]:
    return [path.parent for path in root.glob("*/__init__.py") if path.parent.name not in _APART]


def modules(root: Path) -> int:
    """Return how many modules the code of pyhudi has, those of the root included, without ``__init__.py``."""
    inside = [path for layer in _layers(root) for path in layer.rglob("*.py")]
    return sum(path.name != "__init__.py" for path in [*root.glob("*.py"), *inside])


def packages(root: Path) -> int:
    """Return how many packages the code of pyhudi has below its root."""
    return sum(1 for layer in _layers(root) for _ in layer.rglob("__init__.py"))


def decisions(root: Path) -> int:
    """Return how many decisions there are."""
    return len([*(root / "docs" / "decisions").glob("[0-9]*-*.md")])


# What a page says of the whole code, wherever it says it.
COUNTS: dict[str, Callable[[Path], int]] = {
    r"\b(\d+) decisions\b": decisions,
    r"\b(\d\d+) packages\b": packages,
    r"\b(\d\d\d+) modules\b": modules,
}


def wrong_counts(page: Path, root: Path = ROOT) -> list[str]:
    """Return which counts of decisions, packages and modules a page gives that are not those of today."""
    text = " ".join(page.read_text(encoding="utf-8").split())
    return [
        f"{page.name} says {number}, and there are {count(root)}: {pattern}"
        for pattern, count in COUNTS.items()
        for number in re.findall(pattern, text)
        if int(number) != count(root)
    ]
