"""Results as Parquet, read by the programs that people read tables with."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import brenier
import numpy as np
import pytest

Fixture = tuple[str, Any]


@pytest.fixture
def written(smooth: Fixture, tmp_path: Path) -> tuple[Path, brenier.Explanations]:
    model, data = smooth
    rows = np.vstack([data["inputs"], data["inputs"] / 2, -data["inputs"]])
    found = brenier.explain(model, rows, "ig", targets="all", feature_names=list("uvwxyz"))
    file = tmp_path / "found.parquet"
    found.save(file)
    return file, found


def test_it_comes_back_whole(written: tuple[Path, brenier.Explanations], smooth: Fixture, tmp_path: Path) -> None:
    file, found = written
    again = brenier.load(file)
    assert again == found and again.feature_names == list("uvwxyz")
    assert [path.name for path in tmp_path.iterdir()] == ["found.parquet"]
    drawn = brenier.explain(smooth[0], smooth[1]["inputs"], "smoothgrad")
    drawn.save(tmp_path / "drawn.parquet")
    assert brenier.load(tmp_path / "drawn.parquet") == drawn and drawn.references is None
    (tmp_path / "none.parquet").write_bytes(file.read_bytes()[:-20])
    for wrong in ("none.parquet", "missing.parquet"):
        with pytest.raises(brenier.FileError, match=wrong.split(".")[0]):
            brenier.load(tmp_path / wrong)


def columns(file: Path, reader: str) -> dict[str, list[Any]]:
    """The file as a dict of lists, by one of three programs."""
    if reader == "pandas":
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        frame = pandas.read_parquet(file)
        return {name: list(frame[name]) for name in frame.columns}
    if reader == "polars":
        polars = pytest.importorskip("polars")
        whole: dict[str, list[Any]] = polars.read_parquet(file).to_dict(as_series=False)
        return whole
    duckdb = pytest.importorskip("duckdb")
    asked = duckdb.sql(f"select * from '{file}' order by example, target")
    return dict(zip(asked.columns, map(list, zip(*asked.fetchall(), strict=True)), strict=True))


@pytest.mark.parametrize("reader", ["pandas", "polars", "duckdb"])
def test_others_read_it(written: tuple[Path, brenier.Explanations], reader: str) -> None:
    file, found = written
    table = columns(file, reader)
    credit = np.array([list(row) for row in table["credit"]])
    np.testing.assert_array_equal(credit, found.values)
    np.testing.assert_array_equal(np.array([list(row) for row in table["input"]]), found.inputs)
    np.testing.assert_array_equal(np.array([list(row) for row in table["reference"]]), found.references)
    assert all(row is None for row in table["standard_errors"])
    assert table["id"] == [str(i) for i in found.examples] and table["example"] == found.examples.tolist()
    assert table["target"] == found.targets.tolist() and table["score"] == found.scores.tolist()
    assert table["verdict"] == found.verdicts and set(table["method"]) == {"ig"}
    for name in ("reference_score", "residual", "relative_residual", "gradient_evaluations", "score_evaluations"):
        assert table[name] == [certificate[name] for certificate in found.certificates]
    assert [json.loads(text) for text in table["certificate"]] == list(found.certificates)


def test_the_command_line_writes_the_same_rows(smooth: Fixture, program: str, tmp_path: Path) -> None:
    model, data = smooth
    np.save(tmp_path / "rows.npy", data["inputs"].astype(np.float32))
    asked = [program, "explain", "-m", model, "rows.npy", "-q", "--steps", "8", "--rule", "gauss-legendre"]
    subprocess.run([*asked, "-o", "out", "--output-format", "parquet"], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run([*asked, "-o", "arrays"], cwd=tmp_path, check=True, capture_output=True)
    found = brenier.load(tmp_path / "out")
    assert found == brenier.load(tmp_path / "arrays") == brenier.load(tmp_path / "out/explanations.parquet")
    assert not (tmp_path / "out/explanations.npz").exists()
    again = brenier.explain(model, data["inputs"], "ig", rule="gauss-legendre", steps=8)
    np.testing.assert_array_equal(again.values, found.values)
    # Arrays saved into the folder take its place.
    found.save(tmp_path / "out")
    assert not (tmp_path / "out/explanations.parquet").exists() and brenier.load(tmp_path / "out") == found
