"""A cache of the latest queries of one table version, with their plans."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from variantlake.delta.log.snapshot import Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

    from variantlake.engine.queries import Query
    from variantlake.engine.run import LocalQuery
    from variantlake.scan.decoded_log import DecodedLog

MOST = 16
"""The most queries to keep: for a large table each holds the numbers of its files."""

_OF_A_MOMENT = re.compile(r"\b(now|current_[a-z]+|curdate)\b", re.IGNORECASE)
"""Functions whose value is another one in the next query."""


class PreparedQueries:
    """The latest queries of one table handle, by their text; a copy starts empty.

    A handle stays at its version, and a query keeps no results, so the same text may share a query.
    A page of charts sends the same few queries again and again; parsing and planning them take
    longer than an answer from the log, or from a few runs of a sorted table.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, LocalQuery] = OrderedDict()

    def of(self, text: str, snapshot: Snapshot, decoded: DecodedLog) -> LocalQuery:
        """Return the query of a text. Raises as `read_query`."""
        from variantlake.engine.run import LocalQuery
        from variantlake.engine.text import names_of_table, read_query

        found = self._kept.pop(text, None)
        if found is None:
            names = dict.fromkeys(names_of_table(snapshot.store.uri), snapshot.schema)

            def run(_: str, query: Query) -> Iterator[pa.RecordBatch]:
                return LocalQuery(snapshot, query, decoded).to_batches()

            found = LocalQuery(snapshot, read_query(text, names, run=run)[1], decoded)
        if _OF_A_MOMENT.search(text) is None:
            self._kept[text] = found
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)
        return found

    def __reduce__(self) -> tuple[type[PreparedQueries], tuple[()]]:
        return PreparedQueries, ()
