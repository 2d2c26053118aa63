"""How tasks run; no session is needed for these."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from variantlake.spark.session.jobs import own_python


class _Context:
    master = "local[2]"
    pythonExec = "python3"  # noqa: N815 # PySpark's name


def test_threads_leave_the_python_of_a_context_as_it_was() -> None:
    context = _Context()
    with ThreadPoolExecutor(1) as other:
        first, second = own_python(context), own_python(context)
        first.__enter__()
        entered = other.submit(second.__enter__)
        assert context.pythonExec == sys.executable
        first.__exit__(None, None, None)
        entered.result()
        other.submit(second.__exit__, None, None, None).result()
    assert context.pythonExec == "python3"
