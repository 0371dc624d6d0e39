"""The types of options, and the helpers that declare an option."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from ..errors import UnsupportedTableError
from ..reader.path_glob import compile_glob
from ..reader.query import LATEST, is_beginning
from ..table.config.key_types import KeyGeneratorType, split_partition_field
from ..table.config.payloads import Payload
from ..table.config.property_keys import INDEXES_NOT_DONE
from ..timeline.clock import query_time

Settings = TypeVar("Settings")

_SINCE = "0.1.0"
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d+)\s*([bkmgt]?)(?:i?b)?", re.IGNORECASE)

_TYPES = {"COW": "COPY_ON_WRITE", "MOR": "MERGE_ON_READ"}


def _split(value: object) -> object:
    """Return the parts of a text with commas; other values stay."""
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _parse_size(value: object) -> object:
    """Return the bytes of a text such as ``16m``; other values stay."""
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise ValueError("a size is a number of bytes, or a number with one of the units k, m, g, t")
    return int(match[1]) * _UNITS[match[2].lower()]


def _upper(value: object) -> object:
    return value.strip().upper() if isinstance(value, str) else value


def _table_type(value: object) -> object:
    """Accept Hudi's short names of its SQL, ``cow`` and ``mor``."""
    name = _upper(value)
    return _TYPES.get(name.replace("-", "_"), name) if isinstance(name, str) else name


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _parse_payload(value: object) -> object:
    """Return the name of a payload by its class or name, CUSTOM for an unknown class; other values stay."""
    if not isinstance(value, str):
        return value
    payload = Payload.find(value.strip())
    return "CUSTOM" if payload is None else payload.name


def _parse_generator(value: object) -> object:
    """Return the key generator of a class or type; other values stay."""
    if not isinstance(value, str):
        return value
    try:
        return KeyGeneratorType.parse(value)
    except UnsupportedTableError as error:
        raise ValueError("it is no key generator that pyhudi knows") from error


def _split_partition_fields(value: object) -> object:
    """Return partition columns, each with its type or none of them; other values stay."""
    fields = _split(value)
    if not isinstance(fields, tuple):
        return value
    parts = [split_partition_field(field) for field in fields]
    if len({kind is None for _, kind in parts}) > 1:
        raise ValueError("either all partition columns have a type or none has")
    return tuple(name if kind is None else f"{name}:{kind.value}" for name, kind in parts)


def _check_time(value: str) -> str:
    """Return a time as it is; ValueError or InvalidOptionError if it is none."""
    # Only an epoch means different times in different zones, and it is a time in all of them.
    query_time(value, "UTC")
    return value


def _check_begin(value: str) -> str:
    """Return a time, or the word or zeros for the table's beginning, as it is; raises as `_check_time`."""
    return value if is_beginning(value) else _check_time(value)


def _check_start(value: str) -> str:
    """Return what `_check_begin` accepts, or the word for the newest commit, as it is."""
    return value if value.lower() == LATEST else _check_begin(value)


def _check_glob(value: str) -> str:
    """Return a pattern of paths as it is; raises as `compile_glob` if it is none."""
    compile_glob(value)
    return value


def _check_index(value: str) -> str:
    """Return the name of an index as it is; ValueError if neither Hudi nor a package has it."""
    from ..index.registry import is_offered  # noqa: PLC0415 (a command that names no index loads none)

    if value not in INDEXES_NOT_DONE and not is_offered(value):
        raise ValueError("neither Apache Hudi nor an installed package has such an index")
    return value


def _simple_name(value: object) -> object:
    """Return the name of a Java class without its package."""
    return value.strip().rpartition(".")[2] if isinstance(value, str) else value


def _check_pattern(value: str) -> str:
    """Return a regular expression as it is; ValueError if it is none."""
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"it is no regular expression ({error})") from error
    return value


Fields = Annotated[tuple[str, ...], BeforeValidator(_split)]
Patterns = Annotated[tuple[str, ...], BeforeValidator(_split)]
PartitionFields = Annotated[tuple[str, ...], BeforeValidator(_split_partition_fields)]
Size = Annotated[int, BeforeValidator(_parse_size), Field(gt=0)]
SizeOrNone = Annotated[int, BeforeValidator(_parse_size), Field(ge=0)]
Share = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(gt=0)]
# The bucket is the first eight digits of a file id.
Buckets = Annotated[int, Field(gt=0, le=10**8)]

