"""Read a table's properties: schemas and hints of its columns, codec, constraints.

Spec: PROTOCOL, "Table Properties".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from variantlake.delta.protocol import cluster_paths, learned_schemas
from variantlake.delta.protocol.known_properties import (
    CODECS,
    CONSTRAINT_PREFIX,
    HINTS_PREFIX,
    OF_COLUMNS,
    RESIDUAL_SHARE,
    SCHEMA_PREFIX,
    SHREDDING_PROPERTY,
    STATS_COLUMNS,
    VALUES,
    checked,
)
from variantlake.delta.schema.column_mapping import is_mapped
from variantlake.delta.schema.table_schema import StructType, VariantType
from variantlake.errors import InvalidSchema, UnsupportedFeature, did_you_mean
from variantlake.shredding.ddl import format_ddl, parse_ddl
from variantlake.shredding.inference.hints import Hint, parse_hints
from variantlake.shredding.schema import ShreddingSchema

if TYPE_CHECKING:  # writing loads much that reading needs not
    from variantlake.parquet.write.file_writer import Compression

DEFAULT_RESIDUAL_SHARE = 0.3
MANIFESTS = "delta.compatibility.symlinkFormatManifest.enabled"
VECTORS = "delta.enableDeletionVectors"


def of_table(properties: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """Properties as a table with these columns keeps them: schemas and hints by physical names.

    A user may name the column as the table does. Raises InvalidSchema for what is not a VARIANT
    column, and for statistics of columns that the table does not have.
    """
    _check_stats_columns(properties, schema)
    found = {}
    for key, value in properties.items():
        prefix = next((each for each in OF_COLUMNS if key.startswith(each)), None)
        if prefix is None:
            found[key] = value
            continue
        name = key.removeprefix(prefix)
        variants = [field for field in schema.fields if isinstance(field.type, VariantType)]
        column = next((f for f in variants if name in (f.name, f.physical_name)), None)
        if column is None:
            known = ", ".join(field.name for field in variants) or "none"
            raise InvalidSchema(
                f"the property {key}: {name!r} is not a VARIANT column of the table",
                hint=f"VARIANT columns: {known}",
            )
        found[prefix + column.physical_name] = value
    return found


def shredding_schemas(
    properties: Mapping[str, str], schema: StructType
) -> dict[str, ShreddingSchema]:
    """Return the shredding schemas that a table has, by the physical names of its VARIANT columns.

    That of a column is unshredded if the table forbids shredding, and not there while no data
    has come that it could be inferred from. Raises InvalidSchema for one that does not parse.
    """
    enabled = properties.get(SHREDDING_PROPERTY, "").lower() == "true"
    names = [f.physical_name for f in schema.fields if isinstance(f.type, VariantType)]
    if not enabled:
        return {name: ShreddingSchema() for name in names}
    texts = ((name, properties.get(SCHEMA_PREFIX + name)) for name in names)
    return {name: parse_ddl(text) for name, text in texts if text is not None}


def with_schema(
    configuration: Mapping[str, str], column: str, schema: ShreddingSchema, version: int
) -> dict[str, str]:
    """Return the properties with a schema that was learned for this version of the table.

    `column` is a physical name.
    """
    found = {**configuration, SCHEMA_PREFIX + column: format_ddl(schema)}
    before = learned_schemas.learned_schemas(configuration, column)
    if before is None:
        before = learned_schemas.LearnedSchemas()
        text = configuration.get(SCHEMA_PREFIX + column)
        if text is not None and parse_ddl(text) != schema:  # it was given: ours is the second
            before = before.next(parse_ddl(text), 0)
    elif found == configuration:
        return found
    return found | {learned_schemas.PREFIX + column: before.next(schema, version).text()}


def with_given_schema(
    configuration: Mapping[str, str], column: str, schema: ShreddingSchema
) -> dict[str, str]:
    """Return the properties with a schema that a user gave, which stays until another is given."""
    found = {**configuration, SCHEMA_PREFIX + column: format_ddl(schema)}
    found.pop(learned_schemas.PREFIX + column, None)
    return found


def hints(properties: Mapping[str, str], column: str) -> tuple[Hint, ...]:
    """Return the hints for a column's schema (physical name).

    Raises InvalidSchema for those of another writer that cannot be understood.
    """
    return parse_hints(properties.get(HINTS_PREFIX + column, ""))


def max_residual_share(properties: Mapping[str, str]) -> float:
    """Return the share of residuals from which a schema is learned again; of 1 on, none is.

    Raises InvalidValue for what another engine has set to no share.
    """
    text = properties.get(RESIDUAL_SHARE)
    return DEFAULT_RESIDUAL_SHARE if text is None else float(checked(RESIDUAL_SHARE, text))


def check_clustering(
    properties: Mapping[str, str], schema: StructType, partition_columns: Sequence[str]
) -> None:
    """Refuse properties whose `variantlake.clusterBy` names what rows cannot be ordered by.

    Raises InvalidSchema, InvalidPath and InvalidValue.
    """
    text = properties.get(cluster_paths.PROPERTY)
    if text is not None:
        known = shredding_schemas(properties, schema)
        cluster_paths.cluster_paths(text, schema, partition_columns, known)


def stats_columns(properties: Mapping[str, str]) -> list[str] | None:
    """Return the columns that `delta.dataSkippingStatsColumns` names; None if it is not set.

    In lower case, as Spark's names of columns have no case, with dots between the parts.
    """
    text = properties.get(STATS_COLUMNS)
    if text is None:
        return None
    return [part.replace("`", "").strip().lower() for part in text.split(",")]


def _check_stats_columns(properties: Mapping[str, str], schema: StructType) -> None:
    known = {
        ".".join(path[: depth + 1]).lower()
        for path, _ in schema.leaves()
        for depth in range(len(path))
    }
    for name in filter(None, stats_columns(properties) or ()):
        if name not in known:
            raise InvalidSchema(
                f"the property {STATS_COLUMNS}: the table has no column {name!r}",
                hint=did_you_mean(name, known),
            )


def compression(properties: Mapping[str, str]) -> Compression:
    """Return the codec of new Parquet files (`delta.parquet.compression.codec`); by default zstd.

    Raises UnsupportedFeature for one that cannot be written.
    """
    name = properties.get("delta.parquet.compression.codec", "zstd").strip().lower()
    found = CODECS.get(name)
    if found is None:
        raise UnsupportedFeature(
            f"Parquet files with the codec {name!r} cannot be written here",
            hint="the property delta.parquet.compression.codec names it",
        )
    return found


def page_version(properties: Mapping[str, str]) -> Literal["1.0", "2.0"]:
    """Return the version of data pages in new Parquet files (`delta.parquet.format.version`).

    Raises UnsupportedFeature for one that does not exist.
    """
    text = properties.get("delta.parquet.format.version", "1.0.0").strip()
    if not VALUES["delta.parquet.format.version"].fullmatch(text):
        raise UnsupportedFeature(
            f"there is no Parquet format {text!r}",
            hint="the property delta.parquet.format.version names it",
        )
    return "1.0" if text == "1.0.0" else "2.0"


def check_manifests(properties: Mapping[str, str]) -> None:
    """Refuse manifests, which name files, for a table whose files alone are not its rows.

    Raises UnsupportedFeature.
    """
    if properties.get(MANIFESTS, "").lower() != "true":
        return
    if is_mapped(properties):
        what, hint = "column mapping", "Table.export(...) writes plain files"
    elif properties.get(VECTORS, "").lower() == "true":
        what, hint = "deletion vectors", f"set {VECTORS} to 'false'"
    else:
        return
    raise UnsupportedFeature(
        f"{MANIFESTS} does not go with {what}: readers of manifests know files alone", hint=hint
    )


def constraints(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the CHECK constraints by name."""
    return {
        key.removeprefix(CONSTRAINT_PREFIX): value
        for key, value in properties.items()
        if key.startswith(CONSTRAINT_PREFIX)
    }
