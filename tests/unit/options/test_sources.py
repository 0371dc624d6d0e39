from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.errors import InvalidOptionError, OptionConflictError, UnsupportedOptionError
from pyhudi.options.explain import explain
from pyhudi.options.names import describe_options
from pyhudi.options.sources import READING, WHY_UNUSED, WRITING, ResolvedOptions, find_config, resolve_options
from pyhudi.storage import open_storage
from pyhudi.storage.secrets import STARS
from pyhudi.table.config import TableConfig, create_config
from pyhudi.table.config.table_settings import TableSettings
from support.drive import KEYED, write
from support.seams import patch_seam

ROWS = pa.table({"id": [1, 2], "ts": [1, 1]})


@pytest.fixture(autouse=True)
def defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only defaults file there is, empty so far."""
    monkeypatch.setenv("HUDI_CONF_DIR", str(tmp_path))
    patch_seam(monkeypatch, "folder of the machine's defaults", str(tmp_path / "etc"))
    patch_seam(monkeypatch, "defaults that were warned of", set())
    path = tmp_path / "hudi-defaults.conf"
    path.touch()
    return path


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "table"
    write(path, ROWS, table=KEYED)
    return str(path)


def session(**settings: str) -> Any:
    return SimpleNamespace(conf=SimpleNamespace(getAll={key.replace("__", "."): settings[key] for key in settings}))


def resolve(
    path: str, given: Mapping[str, Any] | None = None, scopes: frozenset[Any] = WRITING, **more: Any
) -> ResolvedOptions:
    return resolve_options(given or {}, path, scopes, **more)


def reasons(resolved: ResolvedOptions) -> dict[str, str]:
    return {one.key: one.unused for one in resolved.unused}


def test_what_is_given_goes_before_the_session_and_that_before_the_file(table: str, defaults: Path) -> None:
    defaults.write_text("hoodie.write.batch.size 1m\nhoodie.write.task.max.size 1m\nhoodie.parquet.block.size 1m")
    spark = session(hoodie__write__task__max__size="2m", hoodie__parquet__block__size="2m", spark__app__name="x")

    resolved = resolve(table, {"hoodie.parquet.block.size": "3m"}, session=spark)

    options = resolved.options
    assert [options.batch_size, options.task_max_size, options.row_group_bytes] == [1 << 20, 2 << 20, 3 << 20]
    assert {key: one.place for key, one in resolved.counting.items()} == {
        "hoodie.write.batch.size": f"{defaults}:1",
        "hoodie.write.task.max.size": "the session's hoodie.write.task.max.size",
        "hoodie.parquet.block.size": "",
    }


def test_a_session_may_say_it_with_sparks_prefix(table: str) -> None:
    spark = session(spark__hoodie__metadata__enable="false", spark__hoodie__write__batch__size="1m")
    assert resolve(table, scopes=READING, session=spark).options.metadata_enable is False

    both = session(hoodie__metadata__enable="false", spark__hoodie__metadata__enable="true")
    assert resolve(table, scopes=READING, session=both).options.metadata_enable is False
    assert resolve(table, session=both).options.metadata_enable is None


@pytest.mark.parametrize("text", ["false", " No", "0"])
def test_a_session_that_does_without_a_metadata_table_does_so_for_reads_and_a_write_warns_once(
    table: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """The setting is for each table and engine of the session; a write with the option itself means this table."""
    patch_seam(monkeypatch, "settings against metadata tables that were warned of", set())
    spark = session(hoodie__metadata__enable=text)

    for _ in range(2):
        resolved = resolve(table, session=spark)
        assert resolved.options.metadata_enable is None
        assert reasons(resolved) == {"hoodie.metadata.enable": WHY_UNUSED}
    assert [record.args[1] for record in caplog.records] == ["the session's hoodie.metadata.enable"]
    assert resolve(table, scopes=READING, session=spark).options.metadata_enable is False
    assert resolve(table, {"hoodie.metadata.enable": text}, session=spark).options.metadata_enable is False


def test_a_write_that_asks_for_a_metadata_table_names_what_it_builds(table: str) -> None:
    def built(**more: object) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
        given = {f"hoodie.metadata.{key.replace('__', '.')}": text for key, text in more.items()}
        options = resolve(table, {"hoodie.metadata.enable": True, **given}).options
        request = options.to_write_request(table, ROWS.schema, overwrite=False)
        return request.write.upkeep.indexes.names, request.write.upkeep.indexes.columns

    every = ("files", "column_stats", "partition_stats")
    assert built() == (every, None)
    assert built(index__column__stats__column__list="ts,value") == (every, ("ts", "value"))
    assert built(index__partition__stats__enable=False) == (every[:2], None)
    assert built(index__column__stats__enable=False) == (every[:1], None)
    with pytest.raises(OptionConflictError, match="come from those of files"):
        built(index__column__stats__enable=False, index__partition__stats__enable=True)
    assert built(record__index__enable=False) == (every, None)
    for key in ("record__index__enable", "index__bloom__filter__enable", "index__secondary__enable"):
        with pytest.raises(UnsupportedOptionError, match="neither builds nor keeps"):
            built(**{key: True})
    unset = resolve(table, {"hoodie.metadata.index.column.stats.enable": True}).options
    assert unset.to_write_request(table, ROWS.schema, overwrite=False).write.upkeep.indexes.names == ()


def test_other_names_of_one_option_replace_each_other(table: str, defaults: Path) -> None:
    defaults.write_text("hoodie.cleaner.policy.failed.writes=LAZY\nhoodie.clean.failed.writes.policy=NEVER")
    assert resolve(table).options.failed_writes == "NEVER"

    assert resolve(table, {"hoodie.cleaner.policy.failed.writes": "EAGER"}).options.failed_writes == "EAGER"


def test_an_option_that_means_the_same_replaces_a_setting(tmp_path: Path, defaults: Path) -> None:
    defaults.write_text("hoodie.datasource.write.payload.class=org.apache.hudi.common.model.DefaultHoodieRecordPayload")

    resolved = resolve(str(tmp_path / "new"), {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"})

    assert resolved.options.table_settings().merge_mode == "COMMIT_TIME_ORDERING"


def test_settings_about_the_table_describe_new_tables_only(table: str, tmp_path: Path, defaults: Path) -> None:
    defaults.write_text(
        "hoodie.datasource.write.recordkey.field=uuid\nhoodie.bucket.index.num.buckets=16\n"
        "hoodie.datasource.write.table.type=COPY_ON_WRITE\nhoodie.datasource.write.hive_style_partitioning=true\n"
        "hoodie.metadata.enable=true\n"
    )

    for_new = resolve(str(tmp_path / "new")).options
    assert (for_new.record_key, for_new.buckets, for_new.hive_style) == (("uuid",), 16, True)

    resolved = resolve(table)
    assert (resolved.options.record_key, resolved.options.buckets, resolved.options.hive_style) == (None, None, None)
    assert resolved.options.metadata_enable is True
    assert set(reasons(resolved).values()) == {"it describes new tables, and this table exists already"}
    write(table, ROWS, table=resolved.options.table_settings())


def test_what_is_given_has_to_agree_with_the_table(table: str) -> None:
    asked = resolve(table, {"recordkey": "uuid"}).options.table_settings()

    with pytest.raises(OptionConflictError):
        write(table, ROWS, table=asked)


def test_a_setting_may_say_what_apache_hudi_keeps_no_note_of(table: str, defaults: Path) -> None:
    properties = Path(table) / ".hoodie" / "hoodie.properties"
    lines = [one for one in properties.read_text().splitlines() if "bucket.index" not in one and "checksum" not in one]
    properties.write_text("\n".join([*lines, ""]))
    defaults.write_text("hoodie.bucket.index.num.buckets=2\nhoodie.table.name=other")

    options = resolve(table).options

    assert (options.buckets, options.table_name) == (2, None)


@pytest.mark.parametrize(
    "line",
    [
        "hoodie.table.cdc.enabled=true",
        "hoodie.index.type=RECORD_INDEX",
    ],
)
def test_a_kind_of_table_that_is_not_done_stops_new_tables_only(
    table: str, tmp_path: Path, defaults: Path, line: str
) -> None:
    defaults.write_text(f"\n{line}")
    resolve(table)
    resolve(table, scopes=READING)

    with pytest.raises(UnsupportedOptionError, match=rf"of {defaults}:2 "):
        resolve(str(tmp_path / "new"))


def test_options_of_an_index_of_ones_own_may_be_settings(table: str, defaults: Path) -> None:
    defaults.write_text("hoodie.pyhudi.index.path=/keys.db\nhoodie.pyhudi.index.password=hunter2")

    resolved = resolve(table, {"hoodie.pyhudi.index.path": "/mine.db"})

    assert resolved.options.write_settings().lookup.own == {"path": "/mine.db", "password": "hunter2"}
    shown = explain(resolved, None)
    assert [shown.find(f"hoodie.pyhudi.index.{name}").value for name in ("path", "password")] == ["/mine.db", STARS]
    assert not any(one.note for one in shown if one.key == "hoodie.pyhudi.index.path" and one.source == "given")
    assert resolve(table, scopes=READING).options.index_options == {}


def test_a_number_of_buckets_for_every_table_is_no_word_against_one_with_another_index(
    tmp_path: Path, defaults: Path
) -> None:
    defaults.write_text("hoodie.bucket.index.num.buckets=16\nhoodie.index.bucket.engine=SIMPLE")

    resolved = resolve(str(tmp_path / "new"), {"index": "bloom"})

    assert (resolved.options.index_type, resolved.options.buckets) == ("BLOOM", None)
    assert reasons(resolved)["hoodie.bucket.index.num.buckets"] == "it is about buckets, and not bloom"
    assert resolve(str(tmp_path / "new")).options.buckets == 16
    assert resolve(str(tmp_path / "new"), {"index": "bucket"}).options.buckets == 16


def test_an_index_for_every_table_is_no_word_against_one_with_buckets(tmp_path: Path, defaults: Path) -> None:
    defaults.write_text("hoodie.index.type=SIMPLE\nhoodie.bucket.index.num.buckets=16")

    with_buckets = resolve(str(tmp_path / "new"), {"buckets": 4})
    assert (with_buckets.options.index_type, with_buckets.options.buckets) == (None, 4)
    assert reasons(with_buckets)["hoodie.index.type"] == "the user asks for buckets"
    without = resolve(str(tmp_path / "new"))
    assert (without.options.index_type, without.options.buckets) == ("SIMPLE", None)


def test_a_number_of_buckets_for_every_table_is_not_taught_to_one_with_another_index(
    tmp_path: Path, defaults: Path
) -> None:
    defaults.write_text("hoodie.bucket.index.num.buckets=16\nhoodie.bucket.index.hash.field=id")
    looks_up = TableConfig.new(TableSettings(name="t", record_key_fields=("id",), index_type="SIMPLE"))
    create_config(open_storage(str(tmp_path / "table")), looks_up)

    options = resolve(str(tmp_path / "table")).options

    assert (options.buckets, options.hash_fields) == (None, None)


@pytest.mark.parametrize("bucketed", [False, True])
def test_a_number_of_buckets_for_every_table_is_no_claim_on_one_without_buckets(
    tmp_path: Path, defaults: Path, bucketed: bool
) -> None:
    """Whose index nobody noted: the names of its file groups tell it. What is given to the write itself is a claim."""
    path = str(tmp_path / "table")
    write(path, ROWS, table=KEYED if bucketed else replace(KEYED, bucket_count=None, index_type="SIMPLE"))
    properties = Path(path) / ".hoodie" / "hoodie.properties"
    lines = [one for one in properties.read_text().splitlines() if ".index." not in one and "checksum" not in one]
    properties.write_text("\n".join([*lines, ""]))
    defaults.write_text("hoodie.bucket.index.num.buckets=2\nhoodie.bucket.index.hash.field=id")

    resolved = resolve(path)

    assert (resolved.options.buckets, resolved.options.hash_fields) == ((2, ("id",)) if bucketed else (None, None))
    told = reasons(resolved).get("hoodie.bucket.index.num.buckets")
    assert told == (None if bucketed else "the table records no index, and its file groups are no buckets")
    assert write(path, ROWS, table=resolved.options.table_settings()).updates == 2
    assert resolve(path, {"buckets": 2}).options.buckets == 2


def test_what_a_write_would_have_to_do_otherwise_stops_writes_only(table: str, defaults: Path) -> None:
    defaults.write_text("hoodie.write.concurrency.mode=non_blocking_concurrency_control")
    resolve(table, scopes=READING)

    with pytest.raises(UnsupportedOptionError, match=rf"of {defaults}:1 "):
        resolve(table)


def test_a_value_that_does_not_fit_is_refused_with_its_place(table: str, defaults: Path) -> None:
    with pytest.raises(InvalidOptionError, match=r"hoodie\.write\.batch\.size='big' of the session's spark\.hoodie\."):
        resolve(table, session=session(spark__hoodie__write__batch__size="big"))

    defaults.write_text("hoodie.pyhudi.read.split.size=big")
    resolve(table)
    with pytest.raises(InvalidOptionError, match=rf"of {defaults}:1 "):
        resolve(table, scopes=READING)


def test_a_setting_that_nobody_knows_is_passed_over_with_one_warning(
    table: str, defaults: Path, caplog: pytest.LogCaptureFixture
) -> None:
    defaults.write_text("hoodie.metadata.enabled=false\nspark.master local\nbuckets 3\nhoodie.metadata.enable=true")

    for _ in range(2):
        assert resolve(table).options.metadata_enable is True

    assert reasons(resolve(table))["hoodie.metadata.enabled"].endswith("did you mean hoodie.metadata.enable")
    assert [record.args[0] for record in caplog.records] == ["hoodie.metadata.enabled", "spark.master", "buckets"]


@pytest.mark.parametrize(
    "line",
    ["hoodie.base.path=/x", "hoodie.pyhudi.write.id=x", "hoodie.pyhudi.colocated=true"],
)
def test_what_is_about_one_operation_is_no_setting(table: str, defaults: Path, line: str) -> None:
    defaults.write_text(line)

    resolved = resolve(table)

    assert resolved.counting == {}
    assert [one.unused for one in resolved.unused] == ["it is about a single operation and has to be given to it"]


def test_the_file_can_be_switched_off(table: str, defaults: Path) -> None:
    defaults.write_text("hoodie.write.batch.size nonsense")

    options = resolve(table, {"hoodie.pyhudi.defaults.enabled": False}, session=session(hoodie__metadata__enable="1"))

    assert options.options.metadata_enable is True


def test_every_line_of_the_template_can_be_used(tmp_path: Path, defaults: Path) -> None:
    template = (Path(__file__).parents[3] / "conf" / "hudi-defaults.conf").read_text(encoding="utf-8")
    lines = [line.removeprefix("# ") for line in template.splitlines() if line.startswith("# hoodie.")]
    defaults.write_text("\n".join(lines))

    resolved = resolve(str(tmp_path / "new"))

    assert len(resolved.counting) == len(lines) > 5
    assert resolved.unused == ()


def test_extra_metadata_and_storage_options_may_be_settings(table: str, defaults: Path) -> None:
    defaults.write_text("_team=blue\nhoodie.pyhudi.storage.key=k")

    options = resolve(table).options

    assert (options.extra_metadata, options.storage_options) == ({"_team": "blue"}, {"key": "k"})
    assert resolve(table, scopes=READING).options.extra_metadata == {}


def explained(path: str, given: Mapping[str, Any] | None = None, **more: Any) -> Any:
    resolved = resolve(path, given, READING | WRITING, **more)
    return explain(resolved, find_config(open_storage(path)))


def test_every_option_is_explained_once(table: str) -> None:
    rows = explained(table)

    assert [row.key for row in rows] == [info.key for info in describe_options()]


def test_an_explanation_names_the_source_of_each_value(table: str, defaults: Path) -> None:
    defaults.write_text("hoodie.parquet.block.size=1m\nhoodie.datasource.write.recordkey.field=uuid\nhoodie.odd=1")

    rows = explained(
        table,
        {"orderby": "ts", "buckets": 3, "hoodie.clustering.inline": "true", "_a": "b"},
        session=session(hoodie__metadata__enable="false"),
    )

    def row(key: str) -> tuple[str, str, str]:
        found = rows.find(key)
        return found.value, found.source, found.note

    kept = "the table's hoodie.properties"
    assert row("hoodie.datasource.write.recordkey.field") == ("id", kept, "")
    assert row("hoodie.datasource.write.precombine.field") == ("ts", "given", "as orderby")
    assert row("Buckets") == ("3", "given", "as buckets; the table has 2, so that a write would be refused")
    assert row("hoodie.parquet.block.size") == ("1m", f"{defaults}:1", "")
    assert row("hoodie.metadata.enable") == ("false", "the session's hoodie.metadata.enable", "")
    assert row("hoodie.write.batch.size") == (str(256 << 20), "default", "")
    assert row("hoodie.clustering.inline")[1:] == ("given", "not done: file groups stay as the writes leave them")
    assert row("_a") == ("b", "given", "kept in the commit's extra metadata")
    unused = {one.key: (one.value, one.source, one.note) for one in rows if one.note.startswith("not used")}
    assert unused == {
        "hoodie.datasource.write.recordkey.field": (
            "uuid",
            f"{defaults}:2",
            "not used: it describes new tables, and this table exists already",
        ),
        "hoodie.odd": ("1", f"{defaults}:3", "not used: there is no such option"),
    }
    with pytest.raises(KeyError):
        rows.find("hoodie.odd")


def test_an_explanation_without_a_table_knows_defaults_only(tmp_path: Path) -> None:
    assert {row.source for row in explained(str(tmp_path / "new"))} == {"default"}


def test_an_explanation_can_leave_out_what_nobody_said(table: str) -> None:
    resolved = resolve(table, {"operation": "upsert"}, READING | WRITING)

    assert [row.key for row in explain(resolved, None, defaults=False)] == ["hoodie.datasource.write.operation"]


def test_an_explanation_is_a_table_as_text_and_in_a_notebook(table: str) -> None:
    rows = explain(resolve(table, {"_a": "<b>", "operation": "upsert"}), None, defaults=False)

    assert repr(rows) == str(rows)
    assert str(rows).splitlines() == [
        "option                             value   from   note",
        "---------------------------------  ------  -----  -----------------------------------",
        "hoodie.datasource.write.operation  upsert  given  as operation",
        "_a                                 <b>     given  kept in the commit's extra metadata",
    ]
    assert "<td>&lt;b&gt;</td>" in rows._repr_html_()


def test_an_explanation_keeps_secrets(table: str) -> None:
    given = {
        "hoodie.pyhudi.storage.key": "abc",
        "hoodie.datasource.hive_sync.password": "abc",
        "hoodie.deltastreamer.source.kafka.sasl.token": "abc",
    }

    rows = explained(table, given)

    assert "abc" not in str(rows)
    assert str(rows).count("***") == 3
