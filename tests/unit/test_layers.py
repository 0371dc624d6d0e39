"""The rules between the layers, checked on the syntax tree of every module of the package."""

from __future__ import annotations

import ast
import re

import pytest
from support.rules.imports import (
    LAYERS,
    PACKAGES,
    RANKS,
    ROOT,
    SUPPORT_RANKS,
    absolute_imports,
    circles,
    imports,
    layer_at,
    modules,
    shared_by_tests,
    upward_imports,
    upward_imports_of_support,
)

LAYERS_OF_ROWS = ("table", "index", "writer", "reader", "operations", "methods", "arrow")

IO_MODULES = ("os", "io", "shutil", "glob", "tempfile", "mmap", "fsspec", "pyarrow.fs", "pyarrow.dataset")
IO_NAMES = {"pathlib": {"Path", "PosixPath", "WindowsPath"}}  # the Pure* classes only compute
IO_CALLS = {"open", "OSFile", "memory_map"}
IO_EXCEPTIONS = {
    "options/defaults_file.py": "the environment names the folder of the defaults",
    "connector/command/reading.py": "the page of a report is a file of the machine that the command runs on",
    "connector/command/run.py": "it turns its own output away where nothing reads it any more",
    "connector/source/parquet_scan.py": "a list of files is for Spark's driver, which is on this machine",
    "methods/paths.py": "a relative path is meant where a process runs, and ~ is the home of its user",
    "arrow/datasets.py": "a dataset of pyarrow, for other libraries, opens no file: its rows are those of a scan",
    "arrow/rows.py": "rows that come once wait in a temporary folder of the machine, for another attempt",
    "writer/sort.py": "rows that do not fit into memory are sorted in a temporary folder of the machine",
    "reader/scan.py": "so do those of a task that merges log files with a base file, on the machine that it runs on",
    "operations/write/task.py": "a task's spills go to a temporary folder of the machine it runs on",
    "operations/services/unit_execution.py": "and those of the tasks of compactions and rescales",
    "operations/locating/global_index.py": "and of tasks that merge log files to hold rows against those of the table",
    "operations/locating/shared_keys.py": "and of tasks that compare rows with the stored rows of their keys",
    "testing/indexes.py": "the tests of an index write tables to temporary folders",
    "testing/outside_indexes.py": "and take them away",
    "operations/write/merge_spills.py": "so do the commit's, which also asks for the number of cores",
    "operations/write/turns.py": "it asks Python alone, to be called in each process that is forked",
    "operations/indexing/known_keys.py": "so does this",
    "table/files/key_footers.py": "so does this",
    "table/files/read_written.py": "so does this",
    "timeline/writers/owner.py": "so does this",
    "operations/write/spilled_rows.py": "the rows that the commit brings near lie in a temporary folder",
}

ROW_LOOPS = {
    "to_pylist",
    "to_pydict",
    "to_pandas",
    "as_py",
    "iterrows",
    "itertuples",
    "vectorize",
    "frompyfunc",
    "apply_along_axis",
}
# A line that says why it is no loop over rows: "# O(files)", "# one value a batch".
BOUND = re.compile(r"#.*(\bO\((?!rows?\b|n\b)[^)]+\)|\bone value\b)")

CLASSIC_ONLY = {"SparkContext", "sparkContext", "rdd", "SQLContext", "py4j", "py4j.java_gateway"}
CLASSIC_ONLY |= {"_jvm", "_jdf", "_jsc", "_sc", "_jsparkSession", "_jconf", "_jreader", "_jwrite"}

