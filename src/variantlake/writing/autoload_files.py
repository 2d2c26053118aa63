"""Where autoloads keep their state: metadata domains that name files in a folder of ours."""

from __future__ import annotations

import re

OWN_FOLDER = "_variantlake"
"""Our folder in the table's root for files that are not data; other readers skip its name."""

FOLDER = f"{OWN_FOLDER}/loads"
"""The folder with the runs of all autoloads, from the table's root; each has a subfolder."""

DOMAIN = "variantlake.autoload."
"""Prefix of our metadata domains and of our application ids in `txn`."""

RUN_PATH = re.compile(rf"{FOLDER}/[A-Za-z0-9][A-Za-z0-9._-]*/\d{{10}}-[0-9a-f]{{32}}\.parquet")
"""The path of a run, as a domain's configuration names it."""
