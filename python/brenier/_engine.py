"""Which engine runs a model, as JSON for the native half."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

from .exceptions import SettingError

ENGINES = ("rten", "ort")


def engine(kind: str, workers: int | None, provider: str, check: bool) -> dict[str, Any]:
    """The configuration of an engine: ``rten`` (built in) or ``ort`` (ONNX Runtime)."""
    if kind not in ENGINES:
        raise SettingError(f"there is no engine {kind!r}\nhint: choose one of {', '.join(ENGINES)}")
    if workers is not None and workers < 1:
        raise SettingError(f"workers is {workers}\nhint: give at least 1, or leave it out for one for every core")
    found: dict[str, Any] = {"kind": kind, "provider": provider, "unchecked": not check}
    if workers is not None:
        found["workers"] = workers
    if kind == "ort" and "ORT_DYLIB_PATH" not in os.environ:
        library = _onnxruntime()
        if library is not None:
            found["library"] = str(library)
    return found


def _onnxruntime() -> Path | None:
    """The shared library of the onnxruntime package beside us."""
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))) / "capi"
    names = ("libonnxruntime.so*", "libonnxruntime*.dylib", "onnxruntime.dll")
    return next((file for name in names for file in sorted(folder.glob(name))), None)
