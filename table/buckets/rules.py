"""The files that say how many buckets a partition has, and their expressions.

Format: ``PartitionBucketIndexHashingConfig`` of Apache Hudi 1.1; ``RegexRuleEngine`` and
``PartitionBucketIndexCalculator`` read its expressions. pyhudi's own files have the same content and a format number.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache

from ...errors import CorruptFileError, UnsupportedTableError
from ...storage.bounds import parse_json
from ...timeline import formats

# The instant of the numbers that held before the first rescale.
FIRST = "00000000000000"
ENDING = ".hashing_config"
_REGEX, _VERSION = "regex", 1
_COUNT = re.compile(r"\+?[0-9]{1,8}")
_PLAIN = re.compile(r"[A-Za-z0-9_=/ %-]")
# Any path matches it. Apache Hudi refuses rules without an expression.
_ANY = "^"
_OF_ONE_PATH = re.compile(r"\^((?:[^\\^$.|?*+()\[\]{}]|\\[!-/:-@\[-`{-~]|\\x[0-9a-f]{2})*)\$")
_ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|(.))", re.DOTALL)
# What Java and Python read alike. They differ in nested classes, names of classes, borders of words and flags.
_ESCAPE = r"\\[!-/:-@\[-`{-~ ]|\\[dDwWsStnrf]|\\x[0-9A-Fa-f]{2}"
_IN_CLASS = rf"[^\\\[\]&~|-]|-(?!-)|{_ESCAPE}"
_READ_ALIKE = re.compile(
    rf"(?:\(\?i\))?(?:[^\\\[\](){{}}]|{_ESCAPE}|\{{[0-9]+\}}|\((?:\?(?:[:=!]|<[=!])|(?!\?))|\)|\[\^?(?:{_IN_CLASS})+\])*",
    re.DOTALL,
)
# "." and "$" depend on what ends a line, and Java knows more line ends than Python.
_LINE_ENDS = re.compile("[\n\r\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class BucketRule:
    """How many buckets each partition has from an instant on.

    Attributes:
        instant_time: The rescale that brought it, `FIRST` for the numbers before all rescales, empty for the property
            of a table without rules.
        default: The number of each partition that no expression finds.
        expressions: Regular expressions, each with the number of the partitions in whose path Java's ``find()`` finds
            it; the first that does counts.
    """

    instant_time: str
    default: int
    expressions: tuple[tuple[str, int], ...] = ()
    _of_paths: dict[str, int] = field(init=False, repr=False, compare=False)
    _pattern_positions: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Split the expressions into those of one path, which are looked up, and patterns, which are tried in turn."""
        of_paths: dict[str, int] = {}
        pattern_positions = []
        for position, (expression, _) in enumerate(self.expressions):
            path = path_of(expression)
            if path is None:
                pattern_positions.append(position)
            else:
                of_paths.setdefault(path, position)
        object.__setattr__(self, "_of_paths", of_paths)
        object.__setattr__(self, "_pattern_positions", tuple(pattern_positions))

    def __reduce__(self) -> tuple[object, ...]:
        return BucketRule, (self.instant_time, self.default, self.expressions)

    @property
    def greatest(self) -> int:
        """The greatest number that a partition may have."""
        return max(self.default, *(number for _, number in self.expressions), 1)

    def number_of(self, partition_path: str) -> int:
        """Return the number of buckets of a partition, at least 1."""
        own_position = self._of_paths.get(partition_path, len(self.expressions))
        for position in self._pattern_positions:
            if position > own_position:
                # The expression of this path alone comes first, and so it counts.
                break
            if _pattern_of(self.expressions[position][0]).search(partition_path):
                return self.expressions[position][1]
        return self.default if own_position == len(self.expressions) else self.expressions[own_position][1]

    def reads_alike(self, partition_path: str) -> bool:
        """Return whether Java and Python find the same expressions in a path.

        An expression for one path finds that path alone; but Java also finds it in the path with a line end behind it.
        """
        if _LINE_ENDS.search(partition_path) is None:
            return True
        # Both find the expression for all paths in any path; how others treat line ends differs.
        if any(self.expressions[position][0] != _ANY for position in self._pattern_positions):
            return False
        return _LINE_ENDS.fullmatch(partition_path[-1]) is None or self._of_paths.keys().isdisjoint(
            (partition_path[:-1], partition_path.removesuffix("\r\n"))
        )

    def encode(self, *, own: bool = False) -> bytes:
        """Return the content of the rule's file; ``own`` for a file of pyhudi's, which has a format number."""
        # Apache Hudi fails on a text without any expression, so that an expression finds all paths instead.
        text = ";".join(f"{expression},{number}" for expression, number in self.expressions)
        content = {
            "expressions": text or f"{_ANY},{self.default}",
            "defaultBucketNumber": self.default,
            "rule": _REGEX,
            "version": _VERSION,
            "instant": self.instant_time,
        }
        return json.dumps(formats.numbered(content, formats.BUCKET_RULE) if own else content, indent=2).encode()

    @classmethod
    def parse(cls, instant_time: str, data: bytes, where: str) -> BucketRule:
        """Return the rule that a file of an instant holds: how many buckets which partitions have.

        ``instant_time`` is the instant's requested time, ``data`` the file's bytes, and ``where`` its path, for errors.
        Raises CorruptFileError for a damaged file, and UnsupportedTableError for a rule not known here.
        """
        try:
            content = parse_json(data)
            kind, version, text = (
                str(content["rule"]),
                content.get("version", _VERSION),
                str(content["expressions"] or ""),
            )
            default = _bucket_count(str(content["defaultBucketNumber"]))
            readable = kind.lower() == _REGEX and version == _VERSION
            if not readable or formats.number_of(content) > formats.BUCKET_RULE:
                raise _unsupported(where, f"is of the kind {kind!r}, version {version}")
            expressions = _expressions(text)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptFileError(
                f"The file {where}, which says how many buckets partitions have, is damaged ({error}).",
                "Restore it from a backup, or write it anew with the numbers that validate() finds in the file ids.",
            ) from error
        for expression, _ in expressions:
            _check_read_alike(expression, where)
        return cls(instant_time, default, expressions)


