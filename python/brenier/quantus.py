"""An ``explain_func`` for Quantus.

    from brenier.quantus import explain_func
    quantus.MaxSensitivity()(model=module, x_batch=x, y_batch=y, explain_func=explain_func,
                             explain_func_kwargs={"method": "ig", "tolerance": 1e-3})

It returns exactly an ``np.ndarray``, and follows a module whose weights Quantus redraws.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._explain import explain
from ._model import Model

# The module of the last call: Quantus asks the same one again and again.
_last: list[Model] = []

# What Quantus adds to the arguments, and what means nothing here.
_IGNORED = ("device", "normalise", "normalise_func", "abs", "reduce_axes")


def explain_func(model: Any, inputs: Any, targets: Any, **kwargs: Any) -> NDArray[np.float64]:
    """Explanations of ``inputs`` for ``targets``; other arguments are those of :func:`brenier.explain`."""
    asked = model if isinstance(model, Model) else next((kept for kept in _last if kept._source is model), None)
    if asked is None:
        asked = Model(model, example=inputs[:1])
        _last[:] = [asked]
    arguments = {key: value for key, value in kwargs.items() if key not in _IGNORED}
    found: NDArray[np.float64] = explain(asked, inputs, target=np.asarray(targets), progress=False, **arguments).values
    return found
