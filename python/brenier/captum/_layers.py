"""Captum's methods that look at a layer."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import _internal
from .._torch import eval_mode, exported, like, weights_key
from ..exceptions import MethodError, ModelError, ShapeError
from ._asked import Inputs, as_tuple
from ._gradients import Attribution, integrated

_LAYER = "brenier_layer"


class _WithLayer(torch.nn.Module):
    """A module that returns the output of one of its layers, too."""

    def __init__(self, module: Any, layer: Any) -> None:
        super().__init__()
        self.module, self.layer = module, layer

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        kept: list[Tensor] = []
        handle = self.layer.register_forward_hook(lambda _m, _i, out: kept.append(out))
        try:
            scores = self.module(x)
        finally:
            handle.remove()
        if len(kept) != 1:
            raise ModelError(f"the layer ran {len(kept)} times\nhint: choose a layer that runs once")
        # A value of its own in the graph, which the scores are computed from.
        return scores, kept[0]


class LayerGradCam(Attribution):
    """Grad-CAM at a layer, of the layer's size; without a ReLU unless it is asked for."""

    def __init__(self, forward_func: Any, layer: Any, device_ids: Any = None) -> None:
        super().__init__(forward_func)
        self.layer, self.device_ids = layer, device_ids
        self._kept: tuple[str, _internal.Model] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": None}

    def attribute(
        self, inputs: Inputs, target: Any = None, additional_forward_args: Any = None,
        attribute_to_layer_input: bool = False, relu_attributions: bool = False, attr_dim_summation: bool = True,
        grad_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if attribute_to_layer_input or grad_kwargs is not None or additional_forward_args is not None:
            raise MethodError(
                "attribute_to_layer_input, grad_kwargs and additional_forward_args are not there\nhint: name the layer before, "
                "or use captum for this call"
            )
        asked = self._ask(inputs, None)
        if not asked.single:
            raise MethodError("Grad-CAM takes one tensor of images\nhint: give a tensor [N, C, H, W]")
        activations, gradients = self._native(asked).layer(asked.rows, asked.targets(target), _LAYER)
        weights = gradients.mean(axis=(2, 3), keepdims=True)
        found = weights * activations
        if attr_dim_summation:
            found = found.sum(axis=1, keepdims=True)
        if relu_attributions:
            found = np.maximum(found, 0)
        return torch.as_tensor(found, dtype=asked.inputs[0].dtype, device=asked.inputs[0].device)

    def _native(self, asked: Any) -> _internal.Model:
        key = weights_key(self.forward_func) + str(asked.shapes)
        if self._kept is None or self._kept[0] != key:
            both = _WithLayer(self.forward_func, self.layer)
            with eval_mode(self.forward_func):
                content = exported(both, like(self.forward_func, asked.example), ["scores", _LAYER])
            options = json.dumps({"keep_final_activation": True, "output": "scores"})
            self._kept = (key, _internal.Model.from_bytes(content, options))
        return self._kept[1]


class _FromLayer(torch.nn.Module):
    """The rest of a module after a layer, whose output is given."""

    def __init__(self, module: Any, layer: Any) -> None:
        super().__init__()
        self.module, self.layer = module, layer

    def forward(self, at: Tensor, *inputs: Any) -> Tensor:
        handle = self.layer.register_forward_hook(lambda _m, _i, _out: at)
        try:
            out: Tensor = self.module(*inputs)
        finally:
            handle.remove()
        return out


class LayerIntegratedGradients(Attribution):
    """Integrated Gradients at the output of a layer, such as an embedding."""

    def __init__(self, forward_func: Any, layer: Any, device_ids: Any = None, multiply_by_inputs: bool = True) -> None:
        super().__init__(_FromLayer(forward_func, layer))
        self.forward_func, self.layer, self.device_ids = forward_func, layer, device_ids
        self._multiply_by_inputs = multiply_by_inputs
        if not isinstance(forward_func, torch.nn.Module) or not isinstance(layer, torch.nn.Module):
            raise MethodError("a layer is looked for in a torch.nn.Module\nhint: give the module and one of its layers")

    def has_convergence_delta(self) -> bool:
        return True

    @property
    def multiplies_by_inputs(self) -> bool:
        return self._multiply_by_inputs

    def attribute(
        self, inputs: Inputs, baselines: Any = None, target: Any = None, additional_forward_args: Any = None,
        n_steps: int = 50, method: str = "gausslegendre", internal_batch_size: int | None = None,
        return_convergence_delta: bool = False, attribute_to_layer_input: bool = False,
        grad_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if attribute_to_layer_input or grad_kwargs is not None:
            raise MethodError(
                "attribute_to_layer_input and grad_kwargs are not there\nhint: name the layer before, or use captum for this call"
            )
        given = as_tuple(inputs)
        extra = additional_forward_args
        rest = () if extra is None else (extra if isinstance(extra, tuple) else (extra,))
        starts = baselines if isinstance(baselines, tuple) else (baselines,) * len(given)
        before = tuple(
            b if isinstance(b, Tensor) else torch.full_like(t, 0 if b is None else b)
            for b, t in zip(starts, given, strict=True)
        )
        at, start = self._at(given, rest), self._at(before, rest)
        asked = self._ask(at, (*given, *rest))
        if start.shape[0] not in (1, at.shape[0]) or start.shape[1:] != at.shape[1:]:
            raise ShapeError(
                f"the layer gives {tuple(start.shape)} at the baseline and {tuple(at.shape)} at the input\nhint: give a baseline "
                "of the input's shape"
            )
        rows = asked.flat([start.expand(at.shape[0], *at.shape[1:])])
        return integrated(
            asked, rows, asked.targets(target), n_steps, method, self._multiply_by_inputs, return_convergence_delta
        )

    def _at(self, inputs: tuple[Tensor, ...], rest: tuple[Any, ...]) -> Tensor:
        """The layer's output."""
        kept: list[Any] = []
        handle = self.layer.register_forward_hook(lambda _m, _i, out: kept.append(out))
        try:
            with eval_mode(self.forward_func, warn=False), torch.no_grad():
                self.forward_func(*inputs, *rest)
        finally:
            handle.remove()
        if len(kept) != 1 or not isinstance(kept[0], Tensor):
            raise ModelError("the layer does not give one tensor in one run\nhint: choose another layer")
        found: Tensor = kept[0].detach()
        return found
