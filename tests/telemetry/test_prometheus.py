"""Figures as Prometheus' collector reads them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpora import REPOSITORY, library
from tests.telemetry.exposition import samples
from variantlake.autoloading import metrics
from variantlake.errors import MissingDependency, StoreFailed
from variantlake.spark.streaming import batch_log
from variantlake.telemetry.prometheus import (
    Figure,
    check_installed,
    label_key,
    read_figures,
    write_figures,
)

# A file of text has its own line ends; other control characters are as they are.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=20)
DASHBOARD = REPOSITORY / "examples" / "grafana" / "variantlake.json"


@given(TEXTS, TEXTS, st.floats(0, 1e18))
def test_labels_and_values_come_back(
    tmp_path_factory: pytest.TempPathFactory, first: str, second: str, value: float
) -> None:
    library("prometheus_client")
    file = tmp_path_factory.getbasetemp() / "x.prom"
    labels = {"a": first, "b": second}
    write_figures(file, [Figure("x_total", "counter", "Things.", [(labels, value)])])
    found = {("x_total", label_key(labels)): value}
    assert read_figures(file) == found
    assert samples(file.read_text(encoding="utf-8")) == found


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    library("prometheus_client")
    file = tmp_path / "x.prom"
    for text in ("one", "name \udcff that is no UTF-8"):
        write_figures(file, [Figure("x", "gauge", "A thing.", [({"a": text}, 1)])])
    assert r"\\xff that is" in file.read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["x.prom"]
    with pytest.raises(StoreFailed, match="metrics cannot be written"):
        write_figures(tmp_path / "none" / "x.prom", [])
    assert read_figures(tmp_path / "none") == {}


def test_without_the_library_an_option_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingDependency, match="prometheus_client is not installed") as raised:
        check_installed()
    assert raised.value.hint == "pip install 'variantlake[prometheus]'"


def _metrics() -> set[str]:
    """The names of all metrics that files can have."""
    names = {f"{metrics.PREFIX}files_total"}
    for module in (metrics, batch_log):
        names |= {module.PREFIX + name for name in (*module.COUNTERS, *module.GAUGES)}
    return names


def test_the_dashboard_shows_every_metric_and_no_other() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    variables = [each["query"] for each in dashboard["templating"]["list"]]
    asked += [query["query"] for query in variables if isinstance(query, dict)]
    named = {name for text in asked for name in re.findall(r"variantlake_[a-z]\w+", text)}
    assert named == _metrics()
    places = [tuple(panel["gridPos"][side] for side in "xy") for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(places)