def expression_of(partition_path: str) -> str:
    """Return a regular expression that finds only one path, as Java and Python read it; the path may be empty.

    It has no comma and no semicolon, which end an expression in a rule file.
    """
    return f"^{''.join(map(_escaped, partition_path))}$"


def path_of(expression: str) -> str | None:
    """Return the path of an expression that `expression_of` made, or that equals such an expression; else None."""
    escaped = _OF_ONE_PATH.fullmatch(expression)
    if escaped is None:
        return None
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[2], escaped[1])


def _escaped(character: str) -> str:
    """Return a character as it occurs in an expression, so that it finds itself alone."""
    if character in ",;" or character in "\t\n\r\x0b\x0c":
        # These end an expression, or are trimmed from its ends.
        return f"\\x{ord(character):02x}"
    return character if _PLAIN.fullmatch(character) or not character.isascii() else _plain_text(character)


def _plain_text(character: str) -> str:
    """Return an ASCII character with a backslash before it, or by its code if it cannot be printed."""
    return f"\\{character}" if character.isprintable() else f"\\x{ord(character):02x}"


def _expressions(text: str) -> tuple[tuple[str, int], ...]:
    """Return the expressions of a rule file's text with their numbers; ValueError for a part without a number."""
    parts = text.split(";")
    # Java's split leaves empty texts at the end out.
    while parts and not parts[-1]:
        parts.pop()
    expressions = []
    for part in parts:
        expression, comma, number = part.strip().partition(",")
        if not comma or "," in number:
            raise ValueError(f"{part.strip()[:99]!r} is no expression with a number after a comma")
        expressions.append((expression.strip(), _bucket_count(number.strip())))
    return tuple(expressions)


def _bucket_count(text: str) -> int:
    """Return a number of buckets; ValueError if the text is no number of at least 1."""
    number = int(text) if _COUNT.fullmatch(text) else 0
    if number < 1:
        raise ValueError(f"{text[:99]!r} is no number of buckets")
    return number


def _check_read_alike(expression: str, where: str) -> None:
    """Raise UnsupportedTableError for an expression that Java and Python may not read alike."""
    try:
        alike = _READ_ALIKE.fullmatch(expression) is not None and _pattern_of(expression) is not None
    except re.error:
        alike = False
    if not alike:
        raise _unsupported(where, f"has the expression {expression!r}, which Python may read unlike Java")


def _unsupported(where: str, what: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"The file {where}, which says how many buckets partitions have, {what}.",
        "Write the table with Apache Hudi, or name each partition by an expression such as ^p=a$.",
    )


@lru_cache(maxsize=4096)
def _pattern_of(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.ASCII)
