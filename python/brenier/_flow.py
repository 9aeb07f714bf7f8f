"""Flows: networks that carry a reference distribution to the data."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _internal, _train
from ._engine import engine as engine_config
from ._inputs import given
from ._inputs import rows as as_rows
from ._progress import Progress
from .exceptions import FlowError


class Flow:
    """A flow: an ONNX network with inputs ``x [N, ...]`` and ``t [N]`` and output ``v [N, ...]``.

    :func:`train_flow` makes one from data, :meth:`Flow.load` reads one from a file.
    """

    quality: dict[str, Any] | None = None
    """How the training ended: ``loss``, ``quality`` on held-out rows, ``calibrated``. None for a flow that was loaded."""

    def __init__(self, source: Any, *, engine: str = "rten", workers: int | None = None, check: bool = True) -> None:
        self._source = source if isinstance(source, bytes) else os.fspath(source)
        self._engine = json.dumps(engine_config(engine, workers, "cpu", check))
        self._native: _internal.Flow | None = None
        self._native_flow()

    @classmethod
    def load(cls, source: Any, *, engine: str = "rten", workers: int | None = None, check: bool = True) -> Flow:
        """The flow of a file, or of its bytes."""
        return cls(source, engine=engine, workers=workers, check=check)

    def __repr__(self) -> str:
        kind = "diffusion model" if self.is_diffusion else "flow"
        return f"brenier.Flow({kind}, shape={self.shape})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_native": None}

    def _native_flow(self) -> _internal.Flow:
        if self._native is None:
            if isinstance(self._source, bytes):
                self._native = _internal.Flow.open(None, self._source, self._engine)
            else:
                self._native = _internal.Flow.open(self._source, None, self._engine)
        return self._native

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one example."""
        return tuple(self._native_flow().shape())

    @property
    def is_diffusion(self) -> bool:
        """Whether it predicts noise, as a diffusion model does: such a one is for ``method="ddim"``."""
        return self._native_flow().is_diffusion()

    @property
    def hash(self) -> str:
        """The fingerprint of the file, as in certificates."""
        return self._native_flow().hash()

    @property
    def calibration(self) -> dict[str, Any] | None:
        """By how many rows the flow was calibrated and what they say of it; nothing where it was not, or was changed since."""
        known = self._native_flow().calibration()
        return None if known is None else dict(json.loads(known))

    def calibrate(self, data: Any, *, rows: int = 1000, seed: int = 0, progress: bool | None = None) -> Flow:
        """The same flow, calibrated by rows ``[N, ...]`` that it was not trained on: 60 at the least, 200 are good.

        Certificates then tell whether an input is ordinary for the flow, and whether the flow is any good. Keep it with
        :meth:`Flow.save`.
        """
        flat = as_rows(given(data), self.shape)
        with Progress(min(rows, len(flat)), "calibrating", progress) as line:
            content = self._native_flow().calibrated(flat, int(rows), int(seed), line)
        return _of(content, self._engine, self.quality)

    def reflow(
        self,
        data: Any,
        *,
        reference: Any = None,
        held_out: Any = None,
        generated: int = 5000,
        inverted: int = 5000,
        solver_tolerance: float = 1e-3,
        output: Any = None,
        resume: bool = False,
        steps: int | None = None,
        batch: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float = 0.0,
        half_weights: bool = False,
        calibration_rows: int = 200,
        train_fraction: float = 0.9,
        seed: int = 0,
        engine: str = "rten",
        workers: int | None = None,
        check: bool = True,
        progress: bool | None = None,
    ) -> Flow:
        """The next level: the same flow, trained further on the ends of its own trajectories, which makes them straighter.

        ``data`` are the rows that the flow was trained on. ``generated`` pairs begin at the reference, ``inverted`` ones
        at the data. A flow that starts from rows needs them again as ``reference``. The other arguments are those of
        :func:`train_flow`.
        """
        native = self._native_flow()
        shared = _train.training(
            steps=steps, batch=batch, learning_rate=learning_rate, weight_decay=weight_decay, seed=seed,
            train_fraction=train_fraction, calibration_rows=calibration_rows, half_weights=half_weights, engine=engine,
            workers=workers, check=check,
        )  # fmt: skip
        settings = {
            "training": shared, "generated": generated, "inverted": inverted, "solver_tolerance": solver_tolerance,
        }  # fmt: skip
        content, ended = _train.trained(
            lambda *arguments: _internal.reflow(native, *arguments),
            data,
            self.shape,
            reference=_train.expect_reference(native.reference(), reference),
            held_out=held_out,
            output=output,
            resume=resume,
            settings=settings,
            progress=progress,
        )
        return _of(content, self._engine, ended)

    def save(self, path: Any) -> None:
        """Writes the flow's file."""
        content = self._source if isinstance(self._source, bytes) else Path(self._source).read_bytes()
        Path(path).write_bytes(content)

    def sample(self, count: int, *, seed: int = 0, tolerance: float = 1e-5) -> NDArray[np.float64]:
        """New examples ``[count, ...]``: draws of a standard normal distribution, carried forward."""
        native = self._native_flow()
        reference = native.reference()
        if reference not in (None, "standard-normal"):
            raise FlowError(
                f"the flow starts from {reference}, not from a standard normal distribution\nhint: carry rows of that "
                "population forward with flow.forward(rows)"
            )
        draws = np.random.default_rng(seed).standard_normal((count, int(np.prod(self.shape))))
        return native.carry(draws, (0.0, 1.0), tolerance, True).reshape(count, *self.shape)

    def forward(self, x: Any, *, tolerance: float = 1e-5) -> NDArray[np.float64]:
        """Where the flow takes references ``[N, ...]``, in the data's units."""
        return self._carry(x, (0.0, 1.0), tolerance)

    def invert(self, x: Any, *, tolerance: float = 1e-5) -> NDArray[np.float64]:
        """Where inputs ``[N, ...]`` come from: their references, in the data's units."""
        return self._carry(x, (1.0, 0.0), tolerance)

    def _carry(self, x: Any, times: tuple[float, float], tolerance: float) -> NDArray[np.float64]:
        flat = as_rows(given(x), self.shape)
        return self._native_flow().carry(flat, times, float(tolerance), False).reshape(len(flat), *self.shape)


