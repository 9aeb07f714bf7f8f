"""The notebooks run, from the first cell to the last."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def run(source: str, name: str, scope: dict[str, Any]) -> None:
    """Runs a cell; what its last line says is looked at, as a notebook does."""
    body = ast.parse(source, name).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), name, "exec"), scope)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), name, "eval"), scope)
        if hasattr(value, "_repr_html_"):
            value._repr_html_()


@pytest.mark.skipif(not FOLDER.exists(), reason="the docs are not here")
def test_all_four_are_there() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == ["captum", "flow", "table", "text"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = json.loads(notebook.read_text(encoding="utf-8"))
    for package in content["metadata"]["brenier"]["needs"]:
        pytest.importorskip(package)
    if "matplotlib" in sys.modules:
        import matplotlib

        matplotlib.use("Agg", force=True)
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {"__name__": "__main__"}
    for k, cell in enumerate(content["cells"]):
        if cell["cell_type"] == "code":
            run("".join(cell["source"]), f"{notebook.name}, cell {k}", scope)
    assert not list(tmp_path.iterdir()), "a notebook leaves no files"
