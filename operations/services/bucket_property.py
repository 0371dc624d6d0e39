"""Keeps the table's property with its number of buckets equal to the rules of bucket numbers.

A rule is a file with the numbers of buckets of partitions: a rescale makes it, and the undo of the rescale deletes it.
If there are rules, no reader uses the property. Apache Hudi's writers compare the property with their own option.
"""

from __future__ import annotations

from ...table.buckets.numbers import bucket_numbers
from ...table.config import BACKUP_PATH, update_config
from ...table.config.property_keys import BUCKET, BUCKET_COUNT
from ...table.table import Table
from ..transaction.commit_path import exclusive


def match_property_to_rules(table: Table) -> str:
    """Set the property to the number of buckets of all partitions, if the rules give them one number.

    Return what the user has to do then: jobs of Apache Hudi need another option in table versions in which Apache
    Hudi knows no rules. The text is empty if there is nothing to do.
    """
    if table.config.index_type not in {None, BUCKET}:
        return ""
    numbers = bucket_numbers(table, table.timeline())
    changed = numbers.by_rule and not numbers.differ and numbers.default != table.config.bucket_count
    changes = {BUCKET_COUNT: str(numbers.default)} if changed else {}
    # An earlier call may have died while it changed the property. Each change of properties completes that first.
    if changes or table.storage.exists(BACKUP_PATH):
        exclusive(table, lambda _: update_config(table.storage, changes))
    return change_of_jobs(numbers.default) if numbers.default and changed and not table.format.bucket_rules else ""


def change_of_jobs(number: int) -> str:
    """Return what the user has to do in table versions in which Apache Hudi's writers know no rules."""
    return f"Every job of Apache Hudi must say {BUCKET_COUNT}={number} from now on, before it writes"
