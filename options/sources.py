"""The sources of an operation's options, and which source counts.

What a user gives to the operation is a demand: pyhudi has to know it, and it has to agree with the table. Settings of
the session and of ``hudi-defaults.conf`` address every table and program of the session or machine, so they only fill
in options that the user did not give: the table's own properties have precedence, and a warning names each key that
pyhudi does not know. The session outranks the file, as in Apache Hudi (``ProvidesHoodieConfig.combineOptions``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import OptionError, TableNotFoundError, UnsupportedOptionError
from ..storage import Storage, open_storage
from ..table.config import TableConfig, load_config
from ..table.config.property_keys import BUCKET
from ..table.inferred.index import infer_index, is_unnoted
from ..table.table import Table
from .catalogue import Scope, find_known
from .defaults_file import read_defaults
from .lookup import INDEX_PREFIX
from .model import HudiOptions
from .names import OPTIONS, name_of, nearest
from .parsing import SAME_THING, is_metadata, metadata_prefix, parse_options, parse_with_notices, texts_of
from .secrets import STORAGE_PREFIX, hidden_from_spark, storage_name, storage_options

logger = logging.getLogger("pyhudi")

_ENABLE = OPTIONS["metadata_enable"].key
WHY_UNUSED = "a write keeps the metadata table that a table has, and drop_index drops it"
# Apache Hudi's options that build an index, and the name of the index.
_OTHER_INDEXES = {
    "hoodie.metadata.record.index.enable": "record index",
    "hoodie.metadata.global.record.level.index.enable": "record index",
    "hoodie.metadata.record.level.index.enable": "record index",
    "hoodie.metadata.index.bloom.filter.enable": "index of bloom filters",
    "hoodie.metadata.index.secondary.enable": "secondary index",
    "hoodie.metadata.index.expression.enable": "index of an expression",
}
_warned: set[str] = set()


def forbids_metadata(key: str, text: str, scopes: frozenset[Scope]) -> bool:
    """Return whether a setting of a session or a file would have writes do without a metadata table.

    Such a setting addresses every table and engine of the session, so it counts for reads alone.
    """
    if Scope.READ in scopes or Scope.WRITE not in scopes:
        return False
    return name_of(key) == "metadata_enable" and _is_false(key, text)


def _is_false(key: str, text: str) -> bool:
    """Return whether an option turns the metadata table off."""
    try:
        return parse_options({key: text}).metadata_enable is False
    except OptionError:
        # The options of the operation are parsed with it, for an error that names its place.
        return False


def warn_once(key: str, place: str) -> None:
    """Log that a setting that `forbids_metadata` does not count, once for each place that it comes from."""
    if place not in _warned:
        _warned.add(place)
        logger.warning("The option %s=false of %s is not used: %s.", key, place, WHY_UNUSED)


def refuse_other_indexes(texts: Mapping[str, str]) -> None:
    """Raise `UnsupportedOptionError` if options ask for a metadata table with an index that pyhudi does not build."""
    for key, index_name in _OTHER_INDEXES.items():
        if texts.get(key, "").strip().lower() == "true":
            raise UnsupportedOptionError(
                f"The options {_ENABLE}=true and {key}=true ask for a {index_name}, which pyhudi neither builds nor "
                "keeps.",
                f"Leave {key} out, or give it false; pyhudi builds files, column_stats and partition_stats.",
            )


READING = frozenset({Scope.ANY, Scope.READ})
WRITING = frozenset({Scope.ANY, Scope.TABLE, Scope.WRITE, Scope.LOOKUP, Scope.UPKEEP, Scope.STREAM, Scope.METRICS})
DEFAULTS_ENABLED = OPTIONS["defaults"].key

_HOODIE, _SPARK = "hoodie.", "spark."
# They concern a single operation: as settings of a whole session they would do harm.
_OF_ONE_OPERATION = {"path", "write_id", "colocated", "defaults", "based_on", "partitions_to_delete"}
# Apache Hudi does not record these, so a table's properties may lack them.
_OF_BUCKETS = {"bucket_engine", "buckets", "hash_fields"}
_UNNOTED = {"index_type", *_OF_BUCKETS}
# They say which rows a query shows.
_OF_QUERIES = frozenset(
    {
        *("query_type", "as_of", "begin_time", "end_time"),
        *("incremental_glob", "incremental_full_scan", "incremental_end_schema"),
    }
)
_TOPICS = {other: option for option, other in SAME_THING}
_warned_places: set[str] = set()


@dataclass(frozen=True, slots=True)
class GivenOption:
    """An option as its source has it.

    Attributes:
        key: In lower case.
        place: The source; empty for the operation itself.
        unused: A clause that says why it does not count; empty if it does.
    """

    key: str
    text: str = field(repr=False)  # it may be a secret
    place: str = ""
    unused: str = ""


@dataclass(frozen=True, slots=True)
class ResolvedOptions:
    """The options of one operation.

    Attributes:
        counting: The options that count, by key.
        unused: Settings of the session and of the defaults file that do not count, with the reason.
        notices: A sentence for each option that pyhudi accepts without doing what it asks.
    """

    options: HudiOptions
    counting: Mapping[str, GivenOption]
    unused: tuple[GivenOption, ...] = field(default=())
    notices: tuple[str, ...] = ()

    @property
    def texts(self) -> dict[str, str]:
        """The texts that count, under keys whose values Spark does not show."""
        return hidden_from_spark({key: option.text for key, option in self.counting.items()})

    def for_newest(self) -> ResolvedOptions:
        """Return the options of a read of the newest snapshot: all but those that say which rows a query shows."""
        counting = {key: option for key, option in self.counting.items() if name_of(key) not in _OF_QUERIES}
        defaults = {name: OPTIONS[name].default for name in _OF_QUERIES}
        return replace(self, options=self.options.model_copy(update=defaults), counting=counting)


def resolve_options(
    options_of_call: Mapping[str, Any],
    path: str,
    scopes: frozenset[Scope],
    *,
    session: Any = None,
    warn: bool = False,
) -> ResolvedOptions:
    """Return the options of one operation; settings of other ``scopes`` do not count.

    ``options_of_call`` is what the operation got; settings of the Spark ``session``, if there is one, and of the
    defaults file fill in what it did not get. ``path`` is the table's: settings about new tables do not count if the
    table exists. With ``warn``, in the user's own process, notices about options without effect are Python warnings,
    too. Raises what `parse_options` raises, OptionError for an unusable defaults file, and TableError if properties
    that a setting depends on cannot be read.
    """
    texts = texts_of(options_of_call)
    settings: list[GivenOption] = []
    # The call itself says whether the defaults file counts.
    if parse_options({key: text for key, text in texts.items() if key == DEFAULTS_ENABLED}).defaults:
        settings += [GivenOption(line.key.lower(), line.value, line.place) for line in read_defaults()]
    if session is not None:
        settings += settings_of(session)
    used, unused = _counting_and_unused(settings, texts, path, scopes)
    # A setting of all tables must not take the metadata table from this table.
    forbidding = [setting for setting in used if forbids_metadata(setting.key, setting.text, scopes)]
    for setting in forbidding:
        warn_once(setting.key, setting.place)
    used = [setting for setting in used if setting not in forbidding]
    unused += [_unused_because(setting, WHY_UNUSED) for setting in forbidding]
    counting = {option.key: option for option in used} | {key: GivenOption(key, text) for key, text in texts.items()}
    options, notices = parse_with_notices(
        {key: option.text for key, option in counting.items()},
        warn=warn,
        places={option.key: option.place for option in used},
    )
    # pyhudi would make the metadata table without the indexes that such options ask for.
    if options.metadata_enable and Scope.WRITE in scopes:
        refuse_other_indexes({key: option.text for key, option in counting.items()})
    return ResolvedOptions(options, counting, tuple(unused), notices)


def settings_of(session: Any) -> list[GivenOption]:
    """Return the settings of a session that are options, ``hoodie.*`` last, as it outranks ``spark.hoodie.*``."""
    settings = _settings(session.conf)
    return [
        GivenOption(key.removeprefix(_SPARK).lower(), value, f"the session's {key}")
        for prefix in (_SPARK + _HOODIE, _HOODIE)
        for key, value in settings.items()
        if key.startswith(prefix)
    ]


def _settings(conf: Any) -> Mapping[str, str]:
    """Return a session's settings, at least those of Hudi."""
    in_java = getattr(conf, "_jconf", None)
    if in_java is None:
        return dict(conf.getAll)
    # Each entry of a map of Java's takes several calls, which were seven of ten calls of a write of `HudiTable`.
    names = in_java.getAllAsJava().keySet().toString()[1:-1].split(", ")
    return {name: conf.get(name) for name in names if name.startswith((_HOODIE, _SPARK + _HOODIE))}


