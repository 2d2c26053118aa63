"""Profiles count the values at each path of a sample: the input of schema inference."""

from __future__ import annotations

from dataclasses import dataclass, field

from variantlake.types import Primitive

MAX_PROFILE_DEPTH = 64
"""The depth of nested containers that a profile covers; deeper ones count without their content."""


@dataclass(slots=True)
class Profile:
    """Counts of the values at one path and below it.

    `rows` counts the rows with the path, Variant nulls included; inside arrays every element
    counts. `integer_digits` and `scale` are the most digits left and right of the decimal point
    among exact numbers (0.5 has none on the left), as written.
    """

    rows: int = 0
    primitives: dict[Primitive, int] = field(default_factory=dict)
    integer_digits: int = 0
    scale: int = 0
    objects: int = 0
    fields: dict[str, Profile] = field(default_factory=dict)
    arrays: int = 0
    element: Profile | None = None

    def merge(self, other: Profile) -> None:
        """Add the counts of `other` to this profile."""
        self.rows += other.rows
        for primitive, count in other.primitives.items():
            self.primitives[primitive] = self.primitives.get(primitive, 0) + count
        self.integer_digits = max(self.integer_digits, other.integer_digits)
        self.scale = max(self.scale, other.scale)
        self.objects += other.objects
        for name, profile in other.fields.items():
            self.fields.setdefault(name, Profile()).merge(profile)
        self.arrays += other.arrays
        if other.element is not None:
            if self.element is None:
                self.element = Profile()
            self.element.merge(other.element)
