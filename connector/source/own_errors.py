"""Recognises errors of pyhudi by their text in Spark's errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import PyHudiError, from_spark


@contextmanager
def own_errors() -> Iterator[None]:
    try:
        yield
    except PyHudiError:
        raise
    except Exception as error:
        known = from_spark(error)
        if known is None:
            raise
        raise known from error
