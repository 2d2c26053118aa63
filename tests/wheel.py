"""The package as users get it: wheel and sdist, installed if there is nothing else.

`python -m tests.wheel DIST` installs the wheel that lies in the folder DIST into an empty
environment, does the main job there without Spark, and lists what was pulled in.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from tests.corpora import REPOSITORY

JOB = Path(__file__).with_name("wheel_job.py")


OBJECTS = REPOSITORY / "build" / "kernels"
"""Where this checkout keeps what it compiled."""


def build(folder: Path) -> None:
    """Make the sdist, and from it the wheel.

    Kernels whose sources in the sdist have the digest of those in this checkout are linked from its
    object files; all others are compiled. `make wheel` compiles all.
    """
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder)],
        cwd=REPOSITORY,
        check=True,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"VARIANTLAKE_KERNEL_OBJECTS": str(OBJECTS)},
    )


def install(wheel: Path, folder: Path) -> Path:
    """Make an empty environment, and install the wheel there; returns its site-packages."""
    venv.create(folder, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "install", "-q"]
    pins = ["--disable-pip-version-check", "--constraint", str(REPOSITORY / "constraints.txt")]
    # A checkout on this path would count as the package, installed.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([*pip, *pins, str(wheel)], check=True, env=env)
    (site,) = folder.glob("lib/python*/site-packages")
    return site


def run(folder: Path, *command: str, cwd: Path) -> str:
    """Run a command of an environment: nothing else is on the path, and no home can be written."""
    env = {"PATH": str(folder / "bin"), "HOME": "/dev/null/home", "PYTHONDONTWRITEBYTECODE": "1"}
    program = str(folder / "bin" / command[0])
    done = subprocess.run(
        [program, *command[1:]], env=env, cwd=cwd, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def do_the_main_job(folder: Path, place: Path) -> str:
    """Load, query and inspect, from Python and by the command; returns how long it took."""
    job = shutil.copy(JOB, place)  # away from the checkout
    seconds = run(folder, "python", str(job), cwd=place)
    run(folder, "variantlake", "ingest", "events.ndjson", "table", cwd=place)
    assert "kind" in run(folder, "variantlake", "inspect", "table", cwd=place)
    return seconds


def sizes(site: Path) -> dict[str, float]:
    """MB of each distribution that was installed for the wheel, without byte code."""
    found = {}
    for record in site.glob("*.dist-info/RECORD"):
        if record.parent.name.startswith(("pip-", "setuptools-")):
            continue  # of the environment
        files = (line.split(",")[0] for line in record.read_text(encoding="utf-8").splitlines())
        kept = (site / file for file in files if not file.endswith(".pyc"))
        size = sum(file.stat().st_size for file in kept if file.exists())
        found[record.parent.name.removesuffix(".dist-info")] = size / 1e6
    return found


def files_of(*folders: Path) -> set[str]:
    """All files in these folders."""
    return {str(file) for folder in folders for file in folder.rglob("*")}


def main() -> None:
    """See above."""
    (wheel,) = Path(sys.argv[1]).glob("*.whl")
    with tempfile.TemporaryDirectory(prefix="variantlake-wheel-") as name:
        place = Path(name)
        site = install(wheel, place / "env")
        sys.stdout.write(do_the_main_job(place / "env", place))
        listed = sizes(site)
        for distribution, size in sorted(listed.items(), key=lambda item: -item[1]):
            sys.stdout.write(f"{size:8.1f} MB  {distribution}\n")
        total, own = sum(listed.values()), wheel.stat().st_size / 1e6
        sys.stdout.write(f"{total:8.1f} MB  in all; the wheel {own:.2f} MB\n")


if __name__ == "__main__":
    main()
