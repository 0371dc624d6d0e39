"""Which of Apache Hudi's operations a write carries out, and whether it folds the incoming rows of one key."""

from __future__ import annotations

from ..errors import UnsupportedOptionError
from .settings import WriteRequest

UPSERT, DELETE, OVERWRITE = "UPSERT", "DELETE", "INSERT_OVERWRITE_TABLE"


def choose_operation(request: WriteRequest) -> tuple[str, bool]:
    """Return Hudi's name of the operation, and whether incoming rows of one key are folded into one.

    Raises:
        UnsupportedOptionError: The operation, or a setting of it, is not done by pyhudi.
    """
    asked = (request.operation or ("insert_overwrite_table" if request.overwrite else "upsert")).upper()
    settings = request.write
    if asked not in {UPSERT, DELETE, OVERWRITE}:
        raise UnsupportedOptionError(
            f"The operation {asked.lower()!r} (hoodie.datasource.write.operation) is not done by pyhudi yet.",
            "Use upsert, delete or insert_overwrite_table.",
        )
    if settings.bloom_filter:
        raise UnsupportedOptionError(
            "hoodie.parquet.bloom.filter.enabled=true is not done by pyhudi yet; the bucket index needs none.",
            "Leave the option out.",
        )
    if request.overwrite and asked == DELETE:
        raise UnsupportedOptionError(
            "The operation delete cannot be combined with mode overwrite, which replaces the whole table.",
            'Use mode("append") with the operation delete.',
        )
    combine = {
        UPSERT: settings.combine_before_upsert,
        DELETE: settings.combine_before_delete,
        OVERWRITE: settings.combine_before_insert,
    }[asked]
    if not combine and asked != OVERWRITE:
        raise UnsupportedOptionError(
            f"hoodie.combine.before.{asked.lower()}=false is not done by pyhudi: rows of one key are always folded.",
            "Leave the option out.",
        )
    return (OVERWRITE if request.overwrite else asked), combine
