"""Methods compared by metrics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from . import _internal, _settings
from ._explain import _flows
from ._inputs import given, rows
from ._model import model as as_model
from ._progress import Progress


class MetricTable:
    """Methods by metrics, with standard errors."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        """The table as the library has it."""

    @property
    def leads(self) -> dict[str, dict[str, Any]]:
        """By metric: ``lead`` is "best" where one method is better than every other (the 95 % interval of each paired
        difference excludes 0), "tie" where two cannot be told apart, "none" with a ``reason`` otherwise."""
        return {column["name"]: column["lead"] for column in self.facts["metrics"]}

    @property
    def left_out(self) -> dict[str, str]:
        """Metrics that were not asked for by name and apply to none of the methods, with the reason."""
        return dict(self.facts["left_out"])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict for each method: its name and, by the name of the metric, the mean over the examples (None where it is
        not defined)."""
        names = [column["name"] for column in self.facts["metrics"]]
        return [
            {"method": row["method"], **{name: _mean(cell) for name, cell in zip(names, row["cells"], strict=True)}}
            for row in self.facts["rows"]
        ]

    def __repr__(self) -> str:
        names = [f"{column['name']} ({column['direction']})" for column in self.facts["metrics"]]
        lines = ["  ".join(["method".ljust(18), *names])]
        leads = list(self.leads.values())
        for row in self.rows:
            method = row["method"]
            cells = [method.ljust(18)]
            values = list(row.values())[1:]
            for value, name, lead in zip(values, names, leads, strict=True):
                star = " *" if lead["lead"] == "best" and lead["method"] == method else ""
                cells.append(("-" if value is None else f"{value:.4g}{star}").ljust(len(name)))
            lines.append("  ".join(cells))
        return "\n".join(lines)


def _mean(cell: Any) -> float | None:
    """The mean of a cell; a cell that is a sentence says why there is none."""
    return float(cell["mean"]) if isinstance(cell, dict) else None


def evaluate(
    model: Any,
    x: Any,
    methods: Sequence[str],
    metrics: Sequence[str] | None = None,
    *,
    target: Any = None,
    flow: Any = None,
    background: Any = None,
    baseline: Any = None,
    tolerance: float | None = None,
    samples: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> MetricTable:
    """Explains every input by every method and scores the explanations by every metric.

    Without ``metrics``, the usual ones of :func:`brenier.metrics` that apply to these inputs and methods are taken."""
    taken = given(x)
    asked = as_model(model, taken)
    native = asked._open(taken)
    shape = tuple(native.shape())
    taken = asked._bound(taken)
    flat = rows(taken, shape)
    flows = _flows(flow, shape)
    made, given_rows = [], None
    for name in methods:
        uses: list[str] = next((m["arguments"] for m in _internal.methods() if m["name"] == name), [])
        arguments = {k: v for k, v in dict(baseline=baseline, tolerance=tolerance).items() if k in uses}
        text, found = _settings.method(name, {**arguments, "seed": seed}, flow=False, background=False)
        made.append(text)
        given_rows = found if found is not None else given_rows
    kind, wanted = asked.targets(target, len(flat))
    each = None if kind == "highest" else (wanted * len(flat) if len(wanted) == 1 else wanted)
    chosen = [] if metrics is None else list(metrics)
    settings: dict[str, Any] = {"seed": seed, **({} if samples is None else {"samples": samples})}
    with Progress(len(flat), "evaluate", progress) as line:
        text = _internal.evaluate(
            native, flat, made, chosen, json.dumps(settings), each,
            baselines=_settings.baseline_rows(given_rows, shape, len(flat)),
            background=None if background is None else rows(asked._bound(background), shape, "the background"),
            flows=[one._native_flow() for one in flows],
            progress=line,
        )
    return MetricTable(json.loads(text))


def metrics() -> list[dict[str, Any]]:
    """All metrics: name, help, what they need, and whether lower or higher is better."""
    return _internal.metrics()
