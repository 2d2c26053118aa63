"""`vl.profile`: describe the values at each path of a source, and infer its column."""

from __future__ import annotations

import html
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path as FilePath
from typing import Any

from variantlake.delta.log.log_segment import has_log
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.table_schema import StructType, VariantType
from variantlake.errors import InvalidPath, InvalidSchema, InvalidValue, describe_type
from variantlake.expressions.from_python import VariantPath
from variantlake.expressions.tree import path_text
from variantlake.ingest.sources.sources import Documents
from variantlake.parquet.metadata.footer import MAGIC
from variantlake.parquet.read.reader import find_variants
from variantlake.paths import Path
from variantlake.quoting import quote_identifier
from variantlake.report.profile_schema import ddl_columns, json_schema, pydantic_models
from variantlake.report.samples import (
    SAMPLE_ROWS,
    Sample,
    sample_documents,
    sample_file,
    sample_table,
)
from variantlake.report.values import MAX_DISTINCT, PathValues, values_of
from variantlake.shown import Shown, html_table, shortened
from variantlake.shredding.ddl import format_ddl
from variantlake.shredding.inference.infer import Inference, InferenceOptions, infer
from variantlake.shredding.inference.profile import Profile
from variantlake.shredding.schema import Leaf
from variantlake.storage.opening import open_store
from variantlake.storage.options import reach_with
from variantlake.storage.store import is_local, local_path
from variantlake.types import Primitive
from variantlake.units import Time, milliseconds
from variantlake.writing.table_write import READER_FEATURES

FORMAT = 1
"""The version of `to_dict`; it grows when a reader of the JSON would have to change."""

_SHOWN_PATHS = 30
"""The most paths that a notebook shows."""

_EXAMPLE = 24
"""The most characters of an example there."""

_TYPES = {
    **dict.fromkeys((Primitive.TRUE, Primitive.FALSE), "boolean"),
    **dict.fromkeys((Primitive.INT8, Primitive.INT16, Primitive.INT32, Primitive.INT64), "integer"),
    **dict.fromkeys((Primitive.DECIMAL4, Primitive.DECIMAL8, Primitive.DECIMAL16), "decimal"),
}
"""Types that differ only in width are the same for a reader."""

MAX_SHOWN_PATHS = 1_000
"""The most paths of a profile: if keys are ids, there are as many as rows."""


@dataclass(frozen=True, slots=True, repr=False)
class PathProfile(Shown):
    """One path of a sample.

    `share` is the share of the rows that hold it, with Variant nulls; inside arrays (the step `[0]`
    means all elements) `share` is None and `count` counts elements. `types` are the shares of its
    values by type, with `null`. `distinct` counts its distinct scalar values in the rows whose text
    was kept; with `has_more_values` there may be more. `text_share` is the share of its scalar
    values in the documents' text. `column` is the inferred type, None without a column, and `why`
    the reason.
    """

    path: Path
    count: int
    share: float | None
    types: Mapping[str, float]
    distinct: int
    has_more_values: bool
    examples: tuple[str, ...]
    text_share: float
    column: str | None
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "path": path_text(self.path),
            "count": self.count,
            **self.values(),
            "column": self.column,
            "why": self.why,
        }

    def values(self) -> dict[str, Any]:
        """Return the statistics of its values, JSON-ready."""
        return {
            "share": self.share,
            "types": dict(self.types),
            "distinct": self.distinct,
            "distinct_is_more": self.has_more_values,
            "examples": list(self.examples),
            "text_share": self.text_share,
        }


