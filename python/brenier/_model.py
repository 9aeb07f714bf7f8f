"""Models as they come: ONNX files and bytes, torch modules, scikit-learn models, functions."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _internal
from ._columns import bound
from ._engine import engine as engine_config
from ._inputs import Given, Rows, given, numbers, rows
from .exceptions import ModelError, SettingError, ShapeError, TargetError

Function = Callable[..., Any]


class Model:
    """A model to explain, loaded once and kept.

    ``source`` is one of

    - a path to an ONNX file, its bytes, or an ``onnx.ModelProto``;
    - a ``torch.nn.Module``, with ``example=`` (a batch of inputs) where its shape cannot be known otherwise. It is exported
      in eval mode; when its weights change, it is exported again. Where the export fails, torch itself computes scores and
      gradients, and a notice says so;
    - a model of scikit-learn, XGBoost or LightGBM (``skl2onnx`` and ``onnxmltools`` convert it), with ``example=`` or
      ``input_shape=``. It runs in ONNX Runtime;
    - a function from a batch ``[N, ...]`` to scores ``[N, C]`` or ``[N]``, with ``input_shape=``. Methods without gradients
      explain it; with ``gradients=``, a function from a batch and its targets ``[N]`` to gradients ``[N, ...]`` or to
      ``(scores, gradients)``, all do.

    ``output`` names the output to explain, ``input_shape`` the shape of one input where the file leaves sizes open,
    ``classes`` the outputs. ``preprocessing`` is done to inputs before the model sees them and credited to what you give:
    ``scale``, ``mean``, ``std``, ``channels``, ``layout``, ``size``. ``keep_softmax`` explains probabilities instead of logits.
    ``engine`` is ``"rten"`` (built in) or ``"ort"`` (ONNX Runtime), ``workers`` the number of threads.
    """

    def __init__(
        self,
        source: Any,
        *,
        example: Any = None,
        input_shape: Sequence[int] | None = None,
        gradients: Function | None = None,
        output: str | None = None,
        classes: Sequence[str] | None = None,
        preprocessing: dict[str, Any] | None = None,
        keep_softmax: bool = False,
        engine: str | None = None,
        provider: str = "cpu",
        workers: int | None = None,
        check: bool = True,
    ) -> None:
        if isinstance(source, Model):
            raise ModelError("the source is a brenier.Model already\nhint: use it as it is")
        self._source, self._gradients = source, gradients
        self._example = None if example is None else given(example, "the example")
        self._input_shape = None if input_shape is None else tuple(int(n) for n in input_shape)
        self._classes = None if classes is None else [str(name) for name in classes]
        self._choices = dict(output=output, keep=keep_softmax, preprocessing=preprocessing or {})
        self._engine = dict(kind=engine, workers=workers, provider=provider, check=check)
        self._native: _internal.Model | None = None
        self._key: str | None = None
        self._notices: list[str] = []
        self._kind = _kind(source)
        if gradients is not None and self._kind != "function":
            raise SettingError(
                f"gradients= makes no difference to {type(source).__name__}\nhint: it is for functions; leave it out"
            )
        if self._kind == "function" and self._input_shape is None:
            if self._example is None:
                raise ModelError(
                    "the shape of a function's input is not known\nhint: give input_shape=, such as input_shape=(4,) for "
                    "four columns, or example=, a batch"
                )
            self._input_shape = tuple(self._example.array.shape[1:])
        if self._kind != "torch":
            self._open()

    def __repr__(self) -> str:
        return f"brenier.Model({self._kind}, shape={self.shape}, outputs={self.outputs})"

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state["_native"], state["_key"] = None, None
        if self._kind == "onnx" and hasattr(self._source, "SerializeToString"):
            state["_source"] = self._source.SerializeToString()
        return state

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input, without the batch."""
        return tuple(self._open().shape())

    @property
    def outputs(self) -> int:
        """The number of scores."""
        native = self._open()
        found = native.outputs()
        if found is None:
            found = native.scores(np.zeros((1, int(np.prod(self.shape))))).shape[1]
        return int(found)

    @property
    def classes(self) -> list[str]:
        """The names of the outputs; empty where nothing says them."""
        if self._classes is not None and len(self._classes) != self.outputs:
            raise SettingError(
                f"{len(self._classes)} class names are given, but the model has {self.outputs} outputs\nhint: give one for "
                "each, in their order"
            )
        return self._classes or self._open().classes()

    @property
    def notices(self) -> list[str]:
        """What you should know, such as a softmax that was cut off."""
        native = self._open()
        return [*self._notices, *native.notices()]

    @property
    def metadata(self) -> dict[str, str]:
        """The ONNX file's own key-value pairs."""
        return self._open().metadata()

    @property
    def hash(self) -> str | None:
        """The fingerprint of the ONNX graph, as in certificates; None for functions."""
        return self._open().hash()

    def scores(self, x: Any) -> NDArray[np.float64]:
        """All scores of a batch, ``[N, outputs]``."""
        native = self._open(x)
        return native.scores(rows(self._bound(x), tuple(native.shape())))

    __call__ = scores

    def gradients(self, x: Any, target: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The score of each row's target, ``[N]``, and its gradient, ``[N, ...]``."""
        native = self._open(x)
        flat = rows(self._bound(x), tuple(native.shape()))
        kind, targets = self.targets(target, len(flat))
        each = targets * len(flat) if kind == "same" and len(targets) == 1 else targets
        if kind == "highest":
            each = [int(i) for i in native.scores(flat).argmax(axis=1)]
        values, gradient = native.gradients(flat, each)
        return values, gradient.reshape(len(flat), *native.shape())

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The columns of the table that the model takes, where it says them: ``name`` and ``kind``, of a category its ``values``.

        Data frames are bound to them by name.
        """
        if self._kind == "function":
            return []
        found: list[dict[str, Any]] = json.loads(self.metadata.get("brenier.columns", "[]"))
        if not found:
            names = json.loads(self.metadata.get("feature_names", "[]"))
            found = [{"name": name, "kind": {"kind": "numeric"}} for name in names]
        return found

    def _bound(self, x: Any, what: str = "the input") -> Given:
        """What was given; a frame with the model's columns in their order, its text as levels."""
        taken = given(x, what)
        if taken.frame is None or self._kind == "torch":
            return taken
        columns = self.columns
        # Names alone are often made up by an exporter.
        sure = "brenier.columns" in self.metadata if columns else False
        if not columns or not (sure or all(column["name"] in (taken.columns or []) for column in columns)):
            return taken
        return bound(taken, columns, what)

    def targets(self, target: Any, count: int) -> tuple[str, list[int]]:
        """What a target stands for: ``"predicted"``, an output by number or name, or one for each input."""
        if target is None or (isinstance(target, str) and target == "predicted"):
            return "highest", [1]
        if isinstance(target, (str, int, np.integer)):
            return "same", [self._target(target)]
        listed = target if isinstance(target, (list, tuple)) else numbers(target, "target")
        each = [self._target(one) for one in np.asarray(listed).reshape(-1).tolist()]
        if len(each) == 1:
            return "same", each
        if len(each) != count:
            raise ShapeError(
                f"{len(each)} targets are given for {count} inputs\nhint: give one, or one for each; targets= explains "
                "several for every input"
            )
        return "each", each

    def _scored(self, scoring: Any) -> Model:
        """The same model with other scores."""
        other = copy.copy(self)
        other._choices = dict(self._choices, scoring=scoring)
        other._native, other._key = None, None
        if scoring["target"] and "each" not in scoring["target"]:
            # The one score that is left has a name of its own.
            other._classes = None
        return other

    def _target(self, target: Any) -> int:
        if isinstance(target, str):
            names = self.classes
            if target in names:
                return names.index(target)
            known = f"the classes are {', '.join(names)}" if names else "the model does not name its classes: give classes="
            raise TargetError(f"there is no class {target!r}\nhint: say 'predicted' or a number; {known}")
        if isinstance(target, bool) or int(target) != target:
            raise TargetError(f"target {target!r} is no number of an output\nhint: give a whole number from 0 on")
        if not 0 <= int(target) < self.outputs:
            raise TargetError(
                f"target {int(target)} is out of range: the model has {self.outputs} outputs, numbered from 0\nhint: give a "
                f"number from 0 to {self.outputs - 1}, or 'predicted'"
            )
        return int(target)

    def _options(self, engine: str) -> str:
        settings = dict(self._engine, kind=self._engine["kind"] or engine)
        options: dict[str, Any] = {
            "engine": engine_config(**settings),  # type: ignore[arg-type]
            "keep_final_activation": self._choices["keep"],
            "preprocessing": self._choices["preprocessing"],
        }
        if self._choices["output"]:
            options["output"] = self._choices["output"]
        if self._choices.get("scoring"):
            options["scoring"] = self._choices["scoring"]
        if self._input_shape is not None:
            options["input_shape"] = list(self._input_shape)
        return json.dumps(options)

    def _open(self, x: Any = None) -> _internal.Model:
        """The native model, made where it is not there, and made anew where a module's weights have changed."""
        if self._kind == "torch":
            return self._open_torch(x)
        if self._native is None:
            self._native = self._make()
        return self._native

    def _make(self) -> _internal.Model:
        source = self._source
        if self._kind == "function":
            return _internal.Model.from_functions(self._input_shape or (), source, self._gradients)
        if self._kind == "trees":
            from ._convert import converted

            columns = self._input_shape[0] if self._input_shape else None
            frame = None if self._example is None else self._example.frame
            if columns is None and frame is None and self._example is not None:
                columns = self._example.array.shape[1]
            content = converted(source, columns, frame)
            try:
                native = _internal.Model.from_bytes(content, self._options("rten"))
                native.shape()
                return native
            except ModelError:
                # Operators that only ONNX Runtime has.
                if self._engine["kind"] is not None:
                    raise
                return _internal.Model.from_bytes(content, self._options("ort"))
        if isinstance(source, (str, os.PathLike)):
            return _internal.Model.from_file(os.fspath(source), self._options("rten"))
        content = source.SerializeToString() if hasattr(source, "SerializeToString") else bytes(source)
        return _internal.Model.from_bytes(content, self._options("rten"))

    def _open_torch(self, x: Any) -> _internal.Model:
        from . import _torch

        example = self._example if self._example is not None else (None if x is None else given(x))
        if example is None:
            if self._native is None:
                raise ModelError(
                    "the shape of the module's input is not known\nhint: give example=, a batch of inputs such as x[:1]"
                )
            return self._native
        if self._example is None:
            self._example = Given(example.array[:1], example.columns)
        key = _torch.weights_key(self._source)
        if self._native is None or key != self._key:
            made = _torch.native(self._source, self._example.array[:1], self._options("rten"))
            self._native, self._notices, self._key = made[0], made[1], key
        return self._native


def _kind(source: Any) -> str:
    name = type(source).__module__.split(".")[0]
    if isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)) or hasattr(source, "SerializeToString"):
        return "onnx"
    if hasattr(source, "state_dict") and hasattr(source, "named_modules"):
        return "torch"
    if name in ("sklearn", "xgboost", "lightgbm"):
        return "trees"
    if callable(source):
        return "function"
    raise ModelError(
        f"a {type(source).__name__} is no model\nhint: give a path or the bytes of an ONNX file, a torch module, a model of "
        "scikit-learn, or a function from a batch to scores"
    )


def model(source: Any, x: Any = None) -> Model:
    """The model itself, or one made of what was given."""
    if isinstance(source, Model):
        return source
    example = None if x is None else given(x)
    shape = None
    if _kind(source) == "function" and example is not None:
        shape = tuple(example.array.shape[1:])
        return Model(source, input_shape=shape)
    return Model(source, example=example if _kind(source) in ("torch", "trees") else None)
