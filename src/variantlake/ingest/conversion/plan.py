"""Plan the conversion of Parquet files into a table: add each file as it is, or rewrite it.

A file need not be rewritten if its columns are those of the table, and its Variant columns have the
published layout and are marked as VARIANT. The log then gets it with statistics from its footer.
All other files are rewritten.
"""

from __future__ import annotations

import enum
import functools
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from variantlake.delta.log.files.file_paths import absolute_paths, decoded_paths
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.column_mapping import ID_KEY, MODE
from variantlake.delta.schema.table_schema import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    VariantType,
)
from variantlake.delta.schema.type_parts import required_in
from variantlake.errors import (
    InvalidSchema,
    InvalidValue,
    NotADeltaTable,
    UnsupportedFeature,
    in_file,
)
from variantlake.ingest.encode.rows import given_schema
from variantlake.ingest.sources.find_files import PARQUET, FilePattern
from variantlake.ingest.sources.sources import Source, SourceSpec, expand, specs
from variantlake.parquet.metadata.footer import Footer
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.read.reader import VariantFile
from variantlake.parquet.variant.variant_columns import variant_nodes
from variantlake.parquet.variant.variant_group import VariantGroup, parse_group
from variantlake.shredding.arrays import element_field
from variantlake.shredding.layout import is_list, is_variant_type
from variantlake.shredding.schema import ShreddingSchema, Untyped
from variantlake.storage.opening import open_store
from variantlake.storage.store import LocalStore, Store, is_local, local_path
from variantlake.writing.table_write import READER_FEATURES, TableWrite

_PARTITION_FOLDER = re.compile(r"[^=]+=")


class Action(enum.StrEnum):
    """The action for a file."""

    ADD = "add"
    COPY = "copy"
    REWRITE = "rewrite"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Step:
    """The action for one file, and its reason. `size` is in bytes, `path` absolute.

    `inside` is the path from the table's root if the file is already below it, else empty.
    """

    path: str
    size: int
    rows: int
    action: Action
    reason: str
    inside: str = ""


@dataclass(frozen=True, slots=True)
class ConvertedFile:
    """A Parquet file, described from its footer.

    `arrow` is the schema of its rows, `schema` has the columns of a table for them, all nullable;
    `variants` are its Variant columns by name. `json` names the columns that hold JSON text.
    """

    source: Source
    rows: int
    root: SchemaNode
    arrow: pa.Schema
    schema: StructType
    variants: Mapping[str, VariantGroup]
    json: frozenset[str]

    def shredding(self, column: str) -> ShreddingSchema | None:
        """Return the shredding of a column in the file; None if it is not shredded."""
        group = self.variants.get(column)
        is_shredded = group is not None and not isinstance(group.schema.root, Untyped)
        return group.schema if group is not None and is_shredded else None


def find_sources(sources: SourceSpec | Iterable[SourceSpec]) -> tuple[Source, ...]:
    """Find the named Parquet files.

    Raises MissingSource as `expand`; InvalidValue for the folder of a Delta table, or a glob in it,
    since removed files may still be there; UnsupportedFeature for folders like `day=1`, whose names
    are values of a column.
    """
    given = specs(sources)
    found = expand(given, PARQUET)
    paths = {source.path for source in found}
    for each in given:
        if open_store(each).uri in paths:
            continue
        folder = open_store(_folder_of(os.fspath(each)))
        if next(folder.list_from("_delta_log"), None) is not None:
            raise InvalidValue(
                "this folder is a Delta table: some of its files may be removed ones",
                file=folder.uri,
                hint="name its files, or append the rows: other.append(table.scan().to_arrow())",
                cli_hint="name its files one by one",
            )
        for path in paths:
            below = path.removeprefix(f"{folder.uri}/") if path.startswith(f"{folder.uri}/") else ""
            if any(_PARTITION_FOLDER.match(name) for name in below.split("/")[:-1]):
                raise UnsupportedFeature(
                    "the folder's name is a partition value, which would be lost",
                    file=path,
                    hint='partition_by="day DATE" makes a table of the folder where it is',
                    cli_hint="--partition-by 'day DATE' makes a table of the folder where it is",
                )
    return found


def _folder_of(given: str) -> str:
    """Return a named folder, or the one at the start of a glob."""
    if is_local(given):
        given = str(Path(local_path(given)).absolute())
    return given if os.path.lexists(given) else FilePattern.below(given)[0] or "/"


