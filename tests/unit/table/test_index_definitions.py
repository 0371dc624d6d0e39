"""Definitions of indexes as the file holds them."""

from __future__ import annotations

from typing import Any

import pytest
from pyhudi.errors import TableConfigError
from pyhudi.table.metadata.index_definitions import IndexDefinition


@pytest.mark.parametrize("stored", [{"indexOptions": [1]}, {"indexOptions": "a"}, {"sourceFields": "name"}])
def test_a_definition_in_another_shape_is_refused(stored: dict[str, Any]) -> None:
    with pytest.raises(TableConfigError, match=r"the index of_name in .* cannot be understood"):
        IndexDefinition.parse("of_name", stored)


def test_what_a_definition_does_not_say_is_empty() -> None:
    assert IndexDefinition.parse("of_name", {"indexOptions": None}) == IndexDefinition(
        "of_name", "", "identity", (), {}, by_value=False
    )
