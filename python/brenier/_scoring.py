"""Scores that are not one vector: places along the axes of an output, reductions, differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._inputs import numbers
from .exceptions import SettingError, TargetError

if TYPE_CHECKING:
    from ._model import Model

_REDUCE = ("mean", "sum", "max")


def scoring(model: Model, axes: list[int | None] | None, target: Any, reduce: Any, within: Any, minus: Any) -> Any:
    """What to explain, as the native module takes it; None where every number of a vector is a score of its own."""
    if within is not None and reduce is None:
        raise SettingError("within= makes no difference without reduce=\nhint: say reduce='mean', 'sum' or 'max'")
    if reduce is not None and reduce not in _REDUCE:
        raise SettingError(f"reduce={reduce!r} is not known\nhint: choose from {', '.join(map(repr, _REDUCE))}")
    sizes = axes or []
    several = sum(size != 1 for size in sizes) > 1
    predicted = target is None or (isinstance(target, str) and target == "predicted")
    ranged = isinstance(target, slice) or (isinstance(target, tuple) and any(isinstance(t, slice) for t in target))
    along = ranged or reduce is not None or (several and not predicted)
    if not along and minus is None:
        return None
    if model._kind == "function":
        raise SettingError(
            "the scores of a function are taken as they are\nhint: let the function return the score that you mean, [N] or [N, C]"
        )
    names = model._classes or model._open().classes()
    picked = _places(target if target is not None else "predicted", sizes, names) if along else []
    other: Any = None
    if isinstance(minus, str) and minus == "highest-other":
        other = "highest-other"
    elif minus is not None and along:
        other = {"score": _places(minus, sizes, names)}
    elif minus is not None:
        other = {"score": [{"place": model._target(minus)}]}
    return {"target": picked, "reduce": reduce, "within": None if within is None else _weights(within), "minus": other}


def _places(target: Any, sizes: list[int | None], names: list[str]) -> list[Any]:
    parts = target if isinstance(target, (tuple, list)) else (target,)
    return [_place(part, sizes[axis] if axis < len(sizes) else None, names) for axis, part in enumerate(parts)]


def _place(part: Any, size: int | None, names: list[str]) -> Any:
    if isinstance(part, str):
        if part == "predicted":
            return "each"
        if part in names:
            return {"place": names.index(part)}
    if isinstance(part, slice) and part.step in (None, 1):
        if part.start is None and part.stop is None:
            return "all"
        ends = [part.start or 0, size if part.stop is None else part.stop]
        whole = [int(end) for end in ends if isinstance(end, (int, np.integer)) and end >= 0]
        if len(whole) == 2:
            return {"range": whole}
    if isinstance(part, (int, np.integer)) and not isinstance(part, bool) and part >= 0:
        return {"place": int(part)}
    raise TargetError(
        f"{part!r} is no place along an axis\nhint: say a number from 0 on, a class by name, slice(3, 8), slice(None) for all, or "
        "'predicted'"
    )


def _weights(within: Any) -> dict[str, Any]:
    array = np.asarray(numbers(within, "within="), dtype=np.float32)
    return {"shape": list(array.shape), "weights": [float(weight) for weight in array.reshape(-1)]}