Generator = Annotated[KeyGeneratorType, BeforeValidator(_parse_generator)]
TimestampType = Annotated[
    Literal["UNIX_TIMESTAMP", "DATE_STRING", "MIXED", "EPOCHMILLISECONDS", "EPOCHMICROSECONDS", "SCALAR"],
    BeforeValidator(_upper),
]
TimeUnit = Annotated[
    Literal["NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"],
    BeforeValidator(_upper),
]
TableType = Annotated[Literal["COPY_ON_WRITE", "MERGE_ON_READ"], BeforeValidator(_table_type)]
Operation = Annotated[
    Literal[
        "upsert",
        "insert",
        "bulk_insert",
        "delete",
        "insert_overwrite",
        "insert_overwrite_table",
        "delete_partition",
        "upsert_prepped",
        "insert_prepped",
        "bulk_insert_prepped",
        "delete_prepped",
        "bootstrap",
        "bucket_rescale",
        "cluster",
        "compact",
        "log_compact",
        "index",
        "alter_schema",
    ],
    BeforeValidator(_lower),
]
DupPolicy = Annotated[Literal["none", "drop", "fail"], BeforeValidator(_lower)]
OverwriteMode = Annotated[Literal["dynamic", "static"], BeforeValidator(_lower)]
LocalWrites = Annotated[Literal["auto", "never"], BeforeValidator(_lower)]
Placing = Annotated[Literal["auto", "always", "never"], BeforeValidator(_lower)]
LogBlocks = Annotated[Literal["parquet", "avro", "hfile"], BeforeValidator(_lower)]
LogLevel = Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)]
SortMode = Annotated[
    Literal[
        "NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"
    ],
    BeforeValidator(_upper),
]
IndexType = Annotated[str, BeforeValidator(_upper), AfterValidator(_check_index)]
FilterType = Annotated[Literal["DYNAMIC_V0", "SIMPLE"], BeforeValidator(_upper)]
BucketEngine = Annotated[Literal["SIMPLE", "CONSISTENT_HASHING"], BeforeValidator(_upper)]
MergeMode = Annotated[Literal["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING", "CUSTOM"], BeforeValidator(_upper)]
PartialUpdateMode = Annotated[
    Literal["NONE", "IGNORE_DEFAULTS", "FILL_UNAVAILABLE", "KEEP_VALUES"], BeforeValidator(_upper)
]
PayloadName = Annotated[str, BeforeValidator(_parse_payload)]
SortCurve = Annotated[Literal["linear", "zorder", "hilbert"], BeforeValidator(_lower)]
Isolation = Annotated[Literal["serializable", "snapshot"], BeforeValidator(_lower)]
Timezone = Annotated[Literal["UTC", "LOCAL"], BeforeValidator(_upper)]
CleanPolicy = Annotated[
    Literal["KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS"], BeforeValidator(_upper)
]
CleanTrigger = Annotated[Literal["NUM_COMMITS"], BeforeValidator(_upper)]
CompactionTrigger = Annotated[
    Literal["NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_AND_TIME", "NUM_OR_TIME"],
    BeforeValidator(_upper),
]
CompactionStrategy = Annotated[
    Literal[
        "LogFileSizeBasedCompactionStrategy",
        "LogFileNumBasedCompactionStrategy",
        "BoundedIOCompactionStrategy",
        "UnBoundedCompactionStrategy",
        "DayBasedCompactionStrategy",
        "PartitionRegexBasedCompactionStrategy",
        "BoundedPartitionAwareCompactionStrategy",
        "UnBoundedPartitionAwareCompactionStrategy",
        "CompositeCompactionStrategy",
    ],
    BeforeValidator(_simple_name),
]
Threshold = Annotated[int, Field(ge=0)]
Pattern = Annotated[str, AfterValidator(_check_pattern)]
ConcurrencyMode = Annotated[
    Literal["OPTIMISTIC_CONCURRENCY_CONTROL", "SINGLE_WRITER", "NON_BLOCKING_CONCURRENCY_CONTROL"],
    BeforeValidator(_upper),
]
FailedWrites = Annotated[Literal["EAGER", "LAZY", "NEVER"], BeforeValidator(_upper)]
QueryType = Annotated[Literal["snapshot", "read_optimized", "incremental"], BeforeValidator(_lower)]
PathGlob = Annotated[str, AfterValidator(_check_glob)]
QueryTime = Annotated[str, AfterValidator(_check_time)]
QueryBegin = Annotated[str, AfterValidator(_check_begin)]
StreamStart = Annotated[str, AfterValidator(_check_start)]
Codec = Annotated[Literal["zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"], BeforeValidator(_lower)]


