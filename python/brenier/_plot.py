"""Explanations drawn with matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from .exceptions import SettingError, ShapeError


def plot(
    explanations: Any,
    index: int = 0,
    *,
    kind: str | None = None,
    percentile: float = 99.0,
    top: int = 12,
    axes: Any = None,
) -> Any:
    """One explanation as a figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise SettingError("plots are drawn by matplotlib, which is not installed\nhint: pip install 'brenier[plot]'") from error
    shape = explanations.values.shape[1:]
    image = len(shape) in (2, 3) and (len(shape) == 2 or shape[0] in (1, 3))
    chosen = kind or ("side-by-side" if image else "waterfall")
    if chosen not in ("side-by-side", "overlay", "waterfall"):
        raise SettingError(f"there is no kind {chosen!r}\nhint: choose side-by-side, overlay or waterfall")
    if chosen != "waterfall" and not image:
        raise ShapeError(f"an input of shape {tuple(shape)} is no image\nhint: use kind='waterfall'")
    if chosen == "waterfall":
        axes = plt.subplots(figsize=(6, 0.4 * top + 1))[1] if axes is None else axes
        _waterfall(explanations, index, top, axes)
        return axes.figure
    if chosen == "side-by-side":
        pair = plt.subplots(1, 2, figsize=(7, 3.2))[1] if axes is None else axes
        _picture(pair[0], explanations.inputs[index], 1.0)
        _map(pair[1], explanations.values[index], percentile, 1.0)
        return pair[0].figure
    axes = plt.subplots(figsize=(4, 3.6))[1] if axes is None else axes
    _picture(axes, explanations.inputs[index], 0.45)
    _map(axes, explanations.values[index], percentile, 0.65)
    return axes.figure


def _picture(axes: Any, image: Any, alpha: float) -> None:
    shown = image if image.ndim == 2 else (image[0] if image.shape[0] == 1 else np.moveaxis(image, 0, -1))
    low, high = (0.0, 1.0) if shown.min() >= 0 and shown.max() <= 1 else (float(shown.min()), float(shown.max()))
    scaled = (shown - low) / max(high - low, 1e-12)
    axes.imshow(scaled, cmap="gray", vmin=0, vmax=1, alpha=alpha)
    axes.set_axis_off()


def _map(axes: Any, values: Any, percentile: float, alpha: float) -> None:
    credit = values if values.ndim == 2 else values.sum(axis=0)
    scale = float(np.percentile(np.abs(credit), percentile)) or float(np.abs(credit).max()) or 1.0
    drawn = axes.imshow(credit, cmap="RdBu_r", vmin=-scale, vmax=scale, alpha=alpha)
    axes.figure.colorbar(drawn, ax=axes, fraction=0.046)
    axes.set_axis_off()


def _waterfall(explanations: Any, index: int, top: int, axes: Any) -> None:
    credit = explanations.values[index].reshape(-1)
    inputs = explanations.inputs[index].reshape(-1)
    order = np.argsort(-np.abs(credit))
    names = explanations.feature_names or [f"feature {i}" for i in range(len(credit))]
    shown = list(order[:top])
    steps = [float(credit[j]) for j in shown]
    labels = [f"{names[j]} = {inputs[j]:.4g}" for j in shown]
    if len(order) > top:
        steps.append(float(credit[order[top:]].sum()))
        labels.append(f"{len(order) - top} others")
    start = float(np.nan_to_num(explanations.reference_scores[index]))
    left = start
    for place, step in enumerate(reversed(steps)):
        axes.barh(place, step, left=left, color="#b2182b" if step > 0 else "#2166ac")
        left += step
    axes.set_yticks(range(len(labels)), list(reversed(labels)))
    axes.axvline(start, color="#888", linewidth=0.8)
    axes.set_xlabel("score")
