"""What `support.s3_answers` answers is what moto answers."""

from __future__ import annotations

import http.client
import re
from urllib.parse import quote, urlsplit

import pytest
from support import s3_answers
from support.s3 import BUCKET, S3Server, new_url

NAMED_ANEW = {"x-amzn-requestid", "date"}
WHEN = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z")
PUT = {
    "x-amz-checksum-crc32": "NhCmhg==",
    "x-amz-sdk-checksum-algorithm": "CRC32",
    "x-amz-meta-pyhudi-stamp": "mine",
    "x-amz-content-sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
}
CREATE = {**PUT, "If-None-Match": "*"}
SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request"}
CHECKED = {"x-amz-checksum-mode": "ENABLED"}


@pytest.fixture
def table(s3: S3Server) -> str:
    """The beginning of a table's keys, below which there are some objects."""
    s3.moto_alone = False
    table = urlsplit(new_url()).path.lstrip("/")
    for name in ("a", "b", "p=1&ä '~+/x", "p=1&ä '~+/y", "q/r/z"):
        _ask(s3, "PUT", f"{table}/{name}", PUT, b"hello")
    _ask(s3, "PUT", f"{table}/empty", {**PUT, "x-amz-checksum-crc32": "AAAAAA=="})
    return table


@pytest.mark.parametrize(
    ("method", "name", "headers", "is_plain"),
    [
        ("GET", "a", CHECKED, True),
        ("GET", "a", {}, True),
        ("GET", "empty", CHECKED, True),
        ("GET", "p=1&ä '~+/x", {}, True),
        ("GET", "a", {"Range": "bytes=-3", **CHECKED}, True),
        ("GET", "a", {"Range": "bytes=-30"}, True),
        ("GET", "a", {"Range": "bytes=1-2"}, True),
        ("GET", "a", {"Range": "bytes=1-200"}, True),
        ("GET", "a", {"Range": "bytes=1-"}, True),
        ("GET", "a", {"Range": "bytes=7-9"}, False),
        ("GET", "empty", {"Range": "bytes=-3"}, False),
        ("GET", "absent", {}, False),
        ("GET", "a", {"If-None-Match": "*"}, False),
        ("HEAD", "a", {}, True),
        ("HEAD", "a", CHECKED, True),
        ("HEAD", "absent", {}, False),
        ("PUT", "a", PUT, True),
        ("PUT", "new", CREATE, True),
        ("PUT", "a", CREATE, False),
        ("PUT", "new", {}, False),
        ("PUT", "new", {**PUT, "x-amz-storage-class": "STANDARD"}, False),
        ("DELETE", "a", {}, True),
        ("DELETE", "absent", {}, True),
    ],
)
def test_a_plain_request_of_an_object_is_answered_as_by_moto(
    s3: S3Server, table: str, method: str, name: str, headers: dict[str, str], is_plain: bool
) -> None:
    body = b"hello" if method == "PUT" else None
    _compare(s3, method, f"{table}/{name}", headers, body, is_plain)


@pytest.mark.parametrize(
    ("query", "is_plain"),
    [
        ("", True),
        ("&delimiter=/", True),
        ("&delimiter=/&max-keys=5", True),
        ("&delimiter=/&max-keys=4", False),
        ("&max-keys=6", True),
        ("&start-after=a", False),
        ("&delimiter=a", False),
    ],
)
@pytest.mark.parametrize("below", ["/", "", "/p", "/p=1&ä '~+/", "/absent/"])
def test_a_plain_listing_is_answered_as_by_moto(
    s3: S3Server, table: str, query: str, is_plain: bool, below: str
) -> None:
    asked = f"?list-type=2&prefix={quote(table + below)}{query}&encoding-type=url"
    _compare(s3, "GET", asked, {}, None, is_plain if below == "/" else None)


def _compare(
    s3: S3Server, method: str, name: str, headers: dict[str, str], body: bytes | None, is_plain: bool | None
) -> None:
    plain: list[bool] = []
    whole = s3_answers.answer
    with pytest.MonkeyPatch.context() as patch:

        def watched(*asked: object) -> object:
            plain.append((given := whole(*asked)) is not None)  # type: ignore[arg-type]
            return given

        patch.setattr("support.s3.answer", watched)
        response = _ask(s3, method, name, headers, body)
    if method in {"PUT", "DELETE"} and "new" in name:
        _ask(s3, "DELETE", name, {})
    s3.moto_alone = True
    assert response == _ask(s3, method, name, headers, body)
    assert plain == [is_plain] or is_plain is None


def _ask(
    s3: S3Server, method: str, name: str, headers: dict[str, str], body: bytes | None = None
) -> tuple[int, dict[str, str], bytes]:
    target = name if name.startswith("?") else f"/{quote(name)}"
    connection = http.client.HTTPConnection(urlsplit(s3.endpoint).netloc)
    connection.request(method, f"/{BUCKET}{target}", body, {**SIGNED, **headers})
    answer = connection.getresponse()
    content = answer.read()
    told = {one.lower(): text for one, text in answer.getheaders() if one.lower() not in NAMED_ANEW}
    connection.close()
    told.pop("access-control-allow-origin", None)
    if method == "PUT":
        told.pop("last-modified", None)
    return answer.status, told, re.sub(rb"<RequestId>.*?</RequestId>", b"", WHEN.sub(b"", content))
