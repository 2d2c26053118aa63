"""Random tables, kept in shape at random: no row changes, in no version, and queries say the same.

The judge is a model: what was appended, less what was deleted. Rows are compared with exact types
(but numbers in Variants by value, as the specification has them).
"""

from __future__ import annotations

import contextlib
import datetime as dt
import random
import struct
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.strategies import MORE
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidSchema, UnsupportedFeature
from variantlake.maintenance import plan_compaction
from variantlake.parquet.variant.variant_arrays import variant_array
from variantlake.parquet.write import copy_row_groups
from variantlake.shredding.layout import VARIANT_TYPE

SEEDS = 4 * MORE
STEPS = 8

PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.columnMapping.mode": "name",
    "delta.checkpointPolicy": "v2",
    "delta.checkpointInterval": "3",
    "delta.dataSkippingNumIndexedCols": "1",
}
NESTED = "s STRUCT<v: VARIANT, x: DOUBLE>, l ARRAY<VARIANT>, m MAP<STRING, VARIANT>, f FLOAT"
SHREDDINGS = [
    "a BIGINT, s STRING",
    "a DECIMAL(10,2), t TIMESTAMP",
    "a STRUCT<p: BIGINT>, s DATE",
    "a ARRAY<VARIANT>, c DOUBLE",
    "A STRING",
]
PARTITIONS: dict[str, tuple[Any, list[Any]]] = {
    "STRING": (pa.string(), ["b c", "x=y/z%", "é", None]),
    "DATE": (pa.date32(), [dt.date(1582, 1, 1), None]),
    "DOUBLE": (pa.float64(), [1.5, -0.0, None]),
}
CONDITIONS = [
    "n < 30",
    "event:s::string IS NOT NULL",
    "try_variant_get(event, '$.a', 'bigint') > 0",
    "try_variant_get(event, '$.a.p', 'int') = 3",
]


