"""A forward function with some inputs, as a native model over flat rows.

Captum's functions take several tensors; the library takes rows. So all inputs lie side by side in one row, and behind them
those tensors of ``additional_forward_args`` that have a row for each example. Those have the same value in the baseline, so
they stay where they are and get no credit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .. import _internal
from .._torch import LOG, eval_mode, exported, fallback, like, weights_key
from ..exceptions import BrenierError, ModelError, ShapeError, TargetError

Inputs = Any  # Tensor, or a tuple of tensors
Rows = NDArray[np.float64]
_PLAIN = (type(None), bool, int, float, str)


class Flat(torch.nn.Module):
    """The function over one row that holds all its tensors side by side."""

    def __init__(self, function: Any, shapes: list[tuple[int, ...]], kinds: list[torch.dtype], rest: list[Any]) -> None:
        super().__init__()
        self.function, self.shapes, self.kinds, self.rest = function, shapes, kinds, rest

    def forward(self, flat: Tensor) -> Tensor:
        found, start = [], 0
        for shape, kind in zip(self.shapes, self.kinds, strict=True):
            size = int(np.prod(shape)) if shape else 1
            part = flat[:, start : start + size].reshape(flat.shape[0], *shape)
            found.append(part if kind.is_floating_point else part.round().to(kind))
            start += size
        others = iter(found)
        arguments = [next(others) if slot is _TENSOR else slot for slot in self.rest]
        out: Tensor = self.function(*arguments)
        return out


_TENSOR = object()


def as_tuple(inputs: Inputs) -> tuple[Tensor, ...]:
    """Tensors as a tuple."""
    found = inputs if isinstance(inputs, tuple) else (inputs,)
    for one in found:
        if not isinstance(one, Tensor):
            raise ShapeError(f"inputs hold a {type(one).__name__}\nhint: give a tensor, or a tuple of tensors")
    return found


class Asked:
    """A function and the inputs of one call of ``attribute``."""

    def __init__(self, owner: Opened, inputs: Inputs, extra: Any) -> None:
        self.tuple_given = isinstance(inputs, tuple)
        self.inputs = as_tuple(inputs)
        self.count = int(self.inputs[0].shape[0])
        arguments = extra if isinstance(extra, tuple) else (() if extra is None else (extra,))
        moving = [a for a in arguments if isinstance(a, Tensor) and a.ndim > 0 and a.shape[0] == self.count]
        self.fixed = tuple(moving)
        self.rest: list[Any] = [_TENSOR] * len(self.inputs)
        self.rest += [_TENSOR if any(a is m for m in moving) else a for a in arguments]
        self.shapes = [tuple(t.shape[1:]) for t in (*self.inputs, *self.fixed)]
        self.kinds = [t.dtype for t in (*self.inputs, *self.fixed)]
        self.sizes = [int(np.prod(shape)) if shape else 1 for shape in self.shapes]
        self.explained = sum(self.sizes[: len(self.inputs)])
        self.single = len(self.rest) == 1 and self.kinds[0].is_floating_point and len(self.shapes[0]) > 0
        self.rows = self.flat(self.inputs)
        self.function = owner.function
        self.native = owner.open(self)

    @property
    def example(self) -> Rows:
        """One row in the shape that the model takes."""
        return self.rows[:1].reshape(1, *self.shapes[0]) if self.single else self.rows[:1]

    @property
    def key(self) -> tuple[Any, ...] | None:
        """What an export depends on besides the weights; None where it cannot be said."""
        constants: list[Any] = []
        for slot in self.rest:
            if slot is _TENSOR:
                constants.append("tensor")
            elif isinstance(slot, Tensor) and slot.numel() < 10_000:
                constants.append((str(slot.dtype), tuple(slot.shape), tuple(slot.reshape(-1).tolist())))
            elif isinstance(slot, _PLAIN):
                constants.append(repr(slot))
            else:
                return None
        return (self.single, tuple(self.shapes), tuple(map(str, self.kinds)), tuple(constants))

    def flat(self, tensors: Sequence[Tensor], fixed: Sequence[Tensor] | None = None) -> Rows:
        """Tensors as rows, side by side, with what is held fixed behind them."""
        behind = self.fixed if fixed is None else fixed
        rows = max(int(t.shape[0]) for t in tensors)
        parts = [t.detach().to("cpu", torch.float64).reshape(t.shape[0], -1).numpy() for t in (*tensors, *behind)]
        parts = [np.broadcast_to(part, (rows, part.shape[1])) if part.shape[0] == 1 else part for part in parts]
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def split(self, rows: Any, shaped: bool = True) -> Any:
        """Flat numbers as tensors like the inputs; a tuple if a tuple was given."""
        found, start = [], 0
        for tensor, size, shape in zip(self.inputs, self.sizes, self.shapes, strict=False):
            kind = tensor.dtype if tensor.dtype.is_floating_point else torch.float32
            part = torch.as_tensor(np.ascontiguousarray(rows[:, start : start + size]), dtype=kind, device=tensor.device)
            found.append(part.reshape(len(rows), *shape) if shaped else part)
            start += size
        return tuple(found) if self.tuple_given else found[0]

    def baselines(self, given: Any) -> Rows:
        """Baselines as rows: none is zero, a number is that number everywhere."""
        listed = given if isinstance(given, tuple) else (given,) * (len(self.inputs) if given is None else 1)
        if len(listed) != len(self.inputs):
            raise ShapeError(f"{len(listed)} baselines are given for {len(self.inputs)} inputs\nhint: give one for each")
        made = []
        for baseline, tensor in zip(listed, self.inputs, strict=True):
            if baseline is None:
                baseline = 0
            if not isinstance(baseline, Tensor):
                baseline = torch.full_like(tensor, baseline)
            if tuple(baseline.shape[1:]) != tuple(tensor.shape[1:]) or baseline.shape[0] not in (1, tensor.shape[0]):
                raise ShapeError(
                    f"a baseline has shape {tuple(baseline.shape)}, its input {tuple(tensor.shape)}\nhint: give a number, one "
                    "row, or one for each"
                )
            made.append(baseline.expand(tensor.shape[0], *baseline.shape[1:]))
        return self.flat(made)

    def labels(self, mask: Any) -> NDArray[np.int64]:
        """A feature mask as a group number for every feature of a row; every feature by itself where there is none."""
        if mask is None:
            return np.arange(self.explained)
        listed = mask if isinstance(mask, tuple) else (mask,)
        parts = []
        for one, tensor in zip(listed, self.inputs, strict=True):
            if one.ndim == tensor.ndim and one.shape[0] not in (1,):
                raise ShapeError("the feature mask differs between examples\nhint: give one mask for all, of a first axis of 1")
            whole = one if one.ndim == tensor.ndim else one[None]
            parts.append(whole.expand(1, *tensor.shape[1:]).reshape(-1).cpu().numpy())
        return np.concatenate(parts).astype(np.int64)

    def targets(self, target: Any) -> list[int]:
        """Captum's targets as numbers of outputs, one for each example."""
        shape = self.output_shape
        outputs = int(np.prod(shape)) if shape else 1
        if target is None:
            if outputs != 1:
                raise TargetError(f"the function returns {outputs} scores for each example\nhint: give target=")
            return [0] * self.count
        listed = target.reshape(-1).tolist() if isinstance(target, Tensor) else target
        if isinstance(listed, (int, tuple)):
            listed = [listed] * self.count
        if len(listed) == 1:
            listed = list(listed) * self.count
        if len(listed) != self.count:
            raise TargetError(f"{len(listed)} targets are given for {self.count} examples\nhint: give one, or one for each")
        found = []
        for one in listed:
            index = one if isinstance(one, tuple) else (one,)
            try:
                found.append(int(np.ravel_multi_index([int(i) % n if i < 0 else int(i) for i, n in zip(index, shape, strict=True)], shape)))
            except ValueError as error:
                raise TargetError(f"target {one} is out of range: outputs have shape {shape}\nhint: count from 0") from error
        return found

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of the scores of one example."""
        flat = Flat(self.function, self.shapes, self.kinds, self.rest)
        with torch.no_grad():
            where = self.inputs[0].device
            kind = self.inputs[0].dtype if self.inputs[0].dtype.is_floating_point else torch.float32
            batch = torch.as_tensor(self.rows[:1], dtype=kind, device=where)
            if isinstance(self.function, torch.nn.Module):
                with eval_mode(self.function, warn=False):
                    out = flat(batch)
            else:
                out = flat(batch)
        if not isinstance(out, Tensor) or out.ndim == 0 or out.shape[0] != 1:
            raise ModelError("the function does not return a row of scores for each example\nhint: return a tensor [N, ...]")
        return tuple(out.shape[1:])

    def values(self, rows: Rows, targets: Sequence[int]) -> NDArray[np.float64]:
        """The score of each row's target."""
        scores = self.native.scores(rows)
        return np.asarray(scores[np.arange(len(rows)), list(targets)])

    def explain(self, method: dict[str, Any], targets: list[int], baselines: Rows | None = None) -> Rows:
        """Credit by a method of the library, for the explained features."""
        found = _internal.explain(self.native, self.rows, json.dumps(method), ("each", targets), baselines=baselines)
        return found[0][:, : self.explained]

    def delta(self, credit: Rows, baselines: Rows, targets: list[int]) -> Tensor:
        """What credit misses of the score's change, for each example: Captum's convergence delta."""
        change = self.values(self.rows, targets) - self.values(baselines, targets)
        return torch.as_tensor(credit.sum(axis=1) - change, dtype=torch.float32, device=self.inputs[0].device)


