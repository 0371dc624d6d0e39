"""The seams of pyhudi: the places at which tests put code or values of their own into it.

A test names the seam, and this list alone knows the place. A function or module that moves or gets another name
changes one line here.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

# Each seam is "module:attribute" below pyhudi, or "module:Class.attribute". Python looks a function up where it is
# called, so the module is the one that calls it. A seam of several modules has a place in each.
SEAMS: dict[str, str | tuple[str, ...]] = {
    # --- store and machine
    "open the store of a write": "operations.planning.plan:open_storage",
    "time of a local store": "storage.local:LocalStorage.now",
    "time of a store in memory": "storage.memory:MemoryStorage.now",
    "list a local folder": "storage.local:LocalStorage.list",
    "look into a local folder": "storage.local:LocalStorage.look",
    "delete local files": "storage.local:LocalStorage.delete",
    "look into a folder in memory": "storage.memory:MemoryStorage.look",
    "make a local folder": "storage.disk:make_folder",
    "open a local file": "storage.local:LocalStorage.open_input",
    "most bytes of a file that is read whole": "storage.inputs:_READ_WHOLE",
    "part size of uploads": "storage.object_files:PART",
    "threads of store calls": "storage.parallel:THREADS",
    "units that a compaction executes at once": "operations.services.compaction.slices:at_once",
    "cores for store calls that compute": "storage.parallel:cores",
    "folder of processes": "storage.process:_PROC",
    "describe a process": "storage.process:_describe",
    "id of the machine": "storage.process:machine_id",
    "name of the host": "storage.process:host_name",
    "process that answers for a write": "storage.process:responsible_process",
    "find a process": "storage.process:find_process",
    "stores by scheme": "storage:STORES",
    "ask S3": "storage.s3:S3Client.ask",
    "time of S3": "storage.s3:S3Client.now",
    "patience of notebooks": "connector.table.notebook_progress:PATIENCE_S",
    "pause between lines of notebooks": "connector.table.notebook_progress:_REDRAW_S",
    "find a package": "options.metrics:find_spec",
    "seconds of a push of metrics": "operations.write.metrics:_PUSH_S",
    # --- what can be added
    "versions that pyhudi writes": ("table.config.support:VERSIONS", "operations.planning.new_table:VERSIONS"),
    "formats by version": "table.format:_FORMATS",
    "table services": (
        "operations.write.inline:SERVICES",
        "operations.write.after_batch:SERVICES",
        "operations.write.service_round:SERVICES",
        "connector.command.parser:SERVICES",
        "connector.command.changing:SERVICES",
        "connector.command.run:SERVICES",
        "methods.upkeep:SERVICES",
    ),
    "slice rules by layout": "table.files.view:_RULES",
    "lock of a table": (
        "operations.transaction.begin:lock_of",
        "operations.transaction.commit_path:lock_of",
        "operations.transaction.decide:lock_of",
    ),
    "followers of a table": "operations.transaction.followers:FOLLOWERS",
    # --- timeline
    "time from which an instant is visible": "timeline.instants:Instant.visible_since",
    "timeline as of a request": "timeline.timeline:Timeline.as_of_request",
    "timeline as of a completion": "timeline.timeline:Timeline.as_of_completion",
    "whether an instant is committed": "timeline.timeline:Timeline.is_committed",
    "parse the name of an instant": "timeline.layout:_parsed_v2",
    "read an instant": "timeline.instant_files:InstantFiles._read",
    "read a clean": "timeline.instant_files:InstantFiles.read_clean",
    "read the summary of a commit": "timeline.instant_files:InstantFiles.read_summary",
    "read the files of a commit": "timeline.instant_files:InstantFiles.read_written_files",
    "format of owner's notes": "timeline.formats:OWNER",
    "format of decisions": "timeline.formats:DECISION",
    "format of decisions without a rule": "timeline.formats:PLAIN_DECISION",
    "format of notes of failures": "timeline.formats:FAILURE",
    "format of keys in commits": "timeline.formats:COMMIT_KEYS",
    "format of keys in footers": "timeline.formats:FOOTER_KEYS",
    "instants that a watermark names": "timeline.watermark:RECENT",
    "whether a watermark saw an instant": "timeline.watermark:Seen.saw",
    "compare a watermark with the timeline": "timeline.watermark:Watermark.against",
    # --- archive of the timeline
    "completion time of an instant": "timeline.archive.completions:CompletionTimes.__call__",
    "read completion times from the archive": "timeline.archive.completions:CompletionTimes._read",
    "instants that the archive holds": "timeline.archive.lsm:Archive.instants",
    "bodies that the archive holds": "timeline.archive.lsm:Archive.bodies",
    "instants archived since a moment": "timeline.archive.lsm:Archive.since",
    "most instants of an archive": "timeline.archive.lsm:_MOST_ROWS",
    "target size of archive files": "timeline.archive.lsm_writer:TARGET_BYTES",
    "row group size of archive files": "timeline.archive.lsm_writer:_ROW_GROUP_BYTES",
    "age at which a torn manifest is dead": "timeline.archive.manifest:_HALF_MADE_S",
    # --- writers at work
    "whether a working folder is deserted": "operations.rollback.sweep:_is_deserted",
    "judge a writer": "timeline.writers.owner:Suspect.judge",
    "touch a heartbeat": "timeline.writers.heartbeat:Heartbeat.touch",
    "find a note of a write": "timeline.writers.write_notes:WriteNotes.find",
    "what other instants took": (
        "operations.transaction.taken:taken_since",
        "operations.planning.plan:taken_since",
    ),
    "refuse to begin a completed instant": "operations.transaction.begin:_refuse_completed",
    "sign of life of a call": "timeline.writers.write_heartbeat:WriteHeartbeat._touch_newest",
    "claim an instant time": "timeline.writers.owner:Claim.make",
    "seal a write": "timeline.writers.owner:Seal.set",
    "write that a seal ended": "timeline.writers.owner:Seal.key",
    "seal a write for good": "timeline.writers.owner:Seal.set_for_good",
    "hold a reserve on the disk": "timeline.writers.reserve:Reserve.hold",
    "size of the reserve on the disk": "timeline.writers.reserve:_SIZE",
    "seconds of work after which its owner is shown": "timeline.writers.long_work:SHOWN_AFTER_S",
    "threads of heartbeats": "timeline.writers.heartbeat:threading",
    "clock of heartbeats": "timeline.writers.owner:time",
    "files that the process watches": "timeline.writers.owner:_seen",
    "heartbeat in a thread": (
        "timeline.writers.heartbeat:HeartbeatThread",
        "timeline.writers.tickets:HeartbeatThread",
    ),
    "numbers of buckets that changed since a plan": (
        "operations.transaction.conflicts:changed_numbers",
        "operations.write.attempts:changed_numbers",
    ),
    "delta commits that pyhudi wrote": "operations.services.compaction.compactor:written_by_pyhudi",
    "wait for the older tickets": (
        "operations.write.attempts:wait_for_older",
        "operations.write.retries:wait_for_older",
    ),
    "wait until a rescale is over": "operations.write.waits:wait_until_over",
    "abort of an attempt": "operations.write.attempts:abort",
    "pause between two looks for a restore": "operations.write.waits:_pause",
    "pause of a rescale that waits": "operations.services.rescale.beside:_pause",
    "archived rescales that the process knows": "table.bucket_numbers:_ARCHIVED",
    "state of a rule of buckets": "table.bucket_numbers:_state_of",
    "bytes that one rescale reads": "operations.services.rescale.units:_BYTES_OF_AN_INSTANT",
    "request a rescale": "operations.services.rescale.instant:RescaleInstant._requested",
    "make a rule of buckets": "operations.transaction.carried_out:make_rule",
    "note the number before a rescale": "operations.services.rescale.instant:show_rule",
    "divide the rows of a rescale": "operations.services.rescale.instant:execute_units",
    "delete the rule of a rollback": "operations.rollback.rollback:delete_rule",
    "bytes of a plan that needs no tasks": "operations.services.unit_execution:_SMALL_BYTES",
    "write a batch for Spark": "connector.table.micro_batches:MicroBatches.__call__",
    "write the rows of a batch": "connector.table.batch_writes:write_placed",
    "where this process met other writers": "operations.write.retries:_MET",
    "seconds for which a meeting is remembered": "operations.write.retries:_RECENT_S",
    "clock of the wait for tickets": "timeline.writers.tickets:time",
    "whether the writer of a ticket is dead": "timeline.writers.tickets:is_dead",
    # --- properties of a table
    "patience with torn properties": "table.config.properties_file:_PATIENCE_S",
    "patience with torn properties without a backup": "table.config.properties_file:_PATIENCE_WITHOUT_BACKUP_S",
    "pause between two reads of properties": "table.config.properties_file:_POLL_S",
    # --- columns and values
    "bytes of rows that come once and wait in memory": "arrow.rows:_IN_MEMORY",
    "bytes of rows that one task hands to the commit": "arrow.writing:_FEW_BYTES",
    "bytes that pay for a task": "arrow.writing:_BYTES_OF_A_TASK",
    "finish a local run": "arrow.writing:LocalRun.finish",
    "rows of a chunk": "table.arrow.batches:CHUNK_ROWS",
    "keys that are hashed at once": "table.arrow.murmur:_CHUNK_ROWS",
    "append rows to a spill": "table.arrow.spill:SpillWriter.append",
    "evolve columns": "operations.planning.columns:evolve",
    "conform a struct": "table.schema.conform:_Wanted._struct_parts",
    "cast values": "table.schema.conform:cast",
    "cast values that have an exact equal": "table.schema.conform:exact",
    # --- base files
    "open a base file": "table.files.base_file:BaseFileReader.__init__",
    "read batches of a base file": "table.files.base_file:BaseFileReader.batches",
    "close a new base file": "table.files.base_file:BaseFileWriter.close",
    "rewrite the slices of a sort in place": "operations.services.sorting.sorter:Sorter.rewrite",
    "order of the rows of a base file": "writer.data_files:FileFormat.sorter",
    "rows of a run in a sorter's sample": "writer.sort:_SAMPLE",
    "least bytes of a column in a row group": "writer.data_files:_LEAST_OF_A_COLUMN",
    "order write tokens": "table.files.names:WriteToken.__lt__",
    # --- bloom filters and key ranges in footers
    "ask a bloom filter for keys": "table.files.bloom_filter:BloomFilter.may_hold",
    "ask a bloom filter for keys between two positions": "table.files.bloom_filter:BloomFilter.may_hold_between",
    "add keys to a bloom filter": "table.files.bloom_filter:BloomFilterBuilder.add",
    "few keys for a bloom filter": "table.files.bloom_filter:_FEW",
    "decode the bloom filter of a footer": "table.files.key_footers:FooterFilter.get",
    "few keys for the filter of a footer": "table.files.key_footers:FEW",
    "first keys for the filter of a footer": "table.files.key_footers:_FIRST",
    "name of a footer in memory": "table.files.key_footers:_name",
    "keys in the range of a file": "table.files.key_footers:span_of",
    "keys in the range of a row group": "table.files.footers:span_of",
    # --- file groups and file slices
    "base file that a log file belongs to": "table.files.view:_base_time",
    "files that a partition lost": "table.files.view:FileView.lost",
    "whether a clean kept what a moment shows": "table.files.cleaned:_keeps",
    "written files that the process knows": "table.files.read_written:_KNOWN",
    "notes of written files that the process knows": "table.files.read_written:_NOTED",
    "listings that the process knows": "timeline.listing:_KNOWN",
    "checkpoints of streams that the process knows": "timeline.instant_files:_OF_STREAMS",
    "most tables that the process knows": "table.files.read_written:_MOST_KNOWN",
    "log files that a commit names": "table.files.written:logs_in",
    "add commits to known written files": "table.files.written:Written.joined_by",
    # --- log files
    "order of log files": "table.files.names:LogFileName.order",
    "end of a sound log block": "table.files.logs.log_file:sound_end",
    "find the next sound log block": "table.files.logs.log_file:_Blocks._next_sound",
    "order instants of log blocks": "table.files.logs.log_scan:_in_place",
    "log blocks that count": "table.slices.merged_slice:effective_blocks",
    "longest Avro list that is read at once": "table.files.logs.avro_columns:_MOST_ITEMS",
    "bytes of Avro rows that are read at once": "table.files.logs.avro_rows:_READ_BYTES",
    "bytes of Avro rows that are looked through at once": "table.files.logs.avro_rows:_WINDOW_BYTES",
    "read equally long deletes at once": "table.files.logs.delete_block:_alike",
    "read deletes one by one": "table.files.logs.delete_block:_one_by_one",
    "mark of a delete in rows of logs": "table.slices.log_rows:DELETE",
    "deletes in a delete block": "table.slices.log_rows:LogRows._deletes",
    "deletes without an ordering value": "table.slices.log_rows:LogSpec.unordered",
    # --- which row wins
    "deleted rows": "table.merging.row_spec:RowSpec.deleted",
    "ordering values of rows": "table.merging.row_spec:RowSpec.ordering",
    "former positions of rows": "table.merging.row_spec:RowSpec.stood",
    "whether deletes may lack an ordering value": "table.merging.row_spec:RowSpec.may_reset",
    "base rows that an outlived delete hides": (
        "table.merging.merger:hidden_bases",
        "table.merging.overlay:hidden_bases",
    ),
    "rows with a delete marker": "table.merging.deletes:DeleteMarker.marked",
    "fold rows of a merge by key": "table.merging.merger:fold",
    "fold incoming rows of a merge": "table.merging.merger:folded",
    "fold incoming rows of an insert": "table.merging.meet:folded",
    "base rows that win in a merge": "table.merging.merger:base_wins",
    "base rows that win over partial updates": "table.merging.overlay:base_wins",
    "base rows that win over whole rows": "writer.known_keys:base_wins",
    "rows that survive a merge": "table.merging.merger:Merger.survivors",
    "rows that survive an insert": "table.merging.meet:Inserter.survivors",
    "begin to insert into a file group": "table.merging.meet:Inserter.__init__",
    "spill rows of a merge": "table.merging.meet:Encounter._deal_out",
    # --- equal keys
    "refuse rows of some copies alone": "table.merging.stored_copies:StoredCopies.check",
    "look for copies before an append": "writer.known_keys:CountedKeys.refuse_copies",
    "deletes that outdo new rows": "table.slices.hiding_deletes:HidingDeletes.outdone",
    "find keys in a set of keys": "table.merging.key_probe:KeyProbe.find",
    "most keys of a set in a table of Arrow": "table.merging.key_probe:_FEW_KEYS",
    "hash keys that are found by hashes": "table.merging.key_probe:hash64",
    "most bits of a table of hashes": "table.merging.key_probe:_MOST_BITS",
    "hash keys that get codes": "table.merging.key_codes:hash64",
    "keys with codes that are compared at once": "table.merging.key_codes:_COMPARED_AT_ONCE",
    "few keys for a dictionary": "table.merging.key_codes:_FEW",
    "some keys for a dictionary": "table.merging.key_codes:_SOME",
    # --- partial updates
    "rows that give a column": "table.slices.partial_updates:PartialUpdates.given",
    "lay new values over rows": "table.merging.overlay:Overlay._laid",
    "order rows of partial updates": "table.merging.laying:PartialMerge._in_order",
    "refuse rows after the delete of their key": "table.merging.laying:PartialMerge._check_none_revived",
    "look up keys of partial updates": "writer.known_keys:KnownKeys.rows",
    "make whole rows of partial updates": "writer.known_keys:WholeRows._laid",
    "refuse unknown keys of partial updates": "writer.known_keys:check_known",
    # --- indexes
    "bucket of each key": "index.bucket:BucketIndex.buckets_in",
    "what two writers of one bucket share": "index.bucket:BucketIndex.rival_key",
    "file id of a new bucket": "index.bucket:new_bucket_file_id",
    "take record keys apart": "index.bucket:parse_record_keys",
    "file id of a new file group": "operations.locating.routing:new_file_id",
    "few keys for the filter of a file": "index.bloom:FEW",
    "footers in memory": "index.bloom:FOOTERS",
    "keys that a base file holds": "index.bloom:hits_of_base",
    "keys that log files hold": "index.slice_keys:SliceKeys.hits_of_logs",
    "wanted keys within a range": "index.slice_keys:WantedKeys._between",
    "order the keys of a lookup": "index.lookup:unique_in_order",
    "search for the keys of rows": "index.lookup:_KeyedSearch.of",
    "note further copies of keys": "index.lookup:_Found._add_copies",
    "slices that this process knows": "operations.indexing.known_keys:KNOWN_SLICES",
    "tag rows by known keys": "operations.indexing.known_keys:KeysOfWrite.tag",
    "name of a known slice": "operations.indexing.known_keys:SliceName.of",
    "keep known slices": "operations.indexing.known_keys:KnownSlices.keep",
    "room for known keys": "operations.indexing.known_keys:KnownSlices.room",
    "keys of a merged file group": "operations.write.known_after:_merged",
    "all keys of rows": "operations.write.known_after:_all_keys",
    "all keys that a lookup gathered": "index.gathered_keys:GatheredKeys.all_keys",
    "clock of lookups": "index.lookup:time",
    # --- small files
    "small file": "index.small_files:SmallFile",
    "room in small files": "index.small_files:_rooms",
    "sizes of file groups": "index.small_files:GroupSizes.of",
    "share of each key": "index.small_files:Shares.take",
    # --- where rows go
    "known file groups of a partition": "operations.locating.routing:Bucketed._known",
    "file groups that plans hold": "operations.locating.file_group_writes:held_groups",
    "job of a file group": "operations.locating.file_group_writes:FileGroupWrite",
    "tag rows by a lookup": "operations.locating.tagging:_Lookup._tag",
    "settle moved rows": "operations.locating.tagger:settle",
    "keep rows of one key in one task": "operations.locating.global_index:whole_runs",
    "check the spelling of foreign keys": "operations.locating.adoption:check_spelling",
    "stored rows of moved keys": "writer.moved_rows:OldRows._states",
    # --- writing file groups
    "rows of an arrival": "writer.arrivals:ARRIVAL_ROWS",
    "cut rows into chunks": "writer.rows:rechunk",
    "write a file group": "writer.group_writer:GroupWriter.write",
    "column of one value": "writer.data_files:constant",
    "deletes in front of joined rows": "table.slices.merged_slice:MergedSlice.resets",
    "ordering values that deletes carry": "operations.planning.row_plan:delete_order",
    "ordering values of rows that a look-up found": "operations.planning.row_plan:RowPlan.looked_up_order",
    "deletes without an ordering value in a write": "writer.log_handle:LogHandle._resets",
    "table that a commit merges with": "operations.write.commit:seen_by",
    "make writers of a task": ("operations.write.own_groups:writers", "operations.write.merge_spills:writers"),
    "versions of log files of a task": "operations.write.own_groups:versions_of_task",
    "format of log files": "operations.transaction.file_work:LogFormat",
    "format that keeps all values": "operations.transaction.file_work:safe_format",
    "most workers of a merge": "operations.write.merge_spills:MOST_WORKERS",
    "pause between two reports of progress": "operations.write.phases:PROGRESS_S",
    # --- plan of a write
    "pin the moment of a write": "operations.planning.plan:pin",
    "check ordering columns of logs": "operations.planning.plan:check_log_orders",
    "whether a write folds rows of one key": "operations.planning.row_plan:RowPlan.folds",
    "whether a write makes partial blocks": "operations.planning.row_plan:RowPlan.partial_blocks",
    "file groups that an overwrite replaces": "operations.write.replacement:Replacement.groups",
    "operation that overwrites the table": "operations.write.replacement:OVERWRITE_TABLE",
    "pattern of partitions": "operations.write.replacement:_pattern",
    # --- begin of a write
    "wait for the first attempt of a task": "operations.transaction.begin:_WAIT_FOR_FIRST_S",
    "whether a write that begins is too old": "operations.transaction.begin:_is_old",
    "take back the begin of an abandoned write": "operations.transaction.begin:_take_back_if_given_up",
    "instants that a begin sees announced": "operations.transaction.begin:announced",
    # --- fence around the files of a task
    "write markers": "timeline.writers.markers:Markers.write",
    "write the metafile of a partition from a task": "operations.transaction.fence:write_partition_metafile",
    "refuse a task whose write is over": "operations.transaction.fence:Fence.refuse",
    "refuse a task whose write is sealed": "operations.transaction.fence:Fence._refuse_sealed",
    "look whether a write was given up after a task's last file": "operations.transaction.fence:Fence.finish",
    "look for the seal after a file": "operations.transaction.fence:Fence.after_publish",
    # --- commit of a write
    "write the metafile of a partition from a commit": "operations.write.completion:write_partition_metafile",
    "remove files that no task reported": "operations.write.commit:_reconcile",
    "result of a completed commit": "operations.write.commit:result_from",
    "check the counts of removed rows": "operations.write.commit:_check_counted",
    "changes of a commit": "operations.write.completion:_changes",
    "new keys of a commit": "operations.write.completion:_new_keys",
    "make new keys": "operations.write.completion:NewKeys",
    "forget the work of a commit": "operations.write.after_commit:try_to_forget",
    "counts in commit metadata": "operations.write.commit_metadata:asdict",
    # --- conflicts
    "verdict of a meeting": "operations.transaction.concurrency:ConcurrencyRules.verdict",
    "check conflicts": "operations.write.completion:check_conflicts",
    "checkpoints that a commit carries on": "operations.transaction.body:carried_on",
    "find a batch before its tasks": "operations.planning.micro_batch:find_batch",
    "find a batch in the decision": "operations.write.completion:find_newest_batch",
    "what earlier runs of a query left": "operations.planning.micro_batch:older_runs",
    "ids of archived writes": "operations.streams.checkpoints:archived_ids",
    "most queries that a write names": "operations.streams.checkpoints:MOST_QUERIES",
    "check ownership of an instant": (
        "operations.write.commit:check_ownership",
        "operations.transaction.conflicts:check_ownership",
    ),
    "check columns of other commits": (
        "operations.transaction.conflicts:check_columns_since",
        "operations.write.attempts:check_columns_since",
    ),
    "check that others undid nothing": "operations.transaction.conflicts:_check_undone",
    "file groups of other commits": "operations.transaction.conflicts:_file_groups",
    "find a key that another commit added": "operations.transaction.conflicts:find_twin",
    "newest columns of the timeline": "operations.transaction.conflicts:newest_schema",
    "hash new keys": "operations.transaction.new_keys:hash64",
    "rollbacks of an instant by others": "operations.transaction.since:Since.rollbacks_of",
    # --- decisions
    "carry out a decision": "operations.transaction.decide:carry_out",
    "decisions that stay": "operations.transaction.decide:KEPT",
    "seconds after which a commit is late": "operations.transaction.decide:LATE_S",
    "pause between two looks at a decision": "operations.transaction.decide:_POLL_S",
    "age at which a torn decision is dead": (
        "operations.transaction.decide:HALF_MADE_S",
        "timeline.writers.decisions:HALF_MADE_S",
    ),
    # --- rollback and restore
    "roll back an instant": "operations.services.rollback:roll_back",
    "whether an instant builds on earlier ones": "operations.services.rollback:_depends_on",
    "begin a rollback": "operations.services.rollback:begin",
    "begin a restore": "operations.services.restore:begin",
    "refuse to undo saved instants": (
        "operations.services.rollback:refuse_savepoints",
        "operations.services.restore:refuse_savepoints",
    ),
    "files of an instant": ("operations.services.rollback:files_of", "operations.rollback.rollback:files_of"),
    "files that markers name": "operations.transaction.left_overs:marked_files",
    "parse data files of a rollback": "operations.transaction.left_overs:parse_data_name",
    "hide the completion of a rolled back instant": "operations.rollback.rollback:hide",
    "remove partitions that a rollback emptied": "operations.rollback.rollback:forget_partitions",
    "plan of a restore": "operations.services.restore:RestorePlan",
    "files of all partitions for a restore": "operations.rollback.undo_writes:walk_partitions",
    "parse data files of a restore": "operations.rollback.undo_writes:parse_data_name",
    "hide the completion of a restored instant": "operations.rollback.undo_writes:hide",
    "take restored instants off the timeline": "operations.rollback.undo_writes:take_off",
    # --- services
    "roll a write back": "operations.services.rollback:rollback",
    "restore a table": "operations.services.restore:restore",
    "savepoint of a moment": "operations.services.savepoint:savepoint",
    "delete a savepoint": "operations.services.savepoint:delete_savepoint",
    "slices that a savepoint names": "operations.services.savepoint:slices_at",
    "instants that a service sees announced": "operations.services.preconditions:announced",
    "check that a service supports the table": "operations.services.preconditions:check_supported",
    # --- archiving
    "archive instants": "operations.services.archive:archive",
    "append to the archive": "operations.services.archive:append",
    "row of the archive": "operations.services.archive:Row",
    "remove archived instants": "operations.services.archive:_Round._take_off",
    "remove orphans before archiving": "operations.services.archive:_Round._delete_orphans",
    "parse data files of orphans": "operations.services.archive:parse_data_name",
    "instants before replaced files": "operations.services.archive:before_replaced_files",
    "whether an instant may not be archived": "operations.services.archivable:_stays",
    # --- cleaning
    "clean a table": "operations.services.clean:clean",
    "request a clean": "operations.services.service:TableService.request",
    "delete an unused metadata table": "operations.services.unused_metadata:_delete",
    "progress of cleans": "operations.services.clean:find_progress",
    "savepoints that a clean keeps": (
        "operations.services.clean:read_savepoints",
        "operations.services.clean_scope:read_savepoints",
    ),
    "files that a clean lists": "operations.services.clean_scope:_listed",
    "partitions in which a commit replaced files": "operations.services.clean_scope:_replacing",
    "live slices of a clean": "operations.services.clean_plan:live_slices",
    "slices of a replaced file group": "operations.services.clean_plan:_replaced_slices",
    "add log files to expired files": "operations.services.clean_plan:_with_change_data",
    "first pending instant before a clean": "operations.services.clean_plan:first_pending",
    "clock of progress": "operations.progress:monotonic",
    "seconds between looks at tasks": "operations.progress:POLL_S",
    # --- compaction
    "compact after a write": "operations.services.compaction.after_write:compact",
    "clock of the upkeep after a batch": (
        "operations.write.after_batch:time",
        "operations.services.compaction.compact:time",
    ),
    "clock of compactions after writes": "operations.services.compaction.due_rules:time",
    "plan a compaction": "operations.services.compaction.compact:schedule_compaction",
    "slices that a compaction must leave": "operations.services.compaction.plan:held_by_plans",
    "compact a slice": "operations.services.compaction.compactor:Compactor.execute",
    # --- log compaction
    "slices that a log compaction must leave": "operations.services.compaction.log_compactor:held_by_plans",
    "whether a log compaction takes a slice": "operations.services.compaction.log_compactor:LogCompaction._is_wanted",
    "whether an instant may append log files": "operations.services.compaction.slices:_may_append",
    "compact the log files of a slice": "operations.services.compaction.log_compactor:LogCompactor.execute",
    "join delete blocks": "writer.data_files:joined",
    # --- inspection
    "validate a table": "operations.inspect.validate:validate",
    "most hashes of a duplicate check": "operations.checks.duplicates:MOST_HASHES",
    "result of a commit in the history": "operations.inspect.history:result_of",
    # --- reading
    "timeline with archived writes": "reader.snapshot:reach_back",
    "plan a window of commits": "reader.snapshot:plan_window",
    "rows of a window of commits": "reader.window:CommitTimes.mask",
    "tasks that the driver plans itself": "connector.table.snapshot_frames:takes_tasks",
    "most source rows of a merge whose changes are few": "connector.merge.near_rows:_FEW_KEYS",
    "most keys of a merge by the key": "connector.merge.near_rows:MOST_KEYS",
    "most pairs of a key and a slice in a merge": "connector.merge.near_rows:MOST_PAIRS",
    "rows of a merge by the key": "connector.merge.near_rows:NearRows.of",
    "look for keys in a batch of matching rows": "reader.matches.matching_rows:_Chosen.mask",
    "numbers of sought keys": "reader.matches.matching_rows:KeyNumbers.of",
    "sought keys by partition": "reader.matches.sought_keys:SoughtKeys.by_partition",
    "file slices of sought keys": "reader.matches.sought_slices:_places",
    "keys by the columns of a bucket": ("reader.matches.key_values:keys_by", "reader.matches.matching_rows:keys_by"),
    "most footers that a snapshot reads": "reader.footer_search:_MOST_FOOTERS",
    "files of commits in the past": "reader.listed_files:read_written",
    "files that later commits superseded": "reader.listed_files:superseded",
    "next instant that shows whole slices": "reader.past:next_whole",
    # --- options
    "folder of the machine's defaults": "options.defaults_file:FOLDER_OF_THE_MACHINE",
    "options that were warned of": "options.parsing:_reported",
    "defaults that were warned of": "options.sources:_warned_places",
    # --- Spark
    "cores of the machine": "connector.placement.choice:cpu_count",
    "cores of a local master": "connector.placement.choice:local_cores",
    "estimated bytes of a query": "connector.placement.choice:estimated_bytes",
    "bytes of rows as Parquet": "connector.placement.sizing:parquet_bytes",
    "partitions of incoming rows": "connector.placement.key_places:KeysMet.of",
    "few keys for the driver": "connector.placement.key_places:FEW_KEYS",
    "join with the table's keys": "connector.placement.key_places:table_keys",
    "scan the table's record keys": "connector.placement.table_keys:scan_record_keys",
    "tag rows in Spark": "connector.table.placed_rows:tag",
    "write rows of a table": "connector.table.writes:write_placed",
    "place the rows of a write": "connector.table.writing:placed_rows",
    "write few rows without tasks": "connector.table.writing:write_here",
    "most bytes of rows that need no tasks": "connector.table.local_writes:MOST_BYTES",
    "most file groups of a write that needs no tasks": "connector.table.local_writes:_FEW_GROUPS",
    "most bytes of files of a write that needs no tasks": "connector.table.local_writes:_SMALL_BYTES",
    "run a service of a table": "connector.hudi_table:HudiTable._run",
    "write changes of a merge": "connector.hudi_table:HudiTable._write_changes",
    "most bytes that each task gets": "connector.source.direct_tasks:MOST_BYTES",
    "files that are not handed over in a list": "connector.source.parquet_scan:FEW",
    "most files that Spark looks up": "connector.source.parquet_scan:MOST_PATHS",
}


def patch_seam(patch: pytest.MonkeyPatch, name: str, value: object, *, of: object = None) -> None:
    """Replace what is at each place of a seam.

    Args:
        patch: Takes the value away again.
        name: A key of `SEAMS`.
        value: The replacement.
        of: The only object to change, where the seam is an attribute of its class.
    """
    for owner, attribute in places_of(name):
        patch.setattr(owner if of is None else of, attribute, value)


def set_seam(name: str, value: object) -> None:
    """Replace what is at each place of a seam for good, in a process that a test starts for that."""
    for owner, attribute in places_of(name):
        setattr(owner, attribute, value)


def read_seam(name: str) -> Any:
    """Return what is at a seam."""
    owner, attribute = next(places_of(name))
    return getattr(owner, attribute)


def places_of(name: str) -> Iterator[tuple[Any, str]]:
    """Yield the places of a seam: a module or class, and the attribute of it."""
    paths = SEAMS[name]
    for path in [paths] if isinstance(paths, str) else paths:
        module, _, names = path.partition(":")
        *classes, attribute = names.split(".")
        owner: Any = import_module(f"pyhudi.{module}")
        for inner in classes:
            owner = getattr(owner, inner)
        yield owner, attribute
