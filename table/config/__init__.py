"""A table's configuration, and the reading, creation and change of the file ``hoodie.properties``."""

from __future__ import annotations

from .properties_file import (
    BACKUP_PATH,
    PROPERTIES_PATH,
    StampedConfig,
    create_config,
    find_broken_change,
    has_config,
    is_replaced,
    load_config,
    load_config_below,
    load_stamped,
    read_properties,
    recover_config,
    replace_config,
    stored_config,
    update_config,
)
from .support import check_format, check_mergeable, check_merging, check_supported, refuse_newer_format
from .table_config import TableConfig

__all__ = [
    "BACKUP_PATH",
    "PROPERTIES_PATH",
    "StampedConfig",
    "TableConfig",
    "check_format",
    "check_mergeable",
    "check_merging",
    "check_supported",
    "create_config",
    "find_broken_change",
    "has_config",
    "is_replaced",
    "load_config",
    "load_config_below",
    "load_stamped",
    "read_properties",
    "recover_config",
    "refuse_newer_format",
    "replace_config",
    "stored_config",
    "update_config",
]
