"""Why the mean score moved from one population to another."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _internal
from ._inputs import given, rows
from ._model import model as as_model
from .exceptions import DataError, SettingError


class Shift:
    """Why the mean score moved: a part of the change for every column, with intervals.

    Credit says what the model's score is associated with along the move, not what caused the move.
    """

    def __init__(self, facts: dict[str, Any], remarks: list[str]) -> None:
        self.facts = facts
        """All that was found, as plain values."""
        self.remarks = remarks
        """What must be said before the numbers."""

    @property
    def change(self) -> float:
        """``mean f(after) - mean f(before)``."""
        return float(self.facts["change"]["value"])

    @property
    def columns(self) -> list[dict[str, Any]]:
        """For each column: name, credit, low and high of its interval, significant, moved, moved_by_chance."""
        found = []
        for column in self.facts["columns"]:
            interval = column["credit"]["interval"] or {}
            found.append(
                dict(
                    name=column["name"], credit=column["credit"]["value"], low=interval.get("low"),
                    high=interval.get("high"), significant=column["significant"], moved=column["moved"],
                    moved_by_chance=column["moved_by_chance"], mean_difference=column["mean_difference"],
                )
            )
        return found

    @property
    def values(self) -> NDArray[np.float64]:
        """The credit of every column."""
        return np.array([column["credit"]["value"] for column in self.facts["columns"]])

    def __repr__(self) -> str:
        lines = [f"the mean score moved by {self.change:.4g}"]
        for column in sorted(self.columns, key=lambda column: -abs(column["credit"])):
            interval = "" if column["low"] is None else f" [{column['low']:.4g}, {column['high']:.4g}]"
            lines.append(f"  {column['name']:<20} {column['credit']: .4g}{interval}{' *' if column['significant'] else ''}")
        return "\n".join([*lines, *(f"note: {remark}" for remark in self.remarks)])


def shift(
    model: Any,
    before: Any,
    after: Any,
    *,
    target: int | str = 0,
    tolerance: float = 1e-3,
    confidence: float = 0.95,
    seed: int = 0,
    names: tuple[str, str] = ("before", "after"),
) -> Shift:
    """Why the mean score of ``target`` differs between two populations of rows.

    Rows of both are matched optimally and credit is given along each line; intervals come from ten disjoint batches.
    """
    first, second = given(before, names[0]), given(after, names[1])
    asked = as_model(model, first)
    native = asked._open(first)
    shape = tuple(native.shape())
    first, second = asked._bound(first, names[0]), asked._bound(second, names[1])
    if first.columns and second.columns and first.columns != second.columns:
        if sorted(first.columns) != sorted(second.columns):
            missing = sorted(set(first.columns) ^ set(second.columns))
            raise DataError(f"columns are in one of the populations only: {', '.join(missing)}\nhint: give both the same columns")
        order = [second.columns.index(name) for name in first.columns]
        second = type(second)(second.array[:, order], first.columns)
    a, b = rows(first, shape, names[0]), rows(second, shape, names[1])
    if not 0 < confidence < 1:
        raise SettingError(f"confidence is {confidence}\nhint: it is a part between 0 and 1, such as 0.95")
    rule = {"rule": "adaptive", "tolerance": float(tolerance), "max_gradients": 400}
    config = json.dumps(
        {"confidence": confidence, "integral": {**_INTEGRAL, "rule": rule}, "matching": {**_MATCHING, "seed": int(seed)}}
    )
    columns = first.columns if len(shape) == 1 else None
    text, remarks = _internal.shift(native, asked._target(target), (names[0], a), (names[1], b), columns, config)
    return Shift(json.loads(text), remarks)


_INTEGRAL: dict[str, Any] = {
    "micro_batch": 256, "limits": {"residual": 0.05, "round_trip": 0.01, "reference_deviation": 4.0},
}
_MATCHING: dict[str, Any] = {}
