"""Explanations as ONNX files."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _internal
from ._inputs import given, rows
from ._model import model as as_model
from .exceptions import MethodError, SettingError


def export(
    model: Any,
    path: str | os.PathLike[str],
    method: str = "ig",
    *,
    target: int | str | None = None,
    steps: int = 50,
    rule: str = "gauss-legendre",
    baseline: Any = None,
    background: Any = None,
    samples: int | None = None,
    noise: float | None = None,
    steps_as: str = "batch",
    layer: str | None = None,
    window: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
    seed: int = 0,
    example: Any = None,
) -> None:
    """Writes an ONNX file that explains what the model says, for any runtime that runs ONNX.

    The file has the model's own input and the outputs ``scores``, ``credit``, ``explained`` (the class) and, for ``ig`` and
    ``expected-gradients``, ``residual``. ``method`` is one of gradient, gradient-input, guided-backprop, deconvnet, ig,
    expected-gradients (the mean of ig over all rows of ``background``), smoothgrad, grad-cam (of ``layer``) and occlusion (by a
    ``window``, in steps of ``stride``). With ``steps_as="loop"`` the steps of ig, expected-gradients and smoothgrad run one after
    another, so that memory does not grow with their number. ``target`` is a class by number or
    name, ``"input"`` for a second input ``target``, or None for the class with the highest score. ``baseline`` is one input
    that ig starts from, or that stands behind the window of occlusion; zeros where not given. ``example`` is a batch of inputs where a torch module's shape is not known.
    """
    taken = None if example is None else given(example)
    asked = as_model(model, taken)
    native = asked._open(taken)
    shape = tuple(native.shape())
    wanted: Any = "predicted"
    if target == "input":
        wanted = "input"
    elif target is not None:
        wanted = {"fixed": asked.targets(target, 1)[1][0]}
    if steps_as not in ("batch", "loop"):
        raise SettingError(f"steps_as is {steps_as!r}\nhint: choose \"batch\" or \"loop\"")
    unused = {"layer": (layer, "grad-cam"), "window": (window, "occlusion"), "stride": (stride, "occlusion")}
    for name, (value, user) in unused.items():
        if value is not None and method != user:
            raise SettingError(f"{name} makes no difference to {method}\nhint: leave it out")
    references = None
    if method == "expected-gradients":
        if background is None:
            raise MethodError("expected-gradients needs rows to start from\nhint: give background=")
        references = rows(asked._bound(background), shape, "the background")
    elif baseline is not None:
        one = np.broadcast_to(np.asarray(baseline, dtype=np.float64), shape)
        references = np.ascontiguousarray(one).reshape(1, -1)
    settings = dict(
        method=method, rule=rule, steps=steps, samples=samples, noise=noise, seed=seed, target=wanted,
        steps_as=steps_as, layer=layer,
        window=None if window is None else [int(size) for size in window],
        stride=None if stride is None else [int(size) for size in stride],
    )
    content = _internal.export(native, json.dumps(settings), references)
    with open(path, "wb") as file:
        file.write(content)
