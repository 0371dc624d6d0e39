"""An S3 for tests: moto's, behind HTTP in this process, with a watch on every request that reaches it."""

from __future__ import annotations

import io
import logging
import threading
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

from moto.core import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import create_backend_app
from moto.s3.models import s3_backends
from moto.s3.utils import _VersionedKeyStore
from support.s3_answers import BUCKET, answer
from werkzeug.datastructures import Headers
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.test import run_wsgi_app

REGION = "us-east-1"

Environ = dict[str, Any]
Answer = Callable[..., Any]
Application = Callable[[Environ, Answer], Iterable[bytes]]

# Answers that have no body, whatever their headers say.
_BODILESS = {204, 304}

# In order of precedence: the first whose words are all in the query or the headers names the request.
_KINDS = (
    ("POST", "delete", "DELETE"),
    ("POST", "uploads", "BEGIN UPLOAD"),
    ("POST", "uploadId", "COMPLETE UPLOAD"),
    ("PUT", "partNumber", "PART"),
    ("DELETE", "uploadId", "ABORT UPLOAD"),
    ("GET", "uploads", "LIST UPLOADS"),
    ("GET", "list-type", "LIST"),
)


class _Quiet(WSGIRequestHandler):
    # Connections stay open, as those of S3 do, and an answer leaves at once, in one piece.
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def log(self, *_: object, **__: object) -> None:
        """Say nothing."""

    def handle_expect_100(self) -> bool:
        """Ask for the body."""
        going_on = super().handle_expect_100()
        self.wfile.flush()
        return going_on

    def run_wsgi(self) -> None:
        """Answer one request; werkzeug's own way closes the connection behind each answer."""
        try:
            body, status, headers = run_wsgi_app(self.server.app, self.make_environ(), buffered=True)
        except Exception:
            logging.getLogger(__name__).exception("a request failed")
            body, status, headers = (), "500 Internal Server Error", Headers()
        code, _, reason = status.partition(" ")
        self.send_response(int(code), reason)
        content = b"".join(body)
        if "Content-Length" not in headers and int(code) not in _BODILESS:
            headers["Content-Length"] = str(len(content))
        for name, text in headers:
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
            # What breaks off can only be told by the end of the connection.
            self.close_connection |= len(content) < int(headers.get("Content-Length", 0))


