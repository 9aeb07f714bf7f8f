"""Captum's methods without gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from ..exceptions import MethodError, SettingError
from ._asked import Asked, Inputs
from ._gradients import Attribution

# Rows that are scored at a time.
_ROWS = 256


class _Perturbation(Attribution):
    @property
    def multiplies_by_inputs(self) -> bool:
        return True


class FeatureAblation(_Perturbation):
    """How much the score falls when a feature, or a group of a feature mask, is replaced by the baseline."""

    def attribute(
        self, inputs: Inputs, baselines: Any = None, target: Any = None, additional_forward_args: Any = None,
        feature_mask: Any = None, perturbations_per_eval: int = 1, show_progress: bool = False, **kwargs: Any,
    ) -> Any:
        if kwargs:
            raise SettingError(f"there are no arguments {', '.join(kwargs)}\nhint: leave them out")
        asked = self._ask(inputs, additional_forward_args)
        rows, targets, labels = asked.baselines(baselines), asked.targets(target), asked.labels(feature_mask)
        scores = asked.values(asked.rows, targets)
        credit = np.zeros((asked.count, asked.explained))
        groups = np.unique(labels)
        for block in _blocks(groups, asked.count):
            without = np.repeat(asked.rows[None], len(block), axis=0)
            for i, group in enumerate(block):
                hidden = np.flatnonzero(labels == group)
                without[i][:, hidden] = rows[:, hidden]
            found = asked.values(without.reshape(-1, rows.shape[1]), targets * len(block)).reshape(len(block), -1)
            for i, group in enumerate(block):
                credit[:, labels == group] = (scores - found[i])[:, None]
        return asked.split(credit)


class ShapleyValueSampling(_Perturbation):
    """Shapley values over random orders, drawn by torch as Captum draws them: the same seed gives the same values."""

    def attribute(
        self, inputs: Inputs, baselines: Any = None, target: Any = None, additional_forward_args: Any = None,
        feature_mask: Any = None, n_samples: int = 25, perturbations_per_eval: int = 1, show_progress: bool = False,
    ) -> Any:
        asked = self._ask(inputs, additional_forward_args)
        rows, targets, labels = asked.baselines(baselines), asked.targets(target), asked.labels(feature_mask)
        groups = int(labels.max()) + 1
        members = [np.flatnonzero(labels == group) for group in range(groups)]
        empty = asked.values(rows, targets)
        credit = np.zeros((asked.count, asked.explained))
        for _ in range(n_samples):
            order = torch.randperm(groups).tolist()
            current, before = rows.copy(), empty
            for block in _blocks(np.array(order), asked.count):
                states = np.empty((len(block), *rows.shape))
                for i, group in enumerate(block):
                    current[:, members[group]] = asked.rows[:, members[group]]
                    states[i] = current
                found = asked.values(states.reshape(-1, rows.shape[1]), targets * len(block)).reshape(len(block), -1)
                for i, group in enumerate(block):
                    credit[:, members[group]] += (found[i] - before)[:, None]
                    before = found[i]
        return asked.split(credit / n_samples)


def _blocks(groups: Any, count: int) -> Iterator[Any]:
    size = max(_ROWS // count, 1)
    return (groups[i : i + size] for i in range(0, len(groups), size))


class Occlusion(_Perturbation):
    """How much the score falls when a window is replaced by the baseline, averaged over the windows of each feature."""

    def attribute(
        self, inputs: Inputs, sliding_window_shapes: Any, strides: Any = None, baselines: Any = None, target: Any = None,
        additional_forward_args: Any = None, perturbations_per_eval: int = 1, show_progress: bool = False,
    ) -> Any:
        asked = self._ask(inputs, additional_forward_args)
        if not asked.single:
            raise MethodError(
                "windows over several tensors are not there\nhint: explain one tensor, or use FeatureAblation with a feature mask"
            )
        window = sliding_window_shapes[0] if isinstance(sliding_window_shapes[0], tuple) else sliding_window_shapes
        step: Any = strides[0] if isinstance(strides, tuple) and isinstance(strides[0], tuple) else strides
        if step is None:
            step = 1
        steps = [int(step)] * len(window) if isinstance(step, int) else [int(s) for s in step]
        method = {
            "method": "occlusion", "window": [int(n) for n in window], "stride": steps,
            "absence": {"absence": "baseline", "baseline": "given"},
        }
        return asked.split(asked.explain(method, asked.targets(target), asked.baselines(baselines)))


class _Surrogate(_Perturbation):
    """Methods that fit a linear model; the library's own, with its own draws."""

    def _fitted(
        self, inputs: Inputs, baselines: Any, target: Any, extra: Any, mask: Any, method: dict[str, Any], shaped: bool
    ) -> Any:
        asked: Asked = self._ask(inputs, extra)
        labels = asked.labels(mask)
        # What is held fixed equals its baseline: it makes no difference in which group it is.
        everything = np.concatenate([labels, np.arange(asked.rows.shape[1] - asked.explained) + labels.max() + 1])
        whole = {
            **method, "groups": {"kind": "given", "labels": [int(label) for label in everything]},
            "absence": {"absence": "baseline", "baseline": "given"}, "seed": int(torch.randint(2**31, (1,)).item()),
        }
        credit = asked.explain(whole, asked.targets(target), asked.baselines(baselines))
        # The library shares a group's credit among its features; Captum gives each of them all of it.
        places, sizes = np.unique(labels, return_inverse=True, return_counts=True)[1:]
        credit = credit * sizes[places]
        if shaped:
            return asked.split(credit)
        firsts = [int(np.flatnonzero(labels == group)[0]) for group in range(int(labels.max()) + 1)]
        return torch.as_tensor(credit[:, firsts], dtype=torch.float32, device=asked.inputs[0].device)


class KernelShap(_Surrogate):
    """KernelSHAP by the library: subsets in pairs, all of them where there are few. Too few subsets for the number of
    groups are refused."""

    def attribute(
        self, inputs: Inputs, baselines: Any = None, target: Any = None, additional_forward_args: Any = None,
        feature_mask: Any = None, n_samples: int = 25, perturbations_per_eval: int = 1, return_input_shape: bool = True,
        show_progress: bool = False,
    ) -> Any:
        method = {"method": "kernel-shap", "coalitions": {"kind": "sampled", "count": int(n_samples)}}
        return self._fitted(
            inputs, baselines, target, additional_forward_args, feature_mask, method, return_input_shape
        )


class Lime(_Surrogate):
    """LIME by the library, with Captum's defaults: a lasso of 0.01, the cosine distance, a width of 1."""

    def __init__(
        self, forward_func: Any, interpretable_model: Any = None, similarity_func: Any = None, perturb_func: Any = None
    ) -> None:
        super().__init__(forward_func)
        for name, value in dict(
            interpretable_model=interpretable_model, similarity_func=similarity_func, perturb_func=perturb_func
        ).items():
            if value is not None:
                raise MethodError(f"{name} of one's own is not there\nhint: leave it out, or use captum for this call")

    def attribute(
        self, inputs: Inputs, baselines: Any = None, target: Any = None, additional_forward_args: Any = None,
        feature_mask: Any = None, n_samples: int = 25, perturbations_per_eval: int = 1, return_input_shape: bool = True,
        show_progress: bool = False,
    ) -> Any:
        method = {"method": "lime", "samples": int(n_samples)}
        return self._fitted(
            inputs, baselines, target, additional_forward_args, feature_mask, method, return_input_shape
        )