def _of(content: bytes, engine: str, quality: dict[str, Any] | None) -> Flow:
    """A flow from the bytes of its file."""
    made = Flow.__new__(Flow)
    made._source, made._engine, made._native, made.quality = content, engine, None, quality
    made._native_flow()
    return made


def train_flow(
    data: Any,
    *,
    reference: Any = None,
    held_out: Any = None,
    coupling: str | None = None,
    group: int | None = None,
    network: Mapping[str, Any] | None = None,
    output: Any = None,
    resume: bool = False,
    steps: int | None = None,
    batch: int | None = None,
    learning_rate: float | None = None,
    weight_decay: float = 0.0,
    keep_constants: bool = False,
    half_weights: bool = False,
    calibration_rows: int = 200,
    train_fraction: float = 0.9,
    seed: int = 0,
    engine: str = "rten",
    workers: int | None = None,
    check: bool = True,
    progress: bool | None = None,
) -> Flow:
    """Trains a flow that carries a reference distribution to the data ``[N, ...]``: images ``[N, C, H, W]``, or a table.

    ``reference`` is ``None`` or ``"normal"`` (noise), ``"uniform"``, or rows: then the flow carries these rows to the data,
    for :func:`explain` with ``against=``. ``coupling`` says which reference goes with which example: ``"ot"`` (the best
    assignment within groups of ``group``; the default where the reference is rows) or ``"independent"``. ``network`` is
    ``{"kind": "mlp", "width": 256}`` or ``{"kind": "unet", ...}``; what suits the data where it is not given. Without
    ``held_out``, a tenth of the rows is held out to measure and calibrate the flow.

    Ctrl-C stops it. With ``output`` the run is kept in that folder and goes on with ``resume=True``, to the same bits.
    ``flow.quality`` says how good the flow is; keep it with :meth:`Flow.save`, straighten it with :meth:`Flow.reflow`.
    """
    shared = _train.training(
        steps=steps, batch=batch, learning_rate=learning_rate, weight_decay=weight_decay, seed=seed,
        train_fraction=train_fraction, calibration_rows=calibration_rows, half_weights=half_weights, engine=engine,
        workers=workers, check=check,
    )  # fmt: skip
    content, ended = _train.trained(
        _train.train_native,
        data,
        None,
        reference=reference,
        held_out=held_out,
        output=output,
        resume=resume,
        settings=_train.flow_settings(shared, coupling, group, network, keep_constants),
        progress=progress,
    )
    return _of(content, json.dumps(engine_config(engine, workers, "cpu", check)), ended)