def find_config(storage: Storage) -> TableConfig | None:
    """Return the properties of the table at a storage's root; None if there is no table yet."""
    try:
        return load_config(storage)
    except TableNotFoundError:
        return None


def _counting_and_unused(
    settings: Iterable[GivenOption], texts_of_call: Mapping[str, str], path: str, scopes: frozenset[Scope]
) -> tuple[list[GivenOption], list[GivenOption]]:
    """Return the settings that count in addition to an operation's own options, and the unused, with the reason.

    Of ``settings`` about the same thing the last counts, unless ``texts_of_call``, the operation's own options by key,
    has that thing. ``path`` is the table's, and ``scopes`` are those of the operation's options.
    """
    prefix = metadata_prefix({**{setting.key: setting.text for setting in settings}, **texts_of_call})
    by_topic: dict[str, GivenOption] = {}
    unused: list[GivenOption] = []
    for setting in settings:
        refusal = _why_refused(setting, prefix)
        if refusal:
            unused.append(_unused_because(setting, refusal))
            # Every operation of the process gets the same settings, so only the first logs them.
            if setting.place not in _warned_places:
                _warned_places.add(setting.place)
                logger.warning("The option %s of %s is not used: %s.", setting.key, setting.place, refusal)
            continue
        topic = _topic(setting.key)
        if topic in by_topic:
            unused.append(_unused_because(by_topic[topic], f"{setting.place} says it later"))
        by_topic[topic] = setting
    topics_of_call = {_topic(key) for key in texts_of_call}
    unused += [
        _unused_because(option, "another value was given")
        for topic, option in by_topic.items()
        if topic in topics_of_call
    ]
    # Settings of other scopes are neither: they may count for another operation.
    relevant = [
        option for topic, option in by_topic.items() if topic not in topics_of_call and _scope_of(option.key) in scopes
    ]
    relevant, irrelevant = _without_other_index(relevant, texts_of_call)
    unused += irrelevant
    # Only settings about new tables make it necessary to look whether the table exists already.
    if any(_scope_of(option.key) is Scope.TABLE for option in relevant):
        storage = open_storage(
            path, storage_options({**{option.key: option.text for option in relevant}, **texts_of_call})
        )
        config = find_config(storage)
        if config is not None:
            unused += [
                _unused_because(option, "it describes new tables, and this table exists already")
                for option in relevant
                if not _may_describe(option.key, config)
            ]
            relevant = [option for option in relevant if _may_describe(option.key, config)]
            relevant, irrelevant = _without_bucket_settings(relevant, texts_of_call, Table(storage, config))
            unused += irrelevant
    return relevant, unused


