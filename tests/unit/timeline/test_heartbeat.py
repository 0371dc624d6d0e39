from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

import pytest
from pyhudi.errors import StorageError
from pyhudi.storage.local import LocalStorage
from pyhudi.timeline.writers import heartbeat
from support.threads import HANGS_S

T = "20261120224644250"


class Touched(LocalStorage):
    """Counts touches, fails the first ones on demand and lets a test wait for the next ones."""

    __slots__ = ("failures", "reached", "touches", "wanted")

    def expect(self, touches: int, failures: int = 0) -> Touched:
        for name, value in {
            "failures": failures,
            "reached": threading.Event(),
            "touches": 0,
            "wanted": touches,
        }.items():
            object.__setattr__(self, name, value)
        return self

    def write(self, path: str, data: bytes, *, durable: bool = True) -> None:
        object.__setattr__(self, "touches", self.touches + 1)
        if self.touches >= self.wanted:
            self.reached.set()
        if self.touches <= self.failures:
            raise StorageError("The store could not write.", "Try again.")
        LocalStorage.write(self, path, data, durable=durable)


def open_touched(folder: Path, touches: int, failures: int = 0) -> Touched:
    return Touched(str(folder), str(folder)).expect(touches, failures)


def test_a_heartbeat_is_an_empty_file_where_apache_hudi_looks_for_it(tmp_path: Path) -> None:
    storage = LocalStorage.open(str(tmp_path))
    heartbeat.Heartbeat(storage, T).touch()

    assert (tmp_path / ".hoodie" / ".heartbeat" / T).read_bytes() == b""


def test_its_age_counts_from_its_modification_time(tmp_path: Path) -> None:
    storage = LocalStorage.open(str(tmp_path))
    assert heartbeat.Heartbeat(storage, T).age() is None

    heartbeat.Heartbeat(storage, T).touch()
    file = tmp_path / ".hoodie" / ".heartbeat" / T
    os.utime(file, (storage.now() - 100, storage.now() - 100))
    old = heartbeat.Heartbeat(storage, T).age()
    heartbeat.Heartbeat(storage, T).touch()
    young = heartbeat.Heartbeat(storage, T).age()

    assert old is not None
    assert young is not None
    assert old >= 100 > young


def test_a_clock_that_lags_gives_no_negative_age(tmp_path: Path) -> None:
    storage = LocalStorage.open(str(tmp_path))
    heartbeat.Heartbeat(storage, T).touch()
    later = storage.now() + 1000
    os.utime(tmp_path / ".hoodie" / ".heartbeat" / T, (later, later))

    assert heartbeat.Heartbeat(storage, T).age() == 0.0


def test_a_deleted_heartbeat_is_gone(tmp_path: Path) -> None:
    storage = LocalStorage.open(str(tmp_path))
    heartbeat.Heartbeat(storage, T).touch()
    heartbeat.Heartbeat(storage, T).delete()
    heartbeat.Heartbeat(storage, T).delete()

    assert heartbeat.Heartbeat(storage, T).age() is None


def test_the_thread_touches_at_once_and_goes_on(tmp_path: Path) -> None:
    storage = open_touched(tmp_path, touches=4)
    with heartbeat.HeartbeatThread(storage, T, interval_s=0.01):
        assert heartbeat.Heartbeat(storage, T).age() is not None
        assert storage.reached.wait(HANGS_S)


def test_the_thread_ends_with_the_block_and_brings_nothing_back(tmp_path: Path) -> None:
    storage = open_touched(tmp_path, touches=3)
    with heartbeat.HeartbeatThread(storage, T, interval_s=0.001):
        assert storage.reached.wait(HANGS_S)
    heartbeat.Heartbeat(storage, T).delete()

    assert not [thread for thread in threading.enumerate() if thread.name.endswith(T)]
    assert heartbeat.Heartbeat(storage, T).age() is None


def test_a_long_interval_does_not_hold_up_the_end(tmp_path: Path) -> None:
    storage = open_touched(tmp_path, touches=1)
    with heartbeat.HeartbeatThread(storage, T, interval_s=3600.0):
        pass

    assert not [thread for thread in threading.enumerate() if thread.name.endswith(T)]


def test_a_failing_store_is_logged_and_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    storage = open_touched(tmp_path, touches=4, failures=2)
    with caplog.at_level(logging.WARNING, "pyhudi"), heartbeat.HeartbeatThread(storage, T, interval_s=0.01):
        assert storage.reached.wait(HANGS_S)

    assert len([message for message in caplog.messages if T in message]) == 2
    assert heartbeat.Heartbeat(storage, T).age() is not None


def test_an_error_of_the_block_passes_through(tmp_path: Path) -> None:
    storage = open_touched(tmp_path, touches=1)
    with pytest.raises(KeyError), heartbeat.HeartbeatThread(storage, T):
        raise KeyError("x")
