from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import CorruptInstantError, UnsupportedTableError
from pyhudi.storage import process
from pyhudi.storage.local import LocalStorage
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.writers import heartbeat, owner
from pyhudi.timeline.writers.owner import Liveness, Owner
from pyhudi.timeline.writers.patience import Patience
from support.made.timelines import instants_in
from support.seams import patch_seam

T = "20261120224644250"
PENDING = Instant(T, "commit", State.INFLIGHT)
NOW = 2_000_000_000.0
ELSEWHERE = Owner("elsewhere", "boot 1", 77, "123", "nightly", "w")

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage.open(str(tmp_path))


def age(storage: LocalStorage, path: str, seconds: float) -> None:
    """Make a file ``seconds`` older than the moment at which `judged` looks."""
    moment = NOW - seconds
    os.utime(Path(storage.root, path), (moment, moment))


DEFAULT = Patience()


def judged(storage: LocalStorage, instant: Instant = PENDING, patience: Patience = DEFAULT, **said: Any) -> Liveness:
    return owner.Suspect(instants_in(storage), instant, patience, NOW, "UTC").judge(**said)


@dataclass
class SteadyClock:
    """What `time` is to the module that watches: nobody really sleeps."""

    now: float = 0.0
    asleep: Callable[[float], None] = lambda now: None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.asleep(self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SteadyClock:
    clock = SteadyClock()
    patch_seam(monkeypatch, "clock of heartbeats", clock)
    return clock


def beat(storage: LocalStorage, seconds: float) -> None:
    heartbeat.Heartbeat(storage, T).touch()
    age(storage, heartbeat.Heartbeat(storage, T).path, seconds)


def own(storage: LocalStorage, who: Owner, seconds: float) -> None:
    owner.Claim(storage, T).make(who)
    age(storage, f".hoodie/.pyhudi/{T}/owner.json", seconds)


def pend(storage: LocalStorage, requested: float, inflight: float | None) -> None:
    instants_in(storage).request(PENDING)
    age(storage, f".hoodie/timeline/{T}.commit.requested", requested)
    if inflight is not None:
        instants_in(storage).start(PENDING)
        age(storage, f".hoodie/timeline/{T}.inflight", inflight)


def test_an_instant_time_is_claimed_once(storage: LocalStorage) -> None:
    assert owner.Claim(storage, T).owner() is None
    assert owner.Claim(storage, T).make(ELSEWHERE) is True
    assert owner.Claim(storage, T).make(replace(ELSEWHERE, write_id="other")) is False
    assert owner.Claim(storage, T).owner() == ELSEWHERE
    assert storage.exists(f".hoodie/.pyhudi/{T}/owner.json")


def test_fields_that_a_later_release_added_are_passed_over(storage: LocalStorage) -> None:
    owner_fields = {
        "host": "h",
        "boot_id": "b",
        "pid": 1,
        "process_started": "",
        "application": "",
        "write_id": "w",
        "mood": 1,
    }
    storage.write(f".hoodie/.pyhudi/{T}/owner.json", json.dumps(owner_fields).encode())

    assert owner.Claim(storage, T).owner() == Owner("h", "b", 1, "", "", "w")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"host": "h", "pid": "x"}', b"\xff"])
def test_an_owner_file_that_cannot_be_parsed_is_named(storage: LocalStorage, data: bytes) -> None:
    storage.write(f".hoodie/.pyhudi/{T}/owner.json", data)

    with pytest.raises(CorruptInstantError, match=rf"{storage.path}/\.hoodie/\.pyhudi/{T}/owner\.json"):
        owner.Claim(storage, T).owner()


def test_a_write_is_sealed_once_and_for_all(storage: LocalStorage) -> None:
    assert not owner.Seal(storage, T).is_set()
    owner.Seal(storage, T).set()
    owner.Seal(storage, T).set()

    assert owner.Seal(storage, T).is_set()
    assert not owner.Seal(storage, f"{T}0").is_set()
    assert not owner.Seal(storage, T).is_given_up()
    assert storage.exists(f".hoodie/.pyhudi/sealed/{T[:10]}.v2/{T}")


def test_a_write_given_up_is_sealed_for_tasks_of_every_release(storage: LocalStorage) -> None:
    """Those of the release before hourly folders look right in the folder of seals."""
    owner.Seal(storage, T).set_for_good()

    assert owner.Seal(storage, T).is_set()
    assert owner.Seal(storage, T).is_given_up()
    assert storage.read(f".hoodie/.pyhudi/sealed/{T}") == b"given up"


def test_an_owner_of_a_newer_format_is_refused(storage: LocalStorage) -> None:
    owner.Claim(storage, T).make(ELSEWHERE)
    path = f".hoodie/.pyhudi/{T}/owner.json"
    found = json.loads(storage.read(path))
    assert found["format"] == 1
    storage.write(path, json.dumps({**found, "format": 2, "pid": "none"}).encode())

    with pytest.raises(UnsupportedTableError, match=rf"{path} in the format 2"):
        owner.Claim(storage, T).owner()


@linux
def test_this_process_is_not_gone() -> None:
    assert owner.is_gone(Owner.of_this_process("w")) is False


