"""What each operation asks of a table's store, call by call, with the invented parts of names numbered."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.faults.faulty import STEPS
from support.places import HOUR, NAMED_ANYHOW, TIME
from support.seams import patch_seam, read_seam
from support.stores import merge_in_one_thread, wrap_stores

# Units of services number their markers by the invented name of their file group.
_NUMBERED = r"(?<=MARKERS)\d{4,}"
_INVENTED = re.compile(rf"(?P<number>{_NUMBERED})|(?P<name>{NAMED_ANYHOW.pattern})|(?P<time>{TIME.pattern})")


@dataclass
class Trace:
    """The calls of one table's store.

    Attributes:
        lines: A heading for each operation, and a line for each call.
    """

    lines: list[str] = field(default_factory=list)
    _numbered: dict[str, str] = field(default_factory=dict)

    def head(self, title: str) -> None:
        """Begin an operation."""
        self.lines.append(f"# {title}")

    def add(self, verb: str, *given: object, **named: object) -> None:
        """Add a call with its paths; the bytes that it writes are left out."""
        shown = [self._normal(one) for one in given if not isinstance(one, (bytes, float, int))]
        if verb == "delete":
            # Some callers hold the files of an instant in a set.
            shown.sort()
        shown += [f"{name}={self._normal(one)}" for name, one in named.items()]
        self.lines.append(" ".join([verb, *shown]))

    def text(self) -> str:
        """Return the calls, a line each; calls that repeat the one before are counted."""
        runs = ((line, len(list(run))) for line, run in itertools.groupby(self.lines))
        return "".join(f"{line} x{count}\n" if count > 1 else f"{line}\n" for line, count in runs)

    def _normal(self, given: object) -> str:
        if isinstance(given, str):
            return _INVENTED.sub(self._number, HOUR.sub("<hour>", given)) or "."
        if isinstance(given, (list, tuple, set, frozenset)):
            return ",".join(sorted(map(self._normal, given)))
        return str(given)

    def _number(self, found: re.Match[str]) -> str:
        kind = str(found.lastgroup)
        if kind == "number":
            # The files of several units are read in the order of these numbers.
            return "<number>"
        if found[0] not in self._numbered:
            count = sum(one.startswith(f"<{kind}") for one in self._numbered.values())
            self._numbered[found[0]] = f"<{kind} {count + 1}>"
        return self._numbered[found[0]]


class TracedStorage:
    """A storage that notes every call."""

    def __init__(self, inner: Any, trace: Trace) -> None:
        self._inner = inner
        self._trace = trace

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        if name not in STEPS:
            return attribute

        def call(*args: Any, **kwargs: Any) -> Any:
            # What is given may be an iterator, which is read once.
            kept = [list(one) if isinstance(one, Iterator) else one for one in args]
            self._trace.add(name, *kept, **kwargs)
            result = attribute(*kept, **kwargs)
            return TracedStaged(result, str(args[0]), self._trace) if name == "stage" else result

        return call


class TracedStaged:
    """A staged file that notes when it is published or given up."""

    def __init__(self, inner: Any, path: str, trace: Trace) -> None:
        self._inner = inner
        self._path = path
        self._trace = trace
        self.stream = inner.stream

    def publish(self) -> int:
        """Publish the file."""
        self._trace.add("publish", self._path)
        return int(self._inner.publish())

    def discard(self) -> None:
        """Give the file up."""
        self._inner.discard()


def trace_writes(patch: pytest.MonkeyPatch) -> Trace:
    """Have writes note what they ask of their store, in one order every time."""
    trace = Trace()
    merge_in_one_thread(patch)
    patch_seam(patch, "threads of store calls", 1)
    # A busy machine would have a commit look at the timeline once more.
    patch_seam(patch, "seconds after which a commit is late", 3600.0)
    wrap_stores(patch, lambda storage: TracedStorage(storage, trace))
    return trace


def begin_process(trace: Trace, title: str) -> None:
    """Begin an operation in a process that remembers nothing of the table."""
    forget_tables()
    trace.head(title)


def forget_tables() -> None:
    """Forget what this process knows of tables."""
    read_seam("written files that the process knows").clear()
    read_seam("notes of written files that the process knows").clear()
    read_seam("listings that the process knows").clear()
