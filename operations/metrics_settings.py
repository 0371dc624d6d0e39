"""Where the figures of commits go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Where the figures of commits go; nowhere by default.

    Attributes:
        file: The path of a text file; or of a folder with a slash at its end, which gets a file for each table.
        gateway: Host and port of a Prometheus gateway; empty for none.
        job: The gateway's job; empty for the table's name.
        labels: Further labels of the gateway's group.
        prefix: The beginning of all names; empty for the table's name.
    """

    file: str = ""
    gateway: str = ""
    job: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
