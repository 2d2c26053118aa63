"""THE table of Delta table features: a record for each says what we support, or why we refuse.

docs/table-features.md shows the records. Spec: PROTOCOL, "Table Features", "Valid Feature Names in
Table Features", the RFCs, and the lists of Delta Spark and Delta Kernel.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from variantlake.delta.schema.table_schema import StructType, types_in

Active = Callable[[Mapping[str, str], StructType], bool]


class Support(enum.Enum):
    """How we support a feature that a table lists.

    YES: we obey it. IF_INACTIVE: allowed while the table does not use it (see `active`).
    BY_CALLER: the log module exposes what a scan needs, and the scan must declare that it obeys.
    EVALUATED: the writer must declare that its rows went through the table's SQL expressions.
    NUMBERED: allowed while inactive, or if the writer declares that it numbers new rows, or that no
    row is new. NO: refused by name.
    """

    YES = "yes"
    IF_INACTIVE = "while inactive"
    BY_CALLER = "by the scan"
    EVALUATED = "by Spark"
    NUMBERED = "not by convert"
    NO = "no"


def _never(_properties: Mapping[str, str], _schema: StructType) -> bool:
    return False


def _always(_properties: Mapping[str, str], _schema: StructType) -> bool:
    return True


def _property(name: str) -> Active:
    return lambda properties, _schema: properties.get(name, "").lower() == "true"


def _property_prefix(prefix: str) -> Active:
    return lambda properties, _schema: any(name.startswith(prefix) for name in properties)


def _field_metadata(prefix: str) -> Active:
    return lambda _properties, schema: any(
        key.startswith(prefix) for field in schema.walk() for key in field.metadata
    )


def _geometries(_properties: Mapping[str, str], schema: StructType) -> bool:
    return any(str(type_).startswith(("geometry(", "geography(")) for type_ in types_in(schema))


def _column_mapping(properties: Mapping[str, str], _schema: StructType) -> bool:
    return properties.get("delta.columnMapping.mode", "none").lower() != "none"


@dataclass(frozen=True, slots=True)
class TableFeature:
    """One feature; `reader` means that readers must obey it too.

    `what` describes it, and `writers` names the engines that write tables with it; both are in
    docs/table-features.md and in refusals. `hint` says what to do about a refused table.
    `legacy_reader` and `legacy_writer` are the protocol versions from which a table without feature
    lists has it. `active` tells whether a table that lists it uses it. `enabled_by` is a property
    that a table may only set together with the feature.
    """

    name: str
    what: str
    writers: str
    reader: bool = False
    read: Support = Support.YES
    write: Support = Support.YES
    active: Active = _always
    needs: tuple[str, ...] = ()
    legacy_reader: int | None = None
    legacy_writer: int | None = None
    enabled_by: str | None = None
    hint: str = ""

    def is_enabled_by(self, properties: Mapping[str, str]) -> bool:
        """Whether these properties switch the feature on."""
        value = properties.get(self.enabled_by or "", "").lower()
        return value not in _SWITCHED_OFF


_SWITCHED_OFF = ("", "false", "none", "classic")
_SPARK_EVALUATES = (
    "write through Spark (lake.append, lake.update, lake.merge), which evaluates the table's SQL"
    " expressions"
)
_ASK_THE_CATALOG = (
    "only the catalog that manages this table knows its newest commits: read and write it through"
    " the catalog, with an engine that supports it"
)
_DELTA_SPARK = "Delta Spark, Databricks"
_DELTA_SPARK_AND_WE = f"{_DELTA_SPARK}, Variantlake"


def _iceberg(version: str, writers: str) -> TableFeature:
    return TableFeature(
        f"icebergCompat{version}",
        "the files obey rules by which Iceberg can read them",
        writers,
        write=Support.IF_INACTIVE,
        active=_property(f"delta.enableIcebergCompat{version}"),
        hint="write it with Delta Spark, or, if the table is never read as Iceberg, switch it off"
        f" there: ALTER TABLE ... SET TBLPROPERTIES ('delta.enableIcebergCompat{version}' ="
        " 'false')",
    )


def _iceberg_writer(version: str) -> TableFeature:
    return TableFeature(
        f"icebergWriterCompat{version}",
        "names, ids and types are such that Iceberg's writers can write the table, too",
        "Delta Kernel for Java",
        write=Support.IF_INACTIVE,
        active=_property(f"delta.enableIcebergWriterCompat{version}"),
        hint=f"write it with Delta Kernel, or set delta.enableIcebergWriterCompat{version} to"
        " 'false' there",
    )


def _managed(name: str, writers: str, *, reader: bool = True) -> TableFeature:
    return TableFeature(
        name,
        "a catalog or service decides which commit is the next one",
        writers,
        reader=reader,
        read=Support.NO if reader else Support.YES,
        write=Support.NO,
        hint=_ASK_THE_CATALOG,
    )


def _geospatial(name: str, writers: str) -> TableFeature:
    return TableFeature(
        name,
        "columns of GEOMETRY and GEOGRAPHY, read as binary: well-known binary (WKB)",
        writers,
        reader=True,
        write=Support.IF_INACTIVE,
        active=_geometries,
        hint="write such columns with Spark 4.2 or newer",
    )


def _widening(name: str, writers: str, hint: str) -> TableFeature:
    # New files have the current types; a scan must widen only the old ones.
    return TableFeature(
        name,
        "a column's type got wider, and older files keep the narrow one",
        writers,
        reader=True,
        read=Support.BY_CALLER,
        active=_field_metadata("delta.typeChanges"),
        enabled_by="delta.enableTypeWidening" if name == "typeWidening" else None,
        hint=hint,
    )


def _collations(name: str, writers: str) -> TableFeature:
    # Bounds in binary order stay true, and our writers change no column's metadata.
    return TableFeature(
        name,
        "string columns name the rules by which an engine compares them",
        writers,
        needs=("domainMetadata",),
    )


def _adaptive(name: str) -> TableFeature:
    return TableFeature(
        name,
        "the list of files is kept in Iceberg's manifests (v4) and not in the log",
        "Delta Spark 4.4 as a preview",
        reader=True,
        read=Support.NO,
        write=Support.NO,
        hint=f"drop it with Delta Spark: ALTER TABLE ... DROP FEATURE `{name}`",
    )


FEATURES: dict[str, TableFeature] = {
    feature.name: feature
    for feature in (
        TableFeature(
            "variantType", "columns of VARIANT", "Delta Spark 4.0, Variantlake", reader=True
        ),
        TableFeature(
            "variantType-preview", "the same, by its first name", "Delta Spark 3.3", reader=True
        ),
        TableFeature(
            "variantShredding",
            "files hold paths of VARIANT columns as typed columns",
            "Delta Spark, Variantlake",
            reader=True,
            needs=("variantType",),
            enabled_by="delta.enableVariantShredding",
        ),
        TableFeature(
            "variantShredding-preview",
            "the same, by its first name",
            "Delta Spark 4.0",
            reader=True,
            needs=("variantType",),
        ),
        TableFeature("timestampNtz", "timestamps without a time zone", "all", reader=True),
        TableFeature(
            "vacuumProtocolCheck",
            "who vacuums must obey the protocol for writers, too",
            _DELTA_SPARK,
            reader=True,
        ),
        TableFeature(
            "v2Checkpoint",
            "checkpoints with sidecars, named by a UUID",
            "Delta Spark, delta-rs, Variantlake",
            reader=True,
            enabled_by="delta.checkpointPolicy",
        ),
        TableFeature(
            "columnMapping",
            "files have other names for columns than the table: columns can be renamed and dropped",
            "all but delta-rs",
            reader=True,
            read=Support.BY_CALLER,
            active=_column_mapping,
            legacy_reader=2,
            legacy_writer=5,
            enabled_by="delta.columnMapping.mode",
            hint="query this table with Delta Spark",
        ),
        TableFeature(
            "columnMappingUsageTracking",
            "the table says whether a column was ever renamed or dropped",
            "nobody yet",
            write=Support.NO,
            hint="write it with the engine that set it up",
        ),
        TableFeature(
            # The files decide whether it is active, not the property: see Snapshot. Appends add
            # files without vectors.
            "deletionVectors",
            "rows of a file are deleted by a list of their places",
            "all, Variantlake",
            reader=True,
            read=Support.BY_CALLER,
            active=_never,
            enabled_by="delta.enableDeletionVectors",
        ),
        _widening(
            "typeWidening",
            _DELTA_SPARK_AND_WE,
            "rewrite the old files (REORG TABLE ... APPLY (UPGRADE UNIFORM) or a copy)",
        ),
        _widening(
            "typeWidening-preview", "Delta Spark 3.2", "rewrite the old files by copying the table"
        ),
        _managed("catalogManaged", "Delta Spark 4.1 with Unity Catalog"),
        _managed("catalogOwned", "the first drafts of catalogManaged"),
        _managed("catalogOwned-preview", "Delta Spark 4.0"),
        _managed("coordinatedCommits-preview", "Delta Spark 3.3, 4.0", reader=False),
        _managed("managedCommit", "a rejected draft of catalogManaged", reader=False),
        TableFeature(
            "redirectReaderWriter-preview",
            "the table has moved to another place",
            _DELTA_SPARK,
            reader=True,
            read=Support.IF_INACTIVE,
            write=Support.IF_INACTIVE,
            active=_property_prefix("delta.redirectReaderWriter-preview"),
            hint="open the place that the property delta.redirectReaderWriter-preview names",
        ),
        TableFeature(
            "redirectWriterOnly-preview",
            "writers find the table in another place",
            _DELTA_SPARK,
            write=Support.IF_INACTIVE,
            active=_property_prefix("delta.redirectWriterOnly-preview"),
            hint="write to the place that the property delta.redirectWriterOnly-preview names",
        ),
        _adaptive("adaptiveMetadata"),
        _adaptive("adaptiveMetadata-preview"),
        _geospatial("geospatial", "Delta Spark 4.4"),
        _geospatial("geospatial-dev", "Delta Spark 4.2, 4.3"),
        TableFeature(
            "timestampNanos",
            "timestamps in nanoseconds",
            "nobody yet: an RFC",
            reader=True,
            read=Support.NO,
            write=Support.NO,
            hint="keep the instants as timestamps in microseconds, or the nanoseconds as BIGINT",
        ),
        TableFeature(
            "appendOnly",
            "rows are never changed or deleted",
            "all, Variantlake",
            legacy_writer=2,
            enabled_by="delta.appendOnly",
        ),
        TableFeature(
            "invariants",
            "conditions on columns that every row fulfils",
            "old Delta Spark",
            write=Support.EVALUATED,
            active=_field_metadata("delta.invariants"),
            legacy_writer=2,
            hint=_SPARK_EVALUATES,
        ),
        TableFeature(
            "checkConstraints",
            "conditions that every row fulfils",
            "all, Variantlake",
            write=Support.EVALUATED,
            active=_property_prefix("delta.constraints."),
            legacy_writer=3,
            hint=_SPARK_EVALUATES,
        ),
        # Adds and removes of whole files need no change files: readers take them for inserts and
        # deletes.
        TableFeature(
            "changeDataFeed",
            "changed rows can be read by version",
            "Delta Spark, delta-rs, Variantlake",
            legacy_writer=4,
            enabled_by="delta.enableChangeDataFeed",
        ),
        TableFeature(
            "generatedColumns",
            "columns are computed from others",
            "Delta Spark, delta-rs",
            write=Support.EVALUATED,
            active=_field_metadata("delta.generationExpression"),
            legacy_writer=4,
            hint=_SPARK_EVALUATES,
        ),
        TableFeature(
            "identityColumns",
            "a column gets a new number in every row",
            _DELTA_SPARK_AND_WE,
            write=Support.NUMBERED,
            active=_field_metadata("delta.identity."),
            legacy_writer=6,
            hint="append rows, documents or a DataFrame of Spark, which get numbers",
        ),
        # Only an omitted column takes its default; the writers of rows do that.
        TableFeature("allowColumnDefaults", "columns have default values", _DELTA_SPARK),
        TableFeature(
            "domainMetadata",
            "features and applications keep facts in the log",
            "Delta Spark, Variantlake",
        ),
        TableFeature(
            "inCommitTimestamp",
            "commits carry their time, whatever the clock of the store says",
            "Delta Spark, Variantlake",
            enabled_by="delta.enableInCommitTimestamps",
        ),
        TableFeature(
            "inCommitTimestamp-preview",
            "the same, by its first name",
            "Delta Spark 3.2",
            write=Support.NO,
            hint="drop it with Delta Spark:"
            " ALTER TABLE ... DROP FEATURE `inCommitTimestamp-preview`",
        ),
        TableFeature(
            "checkpointProtection",
            "old checkpoints stay until all versions before a certain one go",
            "Delta Spark 4.0 when it drops a feature",
        ),
        TableFeature(
            "materializePartitionColumns",
            "data files hold the partition columns, too",
            "Delta Spark 4.1, Delta Kernel, Variantlake",
            enabled_by="delta.enableMaterializePartitionColumnsFeature",
        ),
        TableFeature(
            "rowTracking",
            "rows keep an id and the version of their last change",
            "Delta Spark, Variantlake",
            needs=("domainMetadata",),
            enabled_by="delta.enableRowTracking",
        ),
        TableFeature(
            "clustering",
            "rows with similar values stand in the same files",
            "Delta Spark, Variantlake",
            needs=("domainMetadata",),
        ),
        _collations("collations", "Databricks"),
        _collations("collations-preview", "Delta Kernel, Databricks"),
        _iceberg("V1", _DELTA_SPARK),
        _iceberg("V2", _DELTA_SPARK),
        _iceberg("V3", "Delta Spark 4.2, Databricks"),
        _iceberg_writer("V1"),
        _iceberg_writer("V3"),
    )
}
"""The features by name, as the protocol spells them."""
