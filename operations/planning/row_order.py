"""The order of the rows of a base file that one write asks for."""

from __future__ import annotations

import pyarrow as pa

from ...table.config.property_keys import SORT_BY
from ...table.config.sort_order import SortOrder
from ...table.schema.columns import RECORD_KEY
from ..sortable import check_sortable
from .request import WriteSettings
from .target import Target

# Apache Hudi orders by partition path and record key, of which within a file only the key differs.
_SORTED_BY_KEY = frozenset({"GLOBAL_SORT", "PARTITION_SORT"})
_SORT_OPTION = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"


def order_of(target: Target, settings: WriteSettings, schema: pa.Schema) -> SortOrder | None:
    """Return the order that a write asks for; None in a table with an order, which is in its properties and wins.

    Raises where rows cannot be sorted so.
    """
    operation, where = target.operation, target.table.path
    kept, asked = target.config.sort_order, settings.bulk_insert_sort_columns if operation.sorts else ()
    if kept is not None:
        # Another writer may have taken a column away since; the table keeps the order by the others.
        check_sortable(
            [name for name in kept.columns if name in schema.names or not target.exists], schema, where, SORT_BY
        )
        return None
    check_sortable(asked, schema, where, _SORT_OPTION)
    by_key = (RECORD_KEY,) if operation.sorts and settings.bulk_insert_sort_mode in _SORTED_BY_KEY else ()
    return SortOrder(asked or by_key, kept=False) if asked or by_key else None