def exact(value: Any) -> Any:
    """A value of a row with its type, as what can be compared and printed."""
    if isinstance(value, dict) and set(value) == {"metadata", "value"}:
        return exact_tree(Variant(value["metadata"], value["value"]).tree())
    if isinstance(value, dict):
        return {name: exact(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [exact(each) for each in value]
    return struct.pack("<d", value) if isinstance(value, float) else repr(value)


def exact_tree(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: exact_tree(each) for key, each in sorted(tree.items())}
    if isinstance(tree, list):
        return [exact_tree(each) for each in tree]
    if tree.type.name.startswith(("INT", "DECIMAL")):
        return f"{Decimal(tree.value).normalize():f}"
    return tree.type.name, exact(tree.value)


class Upkeep:
    """A table, what is in it, and what was in each of its versions; `random` decides."""

    def __init__(self, root: Path, seed: int) -> None:
        self.random = found = random.Random(seed)
        self.count = 0
        self.live: dict[int, str] = {}
        self.versions: dict[int, dict[int, str]] = {}
        self.is_nested = found.random() < 0.5
        self.partition = found.choice([None, None, *PARTITIONS])
        self.keys = found.sample("abcst", 3)
        self.log: list[str] = []
        columns = ["event VARIANT", "n BIGINT", *([NESTED] if self.is_nested else [])]
        columns += [f"day {self.partition}"] if self.partition else []
        shredding = {"event": found.choice(SHREDDINGS)} if found.random() < 0.4 else None
        self.table = vl.Table.create(
            root,
            ", ".join(columns),
            partition_by="day" if self.partition else None,
            properties={k: v for k, v in PROPERTIES.items() if found.random() < 0.4},
            shredding=shredding,
        )

    def scalar(self) -> Any:
        found = self.random
        choice: Callable[[], Any] = found.choice(
            [
                lambda: found.randrange(-(10 ** found.randrange(1, 19)), 10**18),
                lambda: Decimal(found.randrange(-9999, 9999)).scaleb(-2),
                lambda: Decimal(found.randrange(10**30)).scaleb(-found.randrange(30)),
                lambda: found.choice([float("nan"), -0.0, 0.0, float("inf"), 1e300, 0.1]),
                lambda: found.choice(["", "x" * found.randrange(80), "é\0z", "7"]),
                lambda: found.choice([True, False, None, b"", b"\0\xff"]),
                lambda: dt.date(1500, 1, 1) + dt.timedelta(days=found.randrange(300_000)),
                lambda: (
                    dt.datetime(1900, 1, 1, tzinfo=found.choice([None, dt.UTC]))
                    + dt.timedelta(microseconds=found.randrange(10**16))
                ),
            ]
        )
        return choice()

    def value(self, depth: int = 2) -> Any:
        share = self.random.random()
        if depth and share < 0.2:
            keys = self.random.sample(["p", "q", "A", "x.y", "é"], self.random.randrange(4))
            return {key: self.value(depth - 1) for key in keys}
        if depth and share < 0.3:
            return [self.value(depth - 1) for _ in range(self.random.randrange(4))]
        return self.scalar()

    def variant(self) -> Any:
        if self.random.random() < 0.2:
            return None
        found = Variant.of(self.value())
        return {"metadata": found.metadata, "value": found.value}

    def document(self, usual: Callable[[], Any]) -> Variant | None:
        """An object most of whose values are of the usual type of a load."""
        if self.random.random() < 0.05:
            return None
        doc = {k: usual() for k in self.keys if self.random.random() < 0.9}
        if self.random.random() < 0.2:
            doc[self.random.choice("abcst")] = self.value()
        return Variant.of(doc)

    def append(self) -> None:
        found = self.random
        rows = found.choice([0, 1, 20, 60])
        usual = found.choice(
            [
                lambda: found.randrange(1000),
                lambda: found.choice([found.randrange(99), Decimal("7.25"), Decimal("7.00")]),
                lambda: "x" * found.randrange(9),
                lambda: {"p": found.randrange(9)},
                lambda: found.choice([float("nan"), -0.0, 0.5]),
            ]
        )
        data: dict[str, Any] = {
            "event": variant_array([self.document(usual) for _ in range(rows)]),
            "n": pa.array(range(self.count, self.count + rows), pa.int64()),
        }
        if self.is_nested:
            nested: dict[str, tuple[Any, Callable[[], Any]]] = {
                "s": (
                    pa.struct([("v", VARIANT_TYPE), ("x", pa.float64())]),
                    lambda: {"v": self.variant(), "x": found.choice([-0.0, float("nan"), None])},
                ),
                "l": (pa.list_(VARIANT_TYPE), lambda: [self.variant() for _ in range(2)]),
                "m": (pa.map_(pa.string(), VARIANT_TYPE), lambda: [("k", self.variant())]),
                "f": (pa.float32(), lambda: found.choice([-0.0, 1.5, None])),
            }
            for name, (kind, made) in nested.items():
                data[name] = pa.array(
                    [made() if found.random() < 0.8 else None for _ in range(rows)], kind
                )
        if self.partition:
            kind, values = PARTITIONS[self.partition]
            data["day"] = pa.array([found.choice(values) for _ in range(rows)], kind)
        self.count += rows
        appended = pa.table(data)
        self.table.append(appended)
        self.live |= {row["n"]: repr(exact(row)) for row in appended.to_pylist()}

    def delete(self) -> None:
        numbers = [n for n in self.live if n % 5 == self.count % 5][: self.random.choice([1, 99])]
        if numbers:
            self.table.delete(f"n IN ({', '.join(map(str, numbers))})")
            self.live = {n: text for n, text in self.live.items() if n not in numbers}

    def other_layout(self) -> None:
        name = f"variantlake.shredding.{self.table.snapshot.schema.fields[0].physical_name}"
        with contextlib.suppress(InvalidSchema):  # without the path of the table's order
            self.table.set_properties(
                {name: self.random.choice(SHREDDINGS), "delta.enableVariantShredding": "true"}
            )

    def keep_up(self) -> None:
        """One thing that must change no row; queries and the change feed say so too."""
        found, table = self.random, self.table
        where = found.choice([None, *CONDITIONS])
        size = found.choice([1500, 20_000, 1 << 28])
        by = found.choice(["n", "event:a", "event:s"])
        do: tuple[str, Callable[[], object]] = found.choice(
            [
                ("optimize", lambda: table.optimize(where, target_file_size=size)),
                ("optimize all", lambda: table.optimize(max_deleted_share=0)),
                ("cluster", lambda: (table.set_clustering(by), table.refresh().cluster(
                    where, budget=1 << 30, target_file_size=size))),
                ("reshred", lambda: table.reshred(where=where)),
                ("reshred to", lambda: table.reshred({"event": found.choice(SHREDDINGS)}, where)),
                ("unshred", table.unshred),
            ]
        )  # fmt: skip
        self.log.append(f"{do[0]} {where} {size} {by}")
        before = [self.numbers(each) for each in CONDITIONS]
        try:
            do[1]()
        except (InvalidSchema, UnsupportedFeature) as error:  # an order that the layout lacks
            self.log.append(str(error))
        after = table.refresh()
        if do[0] == "optimize":  # a second run finds nothing
            second = after.optimize(where, target_file_size=size, dry_run=True)
            assert second.files_read == 0, self.log
        for each, known in zip(CONDITIONS, before, strict=True):
            again = self.numbers(each)
            assert None in (again, known) or again == known, each
        if table.properties.get("delta.enableChangeDataFeed") and after.version > table.version:
            assert after.changes(table.version + 1, select="n").to_arrow().num_rows == 0

    def numbers(self, where: str) -> list[Any] | None:
        """The rows that a condition finds; None if a cast in it is left to Spark."""
        try:
            return sorted(self.table.refresh().scan("n", where).to_arrow()["n"].to_pylist())
        except UnsupportedFeature:
            return None

    def restore(self) -> None:
        version = self.random.choice(list(self.versions))
        self.log.append(f"to {version}")
        self.table.restore(version)
        self.live = dict(self.versions[version])

    def check(self, version: int | None = None) -> None:
        wanted = self.live if version is None else self.versions[version]
        table = self.table if version is None else vl.Table.open(self.table.uri, version)
        rows = table.scan().to_arrow().to_pylist()
        assert Counter(repr(exact(row)) for row in rows) == Counter(wanted.values())

    def step(self) -> None:
        do = self.random.choice(
            [self.append] * 3
            + [self.keep_up] * 5
            + [self.delete, self.other_layout, *([self.restore] if self.versions else [])]
        )
        self.log.append(do.__name__)
        self.table = self.table.refresh()
        do()
        self.table = self.table.refresh()
        self.check()
        self.versions[self.table.version] = dict(self.live)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_row_changes_in_any_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    if seed % 2:
        for module in (plan_compaction, copy_row_groups):  # small row groups are copied, too
            monkeypatch.setattr(module, "MIN_ROW_GROUP_BYTES", 100)
    made = Upkeep(tmp_path / "t", seed)
    try:
        made.append()
        for _ in range(STEPS):
            made.step()
        for version in made.versions:
            made.check(version)
        made.table.vacuum(0, force=True)
        made.check()
    except Exception as error:
        error.add_note("\n".join([str(made.table.properties), *made.log]))
        raise