# By module: what only the commit path imports.
COMMIT_PATH = {
    "decide": {"decide"},
    "decisions": {"Decision", "Kind"},
    "clock": {"next_time"},
    "followers": {"changed_properties", "following", "prepare"},
    "locks": {"hold", "provider_of"},
}
# What tells of other instants, and the modules that look and leave the verdict to another one.
TELLS_OF_OTHERS = {"announced", "clustered_groups", "held_groups", "on_the_way_out", "pending_compactions"}
TELLS_OF_OTHERS |= {"pending_restore", "pending_rollbacks", "says_what_it_holds"}
LOOKS_AT_OTHERS = {
    "operations/following/changed_records.py": "it looks whether older writes may yet add files to a partition",
    "operations/following/undone_metadata.py": "it looks what an undone instant left pending in the metadata table",
    "operations/locating/routing.py": "file_group_writes.py judges who holds a file group",
    "operations/write/replacement.py": "so it does of the file groups that are replaced",
    "operations/services/clean_scope.py": "clean_plan.py judges what a clean leaves alone",
    "operations/services/versions/compact_whole.py": "it looks for what change_version.py does first",
    "operations/services/versions/unfinished.py": "it names what it does first; preconditions.py judges",
    "operations/services/savepoint.py": "it looks for the newest write; preconditions.py judges",
    "operations/services/target_times.py": "it finds the write that a time names; preconditions.py judges",
    "operations/services/metadata/archive.py": "it looks at the metadata table's own instants",
    "operations/services/metadata/clean.py": "so does this",
    "operations/services/metadata/compaction.py": "so does this, for plans to carry out",
    "operations/services/metadata/slices.py": "it looks for a pending undo, which needs what no other service takes",
    "operations/services/service.py": "it looks whether its own instant is pending still",
    "operations/services/metadata/pending_indexings.py": "it judges indexings by the signs of life of their makers",
    "operations/services/metadata/indexing.py": "it waits for what undoes instants, and looks for its own instant",
    "operations/services/unused_metadata.py": "it deletes what belongs to no instant, once no other engine is at work",
    "operations/services/planned.py": "it looks for the plans that it carries out; preconditions.py judges others",
    "operations/services/compaction/log_compactor.py": "it chooses a time that does not count as archived",
    "operations/services/compaction/compact.py": "it looks for plans to carry out, or that a call would carry out",
    "operations/services/compaction/due_rules.py": "it counts what gathered since the last plan",
    "operations/services/compaction/repair.py": "it takes back plans, as the user asked it to",
    "operations/transaction/carried_out.py": "it carries a decision out, whatever is beside it",
    "operations/planning/micro_batch.py": "it finds what its own query left pending; pending.py judges the others",
    "operations/streams/checkpoints.py": "it looks which streams have an older instant pending",
    "operations/write/attempts.py": "it looks whether it has to take its turn; conflicts.py judges",
    "operations/transaction/commit_path.py": "it looks whether its own instant is pending still",
    "operations/meeting/since.py": "it finds what conflicts.py judges",
    "operations/upkeep/services.py": "it looks whether there is something to clean",
    "operations/state/needs.py": "it names the service that is due, and the service judges what is beside it",
    "operations/state/table_state.py": "it counts what is pending",
}
VERSION_READERS = {
    "table/format.py": "it chooses the format by it",
    "table/metadata/index_definitions.py": "so does this, of the records of bounds",
    "operations/inspect/detail.py": "it shows it",
    "operations/state/table_state.py": "so does this",
    "table/table.py": "it looks whether a table was upgraded since it was opened",
    "operations/report/gather.py": "and this",
    "operations/services/versions/steps.py": "it chooses the step by it",
    "operations/services/metadata/first_files.py": "a metadata table has the version of its table",
    "operations/services/metadata/columns_to_index.py": "versions have bounds of different types",
    "operations/services/rescale/rescale.py": "writers of versions before 9 know no rules of buckets",
}
# What changes the files of instants, where a module has them open, and the stores' own calls for their paths.
CHANGES_OF_INSTANTS = {"request", "start", "remove_pending", "complete"}
CHANGES_OF_FILES = {"create", "delete", "write"}
# What writes data files, and where it may be made: a log file's blocks are base files inside of it.
FILE_WRITERS = {"BaseFileWriter", "LogFileWriter", "BaseOutput", "LogOutput"}
WRITING = ("writer/", "table/files/logs/log_file.py")
LONGEST_MODULE = 600
LONGEST_FUNCTION = 60


