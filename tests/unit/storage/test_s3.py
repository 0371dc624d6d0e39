"""S3 where it differs from a disk: conditional puts, lost answers, uploads, ranges, listings of a thousand keys."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.utils import parse_timestamp
from pyhudi.errors import InvalidOptionError, StorageError, TableNotFoundError
from pyhudi.storage import Storage, open_storage
from pyhudi.storage import object_files as files
from pyhudi.storage.objects import ObjectStorage
from pyhudi.storage.s3 import connect, parse_time
from pyhudi.storage.s3_options import client_options
from pyhudi.table.config import load_config
from support.s3 import BUCKET, Answer, Application, Environ, S3Server, new_url, put_object
from support.seams import patch_seam


@pytest.fixture
def storage(s3: S3Server) -> Storage:
    return open_storage(new_url())


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> int:
    """The least that S3 takes for a part."""
    patch_seam(monkeypatch, "part size of uploads", 5 << 20)
    return 5 << 20


def fresh(s3: S3Server, **options: str) -> Storage:
    """Return a storage whose client nobody has used."""
    unused = {"user_agent_extra": uuid.uuid4().hex, "retries": {"max_attempts": 2}}
    text = str(unused).replace("'", '"')
    return open_storage(new_url(), {**s3.options, "config_kwargs": text, **options})


@contextmanager
def answering(
    s3: S3Server, method: str, answer: Callable[[Application, Environ, Answer], Iterable[bytes]], times: int = 1
) -> Iterator[None]:
    """Let something else answer the next requests of a method."""
    left = [times]

    def interfere(application: Application, environ: Environ, start_response: Answer) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] == method and left[0]:
            left[0] -= 1
            return answer(application, environ, start_response)
        return application(environ, start_response)

    s3.interfere = interfere
    try:
        yield
    finally:
        s3.interfere = None
    assert left[0] <= 0 or times > 100, "there were fewer such requests"


def lost(application: Application, environ: Environ, start_response: Answer) -> Iterable[bytes]:
    """Do what is asked, and answer as if it had failed."""
    list(application(environ, lambda *_: None))
    return failing("500 Internal Server Error", "InternalError")(application, environ, start_response)


def failing(status: str, code: str) -> Callable[[Application, Environ, Answer], Iterable[bytes]]:
    """Return what refuses a request and does nothing."""

    def answer(application: Application, environ: Environ, start_response: Answer) -> Iterable[bytes]:
        body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
        start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [body]

    return answer


def test_a_file_is_created_by_a_conditional_put(s3: S3Server, storage: Storage) -> None:
    with s3.watched():
        storage.create("a", b"x")
        put = [headers for kind, key, headers in s3.seen if kind == "CREATE" and key.endswith("/a")]

    assert put[0]["if-none-match"] == "*"


def test_a_creation_whose_answer_was_lost_counts_as_made(s3: S3Server, storage: Storage) -> None:
    """The client tries again and is refused because of what its first try did."""
    with answering(s3, "PUT", lost):
        made = storage.create("a", b"mine")

    assert made is True
    assert storage.read("a") == b"mine"
    assert storage.create("a", b"mine") is False


def test_the_same_bytes_by_another_writer_are_not_taken_for_ones_own(s3: S3Server, storage: Storage) -> None:
    """Requested files are empty: their bytes cannot tell whose they are."""
    assert storage.create("a", b"") is True
    with answering(s3, "PUT", lost):
        assert storage.create("a", b"") is False


def test_a_creation_that_is_never_answered_is_looked_for(s3: S3Server) -> None:
    storage = fresh(s3)
    with answering(s3, "PUT", lost, times=1000):
        made = storage.create("a", b"mine")

    assert made is True
    assert storage.read("a") == b"mine"


def test_a_creation_that_did_not_come_about_is_an_error(s3: S3Server) -> None:
    storage = fresh(s3)
    with (
        answering(s3, "PUT", failing("500 Internal Server Error", "InternalError"), times=1000),
        pytest.raises(StorageError, match=r"could not create .*/t/a"),
    ):
        storage.create("a", b"mine")

    assert not storage.exists("a")


def test_a_creation_that_meets_another_is_tried_again(s3: S3Server, storage: Storage) -> None:
    with answering(s3, "PUT", failing("409 Conflict", "ConditionalRequestConflict"), times=2):
        assert storage.create("a", b"mine") is True


def test_a_busy_store_is_asked_again(s3: S3Server, storage: Storage) -> None:
    with answering(s3, "PUT", failing("503 Slow Down", "SlowDown")):
        storage.write("a", b"x")

    assert storage.read("a") == b"x"


def test_a_store_that_passes_over_the_condition_is_not_written(s3: S3Server) -> None:
    def unconditional(application: Application, environ: Environ, start_response: Answer) -> Iterable[bytes]:
        environ.pop("HTTP_IF_NONE_MATCH", None)
        return application(environ, start_response)

    storage = fresh(s3)
    with (
        answering(s3, "PUT", unconditional, times=1000),
        pytest.raises(StorageError, match="replaced an object in spite of the condition"),
    ):
        storage.create("a", b"x")


def test_a_store_is_asked_only_once_whether_it_keeps_the_condition(s3: S3Server) -> None:
    storage = fresh(s3)
    with s3.watched() as requests:
        for name in "abc":
            storage.create(name, b"")

    assert requests == {"CREATE": 4}


def test_a_large_file_is_seen_when_its_upload_is_complete(s3: S3Server, storage: Storage, small_parts: int) -> None:
    body = os.urandom(2 * small_parts + 1000)
    staged = storage.stage("p/data", "aside")
    for start in range(0, len(body), 1 << 20):
        staged.stream.write(body[start : start + (1 << 20)])

    assert storage.list("", recursive=True) == []
    with s3.watched() as requests:
        assert staged.publish() == len(body)
    assert requests["COMPLETE UPLOAD"] == 1
    assert storage.read("p/data") == body
    assert s3.unfinished_uploads() == []


def test_a_small_file_is_one_put(s3: S3Server, storage: Storage) -> None:
    staged = storage.stage("p/data", "aside")
    staged.stream.write(b"x" * 1000)
    with s3.watched() as requests:
        staged.publish()
        staged.discard()

    assert requests == {"PUT": 1}


def test_an_upload_that_is_given_up_leaves_no_part(s3: S3Server, storage: Storage, small_parts: int) -> None:
    staged = storage.stage("p/data", "aside")
    staged.stream.write(bytes(2 * small_parts + 1))

    assert s3.unfinished_uploads() != []
    staged.discard()
    staged.discard()
    assert s3.unfinished_uploads() == []
    assert storage.list("", recursive=True) == []
    with pytest.raises(ValueError, match="given up"):
        staged.stream.write(b"more")


def test_an_upload_whose_completion_was_not_answered_counts_as_made(
    s3: S3Server, storage: Storage, small_parts: int
) -> None:
    staged = storage.stage("p/data", "aside")
    staged.stream.write(bytes(small_parts + 1))
    with answering(s3, "POST", lost):
        assert staged.publish() == small_parts + 1
    assert storage.list("p")[0].size == small_parts + 1


def test_an_upload_that_fails_names_the_file(s3: S3Server, small_parts: int) -> None:
    storage = fresh(s3)
    staged = storage.stage("p/data", "aside")
    with (
        answering(s3, "PUT", failing("403 Forbidden", "AccessDenied"), times=1000),
        pytest.raises(StorageError, match=r"could not (write|publish) .*/t/p/data: no \(AccessDenied\)"),
    ):
        staged.stream.write(bytes(2 * small_parts))
        staged.publish()
    staged.discard()

    assert s3.unfinished_uploads() == []


def young(application: Application, environ: Environ, start_response: Answer) -> Iterable[bytes]:
    """Say of all uploads that they just began; of moto's they all began in 2010."""
    return [b"".join(application(environ, start_response)).replace(b"<Initiated>2010", b"<Initiated>2090")]


