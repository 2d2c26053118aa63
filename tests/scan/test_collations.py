"""The local engine compares strings by their bytes alone: collated ones are left to Spark."""

from __future__ import annotations

import pytest

from variantlake.delta.schema.table_schema import (
    PrimitiveType,
    StructField,
    StructType,
    VariantType,
)
from variantlake.errors import UnsupportedFeature
from variantlake.sql.select import QueryText

SCHEMA = StructType(
    (
        StructField("k", PrimitiveType("string"), metadata={"__COLLATIONS": {"k": "x.UTF8_LCASE"}}),
        StructField("e", VariantType()),
    )
)


@pytest.mark.rule(32)
@pytest.mark.parametrize(
    "condition",
    [
        "k = 'GOOD'",
        "k LIKE 'g%'",
        "k IN ('a', 'b')",
        "variant_get(e, '$.k', 'string collate utf8_lcase') = 'GOOD'",
        "e:k::string COLLATE utf8_lcase = 'GOOD'",
        "e:k::string = 'GOOD' COLLATE utf8_lcase",
        "variant_get(e, '$.k', 'no type') = 1",
        "variant_get(e, '$.k', 'string; drop') = 1",
        "variant_get(e, '$.k', 'time') = '10:00:00'",
        "e:k::time IS NULL",
    ],
)
def test_what_is_not_compared_by_bytes_is_refused(condition: str) -> None:
    with pytest.raises(UnsupportedFeature, match="local engine"):
        QueryText(SCHEMA).condition(condition)
    assert QueryText(SCHEMA).condition("k IS NULL")