def read_source(
    source: Source, json_columns: Collection[str], variant_columns: Collection[str]
) -> ConvertedFile:
    """Read the schema of one file.

    Raises MalformedFile for a file that is not Parquet, InvalidSchema for columns that a table
    cannot have, UnsupportedFeature for Variants inside other columns.
    """
    with in_file(source.path):
        with VariantFile(source.path, variant_columns=variant_columns) as file:
            footer, arrow = file.footer, _storable(file.schema, file.footer)
        named = frozenset(tuple(name.split(".")) for name in variant_columns)
        variants = {}
        for top in footer.schema.children:
            for node, column in variant_nodes(top, named, (top.name,)):
                if len(column) > 1:
                    raise UnsupportedFeature(
                        f"column {'.'.join(column)!r} is a Variant inside of another column",
                        hint="lake.append takes a DataFrame of the file",
                        cli_hint="rewrite the file with Spark, the Variant at its top",
                    )
                variants[top.name] = parse_group(node, column)
        for name in json_columns:
            if name not in arrow.names:
                raise InvalidSchema(
                    f"there is no column {name!r} of JSON text",
                    hint=f"the file has {', '.join(map(repr, arrow.names))}",
                )
        schema = _nullable(given_schema(arrow, json_columns, keeps_unsigned=True))
    return ConvertedFile(
        source, footer.num_rows, footer.schema, arrow, schema, variants, frozenset(json_columns)
    )


def _storable(arrow: pa.Schema, footer: Footer) -> pa.Schema:
    """Change timestamps to microseconds, the only unit of tables.

    INT96, which old versions of Spark write, is an instant, although the file does not tell.
    """
    leaves = {
        top.name: (footer.leaves[leaf].node for leaf in top.leaves())
        for top in footer.schema.children
    }
    return pa.schema(
        [
            field
            if is_variant_type(field.type)
            else field.with_type(_in_micros(field.type, leaves[field.name]))
            for field in arrow
        ]
    )


def _in_micros(kind: Any, leaves: Iterator[SchemaNode]) -> Any:
    """Change the timestamps of a type to those of tables; `leaves` are those of the file."""
    if isinstance(kind, pa.StructType):
        return pa.struct([each.with_type(_in_micros(each.type, leaves)) for each in kind])
    if isinstance(kind, pa.MapType):
        return pa.map_(_in_micros(kind.key_type, leaves), _in_micros(kind.item_type, leaves))
    if is_list(kind):
        element = element_field(kind)
        return pa.list_(element.with_type(_in_micros(element.type, leaves)))
    leaf = next(leaves, None)
    if isinstance(kind, pa.TimestampType) and leaf is not None:
        return pa.timestamp("us", "UTC" if leaf.physical == "INT96" else kind.tz)
    return kind


def merged_schema(files: Sequence[ConvertedFile]) -> StructType:
    """Return the columns of all files. Raises InvalidSchema, naming the file, if two disagree."""
    fields: dict[str, StructField] = {}
    for file in files:
        for field in file.schema.fields:
            known = fields.setdefault(field.name, field)
            if known.type != field.type:
                raise InvalidSchema(
                    f"column {field.name!r} is {field.type}, and {known.type} in a file before it",
                    file=file.source.path,
                    hint="convert into a table that has the column already",
                )
    return StructType(tuple(fields.values()))


def open_target(
    location: str, files: Sequence[ConvertedFile], properties: Mapping[str, str]
) -> TableWrite:
    """Open the table at `location`, or prepare a new one with the files' columns.

    Raises NotADeltaTable for a folder that holds other files, InvalidSchema for columns that the
    table does not have, UnsupportedFeature for a partitioned table.
    """
    store = open_store(location)
    try:
        snapshot = Snapshot.read(location, store=store, applies=READER_FEATURES)
    except NotADeltaTable:
        schema = merged_schema(files)
        if any(_inside(store, file.source.path) for file in files):
            return TableWrite.over_files(store, schema, properties)
        return TableWrite.open(location, schema, properties)
    target = TableWrite.of(snapshot)
    if target.partition_columns:
        raise UnsupportedFeature(
            "the table is partitioned: files cannot be converted into it",
            file=target.store.uri,
            hint="append the rows: Table.append(vl.parquet.read_table(file))",
            cli_hint="convert into a table without partitions",
        )
    for file in files:
        _check_columns(file, target)
    return target


def _check_columns(file: ConvertedFile, target: TableWrite) -> None:
    names = {field.name for field in target.schema.fields}
    for field in file.schema.fields:
        if field.name not in names:
            raise InvalidSchema(
                f"the table has no column {field.name!r}",
                file=file.source.path,
                hint=f"columns: {', '.join(sorted(names))}; Table.add_column adds one",
                cli_hint=f"columns: {', '.join(sorted(names))}; convert into a new table, or add "
                "it with variantlake alter TABLE 'ADD COLUMN ...'",
            )
    for field in target.schema.fields:
        required = required_in(field)
        if field.name not in file.arrow.names and (required or field.default is not None):
            kind = "NOT NULL" if required else f"by default {field.default}"
            raise InvalidSchema(
                f"the file has no column {field.name!r}, which is {kind}", file=file.source.path
            )


def plan_steps(
    files: Sequence[ConvertedFile],
    target: TableWrite,
    *,
    rewrite: bool,
    keeps_old_times: bool = False,
) -> tuple[Step, ...]:
    """Plan the action for each file. `keeps_old_times` leaves INT96 as it is stored."""
    known: frozenset[str] = frozenset()
    if target.snapshot is not None:
        # Other writers may escape more characters of a path than we do, or use absolute paths.
        paths: Any = decoded_paths(target.snapshot.files["path"]).to_pylist()
        whole = map(target.snapshot.location, absolute_paths(target.snapshot.files))
        known = frozenset(paths).union(_inside(target.store, path) for path in whole)
    why_not = functools.partial(_why_not_as_it_is, target=target, keeps_old_times=keeps_old_times)
    return tuple(
        _plan_step(file, target, known, "asked for" if rewrite else why_not(file)) for file in files
    )