def test_uploads_of_killed_processes_go_when_they_are_old(s3: S3Server) -> None:
    storage, other = (ObjectStorage.open(new_url(), connect, {}) for _ in range(2))
    for one in (storage, other):
        connect(BUCKET, {}).upload(f"{one.path.removeprefix(f's3://{BUCKET}/')}/p/data", "")

    with answering(s3, "GET", young):
        storage.sweep([""], older_than_s=3600)
    assert len(s3.unfinished_uploads()) == 2
    storage.sweep([""], older_than_s=3600)
    assert len(s3.unfinished_uploads()) == 1
    other.sweep([], older_than_s=3600)
    assert s3.unfinished_uploads() == []


def test_who_may_not_list_uploads_may_write_tables(s3: S3Server, storage: Storage) -> None:
    with answering(s3, "GET", failing("403 Forbidden", "AccessDenied")):
        storage.sweep([], older_than_s=3600)


def test_a_small_file_is_read_by_one_request(s3: S3Server, storage: Storage) -> None:
    staged = storage.stage("data.parquet", "")
    pq.write_table(pa.table({"a": range(5000), "b": range(5000)}), staged.stream)
    staged.publish()
    with s3.watched() as requests:
        table = pq.read_table(storage.open_input("data.parquet"))

    assert table.num_rows == 5000
    assert requests == {"GET": 1}


