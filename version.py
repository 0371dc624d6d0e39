"""The version of pyhudi, stamped into every base file it writes."""

from __future__ import annotations

VERSION = "0.1.0"
