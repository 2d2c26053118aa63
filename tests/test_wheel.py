"""What is published: files, metadata, and that it works if there is nothing else."""

from __future__ import annotations

import fcntl
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

import variantlake as vl
from tests import wheel
from tests.corpora import REPOSITORY
from tests.matrix_extras import EXTRAS

PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
PINS = dict(
    line.split("==") for line in (REPOSITORY / "constraints.txt").read_text().splitlines() if line
)

pytestmark = pytest.mark.xdist_group("wheel")
slow = pytest.mark.slow


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    # A build writes into the checkout: two at once would take each other's files away.
    with (Path(tempfile.gettempdir()) / "variantlake-wheel.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wheel.build(folder)
    return folder


@pytest.fixture(scope="module")
def built(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


def metadata(built: Path) -> Message:
    with zipfile.ZipFile(built) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        return message_from_bytes(archive.read(name))


@slow
def test_the_wheel_is_for_a_platform_and_any_python(built: Path) -> None:
    assert re.fullmatch(r"variantlake-[\d.]+-py3-none-(manylinux_2_28|macosx)_\w+\.whl", built.name)
    with zipfile.ZipFile(built) as archive:
        names = archive.namelist()
    assert [name for name in names if re.search(r"\.(so|dylib)$", name)] != []
    assert "variantlake/py.typed" in names
    assert not [name for name in names if "/compile/" in name or name.startswith("tests/")]


@slow
def test_the_sdist_can_build_the_kernels(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    compiler = {f"src/variantlake/kernels/compile/{name}.py" for name in ("__main__", "units")}
    assert {"setup.py", "CHANGELOG.md", *compiler} <= names
    assert not [name for name in names if name.endswith((".so", ".dylib", ".o"))]


def test_the_matrix_tries_each_extra() -> None:
    assert {*EXTRAS, "spark", "connect"} == set(PROJECT["project"]["optional-dependencies"])


@slow
def test_the_metadata_says_what_a_user_needs(built: Path) -> None:
    found = metadata(built)
    assert found["Version"] == vl.__version__ == PROJECT["project"]["version"]
    engines = {"connect", "datafusion", "dbt", "duckdb", "polars", "spark"}
    forms = {"avro", "bson", "msgpack"}
    pipelines = {"dagster", "dlt"}
    watching = {"openlineage", "opentelemetry", "prometheus"}
    assert set(found.get_all("Provides-Extra", [])) == engines | forms | pipelines | watching
    required = " ".join(found.get_all("Requires-Dist", []))
    for absent in ("numba", "llvmlite", "pytest", "mypy"):
        assert absent not in required
    assert found["Author"] or found["Author-email"]
    assert found.get_all("Classifier")


@slow
def test_it_works_where_there_is_nothing_else(built: Path, tmp_path: Path) -> None:
    environment = tmp_path / "env"
    site = wheel.install(built, environment)
    before = wheel.files_of(environment)
    (tmp_path / "work").mkdir()
    wheel.do_the_main_job(environment, tmp_path / "work")
    assert wheel.files_of(environment) == before
    listed = wheel.sizes(site)
    assert not [name for name in listed if name.startswith(("numba", "llvmlite", "pyspark"))]
    assert sum(listed.values()) < 320


def test_the_build_takes_the_versions_that_the_tests_take() -> None:
    required = PROJECT["build-system"]["requires"]
    for name in ("numba", "llvmlite"):
        assert f"{name}=={PINS[name]}" in required


def test_the_build_has_what_the_modules_with_kernels_import() -> None:
    code = """
import sys
from importlib import import_module
from pathlib import Path
from variantlake import kernels
for file in Path(kernels.__file__).parent.glob("[!_]*.py"):
    import_module(f"{kernels.__name__}.{file.stem}")
loaded = {name.partition(".")[0] for name in sys.modules}
homes = ((name, getattr(sys.modules.get(name), "__spec__", None)) for name in loaded)
print(*(name for name, spec in homes if spec and "site-packages" in str(spec.origin)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    required = {re.split("[=><]", one)[0] for one in PROJECT["build-system"]["requires"]}
    assert set(done.stdout.split()) - {"_distutils_hack"} <= required