def spark_imports(module: str, text: str) -> list[str]:
    return [
        f"{module}:{line}: imports {source}"
        for line, source, _ in imports(ast.parse(text), module)
        if source.split(".")[0] in {"pyspark", "py4j"}
    ]


def io_uses(module: str, text: str) -> list[str]:
    tree = ast.parse(text)
    uses = []
    for line, source, name in imports(tree, module):
        reached = f"{source}.{name}" if name else source
        whole = any(reached == io or reached.startswith(f"{io}.") for io in IO_MODULES)
        if whole or (source in IO_NAMES and (not name or name in IO_NAMES[source])):
            uses.append(f"{module}:{line}: imports {reached}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            plain = isinstance(node.func, ast.Name) and node.func.id in IO_CALLS
            of_arrow = (
                isinstance(node.func, ast.Attribute)
                and node.func.attr in IO_CALLS
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id in {"pa", "pyarrow", "io"}
            )
            if plain or of_arrow:
                uses.append(f"{module}:{node.lineno}: calls {ast.unparse(node.func)}")
    return uses


def row_loops(module: str, text: str) -> list[str]:
    lines = text.splitlines()
    loops = []
    for node in ast.walk(ast.parse(text)):
        named = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if named in ROW_LOOPS and not BOUND.search(lines[(node.end_lineno or node.lineno) - 1]):
            loops.append(f"{module}:{node.end_lineno}: {named} on a data path")
    return loops


def long_functions(module: str, text: str) -> list[str]:
    """Return the functions that are too long, their docstrings apart: public arguments are documented one by one."""
    violations = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = len((ast.get_docstring(node, clean=False) or "").splitlines())
            lines = (node.end_lineno or node.lineno) - node.lineno + 1 - docstring
            if lines > LONGEST_FUNCTION:
                violations.append(f"{module}:{node.lineno}: {node.name} has {lines} lines")
    return violations


def long_module(module: str, text: str) -> list[str]:
    lines = len(text.splitlines())
    return [f"{module}: {lines} lines"] if lines > LONGEST_MODULE else []


def reads_of_the_version(module: str, text: str) -> list[str]:
    """Return where a module reads the version of a table for another purpose than to show it."""
    if module.startswith("table/config/") or module in VERSION_READERS:
        return []
    tree = ast.parse(text)
    shown = {inner for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for inner in ast.walk(node)}
    return [
        f"{module}:{node.lineno}: reads the table's version"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr == "version"
        and ast.unparse(node.value).endswith("config")
        and node not in shown
    ]


def other_commit_paths(module: str, text: str) -> list[str]:
    """Return where a module above the timeline decides, or chooses an instant's time, beside the commit path."""
    if not module.startswith(
        ("operations/", "reader/", "writer/", "options/", "methods/", "arrow/", "connector/", "testing/")
    ):
        return []
    # Checks parse the decisions that a table keeps, and make none.
    if module.startswith(("operations/transaction/", "operations/checks/")):
        return []
    return [
        f"{module}:{line}: imports {source}.{name}"
        for line, source, name in imports(ast.parse(text), module)
        if name in COMMIT_PATH.get(source.rpartition(".")[2], ())
    ]


def other_changes_of_instants(module: str, text: str) -> list[str]:
    """Return where a module beside the commit path changes the files of instants, or makes a lock that nothing holds.

    Its functions change them under the lock.
    """
    if not module.startswith(("operations/", "reader/", "methods/", "arrow/", "connector/")):
        return []
    inside = module.startswith("operations/transaction/")
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    lock_calls = [call for call in calls if ast.unparse(call.func) == "HeldLock" and not module.endswith("/locks.py")]
    return [
        f"{module}:{call.lineno}: calls {ast.unparse(call.func)}"
        for call in (lock_calls if inside else [*lock_calls, *filter(_changes_instants, calls)])
    ]


def _changes_instants(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr in CHANGES_OF_INSTANTS and _holds_instants(call.func.value):
        return True
    given = (node for one in call.args for node in ast.walk(one) if isinstance(node, ast.Attribute))
    return call.func.attr in CHANGES_OF_FILES and any(
        node.attr == "path" and _holds_instants(node.value) for node in given
    )


def _holds_instants(node: ast.expr) -> bool:
    return ast.unparse(node).rpartition(".")[2] in {"files", "instants", "timeline", "timeline()"}


def other_file_writers(module: str, text: str) -> list[str]:
    """Return where a module beside writer/ makes what writes base or log files."""
    if module.startswith(WRITING):
        return []
    return [
        f"{module}:{node.lineno}: makes a {ast.unparse(node.func)}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in FILE_WRITERS
    ]


def parsed_names(module: str, text: str) -> list[str]:
    """Return where a module beside table/files/ takes a data file's name apart, or asks what time is in it."""
    if module.startswith(("table/files/", "testing/")):
        return []
    return [
        f"{module}:{node.lineno}: takes the name of a data file apart by {ast.unparse(node)}"
        for node in ast.walk(ast.parse(text))
        if (
            isinstance(node, ast.Attribute)
            and (node.attr == "named_time" or ast.unparse(node) in {"BaseFileName.parse", "LogFileName.parse"})
        )
        or (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).endswith(("partition", "split"))
            and [ast.unparse(given) for given in node.args] == ["'_'"]
        )
    ]


def unjudged_meetings(module: str, text: str) -> list[str]:
    """Return where a module looks at pending instants and does not ask the table of meetings what follows."""
    if not module.startswith("operations/") or module.startswith(("operations/checks/", "operations/inspect/")):
        return []
    tree = ast.parse(text)
    imported = [(line, source, name) for line, source, name in imports(tree, module)]
    if any(source.endswith(".concurrency") and name in {"judge", "forbids"} for _, source, name in imported):
        return []
    found = [f"{module}:{line}: imports {name}" for line, _, name in imported if name in TELLS_OF_OTHERS]
    return found + [
        f"{module}:{node.lineno}: reads {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "pending"
    ]


RULES_OF_ALL = [long_functions, long_module]
RULES_OF_LAYERS = [upward_imports, absolute_imports, reads_of_the_version, other_commit_paths, other_file_writers]
RULES_OF_LAYERS += [parsed_names, other_changes_of_instants]


@pytest.mark.parametrize("module", modules())
def test_a_module_keeps_the_rules_of_its_layer(module: str) -> None:
    layer = layer_at(module)
    text = (ROOT / module).read_text(encoding="utf-8")
    rules = list(RULES_OF_ALL)
    if layer in RANKS:
        rules += RULES_OF_LAYERS
    if layer in RANKS and layer != "connector":
        rules.append(spark_imports)
    if layer in RANKS and layer != "storage" and module not in IO_EXCEPTIONS:
        rules.append(io_uses)
    if layer in LAYERS_OF_ROWS:
        rules.append(row_loops)
    if module not in LOOKS_AT_OTHERS:
        rules.append(unjudged_meetings)

    assert [violation for rule in rules for violation in rule(module, text)] == []


@pytest.mark.parametrize("module", shared_by_tests())
def test_what_tests_share_keeps_the_rules_of_its_package(module: str) -> None:
    text = (ROOT / module).read_text(encoding="utf-8")

    assert module.rpartition("/")[0] in SUPPORT_RANKS
    assert upward_imports_of_support(module, text) + long_module(module, text) == []


@pytest.mark.parametrize("module", [one for one in modules() if layer_at(one) in {"connector", "pyspark_pyhudi"}])
def test_nothing_reaches_behind_the_session(module: str) -> None:
    """What Spark Connect does not have: a SparkContext, RDDs, and objects of the JVM behind py4j."""
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {name for _, _, name in imports(tree, module)} | {source for _, source, _ in imports(tree, module)}

    assert names & CLASSIC_ONLY == set()


def test_no_modules_import_one_another_in_a_circle() -> None:
    assert circles({module: (ROOT / module).read_text(encoding="utf-8") for module in modules()}) == []


@pytest.mark.parametrize("of_types", [False, True])
def test_a_circle_is_found(of_types: bool) -> None:
    guard = "if TYPE_CHECKING:\n    " if of_types else ""
    texts = {
        "index/bloom.py": "from .base import Index",
        "index/base.py": f"{guard}from . import lookup",
        "index/lookup.py": "def f():\n    from .bloom import BloomIndex",
        "index/simple.py": "from .lookup import TableLookup",
        "errors.py": "import abc",
    }

    assert circles(texts) == ["index/base.py", "index/bloom.py", "index/lookup.py"]
    assert circles({**texts, "index/base.py": ""}) == []


def test_every_folder_with_modules_is_a_known_package() -> None:
    folders = {
        path.parent.relative_to(ROOT).as_posix()
        for layer in (*LAYERS, "pyspark_pyhudi")
        for path in (ROOT / layer).rglob("__init__.py")
    }

    assert folders == {*PACKAGES, "pyspark_pyhudi"}
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} == {*LAYERS, "pyspark_pyhudi"}


