"""Paths: every way to write them, one parsed form."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import keys
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidPath
from variantlake.paths import MAX_STEPS, ColumnPath, Path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

paths = st.lists(keys | st.integers(0, 1 << 31), max_size=6).map(lambda steps: Path(tuple(steps)))


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("$", ()),
        ("$.a", ("a",)),
        ("$.a.b", ("a", "b")),
        ("$['a'][\"b\"]", ("a", "b")),
        ("$.a[0][12].b", ("a", 0, 12, "b")),
        ("$[ 3 ]", (3,)),
        ("$['']", ("",)),
        ("$.`odd key`", ("odd key",)),
        ("$.`a``b`", ("a`b",)),
        ("$['a.b']", ("a.b",)),
        (r"$['it\'s']", ("it's",)),
        (r"$['\\']", ("\\",)),
        (r"$['\u000b\n\t\b\f\r']", ("\x0b\n\t\b\f\r",)),
        (r"$['\ud83d\ude00']", ("😀",)),
        ("$.é", ("é",)),
    ],
)
def test_parse(text: str, steps: tuple[str | int, ...]) -> None:
    assert Path.parse(text).steps == steps


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("", 0),
        ("a", 0),
        ("$a", 1),
        ("$.", 2),
        ("$..a", 2),
        ("$[", 2),
        ("$[a]", 2),
        ("$[-1]", 2),
        ("$[1", 2),
        ("$['a'", 5),
        ("$['a", 4),
        (r"$['\x']", 3),
        (r"$['\u12']", 3),
        (r"$['\ud800']", 3),
        (r"$['\udc00']", 3),
        (r"$['\ud83d\u0041']", 3),
        ("$.a b", 3),
        ("$.a::int", 3),
        ("$[" + "9" * 30 + "]", 1),
        ("$[\u0660]", 2),
        ("$" + "[0]" * (MAX_STEPS + 1), 1 + 3 * MAX_STEPS),
    ],
)
def test_text_that_is_no_path_is_refused_with_its_offset(text: str, offset: int) -> None:
    with pytest.raises(InvalidPath) as caught:
        Path.parse(text)
    assert caught.value.offset == offset


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (Path(), "$"),
        (Path.of("a", 0, "b"), "$['a'][0]['b']"),
        (
            Path.of("it's", "\\", "\n\x0b", 'say "x"'),
            r"""$['it\'s']['\\']['\n\u000b']['say "x"']""",
        ),
    ],
)
def test_normalized_path_is_that_of_rfc_9535(path: Path, text: str) -> None:
    assert path.normalized() == str(path) == text


@given(paths)
def test_normalized_paths_parse_back(path: Path) -> None:
    assert Path.parse(path.normalized()) == path


@given(paths)
def test_spark_paths_parse_back_as_spark_reads_them(path: Path) -> None:
    if any(isinstance(step, str) and "'" in step and '"' in step for step in path.steps):
        with pytest.raises(InvalidPath):
            path.spark()
    elif all(isinstance(step, str) or step < 1 << 31 for step in path.steps):
        assert Path.parse_spark(path.spark()) == path


def test_steps_of_a_path() -> None:
    path = Path.of("a").child(0).child("b")
    assert path.steps == ("a", 0, "b")
    assert path.parent == Path.of("a", 0)
    assert Path().parent == Path()


# What Spark 4.2's variant_get answered for each path on the document below: the value as JSON, None
# where it found nothing, "refused" for INVALID_VARIANT_GET_PATH (or a number beyond its integers).
SPARK_DOCUMENT = {
    "a": 1, "a b": 2, "a'b": 3, 'a"b': 4, "a?b": 5, " a": 6, "a]": 7, "": 8, "a.b": 9, "a\\b": 10,
    "'a'": 11, "$": 12, "é": 13, "a\nb": 14, "a:b": 15, "-1": 16, "x": [{"y": [0, 1, 2]}],
    "`a`": 17, "a*": 18, "]": 19, "a ": 20, "\\'": 21, "'": 22, '"': 23, "*": 24, "a'": 25,
    "[": 26, "1": 27,
}  # fmt: skip
SPARK_PATHS: list[tuple[str, str | None]] = [
    ("$.a", "1"), ("$.a b", "2"), ("$.a'b", "3"), ("$['a\\'b']", "refused"), ("$[\"a'b\"]", "3"),
    ("$['a\"b']", "4"), ('$.a"b', "4"), ("$.a?b", "5"), ("$['a?b']", "5"), ('$["a?b"]', "5"),
    ("$. a", "6"), ("$['a]']", "7"), ("$.a]", "7"), ("$['']", "8"), ('$[""]', "8"),
    ("$.", "refused"), ("$['a.b']", "9"), ("$.a\\b", "10"), ("$['a\\b']", "10"),
    ("$['a\\\\b']", None), ("$.'a'", "11"), ("$.$", "12"), ("$.é", "13"), ("$.a\nb", "14"),
    ("$['a\nb']", "14"), ("$.a:b", "15"), ("$[-1]", "refused"), ("$['-1']", "16"), ("$.-1", "16"),
    ("$.x[0].y[1]", "1"), ("$.x[00].y[01]", "1"), ("$.x[ 0 ]", "refused"), ("$ .a", "refused"),
    (" $.a", "refused"), ("$.a ", "20"), ("$['a'] ", "refused"), ("$['a' ]", "refused"),
    ("$[ 'a']", "refused"), ("$.`a`", "17"), ("$['`a`']", "17"), ("$.a*", "18"), ("$.*", "24"),
    ("$[*]", "refused"), ("$..a", "refused"), ("a", "refused"), ("", "refused"),
    ("$a", "refused"), ("$[a]", "refused"), ("$[99999999999]", "refused"),
    ("$.x[2147483648]", "refused"), ("$.x[2147483647]", None), ("$['\\'']", "refused"),
    ("$['']']", "refused"), ('$["\\""]', "refused"), ("$.]", "19"), ("$['a'].b", None),
    ("$['x']['y']", None), ("$[0]", None), ("$.[0]", "refused"), ("$.['a']", "refused"),
    ("$.x.[0]", "refused"), ("$['[']", "26"), ("$.a'", "25"), ("$.1", "27"),
    ("$['x'][0]['y'][2]", "2"), ("$.x[0]y", "refused"), ("$['a']a", "refused"),
    ("$.x[+0]", "refused"), ("$.x[\u0660]", "refused"), ("$['a\"]", "refused"),
    ("$[\"a']", "refused"),
    ('$.x[0]["y"]', "[0,1,2]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "answer"), SPARK_PATHS, ids=[text for text, _ in SPARK_PATHS])
def test_parse_spark_reads_paths_as_spark_does(text: str, answer: str | None) -> None:
    if answer == "refused":
        with pytest.raises(InvalidPath):
            Path.parse_spark(text)
    else:
        found = Variant.of(SPARK_DOCUMENT).get(Path.parse_spark(text))
        assert (found and found.to_json()) == answer


@pytest.mark.spark
def test_spark_still_answers_so(spark: SparkSession) -> None:
    from pyspark.sql import functions

    document = functions.parse_json(functions.lit(json.dumps(SPARK_DOCUMENT))).alias("v")
    frame = spark.range(1).select(document)
    answered = [(text, answer) for text, answer in SPARK_PATHS if answer != "refused"]
    row = frame.select(
        [functions.variant_get("v", text, "string") for text, _ in answered]
    ).collect()[0]
    assert list(row) == [answer for _, answer in answered]
    for text in (text for text, answer in SPARK_PATHS if answer == "refused"):
        with pytest.raises(Exception, match=r"INVALID_VARIANT_GET_PATH|For input string"):
            frame.select(functions.variant_get("v", text, "string")).collect()


@pytest.mark.parametrize(
    ("text", "column", "path", "type_"),
    [
        ("event", "event", "$", ""),
        ("event::string", "event", "$", "string"),
        ("event:a.b['c'][0]::bigint", "event", "$.a.b['c'][0]", "bigint"),
        ("event:a.b ::bigint", "event", "$.a.b", "bigint"),
        ("event:a.b :: decimal(10, 2) ", "event", "$.a.b", "decimal(10, 2)"),
        ("event ::string", "event", "$", "string"),
        ("event:['a b']", "event", "$['a b']", ""),
        ("event:a:b", "event", "$.a.b", ""),
        ("event:`odd key`.b", "event", "$['odd key'].b", ""),
        ("`my ``event`:a", "my `event", "$.a", ""),
        ("event:a ", "event", "$.a", ""),
    ],
)
def test_column_path(text: str, column: str, path: str, type_: str) -> None:
    assert ColumnPath.parse(text) == ColumnPath(column, Path.parse(path), type_)


@pytest.mark.parametrize("text", ["", ":a", "1a:b", "event:", "event:a b", "event.a"])
def test_text_that_is_no_column_path_is_refused(text: str) -> None:
    with pytest.raises(InvalidPath):
        ColumnPath.parse(text)
