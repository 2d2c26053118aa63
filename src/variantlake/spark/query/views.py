"""Views over tables of ours: in the text of a query, a view's name becomes its own query.

So the paths in the view and those outside of it are one text, and are read from columns alike.
Only if the view's query means the same now and here as when the view was made: of the same
settings, of Spark's own functions alone, every name in it written out. Every other view is Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

from pyspark.sql.types import DataType

from variantlake.quoting import Parts, quote_identifier
from variantlake.spark.query.names import CatalogNames, CatalogTable, CatalogView
from variantlake.spark.query.plans.catalyst import Node
from variantlake.spark.query.references import (
    Resolve,
    alias_place,
    qualifier_splices,
    relations,
    takes_a_name,
    with_alias,
)
from variantlake.sql.splice import Splice, splice

_UNKEPT = re.compile(
    r"spark\.(?!sql\.)|spark\.sql\.(?:optimizer|codegen|execution|shuffle|adaptive|hive|catalog|"
    r"warehouse|sources|files|parquet|streaming|ui|repl|artifact|extensions|maven|debug|"
    r"defaultCatalog|globalTempDatabase|view\.maxNested|autoBroadcast|broadcastTimeout)"
)
"""Settings that do not change what a query means."""


class Views:
    """The views of one query, asked for by one session."""

    def __init__(
        self,
        names: CatalogNames,
        parse: Callable[[str], Node],
        resolve: Resolve,
        types: Callable[[str], list[DataType] | None],
        *,
        case_sensitive: bool,
    ) -> None:
        """`types` gives the types of a query's columns, None for one that Spark refuses."""
        self._names = names
        self._parse = parse
        self._types = types
        self._resolve = resolve
        self._case_sensitive = case_sensitive

    def expand(self, text: str, parsed: Node) -> str:
        """The text with the queries of views in the place of their names."""
        changes: list[Splice] = []
        unaliased = []
        for relation, above in self._relations(parsed):
            view = None if takes_a_name(relation, text) else self._view(relation, above)
            query = view and self._query(view)
            if not query:
                continue
            alias, alias_at = alias_place(relation, above, text, relation.stop)
            own = Splice(relation.start, relation.stop, query)
            changes += with_alias(own, alias, alias_at)
            if alias:
                unaliased.append((view and view.name) or tuple(self._parts(relation)))
        if not changes:
            return text
        return splice(text, [*changes, *qualifier_splices(parsed, text, unaliased)])

    def _view(self, relation: Node, above: tuple[Node, ...]) -> CatalogView | None:
        if not relation.has_span or relation.arguments["options"]:
            return None
        if above and above[0].name == "RelationTimeTravel":
            return None  # which Spark refuses
        if self._resolve(self._parts(relation)) is not None:
            return None
        found = self._names.find(self._parts(relation))
        return found if isinstance(found, CatalogView) else None

    def _query(self, view: CatalogView) -> str | None:
        """The view as a subquery that means the same anywhere; None to leave it to Spark."""
        if view.text is None or not view.plain or not self._same_settings(view):
            return None
        if not view.queried or len(view.queried) != len(view.schema):
            return None
        if len({name.lower() for name in view.queried}) != len(view.queried):
            return None
        parsed = self._parse(view.text)
        changes = []
        ours = False
        for relation, above in self._relations(parsed):
            written, of_ours = self._written_out(view, relation, above)
            if written is None:
                return None
            ours = ours or of_ours
            changes.append(Splice(relation.start, relation.stop, written))
        if not ours or self._foreign_functions(parsed):
            return None
        columns = ", ".join(
            f"{quote_identifier(query)} AS {quote_identifier(column)}"
            for query, column in zip(view.queried, view.schema.names, strict=True)
        )
        # The text may end in a comment.
        query = f"(SELECT {columns} FROM ({splice(view.text, changes)}\n))"  # noqa: S608 - a view's own query
        # Spark casts where a table has other types by now.
        types = [field.dataType for field in view.schema]
        return query if types == self._types(query) else None

    def _written_out(
        self, view: CatalogView, relation: Node, above: tuple[Node, ...]
    ) -> tuple[str | None, bool]:
        """A relation of a view's query by its whole name, and whether a table of ours is in it."""
        parts = self._parts(relation)
        if not relation.has_span or relation.arguments["options"]:
            return None, False
        if len(parts) == 2 and parts[0].lower() == "delta":
            return ".".join(map(quote_identifier, parts)), True
        temporary = parts in view.temporary_views
        found = self._names.find(parts, view.home or None, temporary=temporary)
        if isinstance(found, CatalogTable):
            return ".".join(map(quote_identifier, found.name)), found.is_delta
        query = None if takes_a_name(relation, view.text or "") else found and self._query(found)
        if query:
            alias, alias_at = alias_place(relation, above, view.text or "", relation.stop)
            if alias and alias_at != relation.stop:
                return None, False
            return query + (f" AS {quote_identifier(alias)}" if alias else ""), True
        if found and found.name:
            return ".".join(map(quote_identifier, found.name)), False
        return None, False

    def _relations(self, parsed: Node) -> list[tuple[Node, tuple[Node, ...]]]:
        return list(relations(parsed, case_sensitive=self._case_sensitive))

    def _foreign_functions(self, parsed: Node) -> bool:
        names = set()
        for node in parsed.walk():
            parts = node.arguments.get("nameParts") or node.arguments.get("name")
            if node.name in ("UnresolvedFunction", "UnresolvedTableValuedFunction"):
                if not isinstance(parts, list) or len(parts) != 1:
                    return True
                names.add(parts[0])
        return bool(self._names.foreign_functions(names))

    def _same_settings(self, view: CatalogView) -> bool:
        """Whether the session has the settings that the view keeps, and no others."""
        kept = {key: value for key, value in view.configs.items() if not _UNKEPT.match(key)}
        return all(self._names.setting(key) == value for key, value in kept.items()) and all(
            key in kept or _UNKEPT.match(key) for key in self._settings
        )

    @cached_property
    def _settings(self) -> set[str]:
        return self._names.settings()

    @staticmethod
    def _parts(relation: Node) -> Parts:
        return tuple(relation.arguments["multipartIdentifier"])
