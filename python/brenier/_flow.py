"""Flows: networks that carry a reference distribution to the data."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _internal
from ._engine import engine as engine_config
from ._inputs import given, rows
from .exceptions import FlowError


class Flow:
    """A flow from an ONNX file with inputs ``x [N, ...]`` and ``t [N]`` and output ``v [N, ...]``; `brenier train` makes one.

    Use :meth:`Flow.load`.
    """

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
        flat = rows(given(x), self.shape)
        return self._native_flow().carry(flat, times, float(tolerance), False).reshape(len(flat), *self.shape)
