"""Answers to the plainest requests, of moto's objects but without the road through its application.

That road takes most of the time of a test on S3. What these answer is held against moto's own answers by
tests/unit/storage/test_s3_answers.py; whatever is not plain is moto's to answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, quote

from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from moto.s3.utils import metadata_from_headers
from werkzeug.datastructures import EnvironHeaders

Environ = dict[str, Any]
Headers = dict[str, str]
Given = tuple[str, Headers, bytes]

BUCKET = "pyhudi-tests"
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
# What every client sends, and what pyhudi's puts bear.
_PLAIN = {
    "x-amz-checksum-mode",
    "x-amz-content-sha256",
    "x-amz-date",
    "x-amz-meta-pyhudi-stamp",
    "x-amz-checksum-crc32",
    "x-amz-sdk-checksum-algorithm",
}
_LISTED_BY = {"list-type", "prefix", "delimiter", "max-keys", "encoding-type"}


def answer(kind: str, environ: Environ) -> Given | None:
    """Return status, headers and body of the answer to a plain request; None for any other."""
    by = _ANSWERED.get(kind)
    headers = EnvironHeaders(environ)
    special = {name for name in map(str.lower, headers.keys()) if name.startswith(("x-amz-", "if-", "content-enc"))}
    if by is None or not special <= _PLAIN | ({"if-none-match"} if kind == "CREATE" else set()):
        return None
    if "authorization" not in headers or headers.get("x-amz-content-sha256", "").startswith("STREAMING"):
        return None
    if kind != "LIST" and environ["QUERY_STRING"]:
        return None
    path = environ["PATH_INFO"].encode("latin-1").decode()
    bucket, _, name = path.lstrip("/").partition("/")
    return by(environ, headers, name) if bucket == BUCKET and bool(name) is (kind != "LIST") else None


def _get(environ: Environ, headers: EnvironHeaders, name: str) -> Given | None:
    key = _backend().buckets[BUCKET].keys.get(name)
    if key is None:
        return None
    data, told = key.value, _headers_of(key)
    if "range" not in headers:
        return "200 OK", {**told, **_checksum_of(key, headers)}, data
    range_match = _RANGE.fullmatch(headers["range"])
    if range_match is None or not data or not any(range_match.groups()):
        return None
    first, last = range_match.groups()
    start = int(first) if first else max(len(data) - int(last), 0)
    end = min(int(last) + 1, len(data)) if first and last else len(data)
    if start >= end:
        return None
    told |= {"content-length": str(end - start), "content-range": f"bytes {start}-{end - 1}/{len(data)}"}
    return "206 PARTIAL CONTENT", told, data[start:end]


def _head(environ: Environ, headers: EnvironHeaders, name: str) -> Given | None:
    key = _backend().buckets[BUCKET].keys.get(name)
    if key is None or "range" in headers:
        return None
    return "200 OK", {**_headers_of(key), **_checksum_of(key, headers)}, b""


def _list(environ: Environ, headers: EnvironHeaders, name: str) -> Given | None:
    asked = dict(parse_qsl(environ["QUERY_STRING"], keep_blank_values=True))
    prefix, delimiter, most = asked.get("prefix", ""), asked.get("delimiter", ""), int(asked.get("max-keys", 1000))
    if not set(asked) <= _LISTED_BY or asked.get("encoding-type") != "url" or delimiter not in {"", "/"}:
        return None
    contents, folders = [], set()
    for listed_name, key in sorted(_backend().buckets[BUCKET].keys.below(prefix).items()):
        if not listed_name.startswith(prefix):
            continue
        head, cut, _ = listed_name[len(prefix) :].partition("/")
        if delimiter and cut:
            folders.add(f"{prefix}{head}/")
        else:
            algorithm = key.checksum_algorithm
            contents.append(
                f"<Contents><Key>{quote(listed_name)}</Key><LastModified>{key.last_modified_ISO8601}</LastModified>"
                f"<ETag>{key.etag}</ETag>"
                + (f"<ChecksumAlgorithm>{algorithm}</ChecksumAlgorithm>" if algorithm else "")
                + f"<Size>{key.size}</Size><StorageClass>{key.storage_class}</StorageClass></Contents>"
            )
    if len(contents) + len(folders) > most:
        return None
    text = (
        '<?xml version="1.0" encoding="utf-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<IsTruncated>false</IsTruncated>{''.join(contents)}<Name>{BUCKET}</Name>"
        + (f"<Prefix>{quote(prefix)}</Prefix>" if prefix else "")
        + (f"<Delimiter>{delimiter}</Delimiter>" if delimiter else "")
        + f"<MaxKeys>{most}</MaxKeys>"
        + "".join(f"<CommonPrefixes><Prefix>{quote(one)}</Prefix></CommonPrefixes>" for one in sorted(folders))
        + f"<EncodingType>url</EncodingType><KeyCount>{len(contents) + len(folders)}</KeyCount></ListBucketResult>"
    )
    body = text.encode()
    told = {"Content-Type": "application/xml", "server": "amazon.com", "Content-Length": str(len(body))}
    return "200 OK", told, body


def _put(environ: Environ, headers: EnvironHeaders, name: str) -> Given | None:
    bucket = _backend().buckets[BUCKET]
    if "if-none-match" in headers and (headers["if-none-match"] != "*" or bucket.keys.get(name) is not None):
        return None
    if "x-amz-checksum-crc32" not in headers or headers.get("x-amz-sdk-checksum-algorithm") != "CRC32":
        return None
    checksum = headers["x-amz-checksum-crc32"]
    body = environ["wsgi.input"].getvalue()
    key = _backend().put_object(BUCKET, name, body, storage="STANDARD", checksum_value=checksum)
    key.set_metadata(metadata_from_headers(dict(headers)))
    key.set_acl(bucket.acl)
    key.checksum_algorithm = "CRC32"
    told = {one: text for one, text in key.response_dict.items() if one != "content-length"}
    return "200 OK", {"x-amz-checksum-crc32": checksum, **told, **_NO_BODY, "Content-Length": "0"}, b""


def _delete(environ: Environ, headers: EnvironHeaders, name: str) -> Given:
    _backend().delete_object(BUCKET, name)
    return "204 NO CONTENT", dict(_NO_BODY), b""


_NO_BODY = {"Content-Type": "text/html; charset=utf-8"}
_ANSWERED: dict[str, Callable[[Environ, EnvironHeaders, str], Given | None]] = {
    "GET": _get,
    "HEAD": _head,
    "LIST": _list,
    "PUT": _put,
    "CREATE": _put,
    "DELETE": _delete,
}


def _headers_of(key: Any) -> Headers:
    return {**key.response_dict, **key.metadata, "Accept-Ranges": "bytes"}


def _checksum_of(key: Any, headers: EnvironHeaders) -> Headers:
    if headers.get("x-amz-checksum-mode") != "ENABLED" or not key.checksum_algorithm or key.multipart:
        return {}
    return {f"x-amz-checksum-{key.checksum_algorithm.lower()}": key.checksum_value}


def _backend() -> Any:
    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