def _without_bucket_settings(
    settings: list[GivenOption], texts_of_call: Mapping[str, str], table: Table
) -> tuple[list[GivenOption], list[GivenOption]]:
    """Return the settings that count, and those about buckets if the table has no buckets and records no index.

    An index or a number of buckets that the operation itself got counts in any case.
    """
    topics = {
        _topic(key)
        for key in (*texts_of_call, *(option.key for option in settings if _topic(option.key) == "index_type"))
    }
    of_buckets = [option for option in settings if _topic(option.key) in _OF_BUCKETS]
    if not of_buckets or topics & _UNNOTED or not is_unnoted(table.config) or infer_index(table).kind == BUCKET:
        return settings, []
    reason = "the table records no index, and its file groups are no buckets"
    unused = [_unused_because(option, reason) for option in of_buckets]
    return [option for option in settings if option not in of_buckets], unused


def _without_other_index(
    settings: list[GivenOption], texts_of_call: Mapping[str, str]
) -> tuple[list[GivenOption], list[GivenOption]]:
    """Return the settings that count, and those about an index that the table will not have.

    A number of buckets in the defaults does not contradict another index that the user gives, nor does an index in the
    defaults contradict buckets that the user gives.
    """
    texts_by_topic = {_topic(key): text for key, text in texts_of_call.items()}
    index = texts_by_topic.get("index_type") or next(
        (option.text for option in settings if _topic(option.key) == "index_type"), BUCKET
    )
    unused_topics: set[str] = set()
    if _OF_BUCKETS & texts_by_topic.keys():
        unused_topics = {"index_type"} if index.strip().upper() != BUCKET else unused_topics
    elif index.strip().upper() != BUCKET:
        unused_topics = _OF_BUCKETS
    reason = "the user asks for buckets" if "index_type" in unused_topics else f"it is about buckets, and not {index}"
    return (
        [option for option in settings if _topic(option.key) not in unused_topics],
        [_unused_because(option, reason) for option in settings if _topic(option.key) in unused_topics],
    )


