"""The catalogue of `validate`: each way in which a table can be wrong, with what it means and how to mend it."""

from __future__ import annotations

from functools import partial

from .finding import ERROR, UNREADABLE, WARNING, Check

_error = partial(Check, severity=ERROR)
_warning = partial(Check, severity=WARNING)

_RESTORE = "Restore the file from a backup."
_ROLL_BACK = "Restore the file from a backup, or roll the instant back."
_REBUILD = (
    "Take the metadata table out of use with HudiTable.drop_index('files'), and build it anew with "
    "HudiTable.create_index; readers list files in between."
)
_MOVE_ASIDE = "Move the file aside with HudiTable.repair(), or archive with pyhudi, which deletes such files first."

PROPERTIES_UNUSABLE = _error(
    "PROPERTIES_UNUSABLE",
    "`hoodie.properties` is lost, cut off, contradicts its checksum, or lacks what every table must say.",
    "Compare it with hoodie.properties.backup beside it, and restore it from that file or from your own backup.",
)
PROPERTIES_BACKUP = _warning(
    "PROPERTIES_BACKUP",
    "A change of the properties broke off and did not delete `hoodie.properties.backup`.",
    "HudiTable.repair() ends the change, and so does the next write that changes a property.",
)
PROPERTY_MISSING = _warning(
    "PROPERTY_MISSING",
    "A property is missing that some readers or writers need.",
    "Add the property to hoodie.properties with the value that the table's writers use.",
)
PARTITION_FIELDS_MISSING = _error(
    "PARTITION_FIELDS_MISSING",
    "The table has partitions and names no partition fields: Apache Hudi reads no rows, without an error.",
    "Set hoodie.table.partition.fields to the columns of the partition paths.",
)
PROPERTY_INVALID = _error(
    "PROPERTY_INVALID",
    "A property has a value without a meaning, or two properties contradict each other.",
    "Correct the property in hoodie.properties to what the table's writers use.",
)
NOT_CHECKED = _warning(
    "NOT_CHECKED",
    "Something could not be checked, as pyhudi does not know this kind of table, or a property is missing.",
    "Check this part with the engine that wrote it, or add the property that the finding names.",
)
STRANGE_FILE = _warning(
    "STRANGE_FILE",
    "A file's name fits no kind of file of its folder; readers ignore it.",
    "Delete the file if none of your programs needs it; dead writers of Apache Hudi leave names that end in a UUID.",
)
LINK = _error(
    "LINK",
    "There is a symbolic link below the table's root; pyhudi follows no links.",
    "Replace the link by the file or folder that it points to, or remove it.",
)
LEFT_BEHIND = _error(
    "LEFT_BEHIND",
    "A write or service lies where the version before the upgrade has its instants, and not on the table's timeline: "
    "readers do not see what it wrote, and pyhudi refuses to write.",
    "Stop writers of old releases. If the rows have to stay, restore the table from a backup of before the upgrade, "
    "repair the instant's file, and call HudiTable.upgrade(). Otherwise delete the file: the next write, or "
    "HudiTable.repair(), removes the instant's data files.",
)
NO_COMPLETION_TIME = _error(
    "NO_COMPLETION_TIME",
    "A completed instant has no completion time in its name: Apache Hudi takes it for JSON, and hudi-rs ignores it.",
    "Rename the file to <requested time>_<completion time>.<action>.",
)
STRANGE_TIME = _warning(
    "STRANGE_TIME",
    "An instant's time is no date and time.",
    "Find out which program wrote it; if no file belongs to it, remove it from the timeline.",
)
FUTURE_TIME = _warning(
    "FUTURE_TIME",
    "An instant's time is ahead of the store's clock; other engines' writes before that time count as older.",
    "Correct the clock that made it. Until that time write with pyhudi, which takes times after the greatest.",
)
OUT_OF_ORDER = _warning(
    "OUT_OF_ORDER",
    "An instant completed before it was requested, or in the same millisecond as another instant.",
    "Check the writers' clocks; an incremental query that ended at such a time may have missed an instant.",
)
COMPLETED_TWICE = _error(
    "COMPLETED_TWICE",
    "One instant has two completed files, or two instants have one requested time.",
    "Compare them, and remove the instant whose files do not exist; readers have used the earlier instant.",
)
EMPTY_INSTANT = _error(
    "EMPTY_INSTANT",
    "An instant's file is empty, and an engine fails on it; the finding names the engine.",
    _ROLL_BACK,
)
EMPTY_CLEAN = _warning(
    "EMPTY_CLEAN",
    "The file of a completed clean is empty and does not say what the clean deleted; Apache Hudi removes such a clean.",
    "Delete the clean's three files.",
)
TORN_INSTANT = _error(
    "TORN_INSTANT",
    "An instant's file cannot be parsed.",
    _ROLL_BACK,
)
NULL_IN_COMMIT = _error(
    "NULL_IN_COMMIT",
    "A completed write holds null where Apache Hudi needs a map, and fails on every open of the table.",
    "Write the instant's file anew with an empty map instead of null.",
)
UNKNOWN_OPERATION = _error(
    "UNKNOWN_OPERATION",
    "A completed write names an operation that Apache Hudi does not know, and it fails on every open of the table.",
    "Write the instant's file anew with the operation's name in upper case.",
)
NO_SCHEMA = _error(
    "NO_SCHEMA",
    "The newest completed write names neither columns nor files: Apache Hudi shows no rows and hudi-rs fails.",
    "Write rows to the table once more.",
)
STAT_MISMATCH = _error(
    "STAT_MISMATCH",
    "What a completed write states about a file contradicts the file's name.",
    _ROLL_BACK,
)
NO_SIZE = _error(
    "NO_SIZE",
    "A completed write does not state the size of its file: Apache Hudi's incremental queries skip the file.",
    "Write the instant's file anew with the size.",
)
SIZE_MISMATCH = _error(
    "SIZE_MISMATCH",
    "A base file has another size than the write that made it states: the file was replaced, and reads and writes of "
    "its file group fail as long as that write is on the timeline.",
    "Restore the file that the write made, or roll back that write and all later writes.",
)
LOG_SIZE = _warning(
    "LOG_SIZE",
    "A log file, or a file of changes, has another size than the write that made it states; readers accept it.",
    "Compare the file with a backup.",
)
ROW_COUNT = _warning(
    "ROW_COUNT",
    "A file has another number of rows than the write that made it states.",
    "Compare the file with a backup; it was replaced.",
)
PENDING_WRITE = _warning(
    "PENDING_WRITE",
    "A write is pending whose writer is dead or has given no sign of life for long; other writers wait or roll back.",
    "Write again, which rolls back the dead, or roll the instant back by name if you know that its writer is dead.",
)
PENDING_SERVICE = _warning(
    "PENDING_SERVICE",
    "A table service broke off; the finding says what waits for it.",
    "Run the service again, with the engine that began it or with another that can finish it.",
)
PENDING_RESTORE = _error(
    "PENDING_RESTORE",
    "A restore is not finished: some later writes are undone and some are not, and the table refuses all writes.",
    "Restore to the same instant again.",
)
PENDING_ARCHIVED = _error(
    "PENDING_ARCHIVED",
    "An instant that is complete in the archive looks pending on the timeline: a writer would roll it back.",
    "Delete its requested and inflight files.",
)
NO_REQUESTED = _warning(
    "NO_REQUESTED",
    "A pending instant has an inflight file and no requested file.",
    "Roll it back if its writer is dead.",
)
ROLLBACK_UNFINISHED = _error(
    "ROLLBACK_UNFINISHED",
    "A completed rollback names an instant that is still on the timeline.",
    "Roll that instant back again.",
)
CLAIMED_TWICE = _error(
    "CLAIMED_TWICE",
    "Two pending table services want the same file group: Apache Hudi fails on every read.",
    "Remove the files of one of the two plans.",
)
PLAN_REPLACED = _error(
    "PLAN_REPLACED",
    "A pending clustering names a file group that was replaced since: if carried out, it brings the old rows back.",
    "Remove the files of the plan.",
)
PLAN_FILE_LOST = _error(
    "PLAN_FILE_LOST",
    "A pending compaction names a file that is gone, so that no engine can carry the compaction out.",
    "Restore the file from a backup, or roll the compaction back.",
)
PLAN_MISFIT = _error(
    "PLAN_MISFIT",
    "A pending compaction names a file group that the table does not have, or not exactly the files of its slice: if "
    "carried out, it loses rows or repeats some.",
    "Roll the compaction back, and compact again.",
)
CLEAN_TAKES_LIVE = _error(
    "CLEAN_TAKES_LIVE",
    "A pending clean is going to delete a file that readers see or a savepoint keeps.",
    "Remove the files of the clean before an engine carries it out.",
)
SAVEPOINT_FILE_LOST = _error(
    "SAVEPOINT_FILE_LOST",
    "A file is gone that a savepoint keeps: the table cannot be restored to it.",
    "Restore the file from a backup, or delete the savepoint.",
)
SAVEPOINT_WITHOUT_COMMIT = _warning(
    "SAVEPOINT_WITHOUT_COMMIT",
    "A savepoint keeps an instant that is neither on the timeline nor archived.",
    "Delete the savepoint.",
)
ARCHIVE_LOST = _error(
    "ARCHIVE_LOST",
    "The archive is empty, though instants were archived: a write that is repeated under its id is done twice, and "
    "queries of archived times fail.",
    "Restore the archive's folder from a backup. Do not delete data files whose instant is on no timeline.",
)
ARCHIVE_MANIFEST = _error(
    "ARCHIVE_MANIFEST",
    "The archive's `_version_` or its manifest cannot be used.",
    "Restore it from a backup, or write a manifest that names all of the archive's files.",
)
ARCHIVE_BROKEN_OFF = _warning(
    "ARCHIVE_BROKEN_OFF",
    "An archiving broke off: it left a newer manifest, or a file that no manifest names, or `_version_` is missing.",
    "Archive again.",
)
ARCHIVE_FILE_LOST = _error(
    "ARCHIVE_FILE_LOST",
    "The archive's manifest names a file that is gone or has another size.",
    _RESTORE,
)
ARCHIVE_FILE_CORRUPT = _error(
    "ARCHIVE_FILE_CORRUPT",
    "A file of the archive cannot be read.",
    _RESTORE,
)
IN_BOTH_PLACES = _warning(
    "IN_BOTH_PLACES",
    "An instant is in the archive and still on the timeline, which does no harm.",
    "Archive again, which takes the instant off the timeline.",
)
NO_METAFILE = _error(
    "NO_METAFILE",
    "A folder has data files and no partition metafile: Apache Hudi and pyhudi read none of its rows.",
    "Add .hoodie_partition_metadata, as in other partitions.",
)
METAFILE_CORRUPT = _error(
    "METAFILE_CORRUPT",
    "A partition's metafile cannot be parsed, or states another depth than the folder has.",
    "Copy the metafile of another partition of the same depth.",
)
NESTED_PARTITION = _error(
    "NESTED_PARTITION",
    "A partition lies inside another partition, and its rows are not read.",
    "Remove the outer metafile if nothing belongs to it, or move the inner partition's rows.",
)
PARTITION_NAME = _error(
    "PARTITION_NAME",
    "A partition's path does not consist of the table's partition fields.",
    "Correct the properties of partition paths, or move the partition's rows.",
)
LOST_FILE = _error(
    "LOST_FILE",
    "A file is gone that a completed write names and that was not replaced: its rows are lost.",
    "Restore the file from a backup, or roll back that write and all later writes.",
)
CLEANED_LIVE_FILE = _error(
    "CLEANED_LIVE_FILE",
    "A clean deleted a file that was the newest of its file group: its rows are lost.",
    "Restore the file from a backup, or roll back that write and all later writes.",
)
UNNAMED_FILE = _error(
    "UNNAMED_FILE",
    "A completed write does not name one of its data files; readers may show the file's rows.",
    "Delete the file.",
)
ORPHAN = _warning(
    "ORPHAN",
    "A data file's instant is neither on the timeline nor archived; its rows appear once later writes are archived.",
    _MOVE_ASIDE,
)
ORPHAN_SHOWN = _error(
    "ORPHAN_SHOWN",
    "A data file's instant never completed and is older than the timeline: readers show its rows as committed.",
    "Move the file aside with HudiTable.repair().",
)
ROLLED_BACK_FILE = _error(
    "ROLLED_BACK_FILE",
    "A file of a rolled-back instant still exists; its rows appear once later writes are archived.",
    _MOVE_ASIDE,
)
REPLACED_SHOWN = _error(
    "REPLACED_SHOWN",
    "The files of a replaced file group still exist, and the replacecommit is archived: readers see the rows again.",
    "Delete the files.",
)
BUCKET_TWICE = _error(
    "BUCKET_TWICE",
    "A bucket of a partition has two file groups; a write updates only one of them.",
    "Rewrite the partition with insert_overwrite.",
)
NO_BUCKET = _error(
    "NO_BUCKET",
    "A file group's id names no bucket, or a bucket that the table does not have.",
    "Check hoodie.bucket.index.num.buckets, or rewrite the partition with insert_overwrite.",
)
OTHER_BUCKETS = _error(
    "OTHER_BUCKETS",
    "The properties note an index, and Apache Hudi recorded consistent hashing: writers by the noted index put keys "
    "where Apache Hudi does not look for them.",
    "Write with Apache Hudi alone, and look for keys that are there twice with validate(deep=True).",
)
BUCKETS_UNKNOWN = _error(
    "BUCKETS_UNKNOWN",
    "A file states numbers of buckets, and its instant is neither completed nor pending, or the file cannot be used: "
    "Apache Hudi may follow it, pyhudi refuses to write, and reads look into every bucket.",
    "Roll the rescale back with Apache Hudi, or remove the file if all file groups are older than it.",
)
RESCALE_UNDONE = _error(
    "RESCALE_UNDONE",
    "Apache Hudi rolled a rescale back, and its number of buckets is still noted: Apache Hudi's writers follow it, and "
    "write keys into other buckets than those of their rows, so that the table has keys twice.",
    "Stop Apache Hudi's writers, roll back the writes that `what` names, newest first, and call HudiTable.repair().",
)
INDEX_UNCLEAR = _error(
    "INDEX_UNCLEAR",
    "The table names no index, and some of its file groups are buckets by their names and others are not: pyhudi "
    "refuses to write it.",
    "Write with hoodie.index.type=SIMPLE once if no writer uses buckets, else rewrite the table with mode overwrite.",
)
FILE_CORRUPT = _error(
    "FILE_CORRUPT",
    "A base or log file cannot be read.",
    "Restore the file from a backup, or roll back the instant in its name.",
)
LOG_DAMAGED = _error(
    "LOG_DAMAGED",
    "A log file holds less than its completed instant states: reads and merges of its file group fail.",
    "Restore the file from a backup, or give up what cannot be read of it with HudiTable.repair(accept_loss=[file]).",
)
REPAIRED = _warning(
    "REPAIRED",
    "A repair gave up the rows of a damaged log file that could not be read.",
    "Write these rows again if you have them elsewhere.",
)
TORN_BLOCK = _error(
    "TORN_BLOCK",
    "A block of a log file is incomplete, and no instant on the timeline states what the file should hold: readers "
    "skip the block, and miss its rows without an error.",
    "Restore the file from a backup, or roll back the instant in its name.",
)
SKIPPED_BLOCK = _warning(
    "SKIPPED_BLOCK",
    "A block of a log file is incomplete, and its writer wrote the rows again behind it: readers skip the block.",
    "You need to do nothing; a compaction takes the file out of use.",
)
BLOCK_INSTANT = _error(
    "BLOCK_INSTANT",
    "A block of a log file names another instant than the file's name: some readers use the block's, some the file's.",
    "Restore the file from a backup, or roll back the instant in its name.",
)
LOG_PASSED_OVER = _error(
    "LOG_PASSED_OVER",
    "A log file has the name of an instant that is no completed write, and holds rows of completed writes: an upgrade "
    "ignored a pending compaction, and readers miss these rows.",
    "Carry the compaction out with HudiTable.compact() before anything else is written. Without such a plan, restore "
    "the table from a backup of before its upgrade.",
)
FILE_TIME = _warning(
    "FILE_TIME",
    "A completed instant's file is younger than the next base file of a file group with log files of that instant. "
    "Apache Hudi 1.x takes the file's time for the completion time, merges the log files also with the next base file, "
    "and may lose rows. pyhudi and Apache Hudi 0.x do not.",
    "HudiTable.repair(file_times=True) sets the times, except in an object store. After HudiTable.upgrade() no engine "
    "uses them.",
)
META_COLUMNS = _error(
    "META_COLUMNS",
    "A base file does not begin with Apache Hudi's five meta columns.",
    "Restore the file from a backup, or rewrite the partition with insert_overwrite.",
)
COLUMNS_MISFIT = _error(
    "COLUMNS_MISFIT",
    "A base file's columns cannot be read as columns of the table.",
    "Read the file with the engine that wrote it, and rewrite the partition with insert_overwrite.",
)
FOOTER_INVALID = _warning(
    "FOOTER_INVALID",
    "A base file's footer holds an Avro schema that cannot be parsed, or only one bound of its record keys.",
    "Write the file group again, by an upsert of any of its rows.",
)
KEY_RANGE = _error(
    "KEY_RANGE",
    "A base file has record keys outside of its footer's bounds: Apache Hudi's bloom index misses them.",
    "Write the file group again, by an upsert of any of its rows.",
)
BLOOM_CORRUPT = _error(
    "BLOOM_CORRUPT",
    "The bloom filter in a base file's footer cannot be read: Apache Hudi's bloom index fails or misses keys.",
    "Write the file group again, by an upsert of any of its rows.",
)
BLOOM_MISS = _error(
    "BLOOM_MISS",
    "The bloom filter in a base file's footer lacks record keys of the file: a bloom index inserts them again.",
    "Write the file group again, by an upsert of one of its rows that the filter has.",
)
FILE_NAME_COLUMN = _error(
    "FILE_NAME_COLUMN",
    "Rows do not name the file that holds them.",
    "Rewrite the partition with insert_overwrite.",
)
PARTITION_COLUMN = _error(
    "PARTITION_COLUMN",
    "Rows do not name the partition that holds them, or their columns give another partition.",
    "Rewrite both partitions with insert_overwrite.",
)
COMMIT_TIME_COLUMN = _error(
    "COMMIT_TIME_COLUMN",
    "Rows name an instant that never completed, or an instant younger than their file.",
    "Roll back the instant in the file's name.",
)
KEY_MISMATCH = _error(
    "KEY_MISMATCH",
    "Rows have no record key, or another key than their columns give: an upsert does not find them.",
    "Write the table only with the engine that wrote it, or rewrite it with mode overwrite.",
)
WRONG_BUCKET = _error(
    "WRONG_BUCKET",
    "Record keys are in another bucket than their hash gives: an upsert does not find them.",
    "Give the number of buckets that the table was made with, or rewrite the table with mode overwrite.",
)
DUPLICATE_KEY = _error(
    "DUPLICATE_KEY",
    "Several rows have a record key that has to be unique, though upserts wrote all of them.",
    "Upsert the right row. If the index looks keys up, delete the key first, or each copy is updated.",
)
KEY_ADDED_TWICE = _warning(
    "KEY_ADDED_TWICE",
    "Several rows have a record key that has to be unique, as inserts do not look keys up.",
    "If keys have to be unique, delete the key, then upsert the right row.",
)
METADATA_LOST = _error(
    "METADATA_LOST",
    "The properties name partitions of a metadata table that does not exist.",
    _REBUILD,
)
METADATA_STALE = _error(
    "METADATA_STALE",
    "A completed write is missing from the metadata table: Apache Hudi and hudi-rs do not see its files.",
    _REBUILD,
)
METADATA_DAMAGED = _error(
    "METADATA_DAMAGED",
    "A partition of the metadata table cannot be read.",
    _REBUILD,
)
METADATA_MISPLACED = _error(
    "METADATA_MISPLACED",
    "A file group of the metadata table has keys whose hash leads to another file group: look-ups miss them.",
    _REBUILD,
)
METADATA_FILE_MISSING = _error(
    "METADATA_FILE_MISSING",
    "The metadata table does not list a file of a completed write: Apache Hudi and hudi-rs miss its rows.",
    _REBUILD,
)
METADATA_FILE_EXTRA = _error(
    "METADATA_FILE_EXTRA",
    "The metadata table lists a file that no completed write made, or that does not exist: then reads fail.",
    _REBUILD,
)
METADATA_FILE_SIZE = _error(
    "METADATA_FILE_SIZE",
    "The metadata table gives a file another size than it has: reads of it may fail.",
    _REBUILD,
)
METADATA_PARTITION_MISSING = _error(
    "METADATA_PARTITION_MISSING",
    "The metadata table's list of partitions lacks a partition with files: Apache Hudi misses its rows.",
    _REBUILD,
)
METADATA_BOUNDS = _error(
    "METADATA_BOUNDS",
    "The metadata table's bounds of a column do not contain what a file, or a partition, holds: queries with a "
    "condition miss rows.",
    _REBUILD,
)
METADATA_BOUNDS_WIDE = _warning(
    "METADATA_BOUNDS_WIDE",
    "The metadata table calls bounds of a column tight that are wider than what is there.",
    _REBUILD,
)
METADATA_BOUNDS_MISSING = _warning(
    "METADATA_BOUNDS_MISSING",
    "The metadata table lacks bounds of a column for a file or a partition, though others have them: queries open it "
    "for every condition.",
    _REBUILD,
)
METADATA_COUNTS = _error(
    "METADATA_COUNTS",
    "The metadata table counts other rows or nulls in a column than a base file has: queries for nulls may miss rows.",
    _REBUILD,
)
METADATA_LEFT = _error(
    "METADATA_LEFT",
    "The metadata table has an entry for a file or a partition that no longer exists.",
    _REBUILD,
)
METADATA_FILTER = _error(
    "METADATA_FILTER",
    "The metadata table's bloom filter of a base file lacks record keys of the file: an upsert inserts them again.",
    _REBUILD,
)
METADATA_FILTER_MISSING = _error(
    "METADATA_FILTER_MISSING",
    "The metadata table lacks the bloom filter of a base file that has one: Apache Hudi's bloom index fails.",
    _REBUILD,
)
METADATA_KEY_MISSING = _error(
    "METADATA_KEY_MISSING",
    "A record index lacks record keys of rows: an upsert inserts them again, and queries for them find nothing.",
    _REBUILD,
)
METADATA_KEY_PLACE = _error(
    "METADATA_KEY_PLACE",
    "A record index has another partition or file group for a key than its row has: an upsert inserts the row again.",
    _REBUILD,
)
METADATA_KEY_LEFT = _error(
    "METADATA_KEY_LEFT",
    "A record index has record keys that no row has: an upsert takes them for updates.",
    _REBUILD,
)
METADATA_VALUE_MISSING = _error(
    "METADATA_VALUE_MISSING",
    "A secondary index lacks values of rows: queries for them find nothing.",
    _REBUILD,
)
METADATA_VALUE_LEFT = _error(
    "METADATA_VALUE_LEFT",
    "A secondary index has values that its rows do not have, or entries of no row.",
    _REBUILD,
)
STALE_CHECKSUM = _error(
    "STALE_CHECKSUM",
    "A file does not fit the `.crc` file beside it, and Apache Hudi refuses to read it.",
    "Delete the .crc file if the file is right, else restore the file from a backup.",
)
LEFT_OVER = _warning(
    "LEFT_OVER",
    "An instant that is no longer pending still has markers, a working folder or a heartbeat.",
    "Write to the table; a write of pyhudi removes them.",
)
LOCK_LEFT = _warning(
    "LOCK_LEFT",
    "A lock file is old: if its holder is dead, writers that respect the lock wait in vain.",
    "Delete .hoodie/lock if no writer holds it.",
)
DECISION_OPEN = _warning(
    "DECISION_OPEN",
    "The table's next step was decided, and the writer that decided it has not carried it out.",
    "Write to the table; the next decision carries this step out.",
)
DECISION_UNREADABLE = _warning(
    "DECISION_UNREADABLE",
    "The table's newest decision cannot be read: the next writers wait five seconds for it.",
    "Write to the table: the write skips that decision and makes the next.",
)

ALL = tuple(sorted((check for check in globals().values() if isinstance(check, Check)), key=lambda check: check.code))
"""In order of code, `UNREADABLE` among them."""

__all__ = ["ALL", "UNREADABLE"]
