from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyhudi.errors import InvalidOptionError
from pyhudi.options.defaults_file import Line, read_defaults
from support.seams import patch_seam

FIXTURE = Path(__file__).parents[2] / "fixtures" / "defaults"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the environment names; the machine's own is another one, without a file."""
    named = tmp_path / "conf"
    named.mkdir()
    monkeypatch.setenv("HUDI_CONF_DIR", str(named))
    patch_seam(monkeypatch, "folder of the machine's defaults", str(tmp_path / "etc"))
    return named


def put(folder: Path, text: str, name: str = "hudi-defaults.conf") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_read_as_apache_hudi_reads_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HUDI_CONF_DIR", str(FIXTURE))

    ours = {line.key: line.value for line in read_defaults()}

    theirs = json.loads((FIXTURE / "apache_hudi_1_2.json").read_text(encoding="utf-8"))
    # Theirs takes blanks in front of a key for the key's end, and so loses the line.
    assert ours.pop("hoodie.leading.blanks") == "x"
    assert theirs.pop("") == "value"
    assert ours == theirs
    assert [record.args[0] for record in caplog.records] == [f"{FIXTURE}/hudi-defaults.conf:{n}" for n in (9, 11, 15)]


def test_each_line_says_where_it_stands(folder: Path) -> None:
    inner = put(folder, "hoodie.b=2", "inner.conf")
    outer = put(folder, f"# first\nhoodie.a=1\ninclude={inner}\nhoodie.c 3\n")

    assert read_defaults() == [
        Line("hoodie.a", "1", f"{outer}:2"),
        Line("hoodie.b", "2", f"{inner}:1"),
        Line("hoodie.c", "3", f"{outer}:4"),
    ]


def test_a_file_that_is_a_link_is_followed(folder: Path) -> None:
    """Kubernetes puts configuration in place by links."""
    there = put(folder.parent / "elsewhere", "hoodie.a=1", "data.conf")
    (folder / "hudi-defaults.conf").symlink_to(there)

    assert [line.key for line in read_defaults()] == ["hoodie.a"]


def test_the_file_that_the_environment_names_comes_after_the_machines_own(folder: Path) -> None:
    put(folder.parent / "etc", "hoodie.a=machine\nhoodie.b=machine")
    put(folder, "hoodie.a=named")

    assert [(line.key, line.value) for line in read_defaults()] == [
        ("hoodie.a", "machine"),
        ("hoodie.b", "machine"),
        ("hoodie.a", "named"),
    ]


@pytest.mark.parametrize("value", [None, ""])
def test_without_the_variable_only_the_machines_file_counts(
    folder: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    put(folder.parent / "etc", "hoodie.a=machine")
    if value is None:
        monkeypatch.delenv("HUDI_CONF_DIR")
    else:
        monkeypatch.setenv("HUDI_CONF_DIR", value)

    assert [line.value for line in read_defaults()] == ["machine"]


def test_the_machines_folder_may_be_named_and_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    etc = put(folder.parent / "etc", "hoodie.a=machine").parent
    monkeypatch.setenv("HUDI_CONF_DIR", f"file://{etc}/")

    assert [line.value for line in read_defaults()] == ["machine"]


def test_the_folder_may_be_a_url_and_have_blanks_and_colons(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = folder / "a b: ü"
    put(odd, "hoodie.a=1\ninclude=more.conf")
    put(odd, "hoodie.b=2", "more.conf")
    for named in (f"file://{odd}", str(odd)):
        monkeypatch.setenv("HUDI_CONF_DIR", named)

        assert [line.value for line in read_defaults()] == ["1", "2"]


def test_a_named_folder_without_the_file_is_an_error(folder: Path) -> None:
    with pytest.raises(InvalidOptionError, match=rf"HUDI_CONF_DIR names {folder}"):
        read_defaults()


def test_a_machines_file_that_is_out_of_order_stops_nobody(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    put(folder.parent / "etc", "include=absent.conf")
    put(folder, "hoodie.a=1")

    assert [line.value for line in read_defaults()] == ["1"]
    assert "absent.conf" in caplog.text


def test_a_file_that_includes_itself_is_an_error(folder: Path) -> None:
    put(folder, "include=other.conf")
    put(folder, "include=hudi-defaults.conf", "other.conf")

    with pytest.raises(InvalidOptionError, match="includes itself"):
        read_defaults()


def test_a_file_may_be_included_twice(folder: Path) -> None:
    put(folder, "include=other.conf\ninclude=other.conf")
    put(folder, "hoodie.a=1", "other.conf")

    assert len(read_defaults()) == 2


def test_an_included_file_must_be_there(folder: Path) -> None:
    path = put(folder, "\ninclude=absent.conf")

    with pytest.raises(InvalidOptionError, match=rf"{path}:2 includes {folder}/absent\.conf"):
        read_defaults()
