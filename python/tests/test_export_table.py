"""A part of the table of exported explainers: the script of the whole one, without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "export" / "table.py"


@pytest.mark.skipif(not SCRIPT.exists(), reason="the benchmarks are not here")
def test_exported_explainers_give_the_credit_of_explain() -> None:
    asked = [sys.executable, str(SCRIPT), "--without-torch", "--networks", "mlp,vit", "--times", "1"]
    done = subprocess.run(asked, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| mlp", "| vit"], done.stdout
