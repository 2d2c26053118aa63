"""The table that a write goes to: a version of an existing table, or a new one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from variantlake.contracts.contract import Contract, contract_property, contracts
from variantlake.delta.actions.actions import DomainMetadata, Metadata, Protocol
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.cluster_paths import PROPERTY as CLUSTER_BY
from variantlake.delta.protocol.cluster_paths import split_paths
from variantlake.delta.protocol.clustering import clustering_columns
from variantlake.delta.protocol.features import (
    MATERIALIZED,
    SCAN_FEATURES,
    VARIANT_SHREDDING,
    check_variants_listed,
    check_writable,
    writer_features,
)
from variantlake.delta.protocol.known_properties import (
    HINTS_PREFIX,
    SCHEMA_PREFIX,
    SHREDDING_PROPERTY,
    check_properties,
)
from variantlake.delta.protocol.properties import hints, with_given_schema, with_schema
from variantlake.delta.schema.table_schema import StructField, StructType, VariantType
from variantlake.delta.schema.type_parts import nullable_struct, required_in
from variantlake.delta.transaction.alter import evolved, merged_schema
from variantlake.delta.transaction.creation import CONVERT, Creation
from variantlake.delta.transaction.replace_where import Replacement, replace_all
from variantlake.errors import InvalidSchema, InvalidValue, NotADeltaTable, in_file
from variantlake.shredding.ddl import format_ddl, parse_ddl
from variantlake.shredding.inference.infer import InferenceOptions
from variantlake.shredding.schema import ShreddingSchema
from variantlake.storage.opening import open_store
from variantlake.storage.store import LocalStore, Store
from variantlake.writing.autoload_files import OWN_FOLDER
from variantlake.writing.file_plan import FilePlan
from variantlake.writing.files import delete_load, is_load_file
from variantlake.writing.options.load_options import LoadOptions
from variantlake.writing.options.row_policies import BadRows
from variantlake.writing.quarantine import FOLDER as QUARANTINE_FOLDER
from variantlake.writing.quarantine import delete_quarantine

READER_FEATURES = SCAN_FEATURES
"""Reader features that a writer which only adds files supports."""

_CLEAN_UP_PASSES = 10
_CLEAN_UP_SECONDS = 0.1

UNSHREDDED = ShreddingSchema()


@dataclass(frozen=True, slots=True)
class TableWrite:
    """A table as a writer sees it. `snapshot` is None while the table does not exist.

    `properties` are the table's after the commit; the caller asked for those in `requested`, and
    another writer may change the others. `new_folder` is true if the table's folder did not exist.
    `altered` is the protocol and metadata that the commit changes together with adding rows (new
    columns), or those of a new table. `replacing` chooses the files that the rows replace;
    `serializable` forbids replacing rows that others added since `snapshot`. `parameters` describe
    the replacement in the history. `reads_itself` means that the rows were computed from the
    table's: adding them is no blind append. `creation` is a table that must not exist yet, or that
    replaces all of `snapshot`.
    """

    store: Store
    snapshot: Snapshot | None
    schema: StructType
    properties: Mapping[str, str]
    requested: Mapping[str, str] = field(default_factory=dict)
    new_folder: bool = False
    altered: tuple[Protocol, Metadata] | None = None
    is_staged: bool = False
    replacing: Replacement | None = None
    evaluated: bool = False
    numbered: bool = False
    serializable: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)
    reads_itself: bool = False
    creation: Creation | None = None

    @classmethod
    def open(
        cls,
        location: str,
        schema: StructType,
        properties: Mapping[str, str],
        partition_columns: Sequence[str] = (),
        *,
        evaluated: bool = False,
        numbered: bool = False,
    ) -> Self:
        """The table at `location`, or a new one there.

        `schema`, `properties` and `partition_columns` are for a new table; an existing one keeps
        its own. `evaluated` and `numbered` as in `of`.

        Raises NotADeltaTable for a folder that holds something else, UnsupportedFeature for a
        table or a property that we do not write, InvalidValue and InvalidSchema as `new_table`.
        """
        store = open_store(location)
        try:
            snapshot = Snapshot.read(location, store=store, applies=READER_FEATURES)
        except NotADeltaTable:
            _check_vacant(store)
            creation = Creation.of(None, schema, partition_columns, properties)
            return cls._from_creation(
                store, creation, properties, evaluated=evaluated, numbered=numbered
            )
        return cls.of(snapshot, numbered=numbered)

    @classmethod
    def over_files(
        cls,
        store: Store,
        schema: StructType,
        properties: Mapping[str, str],
        partition_columns: Sequence[str] = (),
    ) -> Self:
        """A table that does not exist yet, where its files lie. Raises as `new_table`."""
        made = Creation.of(None, schema, partition_columns, properties, operation=CONVERT)
        return replace(cls._from_creation(store, made, properties), creation=made, new_folder=False)

    @classmethod
    def created(
        cls,
        location: str,
        replaced: Snapshot | None,
        creation: Creation,
        properties: Mapping[str, str],
    ) -> Self:
        """A table that must not exist yet, or that replaces all of `replaced`.

        Raises NotADeltaTable for a folder that holds something else.
        """
        store = open_store(location)
        if replaced is None:
            _check_vacant(store)
        target = cls._from_creation(store, creation, properties, evaluated=True, numbered=True)
        target = replace(target, creation=creation)
        if replaced is None:
            return target
        return replace(
            target,
            snapshot=replaced,
            replacing=replace_all,
            serializable=True,
            evaluated=True,
            numbered=True,
        )

    @classmethod
    def _from_creation(
        cls,
        store: Store,
        creation: Creation,
        properties: Mapping[str, str],
        *,
        evaluated: bool = False,
        numbered: bool = False,
    ) -> Self:
        """A new table. Raises UnsupportedFeature if its features forbid such rows; see `of`."""
        metadata = creation.metadata
        schema = StructType.from_json(metadata.schema_string)
        with in_file(store.uri):
            check_writable(
                creation.protocol,
                metadata.configuration,
                schema,
                evaluated=evaluated,
                numbered=numbered,
            )
        requested = check_properties(properties).keys() & metadata.configuration.keys()
        return cls(
            store,
            None,
            schema,
            metadata.configuration,
            requested={name: metadata.configuration[name] for name in requested},
            new_folder=isinstance(store, LocalStore) and not store.root.exists(),
            altered=(creation.protocol, metadata),
        )

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        *,
        evaluated: bool = False,
        kept: bool = False,
        numbered: bool = False,
    ) -> Self:
        """An existing table.

        The caller promises to apply the table's SQL expressions to the rows (`evaluated`), to write
        only rows that the table has (`kept`), and to number identity columns (`numbered`).

        Raises UnsupportedFeature if the table has features that forbid such a write.
        """
        snapshot.check_writable(evaluated=evaluated, kept=kept, numbered=numbered)
        check_variants_listed(snapshot.protocol, snapshot.schema)
        target = cls(snapshot.store, snapshot, snapshot.schema, snapshot.properties)
        return replace(target, evaluated=evaluated, numbered=numbered)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Names of the partition columns."""
        if self.altered is not None:
            return self.altered[1].partition_columns
        return () if self.snapshot is None else self.snapshot.partition_columns

    @property
    def shredding_enabled(self) -> bool:
        """Whether new files may be shredded."""
        if self.snapshot is None or self.creation is not None:
            return self.properties.get(SHREDDING_PROPERTY, "").lower() == "true"
        return self.snapshot.shredding_enabled

    def variant_column(self, name: str, filled: Collection[str] = ()) -> StructField:
        """The VARIANT column for documents; columns that are not `filled` must be nullable.

        Raises InvalidSchema, which names the column that is missing or cannot be NULL.
        """
        found = self.schema.get(name)
        if found is None or not isinstance(found.type, VariantType):
            known = ", ".join(
                field.name for field in self.schema.fields if isinstance(field.type, VariantType)
            )
            raise InvalidSchema(
                f"the table has no column {name!r}"
                if found is None
                else f"the column {name!r} is {found.type}, not variant",
                file=self.store.uri,
                hint=f"its VARIANT columns: {known}" if known else "it has no VARIANT column",
            )
        for other in self.schema.fields:
            if other is found or other.name in filled:
                continue
            if (required := required_in(other)) or other.default is not None:
                kind = "NOT NULL" if required == other.name else f"one with {required}, NOT NULL,"
                if other.default is not None:
                    kind = f"one with the default {other.default}"
                raise InvalidSchema(
                    f"documents alone cannot fill this table: its column {other.name!r} is {kind}",
                    file=self.store.uri,
                    hint="append rows with all of its columns instead",
                )
        return found

    def shredding(self, physical_name: str) -> ShreddingSchema | None:
        """The table's shredding schema of a column, if any; UNSHREDDED if shredding is off.

        Raises InvalidSchema for a property that does not parse.
        """
        if not self.shredding_enabled:
            return UNSHREDDED
        text = self.properties.get(SCHEMA_PREFIX + physical_name)
        if text is None:
            return None
        try:
            return parse_ddl(text)
        except InvalidSchema as error:
            error.file = self.store.uri
            error.hint = f"the table property {SCHEMA_PREFIX}{physical_name} is broken"
            raise

    def check_requested(self, ddl: Iterable[str]) -> None:
        """Raise InvalidSchema for a requested shredding schema if the table forbids shredding."""
        if not self.shredding_enabled and any(parse_ddl(text) != UNSHREDDED for text in ddl):
            raise InvalidSchema(
                "the table does not allow shredded files",
                file=self.store.uri,
                hint=f"set its property {SHREDDING_PROPERTY} to true",
            )

    def shreddings(self) -> dict[str, ShreddingSchema]:
        """The table's shredding schemas, by the physical names of its VARIANT columns."""
        names = [f.physical_name for f in self.schema.fields if isinstance(f.type, VariantType)]
        known = ((name, self.shredding(name)) for name in names)
        return {name: schema for name, schema in known if schema is not None}

    def with_shreddings(self, schemas: Mapping[str, ShreddingSchema]) -> TableWrite:
        """This table with shredding schemas for columns that have none."""
        target, known = self, self.shreddings()
        for name, schema in schemas.items():
            if name not in known:
                target = target.with_shredding(name, schema)
        return target

    def with_shredding(
        self, physical_name: str, schema: ShreddingSchema, *, requested: bool = False
    ) -> TableWrite:
        """This table with `schema` as the shredding schema of a column.

        A `requested` schema is fixed; a learned one may be learned again.
        """
        if not requested:
            version = 0 if self.snapshot is None else self.snapshot.version + 1
            learned = with_schema(self.properties, physical_name, schema, version)
            return replace(self, properties=learned)
        return replace(
            self,
            properties=with_given_schema(self.properties, physical_name, schema),
            requested={**self.requested, SCHEMA_PREFIX + physical_name: format_ddl(schema)},
        )

    def with_hints(self, physical_name: str, text: str) -> TableWrite:
        """This table with schema hints for a column. Raises InvalidSchema for malformed hints."""
        new = check_properties({HINTS_PREFIX + physical_name: text})
        return self._with_requested(new)

    def _with_requested(self, new: Mapping[str, str]) -> TableWrite:
        properties, requested = {**self.properties, **new}, {**self.requested, **new}
        return replace(self, properties=properties, requested=requested)

    def inference(self, physical_name: str, options: InferenceOptions) -> InferenceOptions:
        """The options, with the table's hints for a column.

        Raises InvalidSchema for malformed hints of another writer.
        """
        return replace(options, hints=hints(self.properties, physical_name))

    def with_columns(self, given: StructType, *, types: bool = False) -> TableWrite:
        """This table with the columns of `given` that it lacks, as nullable columns.

        With `types` the columns that it has must have the same type.

        Raises InvalidSchema for columns that contradict the table's.
        """
        if self.snapshot is None:
            return self
        merged = merged_schema(self.schema, nullable_struct(given), types=types)
        if merged == self.schema:
            return self
        protocol, metadata = evolved(self.snapshot, merged)
        return replace(
            self,
            schema=StructType.from_json(metadata.schema_string),
            properties={**self.properties, **metadata.configuration},
            altered=(protocol, metadata),
        )

    def file_plan(self, load_id: str, options: LoadOptions) -> FilePlan:
        """How the files of one load are written."""
        snapshot = self.snapshot if self.creation is None else None
        enabled = snapshot is None or not snapshot.features.isdisjoint(VARIANT_SHREDDING)
        return FilePlan(
            location=self.store.uri,
            load_id=load_id,
            schema=self.schema,
            properties=dict(self.properties),
            partition_columns=self.partition_columns,
            variant_bounds=enabled,
            clustering=clustering_columns(self._domains()),
            limits=options.limits,
            mode=options.mode or BadRows.STRICT,
            order_by=options.order_by,
            # `unique_by` depends on the rows' own order.
            cluster_by=split_paths(text)
            if (text := self.properties.get(CLUSTER_BY)) and not options.unique_by
            else (),
            truncate_timestamps=options.truncate_timestamps,
            materialize_partitions=self._materializes_partitions(),
            max_bad=options.max_bad,
        )

    def load_plan(self, load_id: str, options: LoadOptions) -> FilePlan:
        """As `file_plan`, for new rows, which must fulfil the table's contracts."""
        known = contracts(self.properties)
        plan = self.file_plan(load_id, options)
        return replace(plan, mode=options.bad_rows(known), contracts=known)

    def with_contract(self, contract: Contract | None, column: str | None = None) -> TableWrite:
        """This table with a contract for a column; None is the only VARIANT column.

        A contract of None changes nothing. Raises InvalidSchema for a column that cannot have one.
        """
        if contract is None:
            return self
        if self.is_staged:
            raise InvalidValue(
                "a staged load cannot change the table's contract",
                hint="set it first: Table.set_contract",
                cli_hint="set it first: `variantlake contract`",
            )
        name = self.variant_name(column)
        new = contract_property(self.properties, name, contract)
        return self._with_requested(new)

    def variant_name(self, column: str | None) -> str:
        """The physical name of a VARIANT column; None is the only one. Raises InvalidSchema."""
        fields = [field for field in self.schema.fields if isinstance(field.type, VariantType)]
        chosen = [field for field in fields if column in (None, field.name)]
        if len(chosen) == 1:
            return chosen[0].physical_name
        names = ", ".join(field.name for field in fields) or "none"
        raise InvalidSchema(
            f"a contract is of one VARIANT column; the table has: {names}"
            if column is None
            else f"the table has no VARIANT column {column!r}: {names}",
            file=self.store.uri,
            hint="Table.set_contract(…, column=…) sets one of a table with several",
            cli_hint="`variantlake contract --column` sets one of a table with several",
        )

    def _domains(self) -> Mapping[str, DomainMetadata]:
        if self.creation is not None:
            return {each.domain: each for each in self.creation.domains}
        return {} if self.snapshot is None else self.snapshot.domains

    def _materializes_partitions(self) -> bool:
        """Whether a feature or property asks for partition columns in files.

        Spec: RFC "Materialize Partition Columns".
        """
        if self.properties.get("delta.writePartitionColumnsToParquet") == "true":
            return True
        if self.altered is not None:
            return MATERIALIZED in writer_features(self.altered[0])
        return self.snapshot is not None and MATERIALIZED in self.snapshot.features

    def clean_up(self, load_id: str) -> None:
        """Delete the files of a load that was not committed."""
        # A task may begin one more file at the instant when it is stopped.
        for _ in range(_CLEAN_UP_PASSES):
            if not delete_load(self.store, load_id):
                break
            time.sleep(_CLEAN_UP_SECONDS)
        delete_quarantine(self.store, load_id)
        if self.new_folder and isinstance(self.store, LocalStore):
            with contextlib.suppress(OSError):  # another process put something there
                self.store.root.rmdir()


_OWN_FOLDERS = ("_delta_log", QUARANTINE_FOLDER, OWN_FOLDER)


def _check_vacant(store: Store) -> None:
    """Refuse a location that holds something else, probably by a mistyped path.

    Files of other loads, running or killed, are allowed.
    """
    if isinstance(store, LocalStore):
        if store.root.exists() and not store.root.is_dir():
            raise NotADeltaTable(
                "this is a file, not a Delta table",
                file=store.uri,
                hint="name a Delta table, or a new or empty folder",
            )
        names = [path.name for path in store.root.iterdir()] if store.root.is_dir() else []
    else:
        names = [entry.path for entry in store.list_from("")]
    for name in names:
        if name not in _OWN_FOLDERS and not is_load_file(name):
            raise NotADeltaTable(
                f"the folder holds {name!r} and no Delta table",
                file=store.uri,
                hint="name a Delta table, or a new or empty folder",
            )