class _Shelves(_VersionedKeyStore):  # type: ignore[misc]
    """The objects of the bucket, those of each table apart.

    moto looks at every object of a bucket for each listing, and the tests leave tens of thousands in this one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._names: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def __setitem__(self, name: str, key: Any) -> None:
        super().__setitem__(name, key)
        self._names[_table_of(name)][name] = None

    def setlist(self, name: str, keys: Any) -> None:
        super().setlist(name, keys)
        self._names[_table_of(name)][name] = None

    def below(self, prefix: str) -> dict[str, Any]:
        """Return what may be there below a prefix."""
        names = self._names[_table_of(prefix)] if prefix.count("/") >= 2 else self
        found = {name: self.get(name) for name in list(names)}
        return {name: key for name, key in found.items() if key is not None}


def _table_of(name: str) -> str:
    return "/".join(name.split("/", 2)[:2])


class S3Server:
    """moto's S3.

    Attributes:
        requests: How many requests of each kind came in.
        seen: (kind, key, headers) of every request since `watched` began.
        moto_alone: Whether moto answers the plainest requests too, which `support.s3_answers` does in less time.
        interfere: Handles a request instead of moto's application, which is its first argument; None for nobody.
    """

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        # Of all services this one alone: to find the service of a request, moto looks through its folders each time.
        self._moto: Application = create_backend_app("s3")
        self._server = make_server("127.0.0.1", 0, self._serve, threaded=True, request_handler=_Quiet)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._lock, self._creating = threading.Lock(), threading.Lock()
        self.requests: Counter[str] = Counter()
        self.seen: list[tuple[str, str, Mapping[str, str]]] = []
        self.moto_alone = False
        self.interfere: Callable[[Application, Environ, Answer], Iterable[bytes]] | None = None

    @property
    def endpoint(self) -> str:
        """The server's URL."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def options(self) -> dict[str, str]:
        """Storage options that reach the server."""
        return {"endpoint_url": self.endpoint, "key": "key", "secret": "secret", "region": REGION}

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that lead botocore and hudi-rs to the server."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ALLOW_HTTP": "true",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "3",
        }

    def start(self) -> None:
        """Serve, with one bucket."""
        self._thread.start()
        backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        backend.create_bucket(BUCKET, REGION).keys = _Shelves()
        look = backend.list_objects

        def look_below(bucket: Any, prefix: str | None, *rest: Any, **named: Any) -> Any:
            return look(SimpleNamespace(keys=bucket.keys.below(prefix or "")), prefix, *rest, **named)

        backend.list_objects = look_below

    def stop(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @contextmanager
    def watched(self) -> Iterator[Counter[str]]:
        """Give the requests of the block by kind."""
        with self._lock:
            before, self.seen = Counter(self.requests), []
        counted: Counter[str] = Counter()
        yield counted
        with self._lock:
            counted.update(self.requests - before)

    def note(self, kind: str, key: str, headers: Mapping[str, str]) -> None:
        """Count a request."""
        with self._lock:
            self.requests[kind] += 1
            self.seen.append((kind, key, headers))

    def unfinished_uploads(self) -> list[str]:
        """Return the keys of uploads that were neither completed nor aborted."""
        return sorted(one.key_name for one in _bucket().multiparts.values())

    def _serve(self, environ: Environ, start_response: Answer) -> Iterable[bytes]:
        kind = _kind(environ)
        headers = {name[5:].replace("_", "-").lower(): text for name, text in environ.items() if name[:5] == "HTTP_"}
        self.note(kind, environ["PATH_INFO"].removeprefix(f"/{BUCKET}/"), headers)
        # Whoever answers instead of moto need not read it, and the connection goes on behind it.
        if environ.get("CONTENT_LENGTH"):
            environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        elif environ.get("wsgi.input_terminated"):
            environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read())
        application = self._answer if self.interfere is None else partial(self.interfere, self._moto)
        if kind != "CREATE":
            return application(environ, start_response)
        # moto looks whether there is such an object and then makes it; S3 does so in one step.
        with self._creating:
            return list(application(environ, start_response))

    def _answer(self, environ: Environ, start_response: Answer) -> Iterable[bytes]:
        given = None if self.moto_alone else answer(_kind(environ), environ)
        if given is None:
            return self._moto(environ, start_response)
        status, headers, body = given
        start_response(status, list(headers.items()))
        return [body]


def new_url(scheme: str = "s3") -> str:
    """Return the URL of a table that is not there yet."""
    return f"{scheme}://{BUCKET}/{uuid.uuid4().hex}/t"


def objects_below(url: str) -> dict[str, bytes]:
    """Return every object below a URL with its content, without asking the server."""
    prefix = url.partition(f"{BUCKET}/")[2].rstrip("/") + "/"
    found = sorted(_bucket().keys.below(prefix).items())
    return {name[len(prefix) :]: key.value for name, key in found if name.startswith(prefix)}


def copy_objects(source: str, target: str) -> None:
    """Copy every object below a URL to another, without asking the server."""
    for name, data in objects_below(source).items():
        put_object(f"{target}/{name}", data)


def put_object(url: str, data: bytes = b"") -> None:
    """Make an object without asking the server."""
    s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object(BUCKET, url.partition(f"{BUCKET}/")[2], data)


def _bucket() -> Any:
    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[BUCKET]


def _kind(environ: Environ) -> str:
    method, query = environ["REQUEST_METHOD"], parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    for asked, word, kind in _KINDS:
        if method == asked and word in query:
            return kind
    if method == "PUT" and "HTTP_IF_NONE_MATCH" in environ:
        return "CREATE"
    return str(method)
