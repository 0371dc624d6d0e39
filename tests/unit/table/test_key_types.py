"""Key generators by name, and the one that is inferred."""

from __future__ import annotations

import pytest
from pyhudi.errors import UnsupportedTableError
from pyhudi.table.keys.generator import KeyGeneratorType, choose_key_generator


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SIMPLE", KeyGeneratorType.SIMPLE),
        ("complex", KeyGeneratorType.COMPLEX),
        ("NON_PARTITION_AVRO", KeyGeneratorType.NON_PARTITION),
        ("org.apache.hudi.keygen.SimpleKeyGenerator", KeyGeneratorType.SIMPLE),
        ("org.apache.hudi.keygen.ComplexAvroKeyGenerator", KeyGeneratorType.COMPLEX),
        ("org.apache.hudi.ComplexKeyGenerator", KeyGeneratorType.COMPLEX),
        ("NonpartitionedKeyGenerator", KeyGeneratorType.NON_PARTITION),
        ("org.apache.hudi.keygen.TimestampBasedKeyGenerator", KeyGeneratorType.TIMESTAMP),
        ("org.apache.hudi.keygen.CustomKeyGenerator", KeyGeneratorType.CUSTOM),
    ],
)
def test_a_generator_is_known_by_its_type_and_by_its_class(text: str, kind: KeyGeneratorType) -> None:
    assert KeyGeneratorType.parse(text) is kind


@pytest.mark.parametrize("kind", list(KeyGeneratorType))
def test_the_java_class_of_a_type_is_read_back(kind: KeyGeneratorType) -> None:
    assert KeyGeneratorType.parse(kind.java_class) is kind


def test_another_class_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedTableError, match=r"com\.acme\.MyGenerator"):
        KeyGeneratorType.parse("com.acme.MyGenerator")


@pytest.mark.parametrize(
    ("keys", "partitions", "kind"),
    [
        (["id"], [], KeyGeneratorType.NON_PARTITION),
        (["a", "b"], [], KeyGeneratorType.NON_PARTITION),
        (["id"], ["p"], KeyGeneratorType.SIMPLE),
        ([], ["p"], KeyGeneratorType.SIMPLE),
        (["a", "b"], ["p"], KeyGeneratorType.COMPLEX),
        (["id"], ["p", "q"], KeyGeneratorType.COMPLEX),
    ],
)
def test_the_fields_decide_when_nothing_is_said(keys: list[str], partitions: list[str], kind: KeyGeneratorType) -> None:
    assert choose_key_generator(keys, partitions) is kind
