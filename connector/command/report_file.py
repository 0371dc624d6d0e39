"""Writes the report of a table into a file of this machine."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from ...errors import InvalidOptionError
from .command_line import CommandLine
from .work_progress import WorkProgress

STDOUT = "-"


def report(line: CommandLine) -> int:
    """Write the page of a table's report, and print where it is."""
    from ...operations.report.gather import ReportTerms, gather  # noqa: PLC0415 (a command imports only what it needs)
    from ...operations.report.page import make_page  # noqa: PLC0415

    output, asked = line.output, line.asked
    options, storage = line.opened()
    settings = options.write_settings()
    terms = ReportTerms(options.upkeep(), settings.patience, settings.lookup.sizes.largest, asked.deep)
    with WorkProgress(f"report {asked.path}"):
        gathered = gather(storage, terms)
        page = make_page(gathered, line.command_of)
    if asked.output == STDOUT:
        print(page, end="", file=sys.stdout)  # noqa: T201 (the command's interface)
        return 0
    size = _write(asked.output, page)
    if output.as_json:
        output.json({"report": asked.output, "bytes": size, "problems": gathered.problems})
    else:
        output.line(f"The report is in {asked.output} ({size:,} bytes).")
        for problem in gathered.problems:
            output.note(problem)
    return 0


def _write(name: str, page: str) -> int:
    """Write a page atomically in the place of an older page, and return its size."""
    data = page.encode()
    path = Path(name)
    if path.is_dir():
        raise InvalidOptionError(f"The report cannot be written to the folder {name}.", "Give a file with --output.")
    # In the same folder, so that the last step only renames.
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise InvalidOptionError(
            f"The report cannot be written to {name}: {error.strerror}.", "Give another file with --output."
        ) from error
    return len(data)
