"""Options that belong to a read."""

from __future__ import annotations

from pydantic import BaseModel

from ..operations.settings import MIB
from .option_types import Fields, QueryType, Size, option


class ReadOptions(BaseModel):
    """What one read shows, and how."""

    columns: Fields | None = option(
        None,
        "The columns to read, in this order; all without it.",
        "columns",
        "hoodie.pyhudi.read.columns",
        otherwise="all",
    )
    query_type: QueryType = option(
        "snapshot",
        "What a read shows.",
        "hoodie.datasource.query.type",
        "hoodie.datasource.view.type",
        supported=["snapshot"],
    )
    split_size: Size = option(128 * MIB, "Bytes of files that one task reads.", "hoodie.pyhudi.read.split.size")