def _plan_step(
    file: ConvertedFile, target: TableWrite, known: Collection[str], reason: str
) -> Step:
    """Plan the action for a file; `reason` tells why it must be rewritten, empty if it need not."""
    inside = _inside(target.store, file.source.path)
    step = Step(file.source.path, file.source.size, file.rows, Action.REWRITE, "", inside)
    if inside and inside in known:
        return replace(step, action=Action.SKIP, reason="the table has it already")
    if not file.rows:
        return replace(step, action=Action.SKIP, reason="it has no rows")
    if reason:
        return replace(step, reason=reason)
    if inside:
        return replace(step, action=Action.ADD, reason="it is in the published layout")
    return replace(step, action=Action.COPY, reason="it is in the published layout")


def _why_not_as_it_is(file: ConvertedFile, *, target: TableWrite, keeps_old_times: bool) -> str:
    """Return why the file cannot be a file of the table; empty if it can."""
    if file.json:
        return f"column {min(file.json)!r} is JSON text"
    for name, group in file.variants.items():
        if group.is_legacy:
            return f"column {name!r} is in Spark's older layout"
        if not group.annotated:
            return f"column {name!r} is not marked as VARIANT"
        if group.has_others:
            return f"column {name!r} has columns that do not belong to a Variant"  # Spark refuses
        if file.shredding(name) is not None and not target.shredding_enabled:
            return "the table does not allow shredded files"
    table = {field.name: field for field in target.schema.fields}
    for field, node in zip(file.schema.fields, file.root.children, strict=True):
        own = table[field.name]
        plain = _is_plain(node, field.type, keeps_old_times=keeps_old_times)
        if nullable_type(own.type) != nullable_type(field.type) or not plain:
            return f"column {field.name!r} is stored as another type"
        if not own.nullable and node.repetition != "required":
            return f"column {field.name!r} is NOT NULL in the table"
    return _why_not_by_mapping(file, target)


def _is_plain(node: SchemaNode, kind: DataType, *, keeps_old_times: bool) -> bool:
    """Whether every reader of tables can read the column as stored: times in micros, no INT96.

    `keeps_old_times` allows INT96, as Delta Spark does in a folder that becomes a table.

    A column without a type (VOID) must not be in a file.
    """
    if isinstance(kind, VariantType):
        return True
    logical = node.logical
    if (node.physical == "INT96" and not keeps_old_times) or node.kind == "UNKNOWN":
        return False
    if logical is not None and logical.unit in ("MILLIS", "NANOS"):
        return False
    nothing = StructType(())
    return all(
        _is_plain(child, nothing, keeps_old_times=keeps_old_times) for child in node.children
    )


def _why_not_by_mapping(file: ConvertedFile, target: TableWrite) -> str:
    mode = target.properties.get(MODE, "none").lower()
    if mode not in ("name", "id"):
        return ""
    if any(field.physical_name != field.name for field in target.schema.walk()):
        return "the table maps its columns to other names"
    if mode == "name":
        return ""
    ids = {field.name: field.metadata.get(ID_KEY) for field in target.schema.fields}
    has_ids = all(node.field_id == ids.get(node.name) for node in file.root.children)
    is_flat = all(
        isinstance(field.type, VariantType) or not node.children
        for field, node in zip(file.schema.fields, file.root.children, strict=True)
    )
    return "" if has_ids and is_flat else "the table finds columns by ids that it lacks"


def _inside(store: Store, path: str) -> str:
    """Return the path from the table's root, empty for a file elsewhere."""
    if not isinstance(store, LocalStore):
        root = f"{_plain(store.uri)}/"
        return _plain(path).removeprefix(root) if _plain(path).startswith(root) else ""
    if not is_local(path):
        return ""
    real, top = Path(path).resolve(), store.root.resolve()
    return real.relative_to(top).as_posix() if real.is_relative_to(top) else ""


def _plain(url: str) -> str:
    """Write the URLs of S3 with one scheme."""
    return f"s3://{url[6:]}" if url.startswith("s3a://") else url


def _nullable(schema: StructType) -> StructType:
    return StructType(tuple(replace(field, nullable=True) for field in schema.fields))


def nullable_type(kind: DataType) -> DataType:
    """Remove field metadata and NOT NULL from a type."""
    if isinstance(kind, StructType):
        return StructType(tuple(StructField(f.name, nullable_type(f.type)) for f in kind.fields))
    if isinstance(kind, ArrayType):
        return ArrayType(nullable_type(kind.element), contains_null=True)
    if isinstance(kind, MapType):
        return MapType(nullable_type(kind.key), nullable_type(kind.value), value_contains_null=True)
    return kind
