"""The count of parameters that are handed on and nothing else, which CI prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.rules.forwarded import forwarded


@pytest.mark.parametrize(
    ("body", "handed_on"),
    [
        ("return other(a)", ["a"]),
        ("return self.other(x=a)", ["a"]),
        ("return [other(a), self.store.other(a)]", ["a"]),
        ("return other(a) if a else None", []),
        ("return other(a.path)", []),
        ("return Value(a)", []),
        ("return len(a)", []),
        ("a = 1", []),
        ("return other(lambda a: other(b, a))", []),
        ("return [a for b in b]", []),
    ],
)
def test_only_calls_of_the_package_hand_a_parameter_on(tmp_path: Path, body: str, handed_on: list[str]) -> None:
    module = tmp_path / "module.py"
    others = "def other(x): return 1\n\nclass Value: pass\n\n"
    module.write_text(f"{others}class Own:\n    def of(self, a): {body}\n", encoding="utf-8")

    assert [found.partition("of(")[2].rstrip(")") for found in forwarded(tmp_path, [module])] == handed_on
