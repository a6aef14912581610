"""What the package imports is what ``pyproject.toml`` asks for, no more and no less."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from test_imports import PACKAGE, imported

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
MODULES = {"scikit-learn": "sklearn"}  # where they are not called as what is installed


def test_every_import_is_declared_with_a_lower_bound_and_every_declaration_is_imported() -> None:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    declared = {}
    extras = project["optional-dependencies"]
    optional = [line for name, lines in extras.items() if name != "dev" for line in lines]
    for line in [*project["dependencies"], *optional]:
        found = re.match(r"([\w-]+)>=[\d.]+", line)
        assert found, f"{line} has no lower bound"
        declared[MODULES.get(found[1], found[1])] = line
    names = {name.split(".")[0] for file in PACKAGE.rglob("*.py") for name in imported(file)}
    assert names - sys.stdlib_module_names - {"nlpkit", "tomllib"} == declared.keys()
