"""Where the state of autoloads lies: metadata domains that name files in a folder of ours."""

from __future__ import annotations

import re

OWN_FOLDER = "_variantlake"
"""What belongs to the log and is no data, from the table's root: hidden, so that only we look."""

FOLDER = f"{OWN_FOLDER}/loads"
"""Where the runs of all autoloads lie, from the table's root; each has a folder of its own."""

DOMAIN = "variantlake.autoload."
"""What the names of our metadata domains, and of our applications in `txn`, begin with."""

RUN_PATH = re.compile(rf"{FOLDER}/[A-Za-z0-9][A-Za-z0-9._-]*/\d{{10}}-[0-9a-f]{{32}}\.parquet")
"""The path of a run, which the text of a domain names."""
