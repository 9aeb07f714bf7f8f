"""Explanations on a Ray cluster.

    import ray, brenier.ray
    rows = ray.data.read_parquet("rows/")
    found = brenier.ray.explain(rows, "model.onnx", method="ig", input_column="x", id_column="id")
    found.write_parquet("explanations/")
    failed = brenier.ray.failures(ray.data.read_parquet("explanations/"))        # ids and reasons

Nothing runs before the result is asked for. Actors hold the model and the flow once each; what comes out is the same, to the
bit, for every number of actors and every size of batches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .batches import Explainer
from .exceptions import SettingError


def explain(
    dataset: Any,
    model: Any,
    *,
    flow: Any = None,
    method: str | None = None,
    input_column: str = "x",
    id_column: str | None = None,
    batch_size: int = 64,
    compute: Any = None,
    num_cpus: float = 1,
    written: Any = None,
    on_error: str = "list",
    ray_options: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """A lazy ``ray.data.Dataset`` with a row of columns for every row of ``dataset``; see :class:`brenier.batches.Explainer`.

    ``compute`` is Ray's, such as ``ray.data.ActorPoolStrategy(min_size=1, max_size=8)``; one actor to as many as there are processors where
    not given. ``num_cpus`` are those of an actor, and its threads. ``written`` is a folder of Parquet files that an earlier run
    has written: rows whose ids are there without an error are left out, so that a run that broke off can go on. Ray's own checkpoints
    (``ray.data.DataContext.get_current().checkpoint_config``) work as well: ids are handed on. ``ray_options`` go to ``map_batches``.
    """
    import ray

    kwargs = dict(
        model=model, flow=flow, method=method, input_column=input_column, id_column=id_column,
        workers=max(1, int(num_cpus)), on_error=on_error, **options,
    )
    # What is wrong with the arguments is said here, and not by an actor.
    Explainer(**kwargs)
    if written is not None:
        if id_column is None:
            raise SettingError("written= needs ids to tell what is done\nhint: give id_column=")
        dataset = _left(dataset, _written(written, id_column), id_column)
    if compute is None:
        most = max(1, int(ray.cluster_resources().get("CPU", 1) // max(num_cpus, 1e-9))) if ray.is_initialized() else 1
        compute = ray.data.ActorPoolStrategy(min_size=1, max_size=most)
    return dataset.map_batches(
        Explainer, fn_constructor_kwargs=kwargs, batch_size=batch_size, batch_format="numpy", compute=compute,
        num_cpus=num_cpus, **(ray_options or {}),
    )


def failures(dataset: Any) -> list[dict[str, Any]]:
    """The rows of a result that could not be explained: all columns but credit and certificate, in the order of the data."""
    failed = dataset.filter(lambda row: row["error"] != "")
    dropped = ("credit", "certificate", "score", "relative_residual", "gradient_evaluations", "target", "verdict")
    return [{key: value for key, value in row.items() if key not in dropped} for row in failed.take_all()]


def _written(folder: Any, id_column: str) -> set[Any]:
    """The ids that Parquet files of an earlier run hold without an error."""
    import pyarrow.parquet as parquet

    done: set[Any] = set()
    for file in sorted(Path(folder).rglob("*.parquet")) if Path(folder).exists() else []:
        table = parquet.read_table(file, columns=[id_column, "error"])
        rows = zip(table[id_column].to_pylist(), table["error"].to_pylist(), strict=True)
        done.update(identity for identity, error in rows if not error)
    return done


def _left(dataset: Any, done: set[Any], id_column: str) -> Any:
    if not done:
        return dataset
    import ray

    kept = ray.put(done)

    def undone(batch: dict[str, Any]) -> dict[str, Any]:
        known = ray.get(kept)
        keep = np.asarray([_plain(identity) not in known for identity in batch[id_column]], dtype=bool)
        return {name: column[keep] for name, column in batch.items()}

    return dataset.map_batches(undone, batch_format="numpy")


def _plain(identity: Any) -> Any:
    return identity.item() if isinstance(identity, np.generic) else identity


class _Evaluator:
    """Scores explanations of a batch by metrics: sums that can be added up."""

    def __init__(self, model: Any, flow: Any, input_column: str, workers: int, arguments: dict[str, Any]) -> None:
        from ._flow import Flow
        from ._model import Model

        self._model = model if isinstance(model, Model) else Model(model, workers=workers)
        self._flow = flow if flow is None or isinstance(flow, Flow) else Flow.load(flow, workers=workers)
        self._input, self._arguments = input_column, arguments

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        from ._evaluate import evaluate as evaluate_here

        rows = np.stack([np.asarray(row, dtype=np.float64) for row in batch[self._input]])
        table = evaluate_here(self._model, rows, flow=self._flow, progress=False, **self._arguments)
        found: dict[str, list[Any]] = {"method": [], "metric": [], "n": [], "mean": [], "squares": []}
        for row in table.facts["rows"]:
            for column, cell in zip(table.facts["metrics"], row["cells"], strict=True):
                if isinstance(cell, dict):
                    deviation = cell["standard_deviation"] or 0.0
                    values = (row["method"], column["name"], cell["n"], cell["mean"], deviation**2 * (cell["n"] - 1))
                    for name, value in zip(found, values, strict=True):
                        found[name].append(value)
        return {name: np.asarray(values) for name, values in found.items()}


def evaluate(
    dataset: Any,
    model: Any,
    methods: Sequence[str],
    metrics: Sequence[str],
    *,
    flow: Any = None,
    input_column: str = "x",
    batch_size: int = 64,
    compute: Any = None,
    num_cpus: float = 1,
    **options: Any,
) -> list[dict[str, Any]]:
    """Methods by metrics over a cluster: a dict for each method and metric with ``n``, ``mean`` and ``standard_error``.

    Actors score batches, and their sums are added up here. The means are those of :func:`brenier.evaluate` up to rounding for
    metrics that do not draw at random. Which method leads is not told: that takes paired differences.
    """
    import ray

    arguments = dict(methods=list(methods), metrics=list(metrics), **options)
    kwargs = dict(model=model, flow=flow, input_column=input_column, workers=max(1, int(num_cpus)), arguments=arguments)
    parts = dataset.map_batches(
        _Evaluator, fn_constructor_kwargs=kwargs, batch_size=batch_size, batch_format="numpy",
        compute=compute or ray.data.ActorPoolStrategy(min_size=1), num_cpus=num_cpus,
    ).take_all()
    sums: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for part in parts:
        sums.setdefault((part["method"], part["metric"]), []).append(part)
    return [
        _joined(method, metric, sums[method, metric]) for method in methods for metric in metrics if (method, metric) in sums
    ]


def _joined(method: str, metric: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard error of parts together (Chan, Golub and LeVeque); sums are exact, so their order does not matter."""
    n = sum(int(part["n"]) for part in parts)
    mean = math.fsum(part["n"] * part["mean"] for part in parts) / n
    squares = math.fsum(part["squares"] + part["n"] * (part["mean"] - mean) ** 2 for part in parts)
    error = math.sqrt(squares / (n - 1) / n) if n > 1 else None
    return {"method": method, "metric": metric, "n": n, "mean": mean, "standard_error": error}
