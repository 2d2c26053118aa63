"""Send events of OpenLineage: which loads and mirrors ran, from which sources, into which table.

`openlineage-python` makes and sends the events; `variantlake[openlineage]` installs it. When they
are off, a load only checks one variable.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar
from urllib.parse import urlsplit

from variantlake.delta.log.snapshot import Snapshot
from variantlake.extras import extra_library
from variantlake.logs import logger
from variantlake.shown import utf8_text

P = ParamSpec("P")
R = TypeVar("R")

VARIABLE = "VARIANTLAKE_LINEAGE"
"""The environment variable that turns events on: `true`."""

PRODUCER = "urn:variantlake"

MAX_INPUTS = 100
"""An event names up to this many sources one by one; of more sources, it names the folders."""

_LOG = logger("lineage")
_client: Any = None
_namespace = ""


def set_lineage(on: bool = True, *, client: Any = None, namespace: str | None = None) -> None:
    """Turn events of OpenLineage on or off, for this process; they are off by default.

    Loads of files, appends, autoloads and mirrors then send one event when they start, and one when
    they are complete or have failed, with the sources, the table, its columns and version, rows
    and bytes. If an event cannot be sent, a warning is logged and the load goes on.

    Args:
        on: Whether to send events.
        client: The client of `openlineage-python` that sends them; None for one that the library
            configures from OPENLINEAGE_URL or a file openlineage.yml.
        namespace: The namespace of the jobs; None for `OPENLINEAGE_NAMESPACE`, else `variantlake`.

    Raises MissingDependency without `variantlake[openlineage]`.

    Examples:
        >>> vl.set_lineage(False)
    """
    global _client, _namespace  # noqa: PLW0603 - one switch for the process
    if not on:
        _client = None
        return
    _namespace = namespace or os.environ.get("OPENLINEAGE_NAMESPACE") or "variantlake"
    _client = client or _module("openlineage.client").OpenLineageClient()


@dataclass(slots=True)
class _JobRun:
    """One run of a job, and its sources so far, with the versions of sources that have some."""

    id: str
    job: str
    table: str
    inputs: dict[str, int | None] = field(default_factory=dict)


_run: ContextVar[_JobRun | None] = ContextVar("lineage", default=None)


def reported(kind: str, table: Callable[..., str]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function: report each call as a run of the job `kind` that writes to `table`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if _client is None:
                return function(*args, **kwargs)
            location = table(*args, **kwargs)
            run = _JobRun(_new_id(), f"{kind}:{_dataset(location)[1]}", location)
            token = _run.set(run)
            try:
                _send(run, "START")
                done = function(*args, **kwargs)
            except BaseException as error:
                _send(run, "FAIL", error=type(error).__name__)
                raise
            finally:
                _run.reset(token)
            _send(run, "COMPLETE", done)
            return done

        return call

    return decorate


def add_inputs(locations: Iterable[str], version: int | None = None) -> None:
    """Add sources to the current run, if there is one."""
    run = _run.get()
    if run is not None:
        run.inputs |= dict.fromkeys(locations, version)


def _send(
    run: _JobRun,
    state: Literal["START", "COMPLETE", "FAIL"],
    done: Any = None,
    *,
    error: str | None = None,
) -> None:
    client = _client
    if client is None:  # turned off meanwhile
        return
    try:
        client.emit(_event(run, state, done, error))
    except Exception as failure:  # noqa: BLE001 - the load goes on, whatever a transport raises
        _LOG.warning("%s: the event %s was not sent: %s", run.table, state, failure)


def _event(run: _JobRun, state: str, done: Any, error: str | None) -> Any:
    events = _module("openlineage.client.event_v2")
    facets: dict[str, Any] = {}
    if error is not None:
        facet = _module("openlineage.client.facet_v2").error_message_run.ErrorMessageRunFacet
        facets["errorMessage"] = facet(message=error, programmingLanguage="PYTHON")
    return events.RunEvent(
        eventType=events.RunState(state),
        eventTime=datetime.now(UTC).isoformat(),
        producer=PRODUCER,
        run=events.Run(runId=run.id, facets=facets),
        job=events.Job(namespace=_namespace, name=run.job),
        inputs=[_input(each, version) for each, version in _few(run.inputs).items()],
        outputs=[_output(run.table, done if state == "COMPLETE" else None)],
    )


def _few(inputs: dict[str, int | None]) -> dict[str, int | None]:
    if len(inputs) <= MAX_INPUTS:
        return inputs
    return {each.rpartition("/")[0] or each: version for each, version in inputs.items()}


def _input(location: str, version: int | None) -> Any:
    namespace, name = _dataset(location)
    facets = {} if version is None else {"version": _version_facet(version)}
    make = _module("openlineage.client.event_v2").InputDataset
    return make(namespace=namespace, name=name, facets=facets)


def _output(table: str, done: Any) -> Any:
    namespace, name = _dataset(table)
    facets: dict[str, Any] = {}
    counts: dict[str, Any] = {}
    done = done[0] if isinstance(done, tuple) else done  # a batch of an autoload returns a tuple
    if done is not None:
        facet = _module("openlineage.client.facet_v2")
        column = facet.schema_dataset.SchemaDatasetFacetFields
        fields = Snapshot.read(table).schema.fields
        columns = [column(name=each.name, type=str(each.type)) for each in fields]
        facets["schema"] = facet.schema_dataset.SchemaDatasetFacet(fields=columns)
        facets["version"] = _version_facet(done.version)
        statistics = facet.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet
        counts["outputStatistics"] = statistics(rowCount=done.rows_written, size=done.bytes_written)
    make = _module("openlineage.client.event_v2").OutputDataset
    return make(namespace=namespace, name=name, facets=facets, outputFacets=counts)


def _version_facet(version: int) -> Any:
    facet = _module("openlineage.client.facet_v2").dataset_version_dataset
    return facet.DatasetVersionDatasetFacet(datasetVersion=str(version))


def _dataset(location: str) -> tuple[str, str]:
    """Return a dataset's namespace and name, by OpenLineage's rules for stores and files."""
    parts = urlsplit(utf8_text(location))
    if "://" in location and parts.scheme != "file":
        return f"{parts.scheme}://{parts.netloc}", parts.path.strip("/") or "/"
    path = parts.path if parts.scheme == "file" else utf8_text(location)
    return "file", os.path.abspath(path)  # noqa: PTH100 - the file need not exist


def _new_id() -> str:
    made: str = str(_module("openlineage.client.uuid").generate_new_uuid())
    return made


def _module(name: str) -> Any:
    return extra_library(name, "openlineage", "sends events of OpenLineage")


if os.environ.get(VARIABLE, "").lower() in ("1", "true"):
    set_lineage()
