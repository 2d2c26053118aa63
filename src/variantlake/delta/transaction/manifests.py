"""Manifests that name a table's files, for engines that read lists of Parquet files.

As Delta Spark's GENERATE writes them: a file of locations for each partition. Hive's reader of
symlinks (Presto, Trino, Athena, Redshift) reads such a folder as a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from variantlake.delta.actions.actions import AddFile, Metadata
from variantlake.delta.log.files.file_paths import locate
from variantlake.delta.log.files.logical_files import LogicalFiles, adds_of
from variantlake.delta.protocol.properties import MANIFESTS
from variantlake.delta.schema.column_mapping import is_mapped
from variantlake.errors import UnsupportedFeature
from variantlake.storage.list_files import Folder, walk
from variantlake.storage.store import Store, is_local

FOLDER = "_symlink_format_manifest"
MODE = "symlink_format_manifest"
NULL = "__HIVE_DEFAULT_PARTITION__"

_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | set(map(chr, range(1, 32)))


def write_manifests(store: Store, metadata: Metadata, files: LogicalFiles) -> int:
    """Write the manifests of a version, delete outdated ones, and return the number written.

    Raises UnsupportedFeature for a table whose files alone are not its rows.
    """
    adds = list(adds_of(files))
    _check_plain(store, metadata, adds)
    texts = dict[str, list[str]]()
    if not metadata.partition_columns:
        texts[f"{FOLDER}/manifest"] = []
    for add in adds:
        path = f"{FOLDER}/{_partition(add, metadata.partition_columns)}manifest"
        texts.setdefault(path, []).append(_location(add, store.uri))
    for path, lines in texts.items():
        store.put(path, "".join(f"{line}\n" for line in lines).encode())
    for each in walk(store, lambda folder: folder.split("/")[0] == FOLDER):
        is_own = not isinstance(each, Folder) and each.path.startswith(f"{FOLDER}/")
        if is_own and each.path.endswith("/manifest") and each.path not in texts:
            store.delete(each.path)
    return len(texts)


def is_kept_up(properties: Mapping[str, str]) -> bool:
    """Whether each commit of a table writes its manifests anew."""
    return properties.get(MANIFESTS, "").lower() == "true"


def _check_plain(store: Store, metadata: Metadata, adds: Sequence[AddFile]) -> None:
    if is_mapped(metadata.configuration):
        raise UnsupportedFeature(
            "the table has column mapping: readers of its files alone do not know the names",
            file=store.uri,
            hint="Table.export(...) writes files with the table's names",
            cli_hint="`variantlake export` writes files with the table's names",
        )
    if any(add.deletion_vector is not None for add in adds):
        raise UnsupportedFeature(
            "files of the table have deletion vectors: readers of files alone see deleted rows",
            file=store.uri,
            hint="REORG TABLE ... APPLY (PURGE), or Table.optimize(purge=True), rewrites them",
            cli_hint="`variantlake optimize --purge` rewrites them",
        )


def _partition(add: AddFile, columns: Sequence[str]) -> str:
    """Return the folders of a file's partition, as Hive names them."""
    values = ((name, add.partition_values.get(name)) for name in columns)
    return "".join(
        f"{_escaped(name)}={NULL if not value else _escaped(value)}/" for name, value in values
    )


def _escaped(text: str) -> str:
    return "".join(f"%{ord(each):02X}" if each in _ESCAPED else each for each in text)


def _location(add: AddFile, root: str) -> str:
    found = locate(add.path, root)
    return f"file:{found}" if is_local(found) else found
