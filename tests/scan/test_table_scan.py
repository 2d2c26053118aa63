"""Scans without Spark: what they take, what they refuse by name, and who reads them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.strategies import MORE
from variantlake import paths
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.engine import reading
from variantlake.errors import (
    InvalidQuery,
    InvalidValue,
    MalformedFile,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.expressions.tree import Compare, Literal, Ref
from variantlake.ingest.local_run import ingest_here
from variantlake.kernels.shredded.unshred import unshred
from variantlake.parallel import prefetch
from variantlake.scan import table_scan
from variantlake.scan.files import chosen_rows, file_tasks
from variantlake.shredding.arrays import AnyArray
from variantlake.shredding.values import NumberForms
from variantlake.sql.select import QueryText

SCHEMA = parse_table_ddl(
    "event VARIANT, k INT, day DATE, at TIMESTAMP, name STRING, m DECIMAL(9,2)"
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    folder = tmp_path_factory.mktemp("scan")
    made = vl.Table.create(folder / "t", "event VARIANT, k INT")
    for start in (0, 1000, 2000):
        lines = [
            f'{{"id":{i},"kind":"k{i % 5}","n":{{"x":{i}.5}}}}' for i in range(start, start + 50)
        ]
        made.append(
            pa.table({"event": lines, "k": pa.array(range(50), pa.int32())}), json_columns=["event"]
        )
    return made.refresh()


def test_a_scan_is_an_arrow_stream(table: vl.Table) -> None:
    scan = table.scan(["event:id::bigint AS id", "event:kind::string"], "event:id::int < 20")
    assert scan.schema.names == ["id", "kind"]
    assert pa.table(scan) == scan.to_arrow()
    with duckdb.connect() as connection:
        connection.register("found", scan)
        connection.execute("SELECT kind, count(*) AS n FROM found GROUP BY kind ORDER BY kind")
        found = connection.fetchall()
    assert found == [(f"k{i}", 4) for i in range(5)]


def test_polars_takes_a_scan(table: vl.Table) -> None:
    scan = table.scan("event:id::bigint AS id, k", "k < 3")
    assert pl.DataFrame(scan)["id"].to_list() == [0, 1, 2, 1000, 1001, 1002, 2000, 2001, 2002]


def test_files_without_a_match_are_not_read(table: vl.Table) -> None:
    scan = table.scan("*", "event:id::bigint BETWEEN 1003 AND 1004")
    report = scan.explain()
    assert (report.read_files, report.total_files) == (1, 3)
    assert scan.count() == 2
    for file in table.files()["path"].to_pylist()[1:]:
        assert file


@pytest.mark.rule(14)
def test_rule_14_only_the_hits_are_rebuilt(
    table: vl.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    rebuilt: list[int] = []

    def counting(group: pa.StructArray, forms: NumberForms) -> pa.StructArray:
        rebuilt.append(len(group))
        return unshred(group, forms)

    monkeypatch.setattr("variantlake.parquet.variant.variant_columns.unshred", counting)
    found = table.scan("event", "event:id::bigint IN (7, 1003, 1004)").to_arrow()
    assert found.num_rows == 3
    assert sum(rebuilt) == 3


def test_limit_and_count(table: vl.Table) -> None:
    assert table.scan("k", limit=60).to_arrow().num_rows == 60
    assert table.scan("k", limit=60).count() == 60
    assert table.scan().count() == 150
    assert table.scan(where="true").count() == 150
    assert table.scan(where="false OR k < 1").count() == 3
    assert table.scan(where="event:nobody::int = 1").to_arrow().num_rows == 0
    assert table.scan("k", limit=0).to_arrow().num_rows == 0
    with pytest.raises(InvalidValue, match="limit is -1"):
        table.scan("k", limit=-1)
    with pytest.raises(InvalidValue, match=r"limit is 1\.5"):
        table.scan("k", limit=cast("int", 1.5))
    with pytest.raises(InvalidValue, match="limit is -1"):
        table.history(-1)
    for select in (None, 3):
        with pytest.raises(InvalidValue, match=f"select is {select}"):
            table.scan(cast("str", select))


def test_rows_are_not_asked_what_the_log_proves_of_all(
    table: vl.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table.scan("event, k").to_arrow()
    some = vl.Table.create(
        tmp_path / "t", "event VARIANT, k INT", properties={"delta.enableDeletionVectors": "true"}
    )
    some.append(rows, max_rows_per_file=50)
    some.delete("event:id::int IN (0, 1049)")
    with monkeypatch.context() as patched:
        patched.setattr(chosen_rows, "truth_of", None)
        for each, count in ((table, 50), (some.refresh(), 49)):
            scan = each.scan("event:id::int AS id", "event:id::int < 999 AND k >= 0")
            found = scan.to_arrow()["id"].to_pylist()
            assert found == list(range(50 - count, 50))
            assert scan.count() == count
            assert each.scan("k", "event:id::int < 999", limit=7).count() == 7
    assert some.scan("k", "event:id::int < 1001").count() == 50  # of one file some


def test_a_condition_of_thousands_of_terms(table: vl.Table) -> None:
    assert table.scan("k", "k < 1" + " OR k < 1" * 5000).to_arrow().num_rows == 3
    assert table.scan("k", "k < 1" + " AND k < 1" * 5000).to_arrow().num_rows == 3
    with pytest.raises(InvalidQuery, match="does not parse") as caught:
        table.scan("k", "NOT " * 5000 + "k < 1")
    assert len(caught.value.message) < 1000


def test_explain_says_did_you_mean(table: vl.Table) -> None:
    assert "Did you mean event:kind" in str(table.scan(where="event:kimd::string = 'x'").explain())


@pytest.mark.parametrize(
    "text",
    [
        "k + 1",
        "upper(name)",
        "event:a",
        "name RLIKE '(?i)x'",
        "k IN (SELECT 1)",
        "k BETWEEN SYMMETRIC 5 AND 2",
        "exists(SELECT 1)",
        "event:a[*]::int = 1",
        "event:a::interval = 1",
        "at = '2024-01-01 00:00:00 Europe/Berlin'",
        "name = 'a\\nb'",
        "name = 'a\\\\\\'b\\u0041'",
        "name = r'a\\\\b'",
        "event:['a\\'b']::int = 1",
        "event:`a.b`::int = 1",
        "event:a.`b[0]`::int = 1",
        "CASE WHEN k = 1 THEN name END",
        "k IS TRUE",
        "event:a::int > 1e400",
        "variant_get() = 1",
        "k = " + "9" * 5000,
        "k = " + "0" * 5000,
    ],
)
def test_what_only_spark_takes_is_refused_by_name(text: str) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        QueryText(SCHEMA).condition(text)
    assert "Spark" in caught.value.hint


def test_a_backslash_in_backticks_is_one(tmp_path: Path) -> None:
    some = vl.Table.create(tmp_path / "t", r"`a\b` INT, `c\` INT, `q``q` STRING")
    some.append([{"a\\b": 1, "c\\": 2, "q`q": "it's"}])
    text = r"SELECT `a\b`, max(`c\`) AS `\` FROM t WHERE `q``q` = 'it\'s' GROUP BY `a\b`"
    assert some.sql(text).to_pylist() == [{"a\\b": 1, "\\": 2}]
    some.update({"a\\b": vl.expr(r"`c\` + 1")}, r"`a\b` = 1")
    assert some.scan(r"`a\b`", r"`a\b` > 2").to_pylist() == [{"a\\b": 3}]
    some.delete(r"`c\` = 2")
    assert some.scan().count() == 0


def test_a_path_of_numbers_beside_text_is_refused_with_what_to_write() -> None:
    with pytest.raises(UnsupportedFeature, match="which is int, with 'x'") as caught:
        QueryText(SCHEMA).condition("event:a::int = 'x'")
    assert caught.value.hint == "read it as text: event:a::string = 'x'"


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    made = vl.Table.create(
        tmp_path_factory.mktemp("numbers") / "t",
        "n INT, s STRING, k BIGINT, m BIGINT, f DOUBLE, b BOOLEAN, v VARIANT",
    )
    made.append(
        pa.table(
            {
                "n": pa.array(range(4), pa.int32()),
                "s": ["10", "9", "a", None],
                "k": [1, 2, 3, None],
                "m": [1, 5, 2, 4],
                "f": [1.5, float("nan"), -0.0, None],
                "b": [True, False, None, True],
                "v": ['{"x":1}', '{"x":2}', '{"x":"x"}', "{}"],
            }
        ),
        json_columns=["v"],
    )
    return made.refresh()


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("k + 1 > 2", [1, 2]),
        ("k = m", [0]),
        ("k < m AND s = '9'", [1]),
        ("k <=> n + 1", [0, 1, 2]),
        ("CASE WHEN k = 1 THEN true ELSE b END", [0, 3]),
        ("if(k > 2, m, k) = 2", [1, 2]),
        ("length(s) = 2", [0]),
        ("upper(s) || 'x' = 'Ax'", [2]),
        ("concat(s, s) LIKE '99%'", [1]),
        ("k % 2 = 1", [0, 2]),
        ("n <> 0 AND 8 div n > 3", [1, 2]),
        ("f > 1", [0, 1]),
        ("f = f", [0, 1, 2]),
        ("f <=> f", [0, 1, 2, 3]),
        ("0.0 = f", [2]),
        ("b", [0, 3]),
        ("NOT b", [1]),
        ("b IS TRUE", [0, 3]),
        ("k + m IN (2, 7)", [0, 1]),
        ("k IN (m, k - 1)", [0]),
        ("coalesce(k, m) = 4", [3]),
        ("nullif(k, 1) IS NULL", [0, 3]),
        ("k BETWEEN n AND m", [0, 1]),
        ("1 = 1", [0, 1, 2, 3]),
        ("v:x::int + 1 = 3 AND k < 3", [1]),
        ("try_cast(v:x AS int) = k", [0, 1]),
    ],
)
def test_conditions_compute(numbers: vl.Table, condition: str, rows: list[int]) -> None:
    scan = numbers.scan("n", condition)
    assert scan.to_arrow()["n"].to_pylist() == rows
    assert scan.count() == len(rows)


def test_what_a_condition_cannot_compute_is_an_error(numbers: vl.Table) -> None:
    with pytest.raises(InvalidValue, match="cast"):
        numbers.scan("n", "8 div n > 3").to_arrow()
    with pytest.raises(InvalidQuery, match="aggregate"):
        numbers.scan("n", "max(k) > 3")


def test_a_computed_condition_says_that_only_rows_decide_it(numbers: vl.Table) -> None:
    assert "only rows decide it" in str(numbers.scan("n", "k + 1 > 2").explain())
    assert numbers.scan("n", "k + 1 > 2 AND m > 9").explain().read_files == 0


def test_every_text_of_a_constant_is_what_it_was() -> None:
    path = vl.path("event", "$['it\\'s'].a").string()
    for size in range(6):
        for characters in itertools.product("a'\"\\%", repeat=size):
            text = "".join(characters)
            found = QueryText(SCHEMA).condition(str(path == text))
            ref = Ref(("event",), paths.Path(("it's", "a")), "string", strict=True)
            assert found == Compare("=", ref, Literal(text, "string"))


@pytest.mark.parametrize(
    "text", ["nope = 1", "k:a::int = 1", "k = ", "k = 1; SELECT 1", "(k = 1", "event:a::nope = 1"]
)
def test_mistakes_get_a_sentence(text: str) -> None:
    with pytest.raises(VariantLakeError) as caught:
        QueryText(SCHEMA).condition(text)
    assert caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        'event:["a"]::int',
        "event:['']::int",
        "event:b['']::int",
        'event:"a"::int',
        "event:'a'::int",
        "event:b.['a']::int",
        "event:b.$a::int",
        "event:b[]::int",
        "event:1::int",
        "event:b[2147483648]::int",
    ],
)
def test_paths_that_spark_refuses_are_refused_with_what_it_takes(text: str) -> None:
    for written in (text, f"{text} = 1"):
        with pytest.raises(InvalidQuery, match="for a key or an index") as caught:
            (QueryText(SCHEMA).condition if "=" in written else QueryText(SCHEMA).items)(written)
        assert "event:['odd key']" in caught.value.hint
    fine = ("event:['a b'].c[0]", "event : b['c']['d']", "event:`a b`.select", "event:b.1c")
    for path in fine:
        assert QueryText(SCHEMA).items(f"{path}::int")[0].ref.path is not None


def test_conditions_are_those_of_planning() -> None:
    text = QueryText(SCHEMA).condition(
        "event:a.b[0]['odd key']::decimal(10,2) >= 1.50 AND NOT K <= -5 OR name NOT LIKE 'p%' AND "
        "day > DATE'2024-01-31' AND at < '2024-02-01' AND m BETWEEN 1 AND 2L"
    )
    assert str(text) == (
        "(event:a.b[0]['odd key']::decimal(10,2) >= 1.50 AND NOT (k <= -5)) OR "
        "(NOT (startswith(name, 'p')) AND day > DATE'2024-01-31' AND "
        "at < TIMESTAMP'2024-02-01 00:00:00Z' AND m >= 1 AND m <= 2)"
    )


def test_row_groups_without_rows_are_passed_over(tmp_path: Path) -> None:
    made = vl.Table.create(tmp_path / "t", "event VARIANT, k INT")
    made.append(
        pa.table({"event": ['{"a":1}', "[2]"], "k": pa.array([1, 2], pa.int32())}),
        json_columns=["event"],
    )
    (file,) = (tmp_path / "t").glob("*.parquet")
    whole = pq.ParquetFile(file)
    with pq.ParquetWriter(tmp_path / "copy", whole.schema_arrow) as writer:
        writer.write_table(whole.read().slice(0, 0))
        writer.write_table(whole.read())
    made = made.refresh()
    (tmp_path / "copy").replace(file)
    found = made.scan("event:a::int, k", "event:nobody::string IS NULL").to_arrow()
    assert found.to_pydict() == {"a": [1, None], "k": [1, 2]}


def test_a_variant_comes_in_parts_beside_its_row_s_other_columns(tmp_path: Path) -> None:
    count = 20_000
    empty = vl.Table.create(tmp_path / "t", "n BIGINT, v VARIANT")
    values = vl.parquet.variant_array([{"n": n, "s": "x" * (n % 7)} for n in range(count)])
    empty.append(pa.table({"n": pa.array(range(count)), "v": values}))
    table = vl.Table.open(tmp_path / "t")
    for where, wanted in (
        ("", range(count)),
        ("n >= 300 AND v:n::bigint < 19000", range(300, 19000)),
    ):
        scan = table.scan(["n", "v"], where=where or None)
        batches = list(scan.to_batches())
        assert max(batch.num_rows for batch in batches) < len(wanted)
        found = pa.Table.from_batches(batches)
        assert found["n"].to_pylist() == list(wanted)
        texts = vl.to_json(found["v"]).to_pylist()
        assert texts == [f'{{"n":{n},"s":"{"x" * (n % 7)}"}}' for n in wanted]


@pytest.mark.parametrize(
    "held",
    [
        pa.array(["7"]),
        pa.array([True]),
        pa.array([7], pa.timestamp("us")),
        pa.array([b"7"]),
        pa.array([{"a": 7}]),
        pa.array([[7]]),
        pa.array([[("a", 7)]], pa.map_(pa.string(), pa.int64())),
    ],
    ids=lambda held: str(held.type).partition("<")[0],
)
def test_a_column_of_another_kind_is_never_read_as_numbers(tmp_path: Path, held: AnyArray) -> None:
    made = vl.Table.create(tmp_path, "n BIGINT")
    made.append(pa.table({"n": pa.array([7], pa.int64())}))
    (file,) = (path for path in tmp_path.glob("*.parquet"))
    pq.write_table(pa.table({"n": held}), file)
    with pytest.raises(MalformedFile, match="column 'n' is long in the table and") as caught:
        made.refresh().scan("n").to_arrow()
    assert caught.value.file == str(file)
    with pytest.raises(MalformedFile):
        made.refresh().sql("SELECT sum(n) AS n FROM t").to_arrow()


def test_explain_tells_of_each_path_how_this_process_reads_it(tmp_path: Path) -> None:
    """Spark reads a Variant column one way in a file; a scan here reads each path by itself."""
    lines = tmp_path / "mixed.ndjson"
    lines.write_text('{"a":1,"r":"x"}\n{"a":2,"r":5}\n')
    ingest_here(lines, tmp_path / "t", shredding="STRUCT<a: BIGINT>")
    mixed = vl.Table.open(tmp_path / "t")
    uses = {}
    for use in mixed.scan("event:a::bigint AS a, event:r::string AS r").explain().paths:
        assert use.ref.path is not None
        uses[use.ref.path.steps[0]] = (use.physical, use.whole)
    assert uses == {"a": (1, 0), "r": (0, 1)}


def test_a_float_is_compared_with_a_whole_number(tmp_path: Path) -> None:
    """Both are a DOUBLE: the number stands for itself up to 2**24, beyond that Spark decides."""
    rows = pa.table({"f": pa.array([0.5, 1.0, 1.5, float("nan"), None], pa.float32())})
    vl.Table.create(tmp_path / "t", "f FLOAT").append(rows)
    table = vl.Table.open(tmp_path / "t")
    counts = {"f > 1": 2, "f = 1": 1, "f IN (1, 2)": 1, "1 >= f": 2, "f BETWEEN -1 AND 1": 2}
    assert {text: table.scan(where=text).count() for text in counts} == counts
    with pytest.raises(vl.UnsupportedFeature, match="which is float"):
        table.scan(where="f > 16777217")


@pytest.fixture(scope="module")
def in_parts(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    """Files of several row groups, some of whose rows are deleted."""
    folder = tmp_path_factory.mktemp("parts") / "t"
    properties = {"variantlake.rowGroupRows": "40", "delta.enableDeletionVectors": "true"}
    made = vl.Table.create(folder, "event VARIANT, day STRING", properties=properties)
    for start in range(0, 600, 200):
        lines = [
            f'{{"id":{i},"kind":"k{i % 7}"' + (f',"n":{i // 3}.5}}' if i % 3 else "}")
            for i in range(start, start + 200)
        ]
        made.append(pa.table({"event": lines, "day": ["a"] * 200}), json_columns=["event"])
    made.refresh().delete("event:id::bigint % 11 = 3")
    return made.refresh()


PATHS = "event:id::bigint AS id, event:kind::string AS kind, event:n::double AS n"


@pytest.mark.rule(36)
@given(
    low=st.integers(-9, 600),
    high=st.integers(-9, 600),
    kind=st.integers(0, 8),
    size=st.sampled_from([100, 1000, 10_000, 1 << 23]),
)
def test_threads_give_the_rows_that_one_gives(
    in_parts: vl.Table, low: int, high: int, kind: int, size: int
) -> None:
    condition = f"event:id::bigint BETWEEN {low} AND {high} OR event:kind::string = 'k{kind}'"
    for where in (None, condition):
        one = in_parts.scan(PATHS, where).to_arrow()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(table_scan, "SMALL_VALUES", 0)
            patch.setattr(file_tasks, "PART_BYTES", size)
            assert in_parts.scan(PATHS, where).to_arrow() == one


def test_threads_read_whole_columns_and_much_of_typed_ones(
    in_parts: vl.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources: list[int] = []

    def counted(given: Iterator[Iterator[Any]], _weigh: Callable[[Any], int]) -> Iterator[Any]:
        for each in given:
            sources.append(1)
            yield from each

    monkeypatch.setattr(table_scan, "chained", counted)
    rows = in_parts.scan(PATHS).to_arrow().num_rows
    assert not sources
    # Ordinary columns and whole Variants cost more than typed columns of so many rows.
    in_parts.scan("event, event:id::bigint AS id").to_arrow()
    in_parts.scan("day, event:id::bigint AS id, event:n::double AS n").to_arrow()
    before = len(sources)
    assert before > 0
    monkeypatch.setattr(table_scan, "SMALL_VALUES", 3 * rows - 1)
    monkeypatch.setattr(file_tasks, "MOST_BYTES", 0)
    assert in_parts.scan(PATHS).to_arrow().num_rows == rows
    assert len(sources) == before + 3
    # The first rows are read one after the other.
    assert in_parts.scan(PATHS).head(3).num_rows == 3
    in_parts.scan(PATHS, limit=9).to_arrow()
    assert len(sources) == before + 3


@settings(max_examples=20 * MORE, deadline=None)
@given(
    threads=st.integers(1, 5),
    size=st.sampled_from([100, 1000, 10_000, 1 << 23]),
    has_condition=st.booleans(),
    are_small=st.booleans(),
)
def test_threads_give_whole_rows_in_their_order(
    in_parts: vl.Table, threads: int, size: int, *, has_condition: bool, are_small: bool
) -> None:
    where = "event:id::bigint % 3 = 1" if has_condition else None
    texts = (
        "SELECT event, day FROM t",
        "SELECT upper(event:kind::string) AS k, event:id::bigint + 1 AS i FROM t",
        "SELECT event, event:kind::string AS k FROM t ORDER BY event:n::double DESC, event:id::int",
        "SELECT event FROM t ORDER BY length(event:kind::string), event:id::int LIMIT 70",
    )
    for text in texts:
        asked = text if where is None else text.replace("FROM t", f"FROM t WHERE {where}")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pa, "cpu_count", lambda: 1)
            one = in_parts.sql(asked).to_arrow()
            patch.setattr(pa, "cpu_count", lambda: threads)
            patch.setattr(file_tasks, "PART_BYTES", size)
            patch.setattr(prefetch, "_pool", None)
            if not are_small:
                patch.setattr(file_tasks, "MOST_BYTES", 0)
                patch.setattr(reading, "MOST_BYTES", 0)
            assert in_parts.sql(asked).to_arrow() == one


def test_what_a_thread_raises_comes_in_its_place(
    in_parts: vl.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_scan, "SMALL_VALUES", 0)
    batches = in_parts.scan("event:id::tinyint AS id, event:kind::string AS kind").to_batches()
    found = [next(batches).num_rows for _ in range(3)]
    assert sum(found) > 100
    with pytest.raises(InvalidValue, match="cannot be cast"):
        next(batches)