def test_every_module_that_looks_at_others_without_a_verdict_still_does() -> None:
    unneeded = [one for one in LOOKS_AT_OTHERS if not unjudged_meetings(one, (ROOT / one).read_text(encoding="utf-8"))]

    assert unneeded == []


def test_every_exception_from_the_io_rule_is_still_needed() -> None:
    unneeded = [module for module in IO_EXCEPTIONS if not io_uses(module, (ROOT / module).read_text(encoding="utf-8"))]

    assert unneeded == []


@pytest.mark.parametrize(
    ("rule", "module", "text"),
    [
        (upward_imports, "storage/local.py", "from ..timeline.instants import Instant"),
        (upward_imports, "writer/handle.py", "def f():\n    from ..reader import scan"),
        (upward_imports, "reader/scan.py", "from .. import writer"),
        (upward_imports, "index/bucket.py", "import pyhudi.operations.result"),
        (upward_imports, "errors.py", "from .storage import base"),
        (upward_imports, "table/arrow/arrays.py", "from ..schema.types import is_text"),
        (upward_imports, "table/keys/generator.py", "from ..files.names import bucket_of"),
        (upward_imports, "timeline/timeline.py", "from .writers import owner"),
        (upward_imports, "operations/transaction/begin.py", "from ..write.task import run_task"),
        (upward_imports, "table/files/view.py", "from pyhudi import HudiTable"),
        (upward_imports, "arrow/table.py", "from ..connector.table.frames import to_frame"),
        (upward_imports, "connector/hudi_table.py", "from ..arrow.rows import given_rows"),
        (upward_imports_of_support, "tests/support/made/logged.py", "from support.faults import races"),
        (upward_imports_of_support, "tests/support/made/logged.py", "from ..models.model import Table"),
        (upward_imports_of_support, "tests/support/drive.py", "from support.made.logged import append"),
        (absolute_imports, "table/files/view.py", "from pyhudi.timeline.instants import Instant"),
        (spark_imports, "operations/write/run.py", "def f():\n    from pyspark.sql import SparkSession"),
        (io_uses, "table/files/view.py", "import os.path"),
        (io_uses, "table/files/view.py", "from pathlib import Path"),
        (io_uses, "table/files/view.py", "from pyarrow import fs"),
        (io_uses, "table/files/view.py", "with open('a') as f: pass"),
        (io_uses, "table/files/view.py", "pa.memory_map('a')"),
        (row_loops, "writer/handle.py", "x = [\n  1,\n  *a.to_pylist(),\n]"),
        (row_loops, "writer/handle.py", "x = a.to_pylist()  # O(rows)"),
        (row_loops, "writer/handle.py", "f = np.vectorize(g)"),
        (
            other_file_writers,
            "operations/services/compaction/compactor.py",
            "with BaseOutput(files, group, form): pass",
        ),
        (other_file_writers, "connector/table/writing.py", "w = log_file.LogFileWriter(sink)"),
        (other_changes_of_instants, "operations/services/clean.py", "table.instants.remove_pending(instant)"),
        (other_changes_of_instants, "operations/services/clean.py", "files.start(instant)"),
        (other_changes_of_instants, "operations/write/commit.py", "work.table.timeline().complete(done, body)"),
        (other_changes_of_instants, "operations/rollback/dead.py", "storage.delete(*{timeline.files.path(victim)})"),
        (other_changes_of_instants, "operations/transaction/decide.py", "held = HeldLock(table, keeps_out=True)"),
        (parsed_names, "reader/past.py", "times = [file.named_time for file in lost]"),
        (parsed_names, "operations/result.py", "found = map(LogFileName.parse, names)"),
        (parsed_names, "index/bucket.py", "file_id = path.split('/')[-1].split('_')[0]"),
        (long_functions, "table/files/view.py", "def f():\n" + "    x = 1\n" * 60),
        (long_module, "table/files/view.py", "x = 1\n" * 601),
        (unjudged_meetings, "operations/services/clean.py", "from ...timeline.going import pending_restore"),
        (unjudged_meetings, "operations/services/clean.py", "x = [one for one in timeline.pending]"),
    ],
)
def test_a_breach_is_found(rule, module: str, text: str) -> None:
    assert len(rule(module, text)) == 1


