"""All options of pyhudi in one model, and the write request that they make."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from ..errors import OptionConflictError
from ..operations.planning.request import WriteRequest
from ..operations.streams.batch import StreamBatch
from .catalogue import Scope
from .lookup import LookupOptions
from .read import ReadOptions
from .streams import StreamOptions
from .table import TableOptions
from .types import option
from .upkeep import UpkeepOptions
from .write import WriteOptions


class CommonOptions(BaseModel):
    """What reads and writes have in common."""

    path: str | None = option(None, "Where the table is.", "path", "hoodie.base.path")
    defaults: bool = option(
        True, "Whether options are taken from hudi-defaults.conf where none is given.", "hoodie.pyhudi.defaults.enabled"
    )

    # Filled from a family of keys, not from a key of its own; secrets are among them.
    storage_options: dict[str, str] = Field(default_factory=dict, repr=False)


PARTS: dict[Scope, type[BaseModel]] = {
    Scope.ANY: CommonOptions,
    Scope.TABLE: TableOptions,
    Scope.WRITE: WriteOptions,
    Scope.LOOKUP: LookupOptions,
    Scope.UPKEEP: UpkeepOptions,
    Scope.STREAM: StreamOptions,
    Scope.READ: ReadOptions,
}


class HudiOptions(ReadOptions, StreamOptions, UpkeepOptions, LookupOptions, WriteOptions, TableOptions, CommonOptions):
    """The typed options of one read or write; None where an option is not set."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True, hide_input_in_errors=True)

    def refuse_one_write(self, path: str) -> None:
        """Raise OptionConflictError where the stream to a table got options about one write."""
        for key, value in {
            "hoodie.pyhudi.write.id": self.write_id,
            "hoodie.pyhudi.write.based.on": self.based_on,
        }.items():
            if value:
                raise OptionConflictError(
                    f"The option {key}={value!r} is about one write, and the stream to the table {path} makes many.",
                    "Leave it out: a query writes each of its batches once.",
                )

    def to_write_request(
        self, path: str, schema: pa.Schema, *, overwrite: bool, batch: StreamBatch | None = None, stream: bool = False
    ) -> WriteRequest:
        """Return what these options ask of a write; ``overwrite`` is True for Spark's mode ``overwrite``.

        ``stream`` is True of a micro-batch that its tasks alone know. A micro-batch without rows leaves no instant
        unless the options say so.

        Raises OptionConflictError where a query's options are among them, or two options contradict each other.
        """
        self.refuse_query()
        write = replace(self.write_settings(), upkeep=self.upkeep(), stream=self.stream_settings())
        if stream or batch is not None:
            leaves_empty = "allow_empty_commit" in self.model_fields_set and self.allow_empty_commit
            write = replace(write, batch=batch, hand_over=stream, allow_empty_commit=leaves_empty)
        return WriteRequest(
            path=path,
            operation=self.operation,
            overwrite=overwrite,
            schema=schema,
            table=self.table_settings(),
            write=write,
            write_id=self.write_id,
            application=self.application,
            storage_options=dict(self.storage_options),
        )
