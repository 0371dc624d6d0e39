"""What `validate` says of a table, for tests: whether it is healthy, and which sicknesses it has."""

from __future__ import annotations

from typing import Any

from pyhudi.operations.inspect.validate import validate
from pyhudi.storage import open_storage
from support.places import Place


def findings(path: Place, *, deep: bool = True, stale_s: float = 3600.0) -> list[dict[str, Any]]:
    """Return what is wrong with a table, errors first."""
    return validate(open_storage(str(path)), deep=deep, stale_s=stale_s).to_pylist()


def errors(path: Place, *, deep: bool = True) -> list[dict[str, Any]]:
    """Return what is so wrong with a table that rows are in danger, or somebody fails."""
    return [one for one in findings(path, deep=deep) if one["severity"] == "error"]


def of_metadata(path: Place, *, deep: bool = True) -> list[dict[str, Any]]:
    """Return what is wrong with the metadata table of a table, or could not be held against it."""
    return [
        one
        for one in findings(path, deep=deep)
        if one["code"].startswith("METADATA_") or (one["code"] == "NOT_CHECKED" and "metadata table" in one["what"])
    ]


def codes(path: Place, *, deep: bool = True, stale_s: float = 0.0) -> set[str]:
    """Return the codes of what is wrong with a table, however young it is."""
    return {one["code"] for one in findings(path, deep=deep, stale_s=stale_s)}