@dataclass(frozen=True, slots=True, repr=False)
class SourceProfile(Shown):
    """The profile of a source's documents, from a sample of `rows` rows.

    `bad_rows` are documents of the sample that are not JSON, or that a Variant cannot hold.

    `column` is the VARIANT column of a table or a file, empty for JSON documents. `shredding` is
    the inferred DDL, `saved` the share of the documents' text that would be in typed columns, of
    which a query reads only those of its paths.
    """

    source: str
    column: str
    rows: int
    shredding: str
    saved: float
    paths: tuple[PathProfile, ...] = field(repr=False)
    more_paths: int = 0
    is_table: bool = False
    bad_rows: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "format": FORMAT,
            "source": self.source,
            "column": self.column,
            "rows": self.rows,
            "bad_rows": self.bad_rows,
            "shredding": self.shredding,
            "saved": self.saved,
            "more_paths": self.more_paths,
            "paths": [path.to_dict() for path in self.paths],
        }

    def to_json_schema(self, title: str = "document") -> dict[str, Any]:
        """Make a JSON Schema (draft 2020-12) that the documents of the sample fulfil.

        Keys that every object of the sample has are required. Keys beyond `paths` are allowed.
        """
        return json_schema(self.paths, title)

    def to_pydantic(self, name: str = "Document") -> str:
        """Write Python source with Pydantic models of the documents; `name` is the outermost one.

        Keys that are not names in Python have an alias; unknown keys are allowed.
        """
        return pydantic_models(self.paths, name)

    def to_ddl(self, name: str) -> str:
        """Write a `CREATE TABLE` whose columns are the keys of the documents.

        Objects become STRUCT columns; a key with values of several types becomes a VARIANT column.

        Raises InvalidValue for documents that have no keys.
        """
        columns = ddl_columns(self.paths)
        if not columns:
            raise InvalidValue("the documents have no keys", file=self.source)
        table = ".".join(map(quote_identifier, name.split(".")))
        return f"CREATE TABLE {table} (\n  {columns}\n)"

    def select(self) -> str:
        """Write a SELECT list of the paths with an inferred column, under unique names.

        It reads paths by `try_variant_get`: a value of another type is NULL, not an error.
        """
        columns = {each.path: each.column for each in self.paths if each.share is not None}
        typed = {path: type_ for path, type_ in columns.items() if type_ is not None}
        names = _view_names(typed)
        items = []
        for path, type_ in typed.items():
            value = VariantPath(self.column or "event", path).as_type(type_, strict=False)
            items.append(f"{value.text} AS {quote_identifier(names[path])}")
        return ",\n  ".join(items)

    def _repr_html_(self) -> str:
        """Show a line for each of the most frequent paths in a notebook."""
        rows = (
            (
                path_text(each.path),
                f"{each.count:,} elements" if each.share is None else f"{each.share:.1%}",
                ", ".join(each.types),
                each.column,
                ", ".join(shortened(text, _EXAMPLE) for text in each.examples),
            )
            for each in self.paths[:_SHOWN_PATHS]
        )
        lines = html_table(("path", "rows", "types", "column", "examples"), rows)
        return f"<p>{html.escape(repr(self))}</p>{lines}"

    def as_view(self, name: str, table: str | None = None) -> str:
        """Write a `CREATE VIEW` with the paths as typed columns.

        Args:
            name: The view, `shop.events` for one in a database.
            table: The table's name in Spark SQL; None for the profiled table.

        Raises InvalidValue if no path would be a column, and without `table` if the source is not
        a table.
        """
        items = self.select()
        if not items:
            raise InvalidValue("no path would become a column", file=self.source)
        if table is None:
            if not self.is_table:
                raise InvalidValue(
                    "a view is over a table",
                    file=self.source,
                    hint="name the table that it will be over with table=",
                    cli_hint="--over names the table that it will be over",
                )
            table = f"delta.{quote_identifier(self.source)}"
        view = ".".join(map(quote_identifier, name.split(".")))
        return f"CREATE VIEW {view} AS\nSELECT\n  {items}\nFROM {table}"


