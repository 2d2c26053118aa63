"""Keeping tables in shape: files that are rewritten, removed or brought back."""

from __future__ import annotations

from variantlake.spark.lake.loads import LakeLoads


class LakeMaintenance(LakeLoads):
    """The part of `Lake` that keeps tables in shape."""