@linux
def test_a_killed_process_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    found = process.find_process(child.pid)
    assert found is not None
    who = replace(Owner.of_this_process("w"), pid=child.pid, process_started=found.started)
    assert owner.is_gone(who) is False

    child.kill()
    child.communicate()

    assert owner.is_gone(who) is True


@linux
def test_a_process_that_took_over_the_number_is_another_one() -> None:
    assert owner.is_gone(replace(Owner.of_this_process("w"), pid=os.getpid(), process_started="1")) is True


@linux
def test_of_another_machine_boot_or_container_nothing_is_known() -> None:
    here = replace(Owner.of_this_process("w"), pid=99_999_999)
    assert owner.is_gone(here) is True

    assert owner.is_gone(replace(here, host="elsewhere")) is None
    assert owner.is_gone(replace(here, boot_id="before the last boot")) is None


def test_without_a_machine_id_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "id of the machine", lambda: "")

    assert owner.is_gone(replace(Owner.of_this_process("w"), pid=99_999_999)) is None


@linux
def test_ours_with_its_process_gone_is_dead_whatever_its_heartbeat(storage: LocalStorage) -> None:
    own(storage, replace(Owner.of_this_process("w", "nightly"), pid=99_999_999), 5)
    beat(storage, 1)

    liveness = judged(storage)

    assert not liveness.alive
    assert (
        liveness.reason == f"its process 99999999 on this machine ({process.host_name()}, application nightly) is gone"
    )


@linux
def test_a_process_that_is_there_is_dead_when_its_heartbeat_stood_still_all_the_while(
    storage: LocalStorage, clock: SteadyClock
) -> None:
    """The machine's clock says that it is overdue; that makes whoever judges watch it, and no more."""
    own(storage, Owner.of_this_process("w"), 500)
    beat(storage, 121)

    assert not judged(storage).alive
    assert clock.now > 120


@linux
def test_a_clock_that_stepped_takes_no_living_write_for_dead(storage: LocalStorage, clock: SteadyClock) -> None:
    """An hour ahead, and the next heartbeat comes within the time that it may take."""
    own(storage, Owner.of_this_process("w"), 3700)
    beat(storage, 3650)
    clock.asleep = lambda now: beat(storage, 0) if 50 < now < 51 else None

    liveness = judged(storage)

    assert liveness.alive
    assert 50 < clock.now < 52
    assert liveness.todo.endswith(f"end it (kill {os.getpid()}), and the next write rolls its write back.")


@linux
def test_a_living_write_is_waited_for_by_nobody(storage: LocalStorage, clock: SteadyClock) -> None:
    own(storage, Owner.of_this_process("w"), 500)
    beat(storage, 119)

    assert judged(storage).alive
    assert clock.now == 0


@linux
def test_what_one_process_saw_standing_still_need_not_be_watched_again(
    storage: LocalStorage, clock: SteadyClock
) -> None:
    """The clock may even have stepped back, so that the heartbeat seems young; another heartbeat counts anew."""
    own(storage, Owner.of_this_process("w"), 500)
    beat(storage, 10)
    assert judged(storage).alive
    clock.now += 121
    assert not judged(storage, may_wait=False).alive

    beat(storage, 9)

    assert judged(storage, may_wait=False).alive


@linux
def test_who_may_not_wait_takes_another_ones_word_for_one_heartbeat(storage: LocalStorage, clock: SteadyClock) -> None:
    """A task has the plan's word, and does not wait again."""
    own(storage, Owner.of_this_process("w"), 500)
    beat(storage, 121)
    dead = judged(storage)
    owner._first_sights.clear()

    assert judged(storage, may_wait=False).alive
    assert not judged(storage, may_wait=False, known_beat=dead.beat).alive
    beat(storage, 1)
    assert judged(storage, may_wait=False, known_beat=dead.beat).alive


@linux
def test_a_heartbeat_that_goes_while_it_is_watched_is_one_of_a_write_that_ended(
    storage: LocalStorage, clock: SteadyClock
) -> None:
    own(storage, Owner.of_this_process("w"), 500)
    beat(storage, 121)
    clock.asleep = lambda now: heartbeat.Heartbeat(storage, T).delete()

    assert judged(storage).alive


@pytest.mark.parametrize(
    ("silent", "alive", "reason"),
    [
        (35, True, "last heartbeat 35 s ago, process 77 on elsewhere, application nightly"),
        (120, True, "last heartbeat 2 minutes ago, process 77 on elsewhere, application nightly"),
        (121, False, "last heartbeat 2 minutes ago, process 77 on elsewhere, application nightly"),
        (36000, False, "last heartbeat 10 hours ago, process 77 on elsewhere, application nightly"),
    ],
)
def test_ours_elsewhere_lives_by_its_heartbeat(storage: LocalStorage, silent: float, alive: bool, reason: str) -> None:
    own(storage, ELSEWHERE, 40000)
    beat(storage, silent)

    assert judged(storage) == Liveness(alive, reason)


