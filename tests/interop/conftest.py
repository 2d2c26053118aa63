"""Which tests of this folder have an environment of their own."""

from __future__ import annotations

import importlib.util

OF_EXAMPLES = ("test_dagster.py", "test_dbt.py", "test_dlt.py", "test_ibis.py")
"""What they need does not fit beside our other tools: `make test-examples` runs them."""

_NEEDED = ("dagster", "dbt", "dlt", "ibis", "pyarrow_hotfix")

collect_ignore = [] if all(map(importlib.util.find_spec, _NEEDED)) else [*OF_EXAMPLES]
