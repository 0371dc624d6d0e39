"""The tests' S3 without requests: pyhudi's client of S3 asks moto's objects in this process.

A request over HTTP costs some milliseconds of signing, sending, parsing and answering, and a write on S3 makes fifty.
That road is for tests/unit/storage, and for Spark, whose processes have no other; tests/unit/storage/test_contract.py
asks both the same. Whatever is not plain goes by it still.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import formatdate
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from pyhudi.storage.s3 import STAMP, parse_time
from support.s3 import S3Server
from support.s3_answers import BUCKET
from support.seams import patch_seam, read_seam

Asked = Mapping[str, Any]
Answer = dict[str, Any]
_HEADER = f"x-amz-meta-{STAMP}"


class _Body:
    """The bytes of an answer, which a client awaits."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def read(self) -> bytes:
        return self._data

    def close(self) -> None:
        """Do nothing: no connection waits for it."""


def ask_directly(patch: pytest.MonkeyPatch, server: S3Server) -> None:
    """Have the clients of this process ask moto's objects; the server counts what they ask as it does requests."""
    by_request = read_seam("ask S3")

    async def ask(self: Any, method: str, parameters: Asked) -> Answer:
        kind, answer_of = _ANSWERS.get(method, ("", _nothing))
        given = answer_of(parameters) if self._bucket == BUCKET else None
        if given is None:
            return await by_request(self, method, parameters)
        server.note("CREATE" if "IfNoneMatch" in parameters else kind, parameters.get("Key", ""), {})
        if isinstance(given, ClientError):
            raise given
        answer = {**given, "ResponseMetadata": {"HTTPHeaders": {"date": formatdate(usegmt=True)}}}
        self._note_server_time(answer)
        return answer

    patch_seam(patch, "ask S3", ask)


def _get(asked: Asked) -> Answer | ClientError:
    key = _backend().buckets[BUCKET].keys.get(asked["Key"])
    if key is None:
        return _error("GetObject", "NoSuchKey", 404)
    data = key.value
    if "Range" not in asked:
        return {"Body": _Body(data), "ContentLength": len(data)}
    first, _, last = asked["Range"].removeprefix("bytes=").partition("-")
    start = int(first) if first else max(len(data) - int(last), 0)
    end = min(int(last) + 1, len(data)) if first else len(data)
    if start >= end:
        return _error("GetObject", "InvalidRange", 416)
    told = f"bytes {start}-{end - 1}/{len(data)}"
    return {"Body": _Body(data[start:end]), "ContentLength": end - start, "ContentRange": told}


def _head(asked: Asked) -> Answer | ClientError:
    key = _backend().buckets[BUCKET].keys.get(asked["Key"])
    if key is None:
        return _error("HeadObject", "404", 404)
    stamp = key.metadata.get(_HEADER)
    metadata = {} if stamp is None else {STAMP: stamp}
    return {"ContentLength": key.size, "LastModified": parse_time(key.last_modified_RFC1123), "Metadata": metadata}


def _put(asked: Asked) -> Answer | ClientError:
    if "IfNoneMatch" in asked and _backend().buckets[BUCKET].keys.get(asked["Key"]) is not None:
        return _error("PutObject", "PreconditionFailed", 412)
    key = _backend().put_object(BUCKET, asked["Key"], bytes(asked["Body"]), storage="STANDARD")
    key.set_metadata({f"x-amz-meta-{name}": text for name, text in asked.get("Metadata", {}).items()})
    return {"ETag": key.etag}


def _delete(asked: Asked) -> Answer:
    _backend().delete_object(BUCKET, asked["Key"])
    return {}


def _delete_many(asked: Asked) -> Answer:
    for one in asked["Delete"]["Objects"]:
        _backend().delete_object(BUCKET, one["Key"])
    return {}


def _list(asked: Asked) -> Answer | None:
    prefix, delimiter = asked["Prefix"], asked.get("Delimiter")
    contents, prefixes = [], set[str]()
    for name, key in sorted(_backend().buckets[BUCKET].keys.below(prefix).items()):
        if not name.startswith(prefix):
            continue
        head, cut, _ = name[len(prefix) :].partition("/")
        if delimiter and cut:
            prefixes.add(f"{prefix}{head}/")
        else:
            at: datetime = parse_time(key.last_modified_ISO8601)
            contents.append({"Key": name, "Size": key.size, "LastModified": at})
    if len(contents) + len(prefixes) > asked.get("MaxKeys", 1000):
        return None
    return {"Contents": contents, "CommonPrefixes": [{"Prefix": one} for one in sorted(prefixes)]}


def _date(_: Asked) -> Answer:
    return {}


def _nothing(_: Asked) -> None:
    return None


# What a client asks: the kind by which the server counts it, and its answer; None where a request has to.
_ANSWERS: dict[str, tuple[str, Callable[[Asked], Answer | ClientError | None]]] = {
    "get_object": ("GET", _get),
    "head_object": ("HEAD", _head),
    "put_object": ("PUT", _put),
    "delete_object": ("DELETE", _delete),
    "delete_objects": ("DELETE", _delete_many),
    "list_objects_v2": ("LIST", _list),
    "head_bucket": ("HEAD", _date),
}


def _error(operation: str, code: str, status: int) -> ClientError:
    answer = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {}}}
    return ClientError(answer, operation)


def _backend() -> Any:
    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
