"""What an option that cannot be used says: the reason in pyhudi's words, allowed values, and no Markdown."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from pyhudi.errors import InvalidOptionError, PyHudiError
from pyhudi.options.model import HudiOptions
from pyhudi.options.names import OPTIONS
from pyhudi.options.parsing import parse_options

_NONSENSE = ("no such value", "-1", "1.5", "yesterday", "99999999999999999999")


@pytest.mark.parametrize("name", OPTIONS)
def test_an_error_has_neither_markdown_nor_the_validators_words(name: str) -> None:
    for text in _NONSENSE:
        try:
            parse_options({OPTIONS[name].key: text})
        except PyHudiError as error:
            assert not re.search(r"\]\(|Input should|Value error", str(error)), str(error)


@pytest.mark.parametrize("name", OPTIONS)
def test_an_error_lists_the_allowed_values(name: str) -> None:
    allowed = [one for one in get_args(HudiOptions.model_fields[name].annotation) if isinstance(one, str)]
    if not allowed:
        return
    with pytest.raises(InvalidOptionError) as raised:
        parse_options({OPTIONS[name].key: "no such value"})
    shown = OPTIONS[name].supported or allowed
    assert all(str(one) in str(raised.value) for one in shown)


def test_some_options_have_allowed_values() -> None:
    listed = [name for name in OPTIONS if any(map(str, get_args(HudiOptions.model_fields[name].annotation)))]
    assert len(listed) > 10
