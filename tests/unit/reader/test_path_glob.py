from __future__ import annotations

import pytest
from pyhudi.reader.path_glob import compile_glob

PATH = "/lake/trips/city=Rome/2026/11/00000001-abc-0_0-1-2_20261121.parquet"


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "*",
        "/city=Rome/*",
        "/2026/*/*",
        "/2026/1?/*",
        "/2026/1[0-2]/*",
        "/2026/1[^2-9]/*",
        "/2026/1[!2-9]/*",
        "/city={Rome,Oslo}/*",
        "/{city={R*,Oslo},x}/*",
        ".parquet",
        "\\.parquet",
        "/city=Rome/2026/11/00000001-abc-0_0-1-2_20261121.parquet",
    ],
)
def test_a_pattern_matches_the_end_of_a_path(pattern: str) -> None:
    assert compile_glob(pattern).fullmatch(PATH)


@pytest.mark.parametrize(
    "pattern",
    ["/city=Oslo/*", "/2026", "/city=Rome", "/2026/1[2-9]/*", "Xparquet", "\\*", "{a,b}", "a+", "(", "|", ","],
)
def test_everything_else_is_no_match(pattern: str) -> None:
    assert not compile_glob(pattern).fullmatch(PATH)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        *(("a.b", "axb"), ("a+", "aa"), ("^a", "a"), ("[a.]b", "xb"), ("[\\d]", "1"), ("a$", "a"), ("[[]", "]")),
        *(("[^!a]b", "!b"), ("[!^a]b", "^b"), ("[!]a]b", "]b")),
    ],
)
def test_signs_of_other_languages_mean_themselves(pattern: str, path: str) -> None:
    assert not compile_glob(pattern).fullmatch(path)


@pytest.mark.parametrize("pattern", ["[", "a[bc", "{a,b", "{a{b}", "[z-a]", "[^]"])
def test_a_pattern_that_is_not_closed_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        compile_glob(pattern)
