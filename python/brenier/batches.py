"""One callable class that explains batches of rows, for data engines: Ray Data, Daft, Spark, or a loop.

    explainer = brenier.batches.Explainer("model.onnx", method="ig", input_column="x", id_column="id")
    columns = explainer({"id": ids, "x": rows})

The model and the flow are loaded once, by the first batch, in the process that runs it. What comes out does not depend on
how rows are put into batches, to the bit.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ._explain import explain
from ._explanations import Explanations
from ._flow import Flow
from ._model import Model
from .exceptions import BrenierError, DataError, SettingError

ON_ERROR = ("list", "raise")


class Explainer:
    """Explains batches: a dict of columns in, a dict of columns out.

    ``model`` and ``flow`` are paths, bytes, or what :class:`brenier.Model` and :class:`brenier.Flow` take; they are loaded when
    the first batch comes. ``input_column`` holds the inputs, one array for each row. ``id_column``, where given, is handed on.
    ``workers`` is the number of threads. Other arguments are those of :func:`brenier.explain`.

    Columns that come out: the id, ``target``, ``score``, ``credit`` (an array in the shape of the input), ``verdict``,
    ``relative_residual`` (NaN where the method promises no sum), ``gradient_evaluations``, ``certificate`` (all of it, as JSON) and ``error``. A row that cannot be
    explained has its reason in ``error``, NaN for its numbers, and -1 as its target; ``on_error="raise"`` raises instead. A model that
    cannot be loaded counts as the error of every row.

    Methods that draw at random draw for every row as if it were the first.
    """

    def __init__(
        self,
        model: Any,
        *,
        flow: Any = None,
        method: str | None = None,
        input_column: str = "x",
        id_column: str | None = None,
        workers: int = 1,
        on_error: str = "list",
        **options: Any,
    ) -> None:
        if on_error not in ON_ERROR:
            raise SettingError(f"on_error is {on_error!r}\nhint: choose one of {', '.join(ON_ERROR)}")
        for name in ("progress", "feature_names", "targets"):
            if name in options:
                raise SettingError(f"{name}= makes no difference to batches\nhint: leave it out")
        self._source, self._flow_source, self._workers = model, flow, workers
        self._method, self._options = method, options
        self._input, self._id, self._list = input_column, id_column, on_error == "list"
        self._model: Model | None = None
        self._flow: list[Flow] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_model": None, "_flow": None}

    def _load(self) -> tuple[Model, list[Flow] | None]:
        if self._model is None:
            source = self._source
            self._model = source if isinstance(source, Model) else Model(source, workers=self._workers)
        if self._flow is None and self._flow_source is not None:
            given = self._flow_source if isinstance(self._flow_source, (list, tuple)) else [self._flow_source]
            self._flow = [one if isinstance(one, Flow) else Flow.load(one, workers=self._workers) for one in given]
        return self._model, self._flow

    def __call__(self, batch: Any) -> dict[str, Any]:
        """Explains a batch: a dict of columns, or the inputs alone (as Spark's ``predict_batch_udf`` hands them over)."""
        if isinstance(batch, dict):
            if self._input not in batch:
                raise SettingError(
                    f"there is no column {self._input!r}\nhint: choose input_column= from {', '.join(map(str, batch))}"
                )
            given = list(batch[self._input])
            ids = batch[self._id] if self._id is not None else None
        else:
            given, ids = list(batch), None
        try:
            model, flow = self._load()
            shape = model.shape
        except (BrenierError, OSError) as error:
            if not self._list:
                raise
            found: list[Any] = [_reason(error)] * len(given)
            shape = np.shape(given[0]) if given and given[0] is not None else ()
        else:
            found = self._explained(model, flow, given)
        columns = _columns(found, tuple(shape))
        return columns if ids is None else {str(self._id): np.asarray(ids), **columns}

    def _explained(self, model: Model, flow: list[Flow] | None, given: list[Any]) -> list[Any]:
        """An explanation or a reason for each row."""
        if not given:
            return []
        if not self._draws():
            try:
                whole = self._explain(model, flow, np.stack([_array(row) for row in given]))
                return [whole[i : i + 1] for i in range(len(given))]
            except (BrenierError, ValueError, TypeError):
                # One of the rows: which one is found below.
                pass
        found: list[Any] = []
        for row in given:
            try:
                found.append(self._explain(model, flow, _array(row)[None]))
            except BrenierError as error:
                if not self._list:
                    raise
                found.append(_reason(error))
        return found

    def _explain(self, model: Model, flow: list[Flow] | None, rows: Any) -> Explanations:
        return explain(model, rows, self._method, flow=flow, progress=False, **self._options)

    def _draws(self) -> bool:
        """Whether credit depends on a row's number: then each is explained by itself."""
        from ._explain import methods

        arguments: list[str] = next((spec["arguments"] for spec in methods() if spec["name"] == self._method), [])
        noise = isinstance(self._options.get("baseline"), str) and self._options["baseline"] == "noise"
        return noise or "samples" in arguments or (self._method or "").startswith("geodesic")


def _array(row: Any) -> Any:
    if row is None:
        raise DataError("the row is empty\nhint: remove it, or fill it in")
    try:
        return np.asarray(row, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise DataError(f"the row cannot be read as numbers: {error}\nhint: remove it, or repair it") from error


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).split(chr(10) + 'hint: ')[0]}"


def _columns(found: list[Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """The columns of explanations and reasons."""
    certificates = [None if isinstance(one, str) else one.certificates[0] for one in found]

    def numbers(name: str, absent: Any, dtype: Any) -> Any:
        values = [absent if one is None or one.get(name) is None else one[name] for one in certificates]
        return np.asarray(values, dtype=dtype)

    credit = np.full((len(found), *shape), np.nan)
    for place, one in zip(credit, found, strict=True):
        if not isinstance(one, str):
            place[...] = one.values[0]
    written = [
        "" if one is None else json.dumps({key: value for key, value in one.items() if key != "example"}) for one in certificates
    ]
    return {
        "target": numbers("target", -1, np.int64),
        "score": numbers("score", np.nan, np.float64),
        "credit": credit,
        "verdict": np.asarray(["failed" if one is None else one["verdict"]["kind"] for one in certificates], dtype=object),
        "relative_residual": numbers("relative_residual", np.nan, np.float64),
        "gradient_evaluations": numbers("gradient_evaluations", 0, np.int64),
        "certificate": np.asarray(written, dtype=object),
        "error": np.asarray([one if isinstance(one, str) else "" for one in found], dtype=object),
    }


__all__ = ["Explainer"]
