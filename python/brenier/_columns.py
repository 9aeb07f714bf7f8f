"""Rows of a data frame as a model takes them: columns by name, categories as their levels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._inputs import Given, numbers
from .exceptions import DataError

_MOST = 6


def bound(x: Given, columns: list[dict[str, Any]], what: str) -> Given:
    """The columns of the model, taken from the frame by their names; further ones are left out."""
    have = [str(name) for name in x.frame.columns]
    features: list[str] = []
    parts: list[Any] = []
    for column in columns:
        name, levels = column["name"], column["kind"].get("values")
        place = _find(name, have)
        if place is None:
            raise DataError(
                f"{what} has no column {name!r}\nhint: the model takes {_listed([one['name'] for one in columns])}; the frame has "
                f"{_listed(have)}"
            )
        cells = x.frame[x.frame.columns[place]]
        if levels is None:
            part = numbers(cells.to_numpy(), f"column {name!r} of {what}").astype(np.float64).reshape(-1, 1)
            features.append(name)
        else:
            part = _one_hot(cells.to_numpy(), name, levels, what)
            features.extend(f"{name}={level}" for level in levels)
        parts.append(part)
    return Given(np.ascontiguousarray(np.concatenate(parts, axis=1)), features)


def _find(name: str, have: list[str]) -> int | None:
    """The place of a column; exporters write ``hours_per_week`` for ``hours-per-week``."""
    if name in have:
        return have.index(name)
    alike = [i for i, other in enumerate(have) if _letters(other) == _letters(name)]
    return alike[0] if len(alike) == 1 else None


def _letters(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)


def _one_hot(cells: Any, name: str, levels: list[str], what: str) -> Any:
    place = {level: i for i, level in enumerate(levels)}
    by_size = {float(level): i for level, i in place.items() if _is_number(level)}
    found = np.zeros((len(cells), len(levels)))
    for row, cell in enumerate(cells.tolist()):
        level = place.get(str(cell), by_size.get(float(cell)) if _is_number(cell) else None)
        if level is None:
            missing = cell is None or cell != cell
            told = "is empty" if missing else f"is {str(cell)[:40]!r}, which is none of {_listed(levels)}"
            raise DataError(
                f"column {name!r} of {what} {told}, in row {row}\nhint: the model knows only the values it was trained with; "
                "correct the cell, or leave the row out"
            )
        found[row, level] = 1.0
    return found


def _is_number(text: Any) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except (TypeError, ValueError):
        return False


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more
