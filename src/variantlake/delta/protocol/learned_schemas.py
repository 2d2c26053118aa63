"""The shredding schemas that were learned from data: that of new files, and earlier ones.

Our table property `variantlake.learned.<column>` records them in addition to the DDL. A column
whose schema a user gave as DDL lacks the property, and its schema stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import orjson

from variantlake.shredding.ddl import format_ddl
from variantlake.shredding.schema import ShreddingSchema

PREFIX = "variantlake.learned."
"""The column's physical name follows."""

MAX_SCHEMAS = 32
"""The number of newest schemas that are kept."""

_SHARE_DIGITS = 3


@dataclass(frozen=True, slots=True)
class LearnedSchema:
    """One schema.

    `number` counts from 1 on, `version` is that of the table which it was learned for, and `layout`
    the name of the layout that its files have.
    """

    number: int
    version: int
    layout: str


@dataclass(frozen=True, slots=True)
class LearnedSchemas:
    """The schemas of one column, oldest first.

    `residuals` is the share of residuals in the bytes of files with the newest, as it was when
    the last search for a better one; None if no file had it yet.
    """

    schemas: tuple[LearnedSchema, ...] = ()
    residuals: float | None = None

    @property
    def newest(self) -> LearnedSchema | None:
        """The schema of new files."""
        return self.schemas[-1] if self.schemas else None

    def find(self, layout: str) -> LearnedSchema | None:
        """Return the newest schema whose files have this layout."""
        return next((each for each in reversed(self.schemas) if each.layout == layout), None)

    def next(self, schema: ShreddingSchema, version: int) -> LearnedSchemas:
        """Return these and one more, learned for this version of the table."""
        number = 1 if self.newest is None else self.newest.number + 1
        more = LearnedSchema(number, version, layout_name(schema))
        return LearnedSchemas((*self.schemas, more)[-MAX_SCHEMAS:])

    def measured(self, share: float) -> LearnedSchemas:
        """Return these, with the share of residuals that was found."""
        return replace(self, residuals=round(share, _SHARE_DIGITS))

    def text(self) -> str:
        """Return the property's text."""
        schemas = [asdict(each) for each in self.schemas]
        return orjson.dumps({"residuals": self.residuals, "schemas": schemas}).decode()


def layout_name(schema: ShreddingSchema) -> str:
    """Return a short name for a layout, the same for equal ones: eight hexadecimal digits."""
    return hashlib.sha256(format_ddl(schema).encode()).hexdigest()[:8]


def learned_schemas(properties: Mapping[str, str], column: str) -> LearnedSchemas | None:
    """Read the learned schemas of a column (physical name); None if its schema was not learned.

    Also None if the property's text is invalid.
    """
    text = properties.get(PREFIX + column)
    if text is None:
        return None
    try:
        document = orjson.loads(text)
        schemas = tuple(LearnedSchema(**each) for each in document["schemas"])
        share = document["residuals"]
    except (ValueError, TypeError, KeyError):
        return None
    types = {(type(each.number), type(each.version), type(each.layout)) for each in schemas}
    if types - {(int, int, str)} or not isinstance(share, int | float | None):
        return None
    return LearnedSchemas(schemas[-MAX_SCHEMAS:], share)
