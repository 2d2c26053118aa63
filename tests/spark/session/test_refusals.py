"""Spark's sentences in the words of the user's text; no session is needed for these."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.logger import PySparkLogger

from variantlake.spark.session.refusals import quiet, sentence

_START = "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `nope` cannot be resolved."


@pytest.mark.parametrize(
    ("suggested", "shown"),
    [
        ("`k`, `event`", " Did you mean one of the following? [`k`, `event`]."),
        ("`__vl_row`, `k`, `__vl_at_file`", " Did you mean one of the following? [`k`]."),
        ("`t`.`k`, `t`.`__vl_row`", " Did you mean one of the following? [`t`.`k`]."),
        ("`a, ``b]`, `e`.`__vl_p0`", " Did you mean one of the following? [`a, ``b]`]."),
        ("`__vl_row`", ""),
    ],
)
def test_suggestions_show_no_inner_names(suggested: str, shown: str) -> None:
    error = ValueError(f"{_START} Did you mean one of the following? [{suggested}]. SQLSTATE: 4")
    assert sentence(error, {}) == f"{_START}{shown} SQLSTATE: 4"


def test_views_are_told_by_what_the_user_wrote() -> None:
    error = ValueError("no such column in `a`.`v1`, nor in a.v1;\nat line 1")
    assert sentence(error, {"a.v1": "events"}) == "no such column in events, nor in events"


def test_one_thread_that_is_quiet_silences_no_other(caplog: pytest.LogCaptureFixture) -> None:
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    logger.addHandler(caplog.handler)
    try:
        with quiet(), ThreadPoolExecutor(1) as other:
            logger.error("refused")
            other.submit(logger.error, "an error of another query").result()
            with quiet():
                logger.error("refused")
        logger.error("an error later")
    finally:
        logger.removeHandler(caplog.handler)
    said = [record.getMessage() for record in caplog.records]
    assert list(dict.fromkeys(said)) == ["an error of another query", "an error later"]