def profile(
    source: str | os.PathLike[str] | Documents,
    column: str | None = None,
    *,
    sample_rows: int = SAMPLE_ROWS,
    examples: bool = True,
    format: str | None = None,  # noqa: A002 - as in `ingest`
    inference: InferenceOptions | None = None,
    version: int | str | None = None,
    timestamp: Time | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> SourceProfile:
    """Profile a sample of a table, a Parquet file or documents.

    Args:
        source: A table, a Parquet file, or files of documents as for `append`; also the result of
            `vl.ndjson`, `vl.json_array` and `vl.json_files`.
        column: The VARIANT column of a table or a file; None for the only one.
        sample_rows: The most rows of the sample, 1 or more.
        examples: False leaves values out of the result.
        format: The format of files of documents, as for `ingest`: `ndjson`, `array`, `json`, `csv`,
            `avro`, `msgpack` or `bson`.
        inference: Thresholds of the inference.
        version: An older version of a table: its number or its name.
        timestamp: The version of a table at this time instead, as for `Table.open`.
        storage_options: Options to access the source's bucket, as for `Table.open`.

    Raises:
        MissingSource: There is no such table or file.
        InvalidSchema: The table or file has no VARIANT column, or several and none is named.
        InvalidPath: It has no column of that name.
        InvalidValue: `sample_rows` is less than 1; a version of a source that is not a table.

    Examples:
        >>> vl.profile("t").rows
        2
    """
    if sample_rows < 1:
        raise InvalidValue(f"sample_rows is {sample_rows}, expected 1 or more")
    make = partial(_profiled, options=inference, examples=examples)
    if isinstance(source, Documents):
        return make("documents", "", sample_documents(source, sample_rows))
    if not isinstance(source, str | os.PathLike):
        raise InvalidValue(
            f"{describe_type(source)} is not a table, a file or documents",
            hint="append the rows to a table, and profile that",
            cli_hint="",
        )
    reach_with(source, storage_options)
    location = os.fspath(source)
    if format is None and _is_table(location):
        time = None if timestamp is None else milliseconds("timestamp", timestamp)
        snapshot = Snapshot.read(location, version, timestamp=time, applies=READER_FEATURES)
        name = variant_column(snapshot.schema, column, snapshot.store.uri)
        sample = sample_table(snapshot, name, sample_rows)
        return make(snapshot.store.uri, name, sample, is_table=True)
    if version is not None or timestamp is not None:
        raise InvalidValue("only a table has versions", file=location)
    if format is None and _is_parquet(location):
        names = [each for each in find_variants(location) if "." not in each]
        name = _one_of(names, column, location)
        return make(location, name, sample_file(location, name, sample_rows))
    documents = Documents.of(location, format)
    return make(location, "", sample_documents(documents, sample_rows))


def variant_column(schema: StructType, column: str | None, table: str) -> str:
    """Return the name of the VARIANT column `column` of a table, or of its only one.

    Raises InvalidPath and InvalidSchema.
    """
    names = [item.name for item in schema.fields if isinstance(item.type, VariantType)]
    return _one_of(names, column, table)


def _one_of(names: list[str], column: str | None, source: str) -> str:
    listed = ", ".join(names) or "none"
    if column is None:
        if len(names) != 1:
            raise InvalidSchema(
                f"there are {len(names)} VARIANT columns, expected one",
                file=source,
                hint=f"name one with column=: {listed}",
                cli_hint=f"name one with --column: {listed}",
            )
        return names[0]
    # Names in a file may differ only by case.
    found = [column] if column in names else [x for x in names if x.lower() == column.lower()]
    if not found:
        raise InvalidPath(
            f"there is no VARIANT column {column!r}", file=source, hint=f"its columns: {listed}"
        )
    return found[0]


def _is_table(location: str) -> bool:
    if not is_local(location):
        return has_log(open_store(location))
    return FilePath(local_path(location), "_delta_log").is_dir()


def _is_parquet(location: str) -> bool:
    if not is_local(location):
        return location.lower().endswith(".parquet")
    path = FilePath(local_path(location))
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _profiled(
    source: str,
    column: str,
    sample: Sample,
    *,
    options: InferenceOptions | None,
    examples: bool,
    is_table: bool = False,
) -> SourceProfile:
    inference = infer(sample.profile, options)
    paths = path_profiles(sample, inference, examples=examples)
    return SourceProfile(
        source=source,
        column=column,
        rows=sample.rows,
        shredding=format_ddl(inference.schema),
        saved=sum(each.text_share for each in paths if _is_column(each)),
        paths=paths[:MAX_SHOWN_PATHS],
        more_paths=max(0, len(paths) - MAX_SHOWN_PATHS),
        is_table=is_table,
        bad_rows=sample.bad_rows,
    )


def path_profiles(
    sample: Sample, inference: Inference, *, examples: bool = True
) -> tuple[PathProfile, ...]:
    """Return all paths of a sample, the most frequent first, parents before their children."""
    values = values_of(sample.texts)
    total = sum(len(text.encode()) for text in sample.texts) or 1
    columns = {
        path: node.type.ddl for path, node in inference.schema.nodes() if isinstance(node, Leaf)
    }
    reasons = {path: why for path, _, why in inference.reasons}
    found, shares = [], []
    for path, profile_, share in _walk(sample.profile):
        known = values.get(path, PathValues())
        shares.append(share)
        found.append(
            PathProfile(
                path=path,
                count=profile_.rows,
                share=None if 0 in path.steps else share,
                types=_types(profile_),
                distinct=len(known.distinct),
                has_more_values=len(known.distinct) == MAX_DISTINCT,
                examples=tuple(known.examples) if examples else (),
                text_share=known.text_bytes / total,
                column=columns.get(path),
                why=reasons.get(path, ""),
            )
        )
    order = sorted(range(len(found)), key=lambda place: (-shares[place], place))
    return tuple(found[place] for place in order)


def _walk(root: Profile) -> Iterator[tuple[Path, Profile, float]]:
    """Yield all profiles with their paths and shares; elements have the share of their array."""
    todo = [(Path(), root, 1.0)]
    while todo:
        path, profile_, share = todo.pop()
        yield path, profile_, share
        if profile_.element is not None:
            todo.append((path.child(0), profile_.element, share))
        for name, each in reversed(profile_.fields.items()):
            inside = share if 0 in path.steps else each.rows / root.rows
            todo.append((path.child(name), each, inside))


def _types(profile_: Profile) -> dict[str, float]:
    counts = Counter[str]()
    for kind, count in profile_.primitives.items():
        counts[_TYPES.get(kind, kind.name.lower())] += count
    counts += Counter({"object": profile_.objects, "array": profile_.arrays})
    rows = max(profile_.rows, 1)
    return {name: count / rows for name, count in counts.most_common() if count}


def _is_column(path: PathProfile) -> bool:
    return path.column is not None and path.share is not None


def _view_names(paths: Iterable[Path]) -> dict[Path, str]:
    """Name each path by its last key, preceded by others where names would be equal."""
    names: dict[Path, str] = {}
    used: set[str] = set()
    for path in paths:
        keys = [str(step) for step in path.steps] or ["value"]
        options = ["_".join(keys[-length:]) for length in range(1, len(keys) + 1)]
        options += [f"{options[-1]}_{number}" for number in range(2, len(used) + 3)]
        name = next(each for each in options if each.lower() not in used)
        used.add(name.lower())
        names[path] = name
    return names
