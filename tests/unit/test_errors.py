"""The tree of errors: complete, drawn, documented, and whole again after a way through pickle or Spark's text."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import pytest
from pyhudi import errors
from pyhudi.errors import (
    ColumnDifference,
    CommitConflictError,
    MetInstant,
    NullKeyError,
    PyHudiError,
    SchemaMismatchError,
    StorageError,
    from_spark,
)

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
DRAWN = re.compile(r"^    (?P<indent>[│ ├└─]*)(?P<name>\w+Error)(?: +(?P<code>[A-Z_]+(?= )))?", re.MULTILINE)


def all_kinds(root: type[PyHudiError] = PyHudiError) -> list[type[PyHudiError]]:
    return [root, *(kind for child in root.__subclasses__() for kind in all_kinds(child))]


KINDS = all_kinds()
LEAVES = [kind for kind in KINDS if not kind.__subclasses__()]


def test_the_tree_drawn_in_the_docstring_is_the_tree() -> None:
    """Each class stands under its own base, and a leaf's code stands beside it."""
    assert errors.__doc__ is not None
    bases, codes, path = {}, {}, [""]
    for line in DRAWN.finditer(errors.__doc__):
        depth = len(line["indent"]) // 4
        bases[line["name"]] = path[depth]
        path[depth + 1 :] = [line["name"]]
        if line["code"]:
            codes[line["name"]] = line["code"]

    assert bases == {"PyHudiError": ""} | {one.__name__: one.__mro__[1].__name__ for one in KINDS[1:]}
    assert codes == {kind.__name__: kind.code for kind in LEAVES}


def test_all_names_every_class_and_from_spark() -> None:
    assert errors.__all__ == [
        *sorted(["ColumnDifference", "MetInstant", *(kind.__name__ for kind in KINDS)]),
        "from_spark",
    ]


def test_no_two_classes_share_a_code() -> None:
    codes = [kind.code for kind in KINDS]

    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("kind", LEAVES)
def test_a_code_is_the_name_of_its_class(kind: type[PyHudiError]) -> None:
    words = re.findall(r"[A-Z][a-z]*", kind.__name__.removesuffix("Error"))

    assert kind.code == "_".join(words).upper()


