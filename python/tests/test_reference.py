"""The reference of the package is current."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import brenier
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "api-reference"


@pytest.mark.skipif(not SCRIPT.exists(), reason="the scripts are not here")
def test_the_reference_is_current_and_has_every_name() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for name in brenier.__all__:
        if name not in ("exceptions", "load", "__version__"):
            assert f"### {name}\n" in page or f"- `{name}`" in page, name
