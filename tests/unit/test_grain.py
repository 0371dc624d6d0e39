"""The figures of modules that CI prints."""

from __future__ import annotations

from support.rules.grain import code_lines, figures


def test_comments_docstrings_and_empty_lines_are_no_code() -> None:
    docstring = '"""A module.\n\nOf two sentences."""\n\n# Why.\n'
    text = docstring + 'VALUES = (\n    1,\n)\n\n\ndef of() -> str:\n    """It."""\n    return """a\nb"""\n'

    assert code_lines(text) == 6


def test_figures_name_the_modules_that_one_other_imports() -> None:
    texts = {
        "table/table.py": "from ..errors import HudiError\nfrom ..storage import base\n",
        "storage/base.py": "from ..errors import HudiError\n",
        "errors.py": "",
    }

    assert figures(texts) == [
        "3 modules have 1 lines of code on average",
        "1 modules are imported by one other module",
        "table/table.py imports most: 2 modules",
    ]
