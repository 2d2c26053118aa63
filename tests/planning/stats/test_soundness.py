"""Skipping and reading against brute force: random files, random predicates, row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planning import model
from tests.planning.builders import may_be, may_match, plan_files, skipped
from tests.planning.model import MISSING, Row
from tests.strategies import MORE
from variantlake.expressions.bounds import May
from variantlake.expressions.tree import (
    And,
    Compare,
    CompareOp,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Ref,
    StartsWith,
)
from variantlake.parquet.stats.bounds import Bounds
from variantlake.parquet.stats.fact_columns import RecordColumns
from variantlake.parquet.stats.facts import ColumnFacts, FileFacts, PathFacts
from variantlake.paths import Path
from variantlake.planning.exact.readings import NullColumn, PhysicalColumn, Reader
from variantlake.planning.files import RecordFiles, ScanFile
from variantlake.planning.plan import plan_scan
from variantlake.planning.stats.skipping import Skipper, domains_in
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema, Untyped
from variantlake.types import DOUBLE, INT64, STRING, Kind, ShreddedType

INTS = [-1, 0, 1, 2, 5, 127, 128, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
DECIMALS = [Decimal(text) for text in ("1.5", "1.90", "-1.9", "2.0", "0.05", "127.99", "99999.5")]
DOUBLES = [0.0, -0.0, 1.5, 2.0, -3.0, 1e300, float("inf"), float("nan"), 9007199254740992.0]
STRINGS = ["", "a", "ab", "abc", "abd", "b", "5", "é", "\uffff", "\U00010000", "\U0010ffff"]
SCALARS: list[st.SearchStrategy[Any]] = [
    st.sampled_from(INTS),
    st.sampled_from([*DECIMALS, 2, 3]),
    st.sampled_from(DOUBLES),
    st.sampled_from(STRINGS),
    st.booleans(),
]
ANYTHING = st.one_of(*SCALARS, st.none(), st.just([1, "a"]), st.just({}), st.just({"x": 1, "y": 2}))
KEYS = ["a", "b", "A", "n", "l"]
STORED = [
    INT64,
    DOUBLE,
    STRING,
    ShreddedType(Kind.BOOLEAN),
    ShreddedType(Kind.INT32),
    ShreddedType(Kind.DECIMAL, 9, 2),
    ShreddedType(Kind.DECIMAL, 38, 2),
]
PATHS = [
    *("$", "$.a", "$.b", "$.A", "$.n", "$.n.x", "$.n.z", "$.a.x", "$.l.x", "$.nobody"),
    *("$.l[0]", "$.l[1]", "$.l[0].x", "$.l[1].X", "$.l[0].z", "$.l[0][1]", "$.l[1][0].x", "$.l[7]"),
]
ASKED = [
    "tinyint",
    "int",
    "bigint",
    "double",
    "decimal(5,0)",
    "decimal(10,2)",
    "decimal(38,2)",
    "string",
    "boolean",
]
DAYS = ["", "2024-01-01", "2024-01-02"]


@st.composite
def layouts(draw: st.DrawFn) -> ShreddingSchema:
    leaves: st.SearchStrategy[Node] = st.sampled_from(STORED).map(Leaf)
    untyped: st.SearchStrategy[Node] = st.just(Untyped())
    nodes = leaves | leaves | untyped
    fields: dict[str, Node] = {}
    for key in draw(st.lists(st.sampled_from(KEYS), unique=True)):
        if key == "n":
            fields[key] = Object((("x", draw(nodes)),))
        elif key == "l":
            fields[key] = draw(untyped | st.builds(Array, draw(elements(nodes))))
        else:
            fields[key] = draw(nodes)
    return ShreddingSchema(Object(tuple(fields.items())) if draw(st.integers(0, 9)) else Untyped())


def elements(nodes: st.SearchStrategy[Node]) -> st.SearchStrategy[st.SearchStrategy[Node]]:
    """Elements of arrays: scalars, objects, arrays of both."""
    objects = nodes.map(lambda node: Object((("w", Untyped()), ("x", node))))
    plain = nodes | objects
    return st.sampled_from([plain, plain.map(Array)])


@st.composite
def documents(draw: st.DrawFn, kinds: dict[str, int], mixed: bool) -> Any:
    if draw(st.integers(0, 15)) == 0:
        return draw(ANYTHING) if mixed else MISSING
    document: dict[str, Any] = {}
    for key in KEYS:
        usual: st.SearchStrategy[Any] = SCALARS[kinds[key]]
        if key == "n":
            usual = usual.map(lambda value: {"x": value})
        elif key == "l":
            usual = (draw(st.sampled_from(FORMS)) if mixed else FORMS[kinds["form"]])(usual)
        value = draw(usual | st.just(MISSING) if not mixed else usual | ANYTHING | st.just(MISSING))
        if value is not MISSING:
            document[key] = value
    if mixed and draw(st.booleans()):
        document["more"] = 1
    return document


FORMS: list[Callable[[st.SearchStrategy[Any]], st.SearchStrategy[Any]]] = [
    lambda value: st.lists(value, max_size=3),
    lambda value: st.lists(value.map(lambda one: {"x": one}) | st.none() | st.just({}), max_size=3),
    lambda value: st.lists(st.lists(value, max_size=2), max_size=2),
    lambda value: st.lists(st.just([{"x": 1}]) | value.map(lambda one: [{"x": one}]), max_size=2),
    lambda value: st.lists(value | ANYTHING, max_size=3),
]
"""Arrays of scalars, of objects, of arrays, and mixed ones."""


@st.composite
def files(draw: st.DrawFn) -> tuple[ScanFile, list[Row]]:
    """A file with exact or blunted facts, and its rows."""
    kinds = {key: draw(st.integers(0, len(SCALARS) - 1)) for key in KEYS}
    kinds["form"] = draw(st.integers(0, len(FORMS) - 1))
    variants = draw(st.lists(documents(kinds, draw(st.booleans())), max_size=4))
    numbers = [draw(st.sampled_from([None, 1, 2, 300])) for _ in variants]
    day = draw(st.sampled_from(DAYS))
    date = {"": None, "2024-01-01": 19723, "2024-01-02": 19724}[day]
    rows = [
        Row(variant, {("c",): number, ("day",): date})
        for variant, number in zip(variants, numbers, strict=True)
    ]
    known = [number for number in numbers if number is not None]
    column = ColumnFacts(
        ("c",),
        pa.int32(),
        numbers.count(None),
        Bounds(
            min(known, default=None),
            max(known, default=None),
            minimum_exact=True,
            maximum_exact=True,
        ),
    )
    facts = model.file_facts(draw(layouts()), rows, (column,))
    return ScanFile("part", 300 * MORE, draw(blunted(facts)), {"day": day}), rows


@st.composite
def blunted(draw: st.DrawFn, facts: FileFacts) -> FileFacts:
    """The same facts, or less: cut strings, one bound, unknown counts, unchecked floats."""
    if draw(st.booleans()):
        return facts
    (variant,) = facts.variants
    paths = tuple(draw(_blunted_path(path)) for path in variant.paths)
    records = draw(st.sampled_from([facts.num_records, -1]))
    return replace(facts, num_records=records, variants=(replace(variant, paths=paths),))


@st.composite
def _blunted_path(draw: st.DrawFn, path: PathFacts) -> PathFacts:
    if draw(st.booleans()):
        return path
    low, high = path.bounds.minimum, path.bounds.maximum
    if isinstance(low, str) and isinstance(high, str):
        low, high = low[:1], high[:1] + "\U0010ffff" * 2
    if draw(st.integers(0, 3)) == 0:
        low = None
    if draw(st.integers(0, 3)) == 0:
        high = None
    return replace(
        path,
        typed=draw(st.sampled_from([path.typed, -1])),
        bounds=Bounds(low, high),
        plain_floats=False,
    )


def literals(requested: str) -> st.SearchStrategy[Literal]:
    """Constants that Spark may compare with this type, NULL among them."""
    null = st.just(Literal(None, requested))
    if requested == "string":
        return st.sampled_from(STRINGS).map(lambda text: Literal(text, "string")) | null
    if requested == "boolean":
        return st.booleans().map(lambda value: Literal(value, "boolean")) | null
    if requested == "date":
        return st.sampled_from([19722, 19723, 19724]).map(lambda day: Literal(day, "date")) | null
    whole = st.sampled_from(INTS).map(lambda value: Literal(value, "bigint"))
    exact = st.sampled_from(DECIMALS).map(lambda value: Literal(value, "decimal(10,2)"))
    double = st.sampled_from(DOUBLES).map(lambda value: Literal(value, "double"))
    return whole | exact | double | null


REFS = st.builds(
    lambda path, requested, strict: Ref(("v",), Path.parse(path), requested, strict),
    st.sampled_from(PATHS),
    st.sampled_from(ASKED),
    st.booleans(),
) | st.sampled_from([Ref(("c",), None, "int"), Ref(("day",), None, "date")])
VARIANT_REFS = st.builds(
    lambda path: Ref(("v",), Path.parse(path), "variant"), st.sampled_from(PATHS)
) | st.just(Ref(("v",), None, "variant"))
OPS: st.SearchStrategy[CompareOp] = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])


@st.composite
def comparisons(draw: st.DrawFn) -> Predicate:
    ref, op = draw(REFS), draw(OPS)
    literal = draw(literals(ref.type))
    return Compare(op, literal, ref) if draw(st.integers(0, 4)) == 0 else Compare(op, ref, literal)


@st.composite
def memberships(draw: st.DrawFn) -> Predicate:
    ref = draw(REFS)
    return In(ref, tuple(draw(st.lists(literals(ref.type), min_size=1, max_size=3))))


PREFIXES = st.builds(
    lambda path, prefix: StartsWith(Ref(("v",), Path.parse(path), "string"), prefix),
    st.sampled_from(PATHS),
    st.sampled_from(STRINGS),
)
TERMS = (
    comparisons()
    | memberships()
    | PREFIXES
    | (REFS | VARIANT_REFS).flatmap(lambda ref: st.sampled_from([IsNull(ref), Not(IsNull(ref))]))
)
PREDICATES = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=1, max_size=3).map(lambda terms: And(tuple(terms))),
        st.lists(inner, min_size=1, max_size=3).map(lambda terms: Or(tuple(terms))),
    ),
    max_leaves=4,
)

PARTITION_TYPES = {"day": "date"}
TRUTH = {True: May.TRUE, False: May.FALSE, None: May.NULL}


@pytest.mark.rule(19)
@settings(max_examples=100 * MORE, deadline=None)
@given(file=files(), predicate=PREDICATES)
def test_rule_19_every_truth_value_of_a_row_was_said_to_be_possible(
    file: tuple[ScanFile, list[Row]], predicate: Predicate
) -> None:
    scan, rows = file
    for part, may in may_be(predicate, scan, PARTITION_TYPES):
        for row in rows:
            assert TRUTH[model.evaluate(part, row)] in may, (str(part), row)


VALUES: dict[Kind, list[Any]] = {
    Kind.INT64: INTS,
    Kind.INT32: INTS[:8],
    Kind.DOUBLE: DOUBLES,
    Kind.STRING: STRINGS,
    Kind.BOOLEAN: [True, False],
    Kind.DECIMAL: [*DECIMALS, 1, 2],
}


@st.composite
def one_path(draw: st.DrawFn) -> tuple[FileFacts, list[Row], Predicate]:
    """A file with one typed column of few values, and a short condition on that path."""
    stored = draw(st.sampled_from(STORED))
    pool = st.sampled_from(VALUES[stored.kind])
    values = draw(st.lists(pool, min_size=1, max_size=2))
    values += draw(st.lists(st.sampled_from([None, MISSING]), max_size=1))
    rows = [Row({} if value is MISSING else {"a": value}) for value in values]
    known = draw(blunted(model.file_facts(ShreddingSchema(Object((("a", Leaf(stored)),))), rows)))
    own = stored.ddl.lower()
    ref = Ref(("v",), Path.of("a"), draw(st.sampled_from([own, *ASKED])), draw(st.booleans()))
    literal = literals(ref.type)
    if stored.kind is not Kind.STRING and ref.type != "string":
        names = {Kind.DECIMAL: "decimal(38,2)", Kind.INT32: "bigint"}
        same = pool.map(lambda value: Literal(value, names.get(stored.kind, own)))
        literal = literal | same if ref.type != "boolean" else literal
    terms: list[st.SearchStrategy[Predicate]] = [
        st.builds(Compare, OPS, st.just(ref), literal),
        st.lists(literal, min_size=1, max_size=2).map(lambda options: In(ref, tuple(options))),
        st.just(IsNull(ref)),
        st.sampled_from(STRINGS).map(
            lambda prefix: StartsWith(replace(ref, type="string"), prefix)
        ),
    ]
    term = draw(st.one_of(terms))
    return known, rows, draw(st.sampled_from([term, Not(term)]))


@pytest.mark.rule(19)
@settings(max_examples=250 * MORE, deadline=None)
@given(case=one_path())
def test_rule_19_every_truth_value_of_one_path_was_said_to_be_possible(
    case: tuple[FileFacts, list[Row], Predicate],
) -> None:
    known, rows, predicate = case
    ((part, may),) = may_be(predicate, ScanFile("1", 1, known))
    for row in rows:
        assert TRUTH[model.evaluate(part, row)] in may, (str(part), row)


@pytest.mark.rule(19)
@settings(max_examples=50 * MORE, deadline=None)
@given(made=st.lists(files(), max_size=4), predicate=PREDICATES)
def test_skipped_files_hold_no_matching_row(
    made: list[tuple[ScanFile, list[Row]]], predicate: Predicate
) -> None:
    rows = {f"part-{i}": file[1] for i, file in enumerate(made)}
    scan = [replace(file[0], path=f"part-{i}") for i, file in enumerate(made)]
    plan = plan_files(scan, [], predicate, partition_types=PARTITION_TYPES)
    for name, _ in skipped(plan):
        assert not any(model.evaluate(predicate, row) for row in rows[name])
    assert plan.read_files + len(skipped(plan)) == len(made)


@settings(max_examples=30 * MORE, deadline=None)
@given(
    made=st.lists(files(), min_size=1, max_size=6),
    path=st.sampled_from(PATHS),
    requested=st.sampled_from(ASKED),
)
def test_files_are_read_together_as_each_alone(
    made: list[tuple[ScanFile, list[Row]]], path: str, requested: str
) -> None:
    reader = Reader(Ref(("v",), Path.parse(path), requested))
    facts = [replace_legacy(scan.facts, row % 3 == 2) for row, (scan, _) in enumerate(made)]
    found = reader.read_all(RecordColumns([*facts, None]))
    together = [found.choices[code] for code in found.codes.tolist()]
    assert together == [reader.read(each) for each in [*facts, None]]
    some = np.arange(0, len(together), 2)
    few = reader.read_all(RecordColumns([*facts, None]), some)
    assert [few.choices[code] for code in few.codes[some].tolist()] == together[::2]


def replace_legacy(facts: FileFacts | None, is_legacy: bool) -> FileFacts:
    assert facts is not None
    variants = tuple(replace(variant, is_legacy=is_legacy) for variant in facts.variants)
    return replace(facts, variants=variants)


@settings(max_examples=30 * MORE, deadline=None)
@given(made=st.lists(files(), min_size=1, max_size=6), predicate=PREDICATES)
def test_files_are_skipped_together_as_each_alone(
    made: list[tuple[ScanFile, list[Row]]], predicate: Predicate
) -> None:
    skipper = Skipper(predicate, PARTITION_TYPES)
    together = skipper.may_match(RecordFiles([scan for scan, _ in made])).tolist()
    alone = [may_match(skipper, scan.facts, scan.partition) for scan, _ in made]
    assert together == alone


class PiecedFiles(RecordFiles):
    """Files that came a few at a time."""

    def __init__(self, files: list[ScanFile], size: int) -> None:
        super().__init__(files)
        starts = range(0, len(files), size)
        self.pieces = [RecordFiles(files[start : start + size]) for start in starts]


@settings(max_examples=60 * MORE, deadline=None)
@given(
    made=st.lists(files(), min_size=1, max_size=6),
    predicate=PREDICATES,
    path=st.sampled_from(PATHS),
    requested=st.sampled_from(ASKED),
    size=st.integers(1, 3),
)
def test_files_are_planned_piece_by_piece_as_at_once(
    made: list[tuple[ScanFile, list[Row]]],
    predicate: Predicate,
    path: str,
    requested: str,
    size: int,
) -> None:
    scan = [replace(each, path=f"part-{i}") for i, (each, _) in enumerate(made)]
    ref = Ref(("v",), Path.parse(path), requested)
    pieced, whole = PiecedFiles(scan, size), RecordFiles(scan)
    plans = [
        plan_scan(each, [ref], predicate, partition_types=PARTITION_TYPES)
        for each in (pieced, whole)
    ]
    assert plans[0].skipped_by.tolist() == plans[1].skipped_by.tolist()
    assert plans[0].kept == plans[1].kept
    groups = [[(g.readings, g.kernels, list(g.files)) for g in plan.groups] for plan in plans]
    assert sorted(groups[0], key=str) == sorted(groups[1], key=str)
    skipper = Skipper(predicate, PARTITION_TYPES)
    fails = [[each.tolist() for each in skipper.may_fail(files)] for files in (pieced, whole)]
    assert fails[0] == fails[1]
    domains = [domains_in(files, ref, PARTITION_TYPES) for files in (pieced, whole)]
    for row in range(len(scan)):
        assert domains[0].reason(row) == domains[1].reason(row)
        assert domains[0].minimum.raw(row) == domains[1].minimum.raw(row)
        assert domains[0].maximum.raw(row) == domains[1].maximum.raw(row)


@pytest.mark.rule(4)
@settings(max_examples=150 * MORE, deadline=None)
@given(
    file=files(),
    path=st.sampled_from(PATHS),
    requested=st.sampled_from(ASKED),
    strict=st.booleans(),
)
def test_a_path_is_read_without_the_variant_only_where_that_is_exact(
    file: tuple[ScanFile, list[Row]], path: str, requested: str, strict: bool
) -> None:
    scan, rows = file
    ref = Ref(("v",), Path.parse(path), requested, strict)
    assert ref.path is not None
    reading = Reader(ref).read(scan.facts)
    for row in rows:
        judge = model.variant_get(row.variant, ref.path, requested)
        value = model.lookup(row.variant, ref.path)
        if isinstance(reading, NullColumn):
            assert judge is None
        elif isinstance(reading, PhysicalColumn):
            typed = value if model.fits(value, reading.stored) else None
            assert (typed is None) == (value is MISSING or value is None)
            ours = None if typed is None else model.cast(typed, requested)
            assert ours == judge or (ours != ours and judge != judge)
            if strict:
                assert (judge is None) == (typed is None), "a plain cast never fails"