@pytest.mark.parametrize(("seconds", "alive"), [(35, True), (121, False)])
def test_ours_before_its_first_heartbeat_counts_from_its_claim(
    storage: LocalStorage, seconds: float, alive: bool
) -> None:
    own(storage, ELSEWHERE, seconds)
    pend(storage, 4000, None)

    liveness = judged(storage)

    assert liveness.alive is alive
    assert liveness.reason.startswith("no heartbeat yet; begun ")


@pytest.mark.parametrize(("silent", "alive"), [(119, True), (121, False)])
def test_a_foreign_heartbeat_is_believed_even_by_eager_users(storage: LocalStorage, silent: float, alive: bool) -> None:
    pend(storage, 10, None)
    beat(storage, silent)

    assert judged(storage).alive is alive
    assert judged(storage, patience=Patience(eager=True)).alive is alive


def test_a_foreign_instant_without_heartbeat_is_never_dead_by_itself(storage: LocalStorage) -> None:
    """A streaming writer opens one and may keep it open for hours without a row."""
    pend(storage, 90_000, 86_400)

    liveness = judged(storage)

    said = "no heartbeat; 25 hours old; it last wrote .hoodie/timeline/20261120224644250.inflight, 24 hours ago"
    assert liveness == Liveness(True, said)
    assert "hoodie.clean.failed.writes.policy=EAGER" in liveness.todo
    assert "hoodie.pyhudi.foreign.pending.max.age.seconds" in liveness.todo


def test_its_markers_are_signs_of_life(storage: LocalStorage) -> None:
    pend(storage, 90_000, 86_400)
    marker = f".hoodie/.temp/{T}/p=1/x.parquet.marker.CREATE"
    storage.create(marker, b"")
    age(storage, marker, 300)

    liveness = judged(storage, patience=Patience(foreign_age_s=3600.0))

    said = f"no heartbeat; 25 hours old; it last wrote {marker}, 5 minutes ago; taken for dead after 60 minutes"
    assert liveness == Liveness(True, said)


def test_a_foreign_instant_without_heartbeat_is_dead_after_the_users_time(storage: LocalStorage) -> None:
    pend(storage, 90_000, 3601)

    assert judged(storage, patience=Patience(foreign_age_s=3602.0)).alive
    assert not judged(storage, patience=Patience(foreign_age_s=3600.0)).alive


def test_a_foreign_instant_without_heartbeat_is_dead_at_once_where_the_policy_says_so(storage: LocalStorage) -> None:
    pend(storage, 5, None)

    liveness = judged(storage, patience=Patience(eager=True))

    assert not liveness.alive
    assert liveness.reason.endswith("; hoodie.clean.failed.writes.policy is EAGER")


def test_a_foreign_instant_whose_files_are_gone_is_as_old_as_its_time(storage: LocalStorage) -> None:
    # 2033-05-18 03:33:20 UTC is the moment of judging.
    for time, alive in (("20330518033220000", True), ("20330518023319000", False), ("00000000000000010", True)):
        found = judged(storage, Instant(time, "commit", State.REQUESTED), patience=Patience(foreign_age_s=3600.0))
        assert found.alive is alive


def test_times_ahead_of_the_clock_count_as_now(storage: LocalStorage) -> None:
    pend(storage, -500, None)

    assert judged(storage).reason.startswith("no heartbeat; 0 s old; it last wrote ")


@pytest.mark.parametrize(("own", "judging", "alive"), [(600.0, 60.0, True), (60.0, 600.0, True), (60.0, 60.0, False)])
def test_of_the_tolerances_of_writer_and_judge_the_greater_counts(
    storage: LocalStorage, own: float, judging: float, alive: bool
) -> None:
    writer = replace(ELSEWHERE, heartbeat_interval_s=own / 2, heartbeat_tolerance_s=own)
    owner.Claim(storage, T).make(writer)
    beat(storage, 300)
    suspect = owner.Suspect(instants_in(storage), PENDING, Patience(judging / 2), NOW, "UTC")

    assert owner.Claim(storage, T).owner() == writer
    assert suspect.judge().alive is alive


@linux
@pytest.mark.parametrize("by_option", [True, False])
def test_where_processes_may_share_host_boot_and_number_heartbeats_alone_decide(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch, by_option: bool
) -> None:
    """A process that was restored from the same image has gone, or lives: its number says neither."""
    patience = replace(DEFAULT, heartbeats_alone=by_option)
    before = Owner.of_this_process("w")
    if not by_option:
        monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "trips")
    mine = Owner.of_this_process("w", patience=patience)

    assert before.boot_id
    assert mine.boot_id == ""
    # One of them is of a process that has none of these numbers, the next of a function that lacks the option.
    for found in (mine, replace(mine, pid=(1 << 22) + 1), replace(before, pid=(1 << 22) + 1)):
        owner.Claim(storage, T).make(found)
        beat = heartbeat.Heartbeat(storage, T)
        beat.touch()
        age(storage, beat.path, 1.0)
        assert judged(storage, patience=patience).alive
        age(storage, beat.path, 10_000.0)
        assert not judged(storage, patience=patience).alive
        storage.delete(owner.Claim(storage, T).path)