def test_any_range_of_a_large_file_is_read_as_it_is(s3: S3Server, storage: Storage) -> None:
    body = os.urandom((10 << 20) + 7)
    storage.write("a", body)
    source = storage.open_input("a")

    assert source.size() == len(body)
    for start, length in ((0, 10), (5, 9 << 20), (len(body) - files.TAIL - 3, 10), (len(body) - 5, 100), (3, 0)):
        assert source.read_at(length, start) == body[start : start + length]
    source.seek(0)
    assert source.read() == body


def test_an_empty_file_can_be_opened(s3: S3Server, storage: Storage) -> None:
    storage.write("a", b"")

    assert storage.open_input("a").size() == 0
    with answering(s3, "GET", failing("416 Requested Range Not Satisfiable", "InvalidRange")):
        assert storage.open_input("a").read() == b""


def test_a_body_that_breaks_off_is_fetched_again(s3: S3Server, storage: Storage) -> None:
    def cut(application: Application, environ: Environ, start_response: Answer) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Length", "1000"), ("Connection", "close")])
        return [b"x" * 10]

    storage.write("a", b"whole")
    with answering(s3, "GET", cut):
        assert storage.read("a") == b"whole"


def test_more_than_a_thousand_files_are_listed_and_deleted(s3: S3Server, storage: Storage) -> None:
    for number in range(1001):
        put_object(f"{storage.path}/many/{number:04}/x")
        put_object(f"{storage.path}/many/{number:04}")
    with s3.watched() as requests:
        listing = storage.look("many")
        assert len(storage.list("many", recursive=True)) == 2002

    assert len(listing.files) == len(listing.folders) == 1001
    assert requests == {"LIST": 6}
    with s3.watched() as requests:
        storage.delete_folder("many")
    assert requests == {"LIST": 3, "DELETE": 3}
    assert storage.list("", recursive=True) == []


def test_a_file_that_a_batch_could_not_delete_is_named(s3: S3Server, storage: Storage) -> None:
    def partly(application: Application, environ: Environ, start_response: Answer) -> Iterable[bytes]:
        body = b"<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code><Message>no</Message></Error></DeleteResult>"
        start_response("200 OK", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [body]

    with answering(s3, "POST", partly), pytest.raises(StorageError, match=r"k was not deleted: no \(AccessDenied\)"):
        storage.delete("a", "b")


def test_what_other_tools_make_of_folders_is_passed_over(s3: S3Server, storage: Storage) -> None:
    for name in ("p/", "p/a", "p/.a.crc", "p//b", "q/"):
        put_object(f"{storage.path}/{name}")

    assert [info.path for info in storage.list("p")] == ["p/a"]
    assert storage.look("p").folders == ()
    assert storage.look("").folders == ("p", "q")


def test_the_stores_clock_is_that_of_its_answers(s3: S3Server) -> None:
    def later(application: Application, environ: Environ, start_response: Answer) -> Iterable[bytes]:
        def dated(status: str, headers: list[tuple[str, str]]) -> Any:
            kept = [(name, text) for name, text in headers if name.lower() != "date"]
            return start_response(status, [*kept, ("Date", "Thu, 01 Jan 2099 00:00:00 GMT")])

        return application(environ, dated)

    storage = fresh(s3)
    with answering(s3, "HEAD", later):
        now = storage.now()

    assert 0 <= now - 4070908800 < 60
    with s3.watched() as requests:
        storage.now()
    assert requests == {}


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-06T07:08:09.123Z",
        "2024-05-06T07:08:09Z",
        "Mon, 06 May 2024 07:08:09 GMT",
        "2024-05-06T07:08:09+02:00",
        "1714979289",
    ],
)
def test_times_of_answers_are_what_botocore_makes_of_them(text: str) -> None:
    found, by_botocore = parse_time(text), parse_timestamp(text)

    assert (found, found.timestamp()) == (by_botocore, by_botocore.timestamp())


def test_what_is_no_time_is_refused_as_by_botocore() -> None:
    for text in ("nothing", "Z", "GMT", "2024-13-06T07:08:09Z", None):
        with pytest.raises(ValueError, match="Invalid timestamp"):
            parse_time(text)


