"""Each folder of the package has a folder of tests at the same place."""

from __future__ import annotations

import pytest

from tests.corpora import REPOSITORY

PACKAGE = REPOSITORY / "src" / "variantlake"
ROOMS = sorted(
    folder.relative_to(PACKAGE).as_posix()
    for folder in PACKAGE.rglob("*")
    if any(file.name != "__init__.py" for file in folder.glob("*.py"))
)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_tests_of_its_own(room: str) -> None:
    folder = REPOSITORY / "tests" / room
    assert (folder / "__init__.py").exists()
    assert list(folder.rglob("test_*.py")), f"tests/{room} is empty"