def _why_refused(setting: GivenOption, prefix: str) -> str:
    """Return why a setting cannot come from a session or a file; empty if it can."""
    name = name_of(setting.key)
    if name in _OF_ONE_OPERATION:
        return "it is about a single operation and has to be given to it"
    if (
        setting.key.startswith((STORAGE_PREFIX, INDEX_PREFIX))
        or is_metadata(setting.key, prefix)
        or find_known(setting.key)
    ):
        return ""
    if name is None or not setting.key.startswith(_HOODIE):
        similar_key = nearest(setting.key)
        return "there is no such option" + (
            f", did you mean {similar_key}" if similar_key and similar_key.startswith(_HOODIE) else ""
        )
    return ""


def _unused_because(setting: GivenOption, reason: str) -> GivenOption:
    """Return a setting that does not count, with the reason."""
    return GivenOption(setting.key, setting.text, setting.place, reason)


def _topic(key: str) -> str:
    """Return one name for all keys of an option, and for two options that set the same thing.

    It is the key itself for a key that is no option of pyhudi's own.
    """
    name = name_of(key) or key
    return f"{STORAGE_PREFIX}{storage_name(name)}" if name.startswith(STORAGE_PREFIX) else _TOPICS.get(name, name)


def _scope_of(key: str) -> Scope:
    """Return the scope of a key, be it an option, a key of Apache Hudi's in the catalogue, or a key by its prefix.

    Any other key is extra metadata of a commit, and so of a write.
    """
    name = name_of(key)
    if name is not None:
        return OPTIONS[name].scope
    entry = find_known(key)
    if entry is not None:
        return entry.scope
    if key.startswith(INDEX_PREFIX):
        return Scope.LOOKUP
    return Scope.ANY if key.startswith(STORAGE_PREFIX) else Scope.WRITE


def _may_describe(key: str, config: TableConfig) -> bool:
    """Return whether a setting may say something about an existing table.

    Of the options about tables, only those do that Apache Hudi may not have recorded and the properties lack.
    """
    name = name_of(key)
    if _scope_of(key) is not Scope.TABLE:
        return True
    if name not in _UNNOTED or any(key in config.properties for key in OPTIONS[str(name)].keys):
        return False
    return name not in _OF_BUCKETS or config.index_type in {None, BUCKET}
