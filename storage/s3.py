"""Amazon S3 and compatible stores, through s3fs: the client of `ObjectStorage`.

s3fs provides the connection: credentials, endpoints, regions, and retries with growing pauses after 503 or SlowDown, by
botocore's configuration and environment (``AWS_MAX_ATTEMPTS``, ``AWS_RETRY_MODE``). The client does not use s3fs's file
system, which caches listings and takes absent buckets for absent files.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from fsspec.asyn import sync

from ..errors import CorruptFileError, StorageError
from .bounds import check_size
from .objects import Listing, Stat, UnclearAnswer
from .s3_options import client_options
from .secrets import hide, secrets_of, tells

T = TypeVar("T")

logger = logging.getLogger("pyhudi")

STAMP = "pyhudi-stamp"

_RANGE = 8 << 20
_PARTS_AT_ONCE = 4
_MOST_DELETED_AT_ONCE = 1000
_ATTEMPTS = 5


def connect(bucket: str, options: Mapping[str, str]) -> S3Client:
    """Return a client of a bucket, without a request yet.

    Raises InvalidOptionError for an unknown option or a bad value, and StorageError if s3fs is not installed.
    """
    try:
        from aiobotocore.session import AioSession  # noqa: PLC0415 (as s3fs, which needs it)
        from s3fs import S3FileSystem  # noqa: PLC0415 (an extra, and slow to import)
    except ImportError as error:
        raise StorageError(
            f"Tables on S3 need the package s3fs, which cannot be imported ({error}).",
            "Install pyhudi[s3] on the driver and on all executors.",
        ) from error
    arguments = client_options(options)
    session = AioSession(profile=arguments.pop("profile", None))
    # For each object of a listing, botocore's own parser of times is slow.
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=parse_time)
    return S3Client(bucket, S3FileSystem(skip_instance_cache=True, session=session, **arguments), secrets_of(options))


def parse_time(value: Any) -> datetime:
    """Return a time in an answer; a listing has one for each object.

    botocore's own parser takes any spelling, and some 60 µs, so it gets only what the two usual spellings do not fit.
    """
    try:
        if value.endswith("Z"):
            return datetime.fromisoformat(value[:-1] + "+00:00")
        if value.endswith("GMT"):
            return parsedate_to_datetime(value)
    except (AttributeError, TypeError, ValueError):
        pass
    from botocore.parsers import DEFAULT_TIMESTAMP_PARSER  # noqa: PLC0415 (as s3fs, which needs it)

    return DEFAULT_TIMESTAMP_PARSER(value)  # type: ignore[no-any-return]


class S3Client:
    """One bucket, through an s3fs file system of this process; several threads may use it.

    ``secrets`` are the texts that errors may not quote.
    """

    def __init__(self, bucket: str, files: Any, secrets: tuple[str, ...] = ()) -> None:
        self._bucket = bucket
        self.secrets = secrets
        self._files = files
        self._server_moment: tuple[float, float] | None = None
        self._refuses_to_replace = False

    def get(self, key: str, most: int) -> bytes:
        with self.own_errors():
            return self._result_of(self._download(key, {}, most))[0]

    def get_tail(self, key: str, length: int) -> tuple[bytes, int]:
        """Return an object's last ``length`` bytes, or all if it is shorter, and the size of the whole object."""
        try:
            with self.own_errors():
                data, answer = self._result_of(self._download(key, {"Range": f"bytes=-{length}"}))
        except _EmptyObject:
            # S3 refuses any range of an object without bytes.
            return b"", 0
        # An answer without a range has the whole object.
        return data, int(answer.get("ContentRange", f"/{len(data)}").rpartition("/")[2])

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return an object's bytes from ``start`` up to ``end``; a large range takes several requests at once."""

        async def fetch() -> bytes:
            ranges = [(at, min(end, at + _RANGE)) for at in range(start, end, _RANGE)]
            downloads = (self._download(key, {"Range": f"bytes={at}-{to - 1}"}) for at, to in ranges)
            return b"".join([data for data, _ in await asyncio.gather(*downloads)])

        with self.own_errors():
            return self._result_of(fetch())

    def stat(self, key: str) -> Stat | None:
        """Return an object's size, modification time and stamp; None if it is absent.

        The stamp, of `put_if_absent` or of an upload, tells which call made the object; other objects have none ("").
        """
        try:
            answer = self._answer_to("head_object", Key=key)
        except FileNotFoundError:
            return None
        stamp = answer.get("Metadata", {}).get(STAMP, "")
        return Stat(key, answer["ContentLength"], answer["LastModified"].timestamp(), stamp)

    def put(self, key: str, data: bytes) -> None:
        self._answer_to("put_object", Key=key, Body=data)

    def put_if_absent(self, key: str, data: bytes, stamp: str) -> bool:
        """Put an object by a condition that S3 has known since 2024.

        Some compatible stores ignore conditions that they do not know: every writer would believe to be first. So a
        process repeats the request for the first object that it made, and the store has to refuse it. Raises
        StorageError if the store replaces the object, and UnclearAnswer if the result is not known.
        """
        was_created = self._put_if_absent(key, data, stamp)
        if was_created and not self._refuses_to_replace:
            # Repeat it twice: the first repetition succeeds, too, if another process deleted the object meanwhile.
            if self._put_if_absent(key, data, stamp) and self._put_if_absent(key, data, stamp):
                raise StorageError(
                    f"The store of the bucket {self._bucket} replaced an object in spite of the condition "
                    "If-None-Match: *, so that two writers would both believe to have created it.",
                    "Use a store, or a version of it, with conditional writes; and botocore 1.35 or newer.",
                )
            self._refuses_to_replace = True
        return was_created

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects, a thousand a request."""
        if len(keys) == 1:
            self._answer_to("delete_object", Key=keys[0])
            return
        for start in range(0, len(keys), _MOST_DELETED_AT_ONCE):
            objects = [{"Key": key} for key in keys[start : start + _MOST_DELETED_AT_ONCE]]
            # Quiet answers name the objects that were not deleted, and no others.
            failures = self._answer_to("delete_objects", Delete={"Objects": objects, "Quiet": True}).get("Errors")
            if failures:
                first = failures[0]
                raise OSError(f"{first.get('Key')} was not deleted: {first.get('Message')} ({first.get('Code')})")

    def list(self, prefix: str, *, delimited: bool, most: int | None = None) -> Listing:
        """Return what begins with a prefix, from all pages of the answer; with ``most`` from the first page alone.

        Nothing beyond the next "/" if the listing is ``delimited``.
        """
        objects: _Stats = []
        prefixes: _Keys = []
        parameters: dict[str, Any] = {"Prefix": prefix}
        parameters |= {"Delimiter": "/"} if delimited else {}
        parameters |= {} if most is None else {"MaxKeys": most}
        while True:
            answer = self._answer_to("list_objects_v2", **parameters)
            for entry in answer.get("Contents", ()):
                objects.append(Stat(entry["Key"], entry["Size"], entry["LastModified"].timestamp()))
            prefixes += [entry["Prefix"] for entry in answer.get("CommonPrefixes", ())]
            if not answer.get("IsTruncated") or most is not None:
                return Listing(objects, prefixes)
            parameters["ContinuationToken"] = answer["NextContinuationToken"]

    def upload(self, key: str, stamp: str) -> _Upload:
        return _Upload(self, key, stamp)

    def abort_uploads(self, prefix: str, before: float) -> None:
        """Give up the oldest thousand uploads of keys with a prefix that began before a moment in epoch seconds."""
        try:
            uploads = self._answer_to("list_multipart_uploads", Prefix=prefix).get("Uploads", ())
            for entry in uploads:
                if entry["Initiated"].timestamp() < before:
                    self._answer_to("abort_multipart_upload", Key=entry["Key"], UploadId=entry["UploadId"])
        except (PermissionError, FileNotFoundError) as error:
            # A writer may lack the permission to list uploads; a rule of the bucket can give them up, too.
            logger.debug("unfinished uploads below %s/%s were not looked for: %s", self._bucket, prefix, error)

    def now(self) -> float:
        """Return the date of the store's last answer plus the time since then."""
        if self._server_moment is None:
            self._answer_to("head_bucket")
        if self._server_moment is None:
            raise OSError("its answers bear no date")
        server_s, here = self._server_moment
        return server_s + time.monotonic() - here

    def _put_if_absent(self, key: str, data: bytes, stamp: str) -> bool:
        """Put an object by one conditional request; False if the key has an object.

        A conflict with another request is tried again.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._answer_to("put_object", Key=key, Body=data, Metadata={STAMP: stamp}, IfNoneMatch="*")
                return True
            except _Exists:
                return False
            except _Conflict:
                # Another request for the same key was under way; the store expects a repetition.
                if attempt == _ATTEMPTS:
                    raise
                time.sleep(random.uniform(0, 0.1 * 2**attempt))  # noqa: S311 (spreads clients, keeps no secret)
        raise AssertionError

    def _answer_to(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a request, wait for it, and return S3's answer; ``method`` and ``parameters`` are botocore's."""
        with self.own_errors():
            return self._result_of(self.ask(method, parameters))

    @contextmanager
    def own_errors(self) -> Iterator[None]:
        """Raise the OSError that an error of s3fs means, with that error as its cause unless it quotes a secret."""
        try:
            yield
        except CorruptFileError:
            # `check_size` raises it for the user.
            raise
        except Exception as error:
            meaning = _os_error_of(error)
            if tells(error, self.secrets):
                # A traceback would show the cause.
                raise type(meaning)(hide(str(meaning), self.secrets)) from None
            raise meaning from error

    def _result_of(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the event loop of s3fs, and return its result."""

        async def run() -> T:
            return await work

        result: T = sync(self._files.loop, run)
        return result

    def begin(self, method: str, parameters: Mapping[str, Any]) -> Future[dict[str, Any]]:
        """Send a request, and return a future that gets S3's answer."""
        return asyncio.run_coroutine_threadsafe(self.ask(method, parameters), self._files.loop)

    async def ask(self, method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return its answer; remember the answer's date."""
        try:
            answer: dict[str, Any] = await self._files._call_s3(method, Bucket=self._bucket, **parameters)
        except Exception as error:
            self._note_server_time(_answer_of(error) or {})
            raise
        self._note_server_time(answer)
        return answer

    async def _download(
        self, key: str, parameters: Mapping[str, Any], most: int | None = None
    ) -> tuple[bytes, dict[str, Any]]:
        """Return the bytes of an object, or of the range that the parameters name, and the answer.

        A body that breaks off is fetched again; CorruptFileError if the object has more than ``most`` bytes.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            answer = await self.ask("get_object", {"Key": key, **parameters})
            try:
                if most is not None:
                    check_size(f"{self._bucket}/{key}", int(answer["ContentLength"]), most)
                return await answer["Body"].read(), answer
            except CorruptFileError:
                raise
            except Exception:
                # The connection broke in the middle of the body; no client repeats that by itself.
                if attempt == _ATTEMPTS:
                    raise
                await asyncio.sleep(random.uniform(0, 0.1 * 2**attempt))  # noqa: S311
            finally:
                answer["Body"].close()
        raise AssertionError

    def _note_server_time(self, answer: Mapping[str, Any]) -> None:
        """Remember the date of an answer with this machine's clock at that moment.

        An answer without a date changes nothing.
        """
        date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if date:
            self._server_moment = parsedate_to_datetime(date).timestamp(), time.monotonic()


_Stats = list[Stat]
_Keys = list[str]


class _Upload:
    """A multipart upload that sends some parts at once."""

    def __init__(self, client: S3Client, key: str, stamp: str) -> None:
        self._client = client
        self._stamp = stamp
        answer = client._answer_to("create_multipart_upload", Key=key, Metadata={STAMP: stamp})
        self._names = {"Key": key, "UploadId": answer["UploadId"]}
        self._under_way: deque[Future[dict[str, Any]]] = deque()
        self._tags: _Keys = []
        self._begun = 0

    def add(self, data: bytes) -> None:
        """Send the next part; wait while too many parts are under way."""
        while len(self._under_way) >= _PARTS_AT_ONCE:
            self._wait_for_part()
        self._begun += 1
        self._under_way.append(
            self._client.begin("upload_part", {**self._names, "PartNumber": self._begun, "Body": data})
        )

    def complete(self) -> None:
        """Make the object visible; if the answer is lost, the object's stamp decides."""
        while self._under_way:
            self._wait_for_part()
        parts = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(self._tags, 1)]
        try:
            self._client._answer_to("complete_multipart_upload", **self._names, MultipartUpload={"Parts": parts})
        except (UnclearAnswer, FileNotFoundError):
            # A repetition after a success finds no such upload any more.
            stat = self._client.stat(self._names["Key"])
            if stat is None or stat.stamp != self._stamp:
                raise

    def abort(self) -> None:
        """Give the parts up, once all have arrived: a later part would stay."""
        for upload in self._under_way:
            # Waits for the part; whether it failed does not matter any more.
            upload.exception()
        self._client._answer_to("abort_multipart_upload", **self._names)

    def _wait_for_part(self) -> None:
        """Wait for the oldest part under way, and add its tag: tags are in the order of parts. Raises if it failed."""
        with self._client.own_errors():
            self._tags.append(self._under_way.popleft().result()["ETag"])


class _Exists(OSError):  # noqa: N818
    """There is an object of that key."""


class _Conflict(UnclearAnswer):
    """Another request for the same key was under way."""


class _EmptyObject(OSError):  # noqa: N818
    """A request for a range of an object without bytes."""


def _answer_of(error: BaseException) -> dict[str, Any] | None:
    """Return S3's answer from the botocore error that s3fs translated; None if there was no answer."""
    for raised in (error, error.__cause__):
        answer = getattr(raised, "response", None)
        if isinstance(answer, dict):
            return answer
    return None


def _os_error_of(error: Exception) -> OSError:
    """Return the OSError that an error of s3fs means; UnclearAnswer if the request may have succeeded."""
    answer = _answer_of(error)
    if answer is None:
        return UnclearAnswer(f"{type(error).__name__}: {error}")
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    code = str(answer.get("Error", {}).get("Code", status))
    text = f"{answer.get('Error', {}).get('Message', '')} ({code})"
    if code in {"NoSuchKey", "NoSuchUpload", "404"}:
        return FileNotFoundError(text)
    if code in {"InvalidRange", "416"}:
        return _EmptyObject(text)
    if status == 412:
        # The condition of `_put_if_absent` does not hold.
        return _Exists(text)
    if status == 409:
        return _Conflict(text)
    if status == 403:
        return PermissionError(text)
    return UnclearAnswer(text) if status >= 500 or status in {408, 429} else OSError(text)