@pytest.mark.parametrize("kind", LEAVES)
def test_the_page_has_a_section_for_each_error(kind: type[PyHudiError]) -> None:
    """It says when the error comes, shows a message, and says what to do."""
    sections = re.split(r"^#{2,3} ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (section,) = [text for text in sections if text.startswith(f"`{kind.code}`: `{kind.__name__}`\n")]
    _, when, fence, todo = re.split(r"\n\n", section.strip(), maxsplit=3)
    assert when.endswith(".")
    assert fence.startswith(f"```text\nPyHudiError[{kind.code}]: ")
    assert todo.endswith(".")


def test_the_page_has_no_section_for_an_error_that_is_gone() -> None:
    named = re.findall(r"^### `\w+`: `(\w+)`$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert named == [kind.__name__ for kind in LEAVES]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in LEAVES])
def test_the_page_names_the_bases_and_their_codes(kind: type[PyHudiError]) -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert f"`{kind.__name__}`" in text
    assert f"ode `{kind.code}`" in text


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_survives_pickle(kind: type[PyHudiError]) -> None:
    """Spark's workers pickle what they raise."""
    error = kind("The column 'é' is odd.", "Make it even.")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301

    assert type(again) is kind
    assert (again.what, again.todo) == (error.what, error.todo)
    assert str(again) == str(error)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_comes_back_from_sparks_text(kind: type[PyHudiError]) -> None:
    """Spark wraps the worker's traceback, whose last line is the error, in messages and stacks of its own."""
    error = kind("The table /a b/t has 2 columns.", "Write again.")
    text = (
        "[PYTHON_EXCEPTION] An exception was thrown from the Python worker. Please see the stack trace below.\n"
        "Traceback (most recent call last):\n"
        '  File "/x/pyhudi/table/keys.py", line 76, in record_keys\n'
        "    raise self._null_key(batch, blank)\n"
        f"pyhudi.errors.{kind.__name__}: {error}\n"
        "\n\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:574)"
    )
    again = from_spark(RuntimeError(text))

    assert type(again) is kind
    assert str(again).strip() == str(error)


def test_of_several_errors_in_a_text_the_last_counts() -> None:
    """A traceback tells the cause first."""
    text = f"{NullKeyError('First.', 'Do.')}\n\nDuring handling of the above …\n{StorageError('Second.', 'Do.')}"

    assert type(from_spark(RuntimeError(text))) is StorageError


def test_a_code_of_a_newer_pyhudi_is_still_an_error_of_ours() -> None:
    """Driver and executors may have different versions."""
    again = from_spark(RuntimeError("PyHudiError[NOT_YET_KNOWN]: Something is new. Upgrade."))

    assert type(again) is PyHudiError
    assert "Something is new. Upgrade." in str(again)


def test_a_text_without_an_error_gives_none() -> None:
    assert from_spark(RuntimeError("[DIVIDE_BY_ZERO] Division by zero.")) is None


DIFFERENCES = (
    ColumnDifference("fare", "double", "string", "cast it to double"),
    ColumnDifference("stop.tip", "absent", "struct<a:int,b:map<string,int>> not null", "let it be nullable"),
)


def test_a_mismatch_shows_its_differences_and_gets_them_back_from_sparks_text() -> None:
    error = SchemaMismatchError("The columns do not fit the table /a [b]/t", "Change them.", DIFFERENCES)
    again = from_spark(RuntimeError(f"Job aborted.\n{error}\n\tat org.apache.spark"))

    assert str(error) == (
        "PyHudiError[SCHEMA_MISMATCH]: The columns do not fit the table /a [b]/t [column | table | incoming | what to "
        "do: fare | double | string | cast it to double; stop.tip | absent | struct<a:int,b:map<string,int>> not null "
        "| let it be nullable]. Change them."
    )
    assert isinstance(again, SchemaMismatchError)
    assert again.differences == DIFFERENCES
    assert pickle.loads(pickle.dumps(error)).differences == DIFFERENCES  # noqa: S301
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301


def test_a_mismatch_of_values_has_no_differences() -> None:
    again = from_spark(RuntimeError(str(SchemaMismatchError("Column 'a' [x | y] is null.", "Fill it."))))

    assert isinstance(again, SchemaMismatchError)
    assert again.differences == ()


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_is_one_line(kind: type[PyHudiError]) -> None:
    """Spark's text is searched line by line, so that a value with line breaks must not cut the message."""
    error = kind("The value 'a\nb\r\n\tc' is odd.", "Change\nit.")

    assert str(error) == f"PyHudiError[{kind.code}]: The value 'a b c' is odd. Change it."


def test_a_message_shows_what_and_what_to_do() -> None:
    error = NullKeyError("The key is null.", "Fill it.")

    assert str(error) == "PyHudiError[NULL_KEY]: The key is null. Fill it."
    assert (error.what, error.todo) == ("The key is null.", "Fill it.")


HOSTILE = [
    "p=1/q=2",
    "line\nbreak\r\nand\u2028more",
    "quotes \"' and \\",
    "PyHudiError[STORAGE]: The store failed. Run it again.",
    "x\nPyHudiError[STORAGE]: The store failed.",
    'PyHudiMet[00000000]: {"instant":"1","kind":"rescale"}',
    "日本/é/\U0001f600/\ud800",
    "[[[]]]",
    "",
]


def through_spark(error: PyHudiError) -> PyHudiError:
    """Return an error as Spark hands on that of a task."""
    text = f"Job aborted: Traceback:\npyhudi.errors.{type(error).__name__}: {error}\n\n\tat org.apache.Task(Task.scala)"
    again = from_spark(RuntimeError(text))
    assert again is not None
    return again


@pytest.mark.parametrize("partition", HOSTILE, ids=range(len(HOSTILE)))
def test_the_instant_that_was_met_comes_back_from_sparks_text(partition: str) -> None:
    """In one line of ASCII behind the error, whatever partitions are called; it says that it was read from text."""
    met = MetInstant("20260101000000000", "write", partition, "00000001-0-0-0-0-0", "a_0-0-0_1.parquet")
    error = CommitConflictError(f"Another write changed {partition}.", "Write again.", met=met)
    line = str(error).splitlines()[-1]
    again = through_spark(error)

    assert line.isascii()
    assert len(line) <= 1024
    assert type(again) is CommitConflictError
    assert again.met == replace(met, from_text=True)
    assert str(again) == again.text, "what was read from text is not handed on"
    assert pickle.loads(pickle.dumps(error)).met == met  # noqa: S301


def test_a_meeting_of_more_than_a_kilobyte_comes_without_its_place() -> None:
    error = CommitConflictError("It came first.", "", met=MetInstant("20260101000000000", "write", "é" * 500, "f"))
    again = through_spark(error)

    assert len(str(error).splitlines()[-1]) <= 1024
    assert again.met == MetInstant("20260101000000000", "write", from_text=True)
    assert through_spark(CommitConflictError("It came first.", "", met=MetInstant("1" * 2000, "write"))).met is None


def read(line: str) -> MetInstant | None:
    """Return what a line behind an error's carries."""
    error = from_spark(RuntimeError(f"PyHudiError[COMMIT_CONFLICT]: It came first.\n{line}\n\tat org.apache"))
    assert error is not None
    return error.met


def test_what_was_changed_on_its_way_is_no_meeting() -> None:
    """Each cut, and each changed byte."""
    met = MetInstant("20260101000000000", "rescale", "a")
    line = str(CommitConflictError("It came first.", "", met=met)).splitlines()[1]
    assert read(line) == replace(met, from_text=True)
    for at in range(len(line)):
        changed = line[:at] + ("x" if line[at] != "x" else "y") + line[at + 1 :]
        assert read(changed) is None, changed
        assert read(line[:at]) is None


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        '{"instant": "1"}',
        '{"instant": 1, "kind": "write"}',
        '{"instant": "1", "kind": "write", "from_text": false}',
        '{"instant": "1", "kind": "write", "more": "x"}',
        '{"instant": "../1", "kind": "write"}',
        '{"instant": "1", "kind": "write", "file_id": "a/../b"}',
        '{"instant": "1", "kind": "write", "partition_path": null}',
        '{"instant": "1", "kind": "write"',
        '{"instant": "1", "kind": "write", "partition_path": "' + "x" * 1024 + '"}',
    ],
)
def test_a_meeting_that_pyhudi_would_not_write_is_none(text: str) -> None:
    assert read(f"PyHudiMet[{crc32(text.encode()):08x}]: {text}") is None


def test_the_meeting_of_another_error_of_the_text_does_not_count() -> None:
    first = CommitConflictError("First.", "", met=MetInstant("1", "rescale"))

    assert through_spark(StorageError(f"Second: {first}", "Do.")).met is None
    again = from_spark(RuntimeError(f"{first}\n\nDuring handling of the above …\n{StorageError('Second.', 'Do.')}"))
    assert again is not None
    assert again.met is None
