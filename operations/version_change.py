"""The result of an upgrade or a downgrade of a table."""

from __future__ import annotations

from dataclasses import dataclass, field

from .words.text import html_facts


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """A property of the table that a change of its version sets or removes.

    Attributes:
        key: Its key in ``hoodie.properties``.
        before: Its value in the old version; None if it is absent.
        after: Its value in the new version; None if it is removed.
    """

    key: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        if self.after is None:
            return f"Remove {self.key}={self.before}."
        return f"Set {self.key}={self.after}{'' if self.before is None else f', which was {self.before}'}."


@dataclass(frozen=True, slots=True)
class VersionResult:
    """What an upgrade or a downgrade of a table did, or would do.

    Attributes:
        path: The table's path.
        service: ``upgrade`` or ``downgrade``.
        from_version: The version before the change.
        to_version: The version after the change; equal to ``from_version`` if nothing was to be done.
        properties: The changed properties, in the order of their keys.
        unfinished: What the change does first about each instant that is not complete, a sentence for each.
        bytes: The size of the files that the new version needs in another form.
        changed_keys: At most so many record keys show another row after the change; None if that is unknown. If log
            files are merged first, only queries of the past show the difference.
        warnings: What another engine, or a later write, does differently in the new version.
        seconds: The duration.
        dry: Whether this was a dry run.
    """

    path: str
    service: str
    from_version: int
    to_version: int
    properties: tuple[PropertyChange, ...] = ()
    unfinished: tuple[str, ...] = ()
    bytes: int = 0
    changed_keys: int | None = 0
    warnings: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)
    dry: bool = False

    def __str__(self) -> str:
        head = f"{self.service} of {self.path}"
        if not self.changed:
            return f"{head} had nothing to do: the table is of version {self.to_version}."
        verb = "would change" if self.dry else "changed"
        few = "an unknown number of" if self.changed_keys is None else f"at most {self.changed_keys:,}"
        shown = "key shows" if self.changed_keys == 1 else "keys show"
        rows = f" With it {few} {shown} another row." if self.changed_keys != 0 else ""
        return (
            f"{head} {verb} it from version {self.from_version} to {self.to_version} in {self.seconds:.1f} s: "
            f"{len(self.properties):,} properties, {self.bytes:,} bytes of files.{rows}"
        )

    def _repr_html_(self) -> str:
        return html_facts(self)

    @property
    def changed(self) -> bool:
        """Whether it changed the table, or would have in a dry run."""
        return self.from_version != self.to_version

    @property
    def steps(self) -> tuple[str, ...]:
        """What it did or would do, step by step, and then its warnings."""
        return (*self.unfinished, *map(str, self.properties), *(f"Warning: {text}" for text in self.warnings))
