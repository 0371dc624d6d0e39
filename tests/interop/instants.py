"""What lies in a table's timeline folder, read without any of the libraries under test."""

from __future__ import annotations

from pathlib import Path

from interop.scenarios import Model, Row


def completed(table: Path, action: str = "commit") -> list[str]:
    """Return the requested times of the completed instants, in the order of their completion."""
    names = [path.stem for path in _timeline(table).glob(f"[0-9]*_[0-9]*.{action}")]
    return [name.split("_")[0] for name in sorted(names, key=lambda name: name.split("_")[1])]


def pending(table: Path) -> set[str]:
    """Return the requested times of the instants that have not completed."""
    stems = {path.name.split(".")[0] for path in _timeline(table).glob("[0-9]*.*")}
    return {stem for stem in stems if "_" not in stem} - {stem.split("_")[0] for stem in stems if "_" in stem}


def properties(table: Path) -> dict[str, str]:
    """Return hoodie.properties; good for values without escapes."""
    lines = (table / ".hoodie" / "hoodie.properties").read_text(encoding="latin-1").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def upserted(table: Path, model: Model, rows: list[Row]) -> None:
    """Tell the model of an upsert that has just been committed."""
    model.upsert(rows, completed(table)[-1])


def _timeline(table: Path) -> Path:
    return table / ".hoodie" / "timeline"
