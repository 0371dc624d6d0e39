"""The exit codes of commands and jobs, which say what the caller can do."""

from __future__ import annotations

from ...errors import DataError, OptionError, PyHudiError, RetryError, TableError

# The exit code that says: run it again.
AGAIN = 4
FAILED, WRONG_ARGUMENTS, WRONG_TABLE = 1, 2, 5
EXIT_CODES: dict[type[PyHudiError], int] = {
    OptionError: WRONG_ARGUMENTS,
    DataError: 3,
    RetryError: AGAIN,
    TableError: WRONG_TABLE,
}


def exit_code(error: PyHudiError) -> int:
    """Return the exit code that says what the caller can do about an error.

    Args:
        error: The error.

    Returns:
        2 for an `OptionError`, 3 for a `DataError`, 4 for a `RetryError`, 5 for a `TableError`, 1 for any other.
    """
    return next((code for error_class, code in EXIT_CODES.items() if isinstance(error, error_class)), FAILED)
