"""A real Chromium for tests of pages: it opens a file, and answers questions about what it made of it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_COMPLAINTS = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")


def find_chromium() -> str | None:
    """Return the path of a Chromium of this machine; None without any."""
    return next((found for name in _PROGRAMS if (found := shutil.which(name))), None)


class Chromium:
    """A browser with one page, which this process drives by the two pipes of the DevTools protocol."""

    def __init__(self) -> None:
        self.complaints: list[Any] = []
        self._number = 0
        self._loaded = False
        self._session = ""
        self._unread = b""

    def __enter__(self) -> Chromium:
        program = find_chromium()
        assert program is not None
        self._profile = tempfile.mkdtemp()
        asked, self._ask = os.pipe()
        self._answers, answer = os.pipe()
        # The browser reads from 3 and writes to 4, which may be numbers of the pipes themselves.
        line = f'exec 13<&{asked} 14>&{answer}; exec "$0" "$@" 3<&13 4>&14 13<&- 14>&-'
        self._process = subprocess.Popen(
            ["bash", "-c", line, program, *FLAGS, f"--user-data-dir={self._profile}", "about:blank"],
            pass_fds=(asked, answer),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(asked)
        os.close(answer)
        (page,) = [each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page"]
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._ask)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._answers)
        shutil.rmtree(self._profile, ignore_errors=True)

    def show(self, page: Path, *, width: int, height: int, dark: bool = False) -> None:
        """Open a page in a window of a size, in a colour scheme, and wait until it is loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.complaints.clear()
        self._loaded = False
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not self._loaded:
            self._read()

    def ask(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript on the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key)

    def picture(self) -> bytes:
        """Return what the window shows, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def call(self, method: str, **given: Any) -> Any:
        """Call a method of the protocol, and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": given}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._ask, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._read()
            if reply.get("id") == self._number:
                assert "error" not in reply, reply
                return reply["result"]

    def _read(self) -> Any:
        while b"\0" not in self._unread:
            part = os.read(self._answers, 1 << 16)
            assert part, "Chromium has ended"
            self._unread += part
        text, _, self._unread = self._unread.partition(b"\0")
        message = json.loads(text)
        if message.get("method") in _COMPLAINTS:
            self.complaints.append(message["params"])
        self._loaded = self._loaded or message.get("method") == "Page.loadEventFired"
        return message
