"""The write tokens of compactions: in the names of files they tell apart who carried a plan out."""

from __future__ import annotations

import secrets
import uuid

from ....table.files.names import WriteToken
from ...transaction.transaction import Transaction

# Apache Hudi takes the parts of a write token for Java's ints.
_MOST = (1 << 31) - 1


def token_of(work: Transaction) -> tuple[int, int]:
    """Return the numbers in the names of the files of one who carries a plan out; nobody else has the same."""
    both = uuid.UUID(hex=work.write_id).int
    return both % _MOST, (both >> 64) % _MOST


def new_token(work: Transaction) -> WriteToken:
    """Return the token of one attempt at one file.

    Whoever carried the plan out before may be late: no file of another attempt may have the same name.
    """
    return WriteToken(*token_of(work), secrets.randbelow(_MOST))