class OptionPart(BaseModel):
    """A part of the options. Only `HudiOptions` is ever filled, so the parts need no validators of their own."""

    model_config = ConfigDict(defer_build=True)


@dataclass(frozen=True, slots=True)
class SettingsField:
    """The field of a settings value that an option sets; ``convert`` converts the option's value, if given.

    ``key`` is the option's key, if the settings name it.
    """

    settings_class: type
    name: str
    default: Any
    key: str = ""
    convert: Callable[[Any], Any] | None = None

    def of(self, convert: Callable[[Any], Any], **default: Any) -> SettingsField:
        """Return the field for an option that is given in other words, which ``convert`` turns into the field's value.

        ``default`` may be given by its name: the option's default, in the option's words.
        """
        return replace(self, convert=convert, **default)


class FieldsOf:
    """The fields of ``settings_class`` as attributes, for the options that set them.

    ``keys`` names the keys of options that other code needs, too.
    """

    def __init__(self, settings_class: type, keys: Mapping[str, str] | None = None) -> None:
        self._settings_class = settings_class
        self._keys = keys or {}

    def __getattr__(self, name: str) -> SettingsField:
        for field in fields(self._settings_class):
            if field.name == name:
                return SettingsField(self._settings_class, name, field.default, self._keys.get(name, ""))
        raise AttributeError(f"{self._settings_class.__name__} has no field {name!r}")


def option(
    default: Any,
    doc: str,
    *keys: str,
    supported: Sequence[object] | None = None,
    unsupported: Sequence[object] = (),
    instead: str | Mapping[str, str] | None = None,
    otherwise: str = "",
    since: str = _SINCE,
) -> Any:
    """Describe one option.

    ``keys`` are its name, Hudi's or else pyhudi's, unless the settings field has it; then aliases, Hudi's first.

    Args:
        default: Its default, or the field of a settings value that it sets and whose default it has; None leaves the
            choice to the table, and ``otherwise`` says what None means.
        doc: What the option does, for its documentation.
        supported: The values that pyhudi does, if Apache Hudi has more.
        unsupported: Apache Hudi's values that pyhudi does not do, if ``supported`` does not list all valid values.
        instead: What to use in place of an unsupported value, or of each; without it the supported values.
        since: The first version of pyhudi that has it.
    """
    sets = default if isinstance(default, SettingsField) else None
    if sets is not None:
        default, keys = sets.default, (sets.key, *keys) if sets.key else keys
    extra: Any = {"key": keys[0], "aliases": list(keys[1:]), "since": since, "otherwise": otherwise, "sets": sets}
    if supported is not None:
        extra |= {"supported": list(supported), "unsupported": list(unsupported), "instead": instead}
    return Field(default, description=doc, json_schema_extra=extra)


def family(field: SettingsField, *, secret: bool = False) -> Any:
    """Describe a field of the options that takes all keys of a family, such as those with one prefix.

    The parser of options knows by the field's name which keys these are. ``field`` is the field of a settings value
    that it sets; ``secret`` keeps the values out of its text.
    """
    return Field(default_factory=dict, repr=not secret, json_schema_extra=cast(Any, {"sets": field}))


def settings_of(settings_class: type[Settings], options: BaseModel, **worked_out: Any) -> Settings:
    """Return a settings value, and the values nested in it, as the options set their fields.

    ``worked_out`` has the fields that more than one option decides, or none; other fields keep their defaults.
    """
    options_by_field = _options_by_field(type(options))
    for field in fields(cast(Any, settings_class)):
        if field.name in worked_out:
            continue
        if (settings_class, field.name) in options_by_field:
            name, convert = options_by_field[settings_class, field.name]
            value = getattr(options, name)
            worked_out[field.name] = value if convert is None else convert(value)
        elif is_dataclass(field.default_factory):
            # The field holds settings of its own, which the options set as well.
            worked_out[field.name] = settings_of(cast(Any, field.default_factory), options)
    return settings_class(**worked_out)


def key_of(model: type[BaseModel], name: str) -> str:
    """Return the key of an option; empty for a family of keys."""
    return str(cast(Any, model.model_fields[name].json_schema_extra).get("key", ""))


@cache
def _options_by_field(model: type[BaseModel]) -> dict[tuple[type, str], tuple[str, Callable[[Any], Any] | None]]:
    """Return, by settings class and field, the option that sets it, and what converts the value."""
    described = ((name, cast(Any, info.json_schema_extra) or {}) for name, info in model.model_fields.items())
    named_fields = ((name, extra["sets"]) for name, extra in described if extra.get("sets"))
    return {(field.settings_class, field.name): (name, field.convert) for name, field in named_fields}
