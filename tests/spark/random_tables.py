"""Tables of random documents, each file written and shredded in another way, and their judge.

All is made through the public surface: our `append` with and without shredding, Delta Spark's
INSERT between two of ours, its DELETE that leaves deletion vectors. The judge is plain Parquet with
the same Variants, never shredded.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import variantlake as vl
from tests.spark.layouts import changed
from variantlake.encoding.scalar import FALSE, NULL, TRUE, Scalar, exact_decimal, integer
from variantlake.encoding.tree import Tree, encode
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.types import Primitive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DECIMALS = ("1.50", "0.05", "-1.9", "2.0", "127.99", "99999.5", "12345678901234567890.123")
_STRINGS = (
    *("", "a", "ab", "abd", "b", "5", "-7", "1.5", "1e3", "true", "2024-01-31", "é", "A", " 5 "),
    *("a%b", "it's", "\uffff", "\U0010ffff", "2024-03-10 02:30:00", "x" * 70, "x" * 69 + "y"),
)
_FLOATS = (0.0, -0.0, 1.5, -2.5, 16777216.0, 0.1, float("nan"), float("-inf"))
_DOUBLES = (*_FLOATS, 1e300, 5e-324, 2.0**53, 127.9, -3.0)
_MICROS = (
    *(0, -1, 1_704_067_199_999_999, 1_710_037_800_123_456, 1_730_606_400_000_000),
    *(-3_000_000_000_000_001, 1_710_052_200_000_000, 4_102_444_800_000_000),
)


def _single(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


VALUES: dict[str, tuple[Scalar, ...]] = {
    "digit": tuple(integer(number) for number in range(10)),
    "int": tuple(
        integer(number) for number in (-1, 0, 5, 127, 128, -129, 2**31, 2**53 + 1, -(2**63))
    ),
    "decimal": tuple(exact_decimal(Decimal(text)) for text in _DECIMALS),
    "number": (
        *(integer(i) for i in (1, 2, 300)),
        *map(exact_decimal, map(Decimal, ("1.5", "2.25"))),
    ),
    "double": tuple(Scalar(Primitive.DOUBLE, value) for value in _DOUBLES),
    "plain double": tuple(Scalar(Primitive.DOUBLE, value) for value in (1.5, 2.0, 1e10, -3.0)),
    "float": tuple(Scalar(Primitive.FLOAT, _single(value)) for value in _FLOATS),
    "string": tuple(Scalar(Primitive.STRING, text) for text in _STRINGS),
    "word": tuple(Scalar(Primitive.STRING, text) for text in ("a", "ab", "abd", "b")),
    "boolean": (TRUE, FALSE),
    "date": tuple(Scalar(Primitive.DATE, day) for day in (0, 19723, 19753, 19792, -141427)),
    "timestamp": tuple(Scalar(Primitive.TIMESTAMP, micros) for micros in _MICROS),
    "timestamp_ntz": tuple(Scalar(Primitive.TIMESTAMP_NTZ, micros) for micros in _MICROS),
    "binary": tuple(Scalar(Primitive.BINARY, data) for data in (b"", b"abc", b"5", bytes(70))),
}
"""A few values of each kind, so that conditions hit them; edges of types among them."""

TYPES: dict[str, tuple[str, ...]] = {
    "digit": ("BIGINT", "BIGINT", "INT", "DECIMAL(10,2)", "TINYINT"),
    "int": ("BIGINT", "BIGINT", "DECIMAL(38,2)", "INT"),
    "decimal": ("DECIMAL(38,3)", "DECIMAL(18,4)", "DECIMAL(9,2)"),
    "number": ("DECIMAL(10,2)", "DECIMAL(18,4)", "BIGINT"),
    "double": ("DOUBLE",),
    "plain double": ("DOUBLE",),
    "float": ("FLOAT",),
    "string": ("STRING",),
    "word": ("STRING",),
    "boolean": ("BOOLEAN",),
    "date": ("DATE",),
    "timestamp": ("TIMESTAMP",),
    "timestamp_ntz": ("TIMESTAMP_NTZ",),
    "binary": ("BINARY",),
}
"""What such values may be shredded into."""

KEYS = (
    *("a", "b", "c", "d", "e", "K", "\u212a", "A", "odd key", "a.b", "value", "typed_value"),
    *("list", "é😀", "_x", "$", "element"),
)
"""Keys of scalars: names of the layout, twins by case (the sign of Kelvin is one), odd ones."""

INNER = ("x", "y", "X", "odd key")


@dataclass(frozen=True, slots=True)
class Field:
    """What the documents of one file hold under a key.

    `form` is how values of the kind are wrapped: not, in an object, in arrays.
    """

    form: str
    kind: str
    sure: float
    """How probable a value of just that kind is; else it is missing, null or anything else."""
    nulls: bool
    mixed: bool


@dataclass(frozen=True, slots=True)
class RandomTable:
    """A table at `location`, and the view `judge` of the same rows; `layouts` tells its files."""

    seed: int
    location: str
    judge: str
    columns: tuple[str, ...]
    layouts: tuple[str, ...]
    forms: dict[str, tuple[str, str]]
    """The usual form and kind of each key."""


_FORMS = ("scalar", "scalar", "scalar", "object", "list", "objects", "lists")
_KINDS = tuple(VALUES)
ROWS = 24


class _Maker:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.forms: dict[str, tuple[str, str]] = {}
        for key in KEYS:
            self.forms[key] = (chance.choice(_FORMS), chance.choice(_KINDS))

    def fields(self) -> dict[str, Field]:
        """What one file holds, mostly what the table holds elsewhere."""
        chance = self._chance
        found = {}
        for key, (usual_form, usual_kind) in self.forms.items():
            if chance.random() < 0.1:
                continue
            form = usual_form if chance.random() < 0.95 else chance.choice(_FORMS)
            kind = usual_kind if chance.random() < 0.8 else chance.choice(_KINDS)
            found[key] = Field(
                form,
                kind,
                sure=chance.choice((1.0, 0.9, 0.7)),
                nulls=chance.random() < 0.5,
                mixed=chance.random() < 0.15,
            )
        return found

    def documents(self, fields: dict[str, Field], first: int) -> list[Tree | None]:
        return [self._document(fields, row) for row in range(first, first + ROWS)]

    def _document(self, fields: dict[str, Field], row: int) -> Tree | None:
        chance = self._chance
        if chance.random() < 0.04:
            return chance.choice((None, NULL, [], {}, integer(5), Scalar(Primitive.STRING, "a")))
        # Grow from file to file, so that files can be skipped.
        document: dict[str, Tree] = {
            "id": integer(row),
            "at": Scalar(Primitive.TIMESTAMP, 1_710_000_000_000_000 + row * 7_200_000_123),
            "name": Scalar(Primitive.STRING, f"{row:04}{'n' * (row % 80)}"),
        }
        for key, field in fields.items():
            if chance.random() < field.sure:
                document[key] = self._wrapped(field)
            elif field.mixed and chance.random() < 0.6:
                document[key] = self._anything()
            elif field.nulls:
                document[key] = NULL
        return document

    def _wrapped(self, field: Field) -> Tree:
        chance = self._chance
        value = chance.choice(VALUES[field.kind])
        match field.form:
            case "object":
                return {
                    key: chance.choice(VALUES[field.kind]) if chance.random() < 0.9 else NULL
                    for key in INNER[: chance.randint(1, 4)]
                }
            case "list":
                return [chance.choice(VALUES[field.kind]) for _ in range(chance.randrange(4))]
            case "objects":
                return [{"x": value, "y": integer(at)} for at in range(chance.randrange(3))]
            case "lists":
                return [[value] * chance.randrange(3) for _ in range(chance.randrange(3))]
        return value

    def _anything(self) -> Tree:
        chance = self._chance
        value: Tree = chance.choice(VALUES[chance.choice(_KINDS)])
        nested: Tree = {"x": {"y": value}}
        return chance.choice((value, value, [value], {"x": value}, {}, [], nested))

    def shredding(self, fields: dict[str, Field]) -> str:
        """A schema that fits the file mostly; of twins by case one at most becomes a column."""
        chance = self._chance
        found = {"id": "BIGINT", "at": "TIMESTAMP", "name": "STRING"}
        folded = set()
        for key, field in sorted(fields.items(), key=lambda _: chance.random()):
            if key.casefold() in folded or chance.random() < 0.1:
                continue
            folded.add(key.casefold())
            found[key] = self._type(field)
        return ", ".join(f"`{key}` {type_}" for key, type_ in found.items())

    def _type(self, field: Field) -> str:
        chance = self._chance
        kind = field.kind if chance.random() < 0.9 else chance.choice(_KINDS)
        leaf = chance.choice(TYPES[kind])
        match field.form:
            case "object":
                inner = [f"`{key}`: {leaf}" for key in ("x", "y", "odd key")]
                return f"STRUCT<{', '.join(inner[: chance.randint(1, 3)])}>"
            case "list":
                return f"ARRAY<{leaf}>"
            case "objects":
                return f"ARRAY<STRUCT<x: {leaf}, y: INT>>"
            case "lists":
                return f"ARRAY<ARRAY<{leaf}>>"
        return leaf if chance.random() < 0.9 else f"STRUCT<x: {leaf}>"


def make(spark: SparkSession, folder: Path, seed: int) -> RandomTable:
    """A table of six appends: ours shredded and unshredded, one by Delta Spark between them.

    Every second table is partitioned and has deleted rows, every third one has mapped columns.
    """
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(seed)
    maker = _Maker(chance)
    partitioned, mapped = seed % 2 == 1, seed % 3 == 1
    properties = {"delta.enableDeletionVectors": "true"}
    if mapped:
        properties["delta.columnMapping.mode"] = "name"
    ddl = "event VARIANT, k INT, c INT, f DOUBLE, ts TIMESTAMP, p STRING"
    table = vl.Table.create(
        folder / "a table",
        ddl,
        partition_by=["p"] if partitioned else [],
        properties=properties,
        shredding={"event": "id BIGINT"},
    )
    column = next(iter(table.schema.fields)).physical_name
    layouts = []
    parts = []
    for number, writer in enumerate(("shredded", "other", "delta", "plain", "shredded", "other")):
        first = number * ROWS
        fields = maker.fields()
        rows = _rows(chance, maker.documents(fields, first), first)
        parts.append(rows)
        layout = maker.shredding(fields)
        if writer == "delta":
            _insert(spark, folder / "inserted.parquet", rows, str(folder / "a table"), ddl)
            layout = "by Delta Spark"
        else:
            table.set_properties(
                {
                    f"variantlake.shredding.{column}": layout,
                    "delta.enableVariantShredding": str(writer != "plain").lower(),
                }
            )
            table = table.refresh()
            table.append(rows)
            table.set_properties({"delta.enableVariantShredding": "true"})
            layout = layout if writer != "plain" else "unshredded"
        layouts.append(f"k from {first}: {layout}")
        if partitioned and number == 2:
            spark.sql(f"DELETE FROM delta.`{folder / 'a table'}` WHERE k % 5 = 3")
    kept = pa.concat_tables(parts)
    if partitioned:
        spark.sql(f"DELETE FROM delta.`{folder / 'a table'}` WHERE k % 7 = 2")
        numbers: list[Any] = kept["k"].to_pylist()
        deleted = [k % 7 == 2 or (k % 5 == 3 and k < 3 * ROWS) for k in numbers]
        kept = kept.filter(pc.invert(pa.array(deleted)))
    pq.write_table(kept, folder / "judge.parquet")
    name = f"judge_{seed}"
    _plain(spark, folder / "judge.parquet", ddl).createOrReplaceTempView(name)
    return RandomTable(
        seed,
        str(folder / "a table"),
        name,
        tuple(item.split()[0] for item in ddl.split(", ")),
        tuple(layouts),
        maker.forms,
    )


def _rows(chance: random.Random, documents: Sequence[Tree | None], first: int) -> pa.Table:
    encoded = [None if tree is None else encode(tree) for tree in documents]
    rows = range(first, first + len(documents))
    seconds = [chance.choice((None, 1_700_000_000_000_000 + row * 3_600_000_000)) for row in rows]
    variants = [None if row is None else {"metadata": row[0], "value": row[1]} for row in encoded]
    return pa.table(
        {
            "event": pa.array(variants, VARIANT_TYPE),
            "k": pa.array(rows, pa.int32()),
            "c": pa.array([chance.choice((None, row // 20, 7)) for row in rows], pa.int32()),
            "f": pa.array([chance.choice((None, float(row), *_DOUBLES)) for row in rows]),
            "ts": pa.array(seconds, pa.timestamp("us", "UTC")),
            "p": pa.array([chance.choice(("a", "it's 100%", None)) for _ in rows]),
        }
    )


def _plain(spark: SparkSession, file: Path, ddl: str) -> Any:
    return spark.read.schema(ddl).parquet(str(file))


def _insert(spark: SparkSession, file: Path, rows: pa.Table, table: str, ddl: str) -> None:
    pq.write_table(rows, file)
    _plain(spark, file, ddl).coalesce(1).createOrReplaceTempView("inserted")
    with changed(spark, {"spark.sql.session.timeZone": "UTC"}):
        spark.sql(f"INSERT INTO delta.`{table}` SELECT * FROM inserted")
    spark.catalog.dropTempView("inserted")
