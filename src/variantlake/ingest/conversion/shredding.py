"""Choose the shredding of a conversion's columns: requested, the table's, a file's, or inferred."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from variantlake.delta.schema.table_schema import StructField, VariantType
from variantlake.errors import InvalidSchema, in_file
from variantlake.ingest.conversion.plan import Action, ConvertedFile, Step
from variantlake.ingest.conversion.request import Request
from variantlake.ingest.encode.encode import VariantColumn
from variantlake.kernels.variant.profile_limits import ProfileLimits
from variantlake.kernels.variant.profiler import profile
from variantlake.parquet.read.reader import iter_batches
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.inference.infer import InferenceOptions, infer
from variantlake.shredding.layout import check_writable
from variantlake.shredding.schema import ShreddingSchema
from variantlake.writing.table_write import UNSHREDDED, TableWrite


def with_shredding(
    target: TableWrite, files: Sequence[ConvertedFile], steps: Sequence[Step], request: Request
) -> tuple[TableWrite, list[tuple[StructField, ShreddingSchema]]]:
    """Choose schemas for the columns that have rewritten files, and store them in the table."""
    rewritten = [
        file for file, step in zip(files, steps, strict=True) if step.action is Action.REWRITE
    ]
    schemas: list[tuple[StructField, ShreddingSchema]] = []
    variants = [each for each in target.schema.fields if isinstance(each.type, VariantType)]
    _check_requested(request.shredding, {each.name for each in variants}, target)
    for each in variants:
        having = [file for file in rewritten if each.name in file.arrow.names]
        if not having:
            continue
        requested = request.shredding
        text = requested.get(each.name) if isinstance(requested, Mapping) else requested
        own = target.shredding(each.physical_name)
        schema = parse_ddl(text) if text is not None else own
        if schema is None:
            schema = _schema_of_files(files, each.name) or _inferred(having[0], each, target)
        schemas.append((each, schema))
        if schema != own:
            target = target.with_shredding(each.physical_name, schema, requested=text is not None)
    return target, schemas


def _check_requested(
    requested: str | Mapping[str, str] | None, columns: Collection[str], target: TableWrite
) -> None:
    if requested is None:
        return
    for name in requested if isinstance(requested, Mapping) else ():
        if name not in columns:
            raise InvalidSchema(
                f"{name!r} is not a VARIANT column of the table", file=target.store.uri
            )
    target.check_requested(requested.values() if isinstance(requested, Mapping) else [requested])


def _schema_of_files(files: Sequence[ConvertedFile], column: str) -> ShreddingSchema | None:
    """Return the schema of the first file that shreds the column in a way that we may write."""
    for file in files:
        schema = file.shredding(column)
        if schema is None:
            continue
        try:
            check_writable(schema)
        except InvalidSchema:
            continue
        return schema
    return None


def _inferred(file: ConvertedFile, own: StructField, target: TableWrite) -> ShreddingSchema:
    """Infer a schema from the first rows of a file; the task that rewrites it reports bad rows."""
    options = target.inference(own.physical_name, InferenceOptions())
    with in_file(file.source.path):
        for batch in iter_batches(file.source.path, columns=[own.name]):
            given, from_json = batch.schema.field(0).type, own.name in file.json
            column = VariantColumn(own, given, lambda _: UNSHREDDED, from_json=from_json)
            return infer(
                profile(column.tape(batch.column(0)), ProfileLimits.of(options)), options
            ).schema
    return UNSHREDDED
