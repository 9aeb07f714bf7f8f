"""Feature attribution along transport paths, with certificates.

    import brenier
    explanations = brenier.explain("model.onnx", x, tolerance=1e-3)
    explanations.values, explanations.certificates

``brenier.captum`` has Captum's classes with Captum's arguments. Everything is explained in ``docs/python.md``.
"""

from __future__ import annotations

from . import exceptions
from ._evaluate import MetricTable, evaluate, metrics
from ._explain import explain, inspect, methods
from ._export import export
from ._explanations import Explanations, concatenate
from ._flow import Flow, train_flow
from ._internal import VERSION as __version__
from ._model import Model
from ._shift import Shift, shift
from .exceptions import (
    BrenierError,
    DataError,
    EngineError,
    FileError,
    FlowError,
    MethodError,
    MetricError,
    ModelError,
    NoGradientError,
    NotFiniteError,
    SettingError,
    ShapeError,
    TargetError,
    UnsupportedOperator,
)

load = Explanations.load

__all__ = [
    "BrenierError",
    "DataError",
    "EngineError",
    "Explanations",
    "FileError",
    "Flow",
    "FlowError",
    "MethodError",
    "MetricError",
    "MetricTable",
    "Model",
    "ModelError",
    "NoGradientError",
    "NotFiniteError",
    "SettingError",
    "ShapeError",
    "Shift",
    "TargetError",
    "UnsupportedOperator",
    "__version__",
    "concatenate",
    "evaluate",
    "exceptions",
    "explain",
    "export",
    "inspect",
    "load",
    "methods",
    "metrics",
    "shift",
    "train_flow",
]
