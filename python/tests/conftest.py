"""Models and inputs that the tests share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"


@pytest.fixture(scope="session")
def convnet() -> tuple[str, Any]:
    """Two convolutions on images [3, 8, 8], five scores, and what Captum says of them."""
    return str(FIXTURES / "methods/convnet.onnx"), np.load(FIXTURES / "methods/convnet.npz")


@pytest.fixture(scope="session")
def smooth() -> tuple[str, Any]:
    """Tanh and Softplus on rows of 6 numbers, three scores, and what Captum says of them."""
    return str(FIXTURES / "methods/smooth.onnx"), np.load(FIXTURES / "methods/smooth.npz")


@pytest.fixture(scope="session")
def program() -> str:
    """The command line, where it was built."""
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "brenier"
    chosen = Path(os.environ.get("BRENIER", built))
    if not chosen.exists():
        pytest.fail(f"the program is not built: {chosen} is missing (cargo build)")
    return str(chosen)