@pytest.mark.parametrize(
    ("rule", "module", "text"),
    [
        (
            upward_imports,
            "writer/handle.py",
            "from ..errors import E\nfrom .fold import f\nfrom ..table.keys import x",
        ),
        (
            upward_imports,
            "options/parsing.py",
            "from ..operations.result import R\nimport pydantic",
        ),
        (
            upward_imports_of_support,
            "tests/support/drawn/histories.py",
            "from support import drive\nfrom support.places import Place\nfrom .upkept import upkeep",
        ),
        (
            io_uses,
            "table/files/view.py",
            "from pathlib import PurePosixPath\nimport posixpath\nstorage.open_input('a')",
        ),
        (row_loops, "writer/handle.py", "x = a.to_pylist()  # O(partitions): unique values only"),
        (other_file_writers, "writer/group_writer.py", "with BaseOutput(files, group, form): pass"),
        (other_changes_of_instants, "operations/services/clean.py", "self.start(instant)\nself.complete(instant)"),
        (other_changes_of_instants, "operations/services/clean.py", "storage.delete(work.claim.path)"),
        (other_changes_of_instants, "operations/transaction/abort.py", "table.instants.remove_pending(own)"),
        (parsed_names, "table/files/view.py", "time = file.named_time"),
        (
            parsed_names,
            "writer/data_files.py",
            "name = BaseFileName(group.file_id, self.token, self.instant_time).format()",
        ),
        (long_functions, "table/files/view.py", "def f():\n" + "    x = 1\n" * 59),
        (long_module, "table/files/view.py", "x = 1\n" * 600),
        (
            unjudged_meetings,
            "operations/services/clean.py",
            "from ..transaction.concurrency import judge\nx = timeline.pending",
        ),
    ],
)
def test_what_the_rules_allow_is_not_found(rule, module: str, text: str) -> None:
    assert rule(module, text) == []
