"""How the files of a table are laid out: what is shredded, and in which order rows lie."""

from __future__ import annotations

from variantlake.maintenance.reshredding.drift import Drift, drift
from variantlake.spark.lake.loads import LakeLoads
from variantlake.spark.query.places import Location


class LakeLayouts(LakeLoads):
    """The part of `Lake` that looks after shredding and order; no row changes."""

    def drift(self, table: Location, column: str | None = None) -> Drift:
        """As `Table.drift`: footers and a sample are read on the driver."""
        return drift(self._tables.open(self._written_to(table)).snapshot, column)
