"""Training flows on arrays: what ``brenier train`` and ``brenier reflow`` do with files."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import _internal
from ._engine import engine as engine_config
from ._inputs import Given, given
from ._inputs import rows as as_rows
from ._progress import Progress
from .exceptions import FileError, FlowError, SettingError, ShapeError

COUPLINGS = {None: None, "independent": False, "ot": True}
NOISE = {None: "standard-normal", "normal": "standard-normal", "uniform": "uniform"}

Run = Callable[[dict[str, Any], str, str, Any], str]
"""Rows, settings, folder, progress; how it ended."""


def trained(
    run: Run,
    data: Any,
    shape: tuple[int, ...] | None,
    *,
    reference: Any,
    held_out: Any,
    output: Any,
    resume: bool,
    settings: dict[str, Any],
    progress: bool | None,
) -> tuple[bytes, dict[str, Any]]:
    """The file of the flow, and how its training ended."""
    rows, kind = _rows(data, shape, reference, held_out)
    asked = json.dumps({**settings, "reference": kind})
    with _folder(output, resume) as folder, Stages(progress) as stages:
        ended = run(rows, asked, str(folder), stages)
        return (folder / "flow.onnx").read_bytes(), dict(json.loads(ended))


def training(
    *,
    steps: int | None,
    batch: int | None,
    learning_rate: float | None,
    weight_decay: float,
    seed: int,
    train_fraction: float,
    calibration_rows: int,
    half_weights: bool,
    engine: str,
    workers: int | None,
    check: bool,
) -> dict[str, Any]:
    """The settings that every training has."""
    for name, value, least in (("steps", steps, 1), ("batch", batch, 1), ("seed", seed, 0), ("calibration_rows", calibration_rows, 0)):
        if value is not None and value < least:
            raise SettingError(f"{name} is {value}\nhint: give at least {least}")
    return {
        "steps": steps,
        "batch": batch,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "seed": seed,
        "train_fraction": train_fraction,
        "calibration_rows": calibration_rows,
        "half_weights": half_weights,
        "engine": engine_config(engine, workers, "cpu", check),
    }


def flow_settings(
    shared: dict[str, Any], coupling: str | None, group: int | None, network: Mapping[str, Any] | None, keep_constants: bool
) -> dict[str, Any]:
    """The settings of a first level."""
    if coupling not in COUPLINGS:
        raise SettingError(f"there is no coupling {coupling!r}\nhint: choose 'independent' or 'ot'")
    return {
        "training": shared,
        "optimal": COUPLINGS[coupling],
        "group": group,
        "network": None if network is None else dict(network),
        "keep_constants": keep_constants,
    }


def train_native(rows: dict[str, Any], settings: str, folder: str, progress: Any) -> str:
    """The first level of a flow."""
    return _internal.train_flow(rows, settings, folder, progress)


def _rows(data: Any, shape: tuple[int, ...] | None, reference: Any, held_out: Any) -> tuple[dict[str, Any], str]:
    """Flat rows for the native half, and the kind of reference."""
    have = given(data, "the data")
    if have.array.ndim < 2:
        found = have.array.shape
        raise ShapeError(f"the data have shape {found}\nhint: give rows, an array of shape [examples, ...]")
    shape = tuple(have.array.shape[1:]) if shape is None else shape

    def flat(x: Any, what: str) -> Any:
        if x is None:
            return None
        other = x if isinstance(x, Given) else given(x, what)
        if have.columns is not None and other.columns is not None and other.columns != have.columns:
            raise ShapeError(
                f"{what} has columns {other.columns}, but the data have {have.columns}\nhint: give the same columns in the same order"
            )
        return as_rows(other, shape, what)

    noise = reference is None or isinstance(reference, str)
    if noise and reference not in NOISE:
        raise SettingError(f"there is no reference {reference!r}\nhint: choose 'normal' or 'uniform', or give rows")
    rows = {
        "shape": list(shape),
        "columns": have.columns,
        "data": flat(have, "the data"),
        "held_out": flat(held_out, "the held-out data"),
        "reference": None if noise else flat(reference, "the reference"),
    }
    return rows, NOISE[reference] if noise else "data"


def expect_reference(known: str | None, reference: Any) -> Any:
    """The reference to go on from: what the flow itself says, where it is noise."""
    if reference is not None or known in (None, "standard-normal"):
        return reference
    if known == "uniform":
        return known
    raise FlowError(f"the flow starts from rows ({known!r}), which are not given\nhint: give them with reference=")


@contextmanager
def _folder(output: Any, resume: bool) -> Iterator[Path]:
    """The folder of the run; one that is gone afterwards where none is named."""
    if output is None:
        if resume:
            raise SettingError("resume=True, and no folder is named\nhint: name the folder of the run with output=")
        with tempfile.TemporaryDirectory(prefix="brenier-") as made:
            yield Path(made)
        return
    folder = Path(output)
    begun = (folder / "run.json").exists()
    if begun and not resume:
        raise FileError(f"{folder} holds a run already\nhint: go on with it by resume=True, or choose another folder")
    if resume and not begun:
        raise FileError(f"{folder} holds no run to go on with\nhint: leave out resume=True")
    yield folder


class Stages:
    """A line of progress for each stage of a run."""

    def __init__(self, shown: bool | None) -> None:
        self._shown = shown
        self._stage: str | None = None
        self._line: Progress | None = None

    def __call__(self, stage: str, done: int, total: int, note: str) -> None:
        if stage != self._stage or self._line is None:
            self._close()
            self._stage, self._line = stage, Progress(total, stage, self._shown)
        self._line(done, total, note)

    def _close(self) -> None:
        if self._line is not None:
            self._line.__exit__()
            self._line = None

    def __enter__(self) -> Stages:
        return self

    def __exit__(self, *_: Any) -> None:
        self._close()