def test_a_client_asks_botocore_for_no_time_of_a_listing(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.parsers.DEFAULT_TIMESTAMP_PARSER", lambda _: pytest.fail("botocore parses a time"))
    prefix = uuid.uuid4().hex
    client = connect(BUCKET, {})
    client.put(f"{prefix}/a", b"1")

    assert [one.key for one in client.list(prefix, delimited=False).objects] == [f"{prefix}/a"]
    assert client.stat(f"{prefix}/a") is not None


def test_an_absent_profile_is_named_at_the_first_request(s3: S3Server) -> None:
    with pytest.raises(StorageError, match="nobody"):
        open_storage(new_url(), {"profile": "nobody"}).list("")


def test_an_absent_bucket_is_not_an_absent_table(s3: S3Server) -> None:
    with pytest.raises(StorageError, match=r"could not read .*NoSuchBucket"):
        load_config(open_storage("s3://no-such-bucket/t"))
    with pytest.raises(TableNotFoundError):
        load_config(open_storage(new_url()))


def test_refused_credentials_are_an_error(s3: S3Server, storage: Storage) -> None:
    storage.write("a", b"x")
    with (
        answering(s3, "GET", failing("403 Forbidden", "InvalidAccessKeyId")),
        pytest.raises(StorageError, match="InvalidAccessKeyId"),
    ):
        storage.read("a")


def test_without_credentials_the_error_says_so(s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    storage = fresh(s3)
    bare = open_storage(storage.path, {"endpoint_url": s3.endpoint})
    with pytest.raises(StorageError, match="NoCredentials"):
        bare.read("a")


FORK = """
import os, pickle, sys
from pyhudi.storage import open_storage

storage = open_storage(sys.argv[1])
storage.write("a", b"of the parent")
child = os.fork()
if child == 0:
    assert storage.read("a") == b"of the parent"
    assert pickle.loads(pickle.dumps(storage)).create("b", b"of the child")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert storage.read("b") == b"of the child"
"""


def test_a_forked_process_makes_its_own_connection(s3: S3Server) -> None:
    """Spark's daemon forks its workers; the parent's connection goes on."""
    done = subprocess.run([sys.executable, "-c", FORK, new_url()], check=False, timeout=120, env={**os.environ})

    assert done.returncode == 0


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_the_users_own_scheme_is_kept(s3: S3Server, scheme: str) -> None:
    storage = open_storage(f"{new_url(scheme)}/")
    storage.write("p/a", b"x")

    assert isinstance(storage, ObjectStorage)
    assert storage.uri("p/a") == f"{storage.path}/p/a"
    assert storage.path.startswith(f"{scheme}://{BUCKET}/")
    assert open_storage(storage.path.replace(f"{scheme}:", "s3:")).read("p/a") == b"x"


def test_a_bucket_can_be_a_table(s3: S3Server) -> None:
    storage = open_storage(f"s3://{BUCKET}/")

    assert not storage.exists("")
    assert storage.uri("a") == f"s3://{BUCKET}/a"


def test_a_path_without_a_bucket_is_refused(s3: S3Server) -> None:
    with pytest.raises(InvalidOptionError, match="names no bucket"):
        open_storage("s3:///t")


def test_options_reach_the_client_with_their_types() -> None:
    given = {
        "endpoint_url": "http://x",
        "anon": "TRUE",
        "region": "eu-west-1",
        "client_kwargs": '{"verify": false}',
        "config_kwargs": '{"s3": {"addressing_style": "path"}}',
    }

    assert client_options(given) == {
        "endpoint_url": "http://x",
        "anon": True,
        "client_kwargs": {"region_name": "eu-west-1", "verify": False},
        "config_kwargs": {"max_pool_connections": 32, "s3": {"addressing_style": "path"}},
    }


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"endpoint": "http://x"}, "no option 'endpoint'.*Did you mean endpoint_url"),
        ({"anon": "yes"}, "neither true nor false"),
        ({"client_kwargs": "{"}, "no JSON object"),
        ({"client_kwargs": "[1]"}, "no JSON object"),
    ],
)
def test_an_option_that_does_not_fit_is_refused(options: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidOptionError, match=says):
        open_storage("s3://bucket/t", options)


def test_secrets_are_not_shown(s3: S3Server) -> None:
    storage = open_storage("s3://bucket/t", {"key": "k", "secret": "hush"})

    assert "hush" not in repr(storage)
    assert pickle.loads(pickle.dumps(storage)) == storage  # noqa: S301


def test_without_s3fs_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)

    with pytest.raises(StorageError, match=r"s3fs.*pyhudi\[s3\]"):
        open_storage(f"s3://{uuid.uuid4().hex}/t")
