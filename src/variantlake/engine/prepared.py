"""Queries of one table version that were asked lately, kept with their plans for the next time."""

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
"""Queries that are kept: of a large table each holds the numbers of the files that it reads."""

_OF_A_MOMENT = re.compile(r"\b(now|current_[a-z]+|curdate)\b", re.IGNORECASE)
"""What means another time in the next query."""


class PreparedQueries:
    """The latest queries of one handle of a table by their text; a copy begins empty.

    A handle stays at its version, and a query keeps nothing of what it gave: the same text may be
    the same query. A table's page of charts asks the same few again and again; text and plan take
    longer than what the log answers, or a few runs of a sorted table.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, LocalQuery] = OrderedDict()

    def of(self, text: str, snapshot: Snapshot, decoded: DecodedLog) -> LocalQuery:
        """The query of a text of the table. Raises as `read_query`."""
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
