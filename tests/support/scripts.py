"""The scripts in docs/, benchmarks/ and examples/, which are in no package, as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"
BENCHMARKS = DOCS.with_name("benchmarks")
EXAMPLES = DOCS.with_name("examples")


def script(name: str, folder: Path = DOCS) -> ModuleType:
    """Load ``<name>.py`` of a folder."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for the module of their annotations
    spec.loader.exec_module(module)
    return module
