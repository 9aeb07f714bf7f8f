"""Arguments of ``explain`` as settings of the library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _internal
from ._inputs import Given, Rows, given, numbers, rows
from .exceptions import SettingError, ShapeError

BACKGROUND_ROWS = 100
RULES = ("left", "right", "midpoint", "trapezoid", "simpson", "gauss-legendre", "adaptive")
BASELINES = ("zero", "mean", "blur", "noise")


def rule(
    tolerance: float | None,
    name: str | None,
    steps: int | None,
    map_tolerance: float | None = None,
    max_gradients: int | None = None,
) -> dict[str, Any] | None:
    """The quadrature rule; None where nothing is said."""
    for given_name, value in (("map_tolerance", map_tolerance), ("max_gradients", max_gradients)):
        if value is not None and (steps is not None or name not in (None, "adaptive")):
            raise SettingError(f"{given_name}= is for the adaptive rule\nhint: leave out rule= and steps=")
    if tolerance is not None and (name not in (None, "adaptive") or (steps is not None and name is None)):
        raise SettingError("tolerance= and steps= exclude each other\nhint: give a tolerance, or rule= and steps=")
    if all(value is None for value in (tolerance, name, steps, map_tolerance, max_gradients)):
        return None
    chosen = name or ("gauss-legendre" if steps is not None else "adaptive")
    if chosen not in RULES:
        raise SettingError(f"there is no rule {chosen!r}\nhint: choose one of {', '.join(RULES)}")
    if chosen == "adaptive":
        limit = 1e-3 if tolerance is None else float(tolerance)
        most = next((int(n) for n in (max_gradients, steps) if n is not None), 2000)
        made: dict[str, Any] = {"rule": chosen, "tolerance": limit, "max_gradients": most}
        return made if map_tolerance is None else {**made, "map_tolerance": float(map_tolerance)}
    count = 50 if steps is None else int(steps)
    return {"rule": chosen, "nodes" if chosen == "gauss-legendre" else "steps": count}


def groups(given_groups: Any) -> dict[str, Any] | None:
    """Which features are left out together."""
    if given_groups is None:
        return None
    if isinstance(given_groups, str):
        kind, _, rest = given_groups.partition(":")
        try:
            if kind in ("each", "natural"):
                return {"kind": kind}
            if kind == "patches":
                height, _, width = rest.partition("x")
                return {"kind": "patches", "height": int(height), "width": int(width or height)}
            if kind == "superpixels":
                return {"kind": "superpixels", **({"segments": int(rest)} if rest else {})}
        except ValueError:
            pass
        raise SettingError(
            f"there are no groups {given_groups!r}\nhint: say 'each', 'patches:8x8', 'superpixels:50', give lists of columns, "
            "or an array with a group number for every feature"
        )
    if isinstance(given_groups, (list, tuple)) and given_groups and isinstance(given_groups[0], (list, tuple, range)):
        return {"kind": "columns", "blocks": [[int(i) for i in block] for block in given_groups]}
    labels = numbers(given_groups, "groups")
    if labels.dtype.kind not in "iu" or (labels.size and labels.min() < 0):
        raise SettingError("groups are not numbered by whole numbers from 0 on\nhint: give a group number for every feature")
    return {"kind": "given", "labels": [int(i) for i in labels.reshape(-1)]}


def baseline(value: Any) -> tuple[dict[str, Any] | None, Any]:
    """A baseline by its name, or the rows that are given."""
    if value is None:
        return None, None
    if isinstance(value, str):
        if value == "background":
            return None, None
        if value not in BASELINES:
            raise SettingError(
                f"there is no baseline {value!r}\nhint: choose one of {', '.join(BASELINES)}, background, or give an array"
            )
        return {"baseline": value, **({"sigma": None} if value == "blur" else {})}, None
    return {"baseline": "given"}, value


def baseline_rows(value: Any, shape: tuple[int, ...], count: int) -> Rows | None:
    """The rows of a given baseline: one, or one for each input."""
    if value is None:
        return None
    found = given(value, "the baseline")
    if found.array.ndim == 0:
        found = Given(np.full((1, *shape), float(found.array)))
    if found.array.shape == shape:
        found = Given(found.array[None])
    flat = rows(found, shape, "the baseline")
    if len(flat) not in (1, count):
        raise ShapeError(f"{len(flat)} baselines are given for {count} inputs\nhint: give one, or one for each")
    return flat


def method(name: str, arguments: dict[str, Any], *, flow: bool, background: bool) -> tuple[str, Any]:
    """The method as JSON, and the rows of a given baseline. ``arguments`` are those the user gave; None is not given."""
    written = {key: value for key, value in arguments.items() if value is not None}
    chosen, given_rows = baseline(written.get("baseline"))
    named = isinstance(written.get("baseline"), str) and written["baseline"] == "background"
    settings: dict[str, Any] = {"seed": int(written.get("seed", 0))}
    made = rule(
        written.get("tolerance"),
        written.get("rule"),
        written.get("steps"),
        written.get("map_tolerance"),
        written.get("max_gradients"),
    )
    if made is not None:
        settings["rule"] = made
    if chosen is not None:
        settings["baseline"] = chosen
    if named or ("baseline" not in written and background):
        settings["absence"] = {"absence": "background", "rows": BACKGROUND_ROWS}
    if "groups" in written:
        settings["groups"] = groups(written["groups"])
    for key in ("window", "stride"):
        if key in written:
            sizes: Sequence[Any] = written[key]
            settings[key] = [int(size) for size in sizes]
    for key in ("samples", "steps", "neighbours", "inversion_steps"):
        if key in written:
            settings[key] = int(written[key])
    for key in ("noise", "solver_tolerance"):
        if key in written:
            settings[key] = float(written[key])
    for key in ("layer", "lrp_rule"):
        if key in written:
            settings[key] = str(written[key])
    told = [key for key in written if key not in ("seed", "baseline")]
    if "baseline" in written:
        told.append("baseline='background'" if named else "baseline")
    told += ["flow"] * flow + ["background"] * background
    try:
        text = json.dumps(settings, allow_nan=False)
    except ValueError as error:
        raise SettingError("a setting is not a finite number\nhint: give a number such as tolerance=1e-3") from error
    return _internal.method(name, text, told), given_rows
