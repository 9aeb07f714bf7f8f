"""Flows trained from Python: the same files as the command line's, stopped and gone on with, and what is refused."""

from __future__ import annotations

import pickle
import subprocess
from pathlib import Path
from typing import Any

import brenier
import numpy as np
import pytest

SMALL: dict[str, Any] = {"steps": 30, "batch": 32, "network": {"kind": "mlp", "width": 16, "blocks": 1}, "calibration_rows": 0}


@pytest.fixture(scope="module")
def ring() -> Any:
    """400 points around a circle."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 400)
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.1 * rng.standard_normal((400, 2))
    return points.astype(np.float32)


def test_the_same_file_as_the_command_line(ring: Any, program: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ring)
    flags = ["--steps", "30", "--batch", "32", "--width", "16", "--blocks", "1", "--calibration-rows", "0", "--quiet"]
    run = [program, "train", str(tmp_path / "x.npy"), "-o", str(tmp_path / "run"), *flags]
    subprocess.run(run, check=True, capture_output=True)
    flow = brenier.train_flow(ring, **SMALL)
    flow.save(tmp_path / "flow.onnx")
    assert (tmp_path / "flow.onnx").read_bytes() == (tmp_path / "run" / "flow.onnx").read_bytes()

    pairs = ["--generated", "40", "--inverted", "40", "--steps", "20", "--batch", "32", "--calibration-rows", "0", "--quiet"]
    again = [program, "reflow", str(tmp_path / "run"), str(tmp_path / "x.npy"), "-o", str(tmp_path / "run2"), *pairs]
    subprocess.run(again, check=True, capture_output=True)
    second = flow.reflow(ring, generated=40, inverted=40, steps=20, batch=32, calibration_rows=0)
    second.save(tmp_path / "second.onnx")
    assert (tmp_path / "second.onnx").read_bytes() == (tmp_path / "run2" / "flow.onnx").read_bytes()


def test_a_flow_learns_a_ring_and_says_how_well(ring: Any) -> None:
    network = {"kind": "mlp", "width": 32, "blocks": 2}
    flow = brenier.train_flow(ring, steps=600, batch=64, network=network, calibration_rows=0, seed=1)
    radius = np.linalg.norm(flow.sample(200), axis=1)
    # A Gaussian of the same covariance has 0.37 here.
    assert np.std(radius) < 0.25
    assert abs(np.mean(radius) - 1.0) < 0.1
    assert flow.quality is not None
    assert flow.quality["step"] == 600
    assert flow.quality["quality"]["straightness"] >= 1.0
    assert pickle.loads(pickle.dumps(flow)).quality == flow.quality


def test_between_two_populations(ring: Any) -> None:
    moved = ring + np.float32(3.0)
    flow = brenier.train_flow(moved, reference=ring, **{**SMALL, "steps": 200, "learning_rate": 5e-3})
    shift = flow.forward(ring[:50]) - ring[:50]
    assert np.abs(shift.mean(axis=0) - 3.0).max() < 0.5
    with pytest.raises(brenier.FlowError, match="reference="):
        flow.reflow(moved, generated=20, inverted=20, steps=5, batch=16)
    with pytest.raises(brenier.FlowError, match="flow.forward"):
        flow.sample(3)


def test_a_run_that_was_stopped_goes_on_to_the_same_bits(ring: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from brenier import _train

    whole = brenier.train_flow(ring, **SMALL)

    class Stopping(_train.Stages):
        def __call__(self, stage: str, done: int, total: int, note: str) -> None:
            if done == 11:
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_train, "Stages", Stopping)
        with pytest.raises(KeyboardInterrupt):
            brenier.train_flow(ring, output=tmp_path / "run", **SMALL)
    assert not (tmp_path / "run" / "flow.onnx").exists()
    with pytest.raises(brenier.FileError, match="resume=True"):
        brenier.train_flow(ring, output=tmp_path / "run", **SMALL)
    gone_on = brenier.train_flow(ring, output=tmp_path / "run", resume=True, **SMALL)
    assert gone_on.hash == whole.hash


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"reference": "cauchy"}, brenier.SettingError, "'normal' or 'uniform'"),
        ({"coupling": "best"}, brenier.SettingError, "'independent' or 'ot'"),
        ({"group": 8, "coupling": "independent"}, brenier.SettingError, "leave the group out"),
        ({"steps": 0}, brenier.SettingError, "at least 1"),
        ({"resume": True}, brenier.SettingError, "output="),
        ({"reference": np.zeros((20, 3))}, brenier.ShapeError, r"\('N', 2\)"),
        ({"network": {"kind": "mlp", "breadth": 3}}, brenier.SettingError, "breadth"),
    ],
)
def test_what_cannot_be_trained_is_said(ring: Any, arguments: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        brenier.train_flow(ring, **{**SMALL, **arguments})


def test_data_that_cannot_be_trained_on(ring: Any) -> None:
    with pytest.raises(brenier.ShapeError, match="rows"):
        brenier.train_flow(ring[:, 0], **SMALL)
    with pytest.raises(brenier.NotFiniteError, match="row 3"):
        broken = ring.copy()
        broken[3, 1] = np.nan
        brenier.train_flow(broken, **SMALL)
    with pytest.raises(brenier.DataError):
        brenier.train_flow(np.ones((100, 2)), **SMALL)
