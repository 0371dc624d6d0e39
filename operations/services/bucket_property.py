"""The table's property with its number of buckets, which follows the rules that rescales bring and their undoing.

No reader goes by it where there are rules. Apache Hudi's writers compare it with their own option.
"""

from __future__ import annotations

from ...table.bucket_numbers import bucket_numbers
from ...table.config import BACKUP_PATH, update_config
from ...table.config.property_keys import BUCKET, BUCKET_COUNT
from ...table.table import Table
from ..transaction.commit_path import exclusive


def follow_rules(table: Table) -> str:
    """Have the property say the number of all partitions, where rules say one, and return what is to be done then.

    Jobs of Apache Hudi have to say another number where Apache Hudi knows no rules; the text is empty elsewhere.
    """
    if table.config.index_type not in {None, BUCKET}:
        return ""
    numbers = bucket_numbers(table, table.timeline())
    changed = numbers.by_rule and not numbers.differ and numbers.default != table.config.bucket_count
    changes = {BUCKET_COUNT: str(numbers.default)} if changed else {}
    # An earlier call may have changed the property and died before it was done, which each change mends.
    if changes or table.storage.exists(BACKUP_PATH):
        exclusive(table, lambda _: update_config(table.storage, changes))
    return change_of_jobs(numbers.default) if numbers.default and changed and not table.format.bucket_rules else ""


def change_of_jobs(number: int) -> str:
    """Return what is to be done where Apache Hudi's writers know no rules."""
    return f"Every job of Apache Hudi must say {BUCKET_COUNT}={number} from now on, before it writes"
