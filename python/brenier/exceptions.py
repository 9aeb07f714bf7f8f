"""Everything that can go wrong, as classes to catch.

A message says what happened and with which value; ``hint`` says what to try, in the words of this package.
"""

from __future__ import annotations

__all__ = [
    "BrenierError",
    "DataError",
    "EngineError",
    "FileError",
    "FlowError",
    "MethodError",
    "MetricError",
    "ModelError",
    "NoGradientError",
    "NotFiniteError",
    "SettingError",
    "ShapeError",
    "TargetError",
    "UnsupportedOperator",
]


class BrenierError(Exception):
    """What can go wrong. ``hint`` is what to try, or None."""

    hint: str | None

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.hint = message.split("\nhint: ", 1)[1] if "\nhint: " in message else None


class ShapeError(BrenierError, ValueError):
    """An array does not have the shape that is needed."""


class DataError(BrenierError, ValueError):
    """Data cannot be used as they are."""


class NotFiniteError(DataError):
    """A number is NaN or infinite; the message says where."""


class ModelError(BrenierError, ValueError):
    """A model cannot be read, or cannot be explained as it is."""


class UnsupportedOperator(ModelError):
    """A node of the model has no derivative, or none of the kind that a method needs."""


class NoGradientError(ModelError):
    """A method needs gradients, and the model has none."""


class FlowError(BrenierError, ValueError):
    """A file is not a flow, or the flow cannot be followed from an input."""


class TargetError(BrenierError, IndexError):
    """A target is not an output of the model."""


class MethodError(BrenierError, ValueError):
    """There is no method of this name, or it cannot do what is asked."""


class MetricError(BrenierError, ValueError):
    """There is no metric of this name, or it cannot be computed."""


class SettingError(BrenierError, ValueError):
    """An argument has a value with which nothing can be computed, or makes no difference."""


class EngineError(BrenierError, RuntimeError):
    """An engine cannot run the model, or computes it wrongly."""


class FileError(BrenierError, OSError):
    """A file cannot be read or written."""


_CLASSES: dict[str, type[BrenierError]] = {
    cls.__name__: cls
    for cls in (
        BrenierError, ShapeError, DataError, NotFiniteError, ModelError, UnsupportedOperator, NoGradientError,
        FlowError, TargetError, MethodError, MetricError, SettingError, EngineError, FileError,
    )
}


def _from_native(name: str, message: str) -> BrenierError:
    """The exception of an error of the library, which comes worded for Python."""
    return _CLASSES[name](message)
