"""Partition paths made of times: the options of the TIMESTAMP key generator, and the paths that they make.

Source: ``TimestampBasedAvroKeyGenerator`` and ``HoodieDateTimeParser`` of Apache Hudi 1.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidOptionError, MissingOptionError, PartitionValueError, UnsupportedTypeError
from ..config import property_keys as key
from ..schema.types import is_text
from .date_patterns import DatePattern
from .date_reader import check_readable, read_times
from .time_zones import FIRST_MS, LAST_MS, Mask, Millis, TimeZone

DEFAULT_PARSER = "org.apache.hudi.keygen.parser.HoodieDateTimeParser"

# Milliseconds in each unit; a negative number is that of units in a millisecond.
_UNITS = {
    "NANOSECONDS": -1_000_000,
    "MICROSECONDS": -1_000,
    "MILLISECONDS": 1,
    "SECONDS": 1_000,
    "MINUTES": 60_000,
    "HOURS": 3_600_000,
    "DAYS": 86_400_000,
}


class TimestampType(str, Enum):
    """The kinds of values of a partition column, named as in ``hoodie.keygen.timebased.timestamp.type``."""

    UNIX_TIMESTAMP = "UNIX_TIMESTAMP"
    EPOCHMILLISECONDS = "EPOCHMILLISECONDS"
    EPOCHMICROSECONDS = "EPOCHMICROSECONDS"
    SCALAR = "SCALAR"
    DATE_STRING = "DATE_STRING"
    MIXED = "MIXED"

    @property
    def is_text(self) -> bool:
        """Whether the values are texts; those of MIXED are, because Apache Hudi refuses numbers there, too."""
        return self in {TimestampType.DATE_STRING, TimestampType.MIXED}


_LARGEST = 2**63 - 1024  # the largest float that is an int64
_UNIT_OF = {
    TimestampType.UNIX_TIMESTAMP: "SECONDS",
    TimestampType.EPOCHMILLISECONDS: "MILLISECONDS",
    TimestampType.EPOCHMICROSECONDS: "MICROSECONDS",
}


@dataclass(frozen=True, slots=True)
class TimePartitions:
    """Makes partition paths of times.

    Attributes:
        unit: The unit of values that are numbers.
        formats: The patterns of values that are texts; the first pattern that matches a whole text reads it.
        input_zone: The zone of texts without an offset; None keeps their local time.
        output_zone: The zone of the times in the path; None for the zone in which a time was read.
    """

    kind: TimestampType
    unit: str
    formats: tuple[DatePattern, ...]
    input_zone: TimeZone | None
    output_zone: TimeZone | None
    output: DatePattern

    def check_type(self, kind: pa.DataType, field: str) -> None:
        """Raise UnsupportedTypeError for a column whose values are not of the kind that the table's options name."""
        types = pa.types
        if types.is_dictionary(kind):
            kind = kind.value_type
        number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        fits = is_text(kind) if self.kind.is_text else number
        fits = fits or (types.is_date(kind) and self.unit == "DAYS")
        fits = fits or (types.is_timestamp(kind) and self.unit == "MICROSECONDS")
        if fits or types.is_null(kind):
            return
        wants = {True: "texts", False: f"numbers of {self.unit.lower()}"}[self.kind.is_text]
        cure = "Correct the option, or cast the column."
        if types.is_date(kind):
            cure = f"Use {key.TIME_TYPE}=SCALAR with {key.TIME_UNIT}=DAYS: a date counts days."
        elif types.is_timestamp(kind):
            cure = f"Use {key.TIME_TYPE}=EPOCHMICROSECONDS: a timestamp counts microseconds."
        raise UnsupportedTypeError(
            f"The partition column {field!r} has type {kind}, but {key.TIME_TYPE}={self.kind.value} takes {wants}.",
            cure,
        )

    def paths(self, column: pa.Array, field: str) -> pa.DictionaryArray:
        """Return the path's part for every value, each text once in the dictionary; ``field`` is the column's name.

        As in Apache Hudi, a null counts as the first millisecond, or the first unit, of 1970.
        """
        local, valid = self._read_texts(column) if self.kind.is_text else self._read_numbers(column)
        valid &= (local >= FIRST_MS) & (local <= LAST_MS)
        if not valid.all():
            raise self._no_time(column[int(np.argmin(valid))].as_py(), field)  # one value, for the error
        # Times that differ by less than the pattern tells, such as those of one day, have the same text.
        step = self.output.precision
        times, codes = np.unique(local // step * step, return_inverse=True)
        path_texts = pa.array(self.output.write(times.tolist()), pa.string())  # O(distinct paths)
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), path_texts)

    def instants(self, column: pa.Array) -> tuple[Millis, Mask]:
        """Return numbers, dates or timestamps as milliseconds since 1970, and which of them lie within bounds."""
        if pa.types.is_date(column.type):
            column = column.cast(pa.date32()).view(pa.int32())
        elif pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz), safe=False).view(pa.int64())
        if not pa.types.is_integer(column.type):
            column = pc.trunc(column.cast(pa.float64()) if pa.types.is_null(column.type) else column)
        factor = _UNITS[self.unit]
        most_size = min(LAST_MS // factor if factor > 0 else LAST_MS * -factor, _LARGEST)
        size = np.abs(np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), 1)))
        # What is greater is no time of the years 1 to 9999, and its milliseconds might overflow.
        valid = size <= most_size
        # A null counts as the first unit of 1970, as in Apache Hudi.
        integers = pc.if_else(pa.array(valid), column, pa.scalar(None, column.type)).cast(pa.int64())
        numbers = np.asarray(pc.fill_null(integers, 1))
        # Java's division rounds towards zero.
        return (numbers * factor if factor > 0 else np.sign(numbers) * (np.abs(numbers) // -factor)), valid

    def _read_numbers(self, column: pa.Array) -> tuple[Millis, Mask]:
        """Return the local times of numbers, and which are valid."""
        instants, valid = self.instants(column)
        return (instants if self.output_zone is None else self.output_zone.local(instants)), valid

    def _read_texts(self, column: pa.Array) -> tuple[Millis, Mask]:
        """Return the local times of texts by the first pattern that matches each, and which are valid.

        A text that no pattern matches is not.
        """
        encoded = column.cast(pa.string()).dictionary_encode(null_encoding="encode")
        texts = pc.fill_null(encoded.dictionary, self._text_of_null())
        local = np.zeros(len(texts), np.int64)
        valid = np.zeros(len(texts), np.bool_)
        unmatched = np.arange(len(texts))
        for pattern in self.formats:
            times = read_times(pattern, texts.take(pa.array(unmatched)))
            path_times, exists = self._path_times(times.local, times.offset, tells_offset=pattern.tells_offset)
            local[unmatched] = path_times
            valid[unmatched] = times.valid & exists
            unmatched = unmatched[~times.matched]
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        return local[codes], valid[codes]

    def _path_times(self, local: Millis, offset: Millis, *, tells_offset: bool) -> tuple[Millis, Mask]:
        """Return the path's times for times of texts, and which of them exist in the input zone.

        If the texts tell their offsets, the input zone does not matter, and all exist.
        """
        valid = np.ones(len(local), np.bool_)
        zone = self.output_zone or self.input_zone
        if zone is None:
            return local, valid
        if tells_offset:
            return zone.local(local - offset), valid
        if self.input_zone is None:
            # `TimeOptions.missing` asks for an input zone beside an output zone.
            raise ValueError("the zone of the texts is not known")
        instants, valid = self.input_zone.instants(local)
        return zone.local(instants), valid

    def _text_of_null(self) -> str:
        """Return a text that the first pattern reads as the first millisecond of 1970."""
        zone = self.input_zone or self.output_zone or TimeZone("UTC")
        local_time = int(zone.local(np.array([1], np.int64))[0])
        # Local time less the millisecond is the zone's offset from UTC.
        return self.formats[0].write([local_time], local_time - 1)[0]

    def _no_time(self, value: object, field: str) -> PartitionValueError:
        """Return the error for a value that is no time."""
        if self.kind.is_text:
            what, cure = "in the patterns that the table reads", f"{key.TIME_INPUT_FORMAT} allow its pattern"
        else:
            what, cure = f"as a count of {self.unit.lower()}", f"{key.TIME_TYPE} say what it is"
        return PartitionValueError(
            f"The value {value!r} of partition column {field!r} is no time of the years 1 to 9999 {what} "
            f"({key.TIME_TYPE}={self.kind.value}).",
            f"Correct the value, or make the table anew and let {cure}.",
        )


def with_both_zones(time_options: Mapping[str, str]) -> dict[str, str]:
    """Return time options with the zones of input and output that count: the option for both outranks each."""
    shared = time_options.get(key.TIME_ZONE)
    return {**time_options, **(dict.fromkeys(key.TIME_ZONES, shared) if shared else {})}


@dataclass(frozen=True, slots=True)
class TimeOptions:
    """Reads the time options of a table's properties, or of a write; methods raise InvalidOptionError."""

    properties: Mapping[str, str]
    table: str

    def partitions(self) -> TimePartitions:
        """Return the path maker for these options; MissingOptionError if `missing` names an option."""
        absent = self.missing()
        if absent:
            raise MissingOptionError(
                f"The table {self.table} has partitions made of times, and {', '.join(absent)} "
                f"{'is' if len(absent) == 1 else 'are'} not given.",
                "Give what the table's writers use, once; pyhudi keeps it in the table.",
            )
        kind = self._kind()
        parser = self.properties.get(key.TIME_PARSER) or DEFAULT_PARSER
        if parser.strip() != DEFAULT_PARSER:
            raise self._invalid(key.TIME_PARSER, parser, "pyhudi has only Apache Hudi's own parser")
        output = self._pattern(key.TIME_OUTPUT_FORMAT, self.properties[key.TIME_OUTPUT_FORMAT])
        return TimePartitions(
            kind=kind,
            unit=self._unit(kind),
            formats=self._formats() if kind.is_text else (),
            input_zone=self._zone(key.TIME_INPUT_ZONE),
            output_zone=self._zone(key.TIME_OUTPUT_ZONE),
            output=output,
        )

    def missing(self) -> list[str]:
        """Return the absent options on which paths depend; zones, if Hudi would take the machine's zone."""
        properties = self.properties
        absent = [option for option in (key.TIME_TYPE, key.TIME_OUTPUT_FORMAT) if not properties.get(option)]
        if key.TIME_TYPE in absent:
            return absent
        zones = with_both_zones(properties)
        has_zone = {option: bool((zones.get(option) or "").strip()) for option in key.TIME_ZONES}
        if not self._kind().is_text:
            return absent if has_zone[key.TIME_OUTPUT_ZONE] else [*absent, key.TIME_OUTPUT_ZONE]
        if not properties.get(key.TIME_INPUT_FORMAT):
            return [*absent, key.TIME_INPUT_FORMAT]
        # Without an output zone a path shows the local time of its text, whose zone then does not matter.
        tell_offset = all(pattern.tells_offset for pattern in self._formats())
        if has_zone[key.TIME_OUTPUT_ZONE] and not has_zone[key.TIME_INPUT_ZONE] and not tell_offset:
            absent.append(key.TIME_INPUT_ZONE)
        return absent

    def _kind(self) -> TimestampType:
        """Return the kind of the partition column's values."""
        text = self.properties[key.TIME_TYPE].strip().upper()
        try:
            return TimestampType(text)
        except ValueError as error:
            kinds = ", ".join(kind.value for kind in TimestampType)
            raise self._invalid(key.TIME_TYPE, text, f"it is none of {kinds}") from error

    def _unit(self, kind: TimestampType) -> str:
        """Return the unit of numbers, "" for texts."""
        text = self.properties.get(key.TIME_UNIT) or "SECONDS"
        unit = _UNIT_OF.get(kind) or text.strip().upper()
        if unit not in _UNITS:
            raise self._invalid(key.TIME_UNIT, text, f"it is none of {', '.join(_UNITS)}")
        return "" if kind.is_text else unit

    def _formats(self) -> tuple[DatePattern, ...]:
        """Return the patterns by which texts are read, in the order in which they are tried."""
        texts = self.properties[key.TIME_INPUT_FORMAT]
        delimiter = (self.properties.get(key.TIME_INPUT_DELIMITER) or "").strip()
        try:
            parts = re.split(delimiter or ",", texts)
        except re.error as error:
            why = f"it is no regular expression ({error})"
            raise self._invalid(key.TIME_INPUT_DELIMITER, delimiter, why) from error
        return tuple(self._pattern(key.TIME_INPUT_FORMAT, part.strip()) for part in parts if part.strip())

    def _pattern(self, option: str, text: str) -> DatePattern:
        """Return an option's pattern, which pyhudi has to be able to read or write."""
        try:
            pattern = DatePattern.parse(text)
            if option == key.TIME_INPUT_FORMAT:
                check_readable(pattern)
            else:
                pattern.check_writable()
        except ValueError as error:
            raise self._invalid(option, text, str(error)) from error
        return pattern

    def _zone(self, option: str) -> TimeZone | None:
        """Return the zone of an option, or of the option for both zones; None if neither names one."""
        name = (with_both_zones(self.properties).get(option) or "").strip()
        try:
            return TimeZone(name) if name else None
        except ValueError as error:
            raise self._invalid(
                key.TIME_ZONE if self.properties.get(key.TIME_ZONE) else option, name, str(error)
            ) from error

    def _invalid(self, option: str, value: str, why: str) -> InvalidOptionError:
        return InvalidOptionError(
            f"{option}={value!r} cannot be used for the partitions of the table {self.table}: {why}.",
            "Correct the value; docs/keys.md lists what pyhudi knows.",
        )