class Opened:
    """A forward function and the native models made of it, one for each kind of call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self._kept: dict[Any, tuple[str, _internal.Model]] = {}

    def open(self, asked: Asked) -> _internal.Model:
        """The native model of a call: exported where possible, and again when weights have changed."""
        weights = weights_key(self.function) if isinstance(self.function, torch.nn.Module) else ""
        key = asked.key
        if key is not None and key in self._kept and self._kept[key][0] == weights:
            return self._kept[key][1]
        made = self._make(asked)
        if key is not None:
            self._kept[key] = (weights, made)
        return made

    def _make(self, asked: Asked) -> _internal.Model:
        flat: Any = self.function if asked.single else Flat(self.function, asked.shapes, asked.kinds, asked.rest)
        shape = asked.shapes[0] if asked.single else (asked.rows.shape[1],)
        if not isinstance(self.function, torch.nn.Module) or asked.key is None:
            return fallback(flat, shape, asked.inputs[0])
        options = json.dumps({"keep_final_activation": True})
        with eval_mode(self.function):
            try:
                made = _internal.Model.from_bytes(exported(flat, like(self.function, asked.example)), options)
                made.outputs()
                return made
            except BrenierError as error:
                LOG.warning("torch itself computes scores and gradients: %s", str(error).split("\n")[0])
            except Exception as error:  # the exporter raises anything
                LOG.warning("torch itself computes scores and gradients: the export failed (%s)", type(error).__name__)
        return fallback(flat, shape, asked.inputs[0])

    def __getstate__(self) -> dict[str, Any]:
        return {"function": self.function, "_kept": {}}
