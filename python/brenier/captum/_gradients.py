"""Captum's methods with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._settings import RULES
from ..exceptions import MethodError, SettingError
from ._asked import Asked, Inputs, Opened

_RULES = {
    "gausslegendre": "gauss-legendre", "riemann_left": "left", "riemann_right": "right", "riemann_middle": "midpoint",
    "riemann_trapezoid": "trapezoid",
}


class Attribution:
    """What all classes here have."""

    def __init__(self, forward_func: Any) -> None:
        self.forward_func = forward_func
        self._opened = Opened(forward_func)

    def _ask(self, inputs: Inputs, extra: Any) -> Asked:
        return Asked(self._opened, inputs, extra)

    def has_convergence_delta(self) -> bool:
        """Whether ``return_convergence_delta`` can be asked for."""
        return False

    @property
    def multiplies_by_inputs(self) -> bool:
        """Whether attributions are shares of the score, not derivatives."""
        return False

    @classmethod
    def get_name(cls) -> str:
        """The name in words, as Captum has it."""
        return "".join(f" {c}" if c.isupper() and i else c for i, c in enumerate(cls.__name__))

    def attribute(self, inputs: Inputs, *args: Any, **kwargs: Any) -> Any:
        """Attributions of the inputs' features."""
        raise NotImplementedError


class Saliency(Attribution):
    """The gradient, or its absolute value."""

    def attribute(
        self, inputs: Inputs, target: Any = None, abs: bool = True, additional_forward_args: Any = None
    ) -> Any:
        asked = self._ask(inputs, additional_forward_args)
        found = asked.explain({"method": "gradient"}, asked.targets(target))
        return asked.split(np.abs(found) if abs else found)


class InputXGradient(Attribution):
    """Input times gradient."""

    @property
    def multiplies_by_inputs(self) -> bool:
        return True

    def attribute(self, inputs: Inputs, target: Any = None, additional_forward_args: Any = None) -> Any:
        asked = self._ask(inputs, additional_forward_args)
        return asked.split(asked.explain({"method": "gradient-input"}, asked.targets(target)))


class IntegratedGradients(Attribution):
    """Integrated Gradients. Unlike Captum's, the weights of ``riemann_trapezoid`` sum to 1."""

    def __init__(self, forward_func: Any, multiply_by_inputs: bool = True) -> None:
        super().__init__(forward_func)
        self._multiply_by_inputs = multiply_by_inputs

    def has_convergence_delta(self) -> bool:
        return True

    @property
    def multiplies_by_inputs(self) -> bool:
        return self._multiply_by_inputs

    def attribute(
        self, inputs: Inputs, baselines: Any = None, target: Any = None, additional_forward_args: Any = None,
        n_steps: int = 50, method: str = "gausslegendre", internal_batch_size: int | None = None,
        return_convergence_delta: bool = False,
    ) -> Any:
        asked = self._ask(inputs, additional_forward_args)
        return integrated(
            asked, asked.baselines(baselines), asked.targets(target), n_steps, method, self._multiply_by_inputs,
            return_convergence_delta,
        )


def integrated(
    asked: Asked, baselines: Any, targets: list[int], n_steps: int, method: str, multiply: bool, delta: bool
) -> Any:
    """Integrated Gradients from rows of baselines."""
    if method not in _RULES:
        raise SettingError(f"there is no method {method!r}\nhint: choose one of {', '.join(_RULES)}")
    name = _RULES[method]
    assert name in RULES
    # As many gradients as Captum takes: the trapezoid has a node more than steps.
    size = max(n_steps - 1, 1) if name == "trapezoid" else n_steps
    rule = {"rule": name, "nodes" if name == "gauss-legendre" else "steps": size}
    ig = {
        "method": "ig", "baseline": {"baseline": "given"}, "allocation": {"allocation": "path-integral", "rule": rule},
    }
    if multiply:
        credit = asked.explain(ig, targets, baselines)
    else:
        credit = _mean_gradient(asked, baselines, targets, name, size)
    found = asked.split(credit)
    if not delta:
        return found
    return found, asked.delta(credit, baselines, targets)


def _mean_gradient(asked: Asked, baselines: Any, targets: list[int], name: str, size: int) -> Any:
    """The gradient averaged along the line."""
    if name == "gauss-legendre":
        nodes, weights = np.polynomial.legendre.leggauss(size)
        nodes, weights = (nodes + 1) / 2, weights / 2
    else:
        steps = np.arange(size)
        nodes = {
            "left": steps / size, "right": (steps + 1) / size, "midpoint": (steps + 0.5) / size,
            "trapezoid": np.arange(size + 1) / size,
        }[name]
        weights = np.full(len(nodes), 1 / size)
        if name == "trapezoid":
            weights[[0, -1]] /= 2
    total = np.zeros((asked.count, asked.explained))
    for node, weight in zip(nodes, weights, strict=True):
        rows = np.ascontiguousarray(baselines + node * (asked.rows - baselines))
        total += weight * asked.native.gradients(rows, targets)[1].reshape(len(rows), -1)[:, : asked.explained]
    return total


class GuidedBackprop(Attribution):
    """Guided Backpropagation, on the graph: reused and functional ReLUs are right, too."""

    _method = "guided-backprop"

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.model = model

    def attribute(self, inputs: Inputs, target: Any = None, additional_forward_args: Any = None) -> Any:
        asked = self._ask(inputs, additional_forward_args)
        return asked.split(asked.explain({"method": self._method}, asked.targets(target)))


class Deconvolution(GuidedBackprop):
    """The deconvolutional network."""

    _method = "deconvnet"


class DeepLift(Attribution):
    """DeepLIFT, with the rescale rule."""

    def __init__(self, model: Any, multiply_by_inputs: bool = True, eps: float = 1e-10) -> None:
        super().__init__(model)
        if not multiply_by_inputs:
            raise MethodError("DeepLift without multiplication by the inputs is not there\nhint: use captum's for multipliers")
        self.model, self.eps = model, eps

    def has_convergence_delta(self) -> bool:
        return True

    @property
    def multiplies_by_inputs(self) -> bool:
        return True

    def attribute(
        self, inputs: Inputs, baselines: Any = None, target: Any = None, additional_forward_args: Any = None,
        return_convergence_delta: bool = False, custom_attribution_func: Any = None,
    ) -> Any:
        if custom_attribution_func is not None:
            raise MethodError("custom_attribution_func is not there\nhint: leave it out, or use captum for this call")
        asked = self._ask(inputs, additional_forward_args)
        rows, targets = asked.baselines(baselines), asked.targets(target)
        credit = asked.explain({"method": "deeplift", "baseline": {"baseline": "given"}}, targets, rows)
        found = asked.split(credit)
        return (found, asked.delta(credit, rows, targets)) if return_convergence_delta else found


class LRP(Attribution):
    """Layer-wise Relevance Propagation with the epsilon rule for all layers, Captum's default."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.model = model

    def has_convergence_delta(self) -> bool:
        return True

    @property
    def multiplies_by_inputs(self) -> bool:
        return True

    def attribute(
        self, inputs: Inputs, target: Any = None, additional_forward_args: Any = None,
        return_convergence_delta: bool = False, verbose: bool = False,
    ) -> Any:
        rules = [name for name, part in self.model.named_modules() if getattr(part, "rule", None) is not None]
        if rules:
            raise MethodError(
                f"layers have rules of their own: {', '.join(rules)}\nhint: use brenier.explain(..., method='lrp', lrp_rule=...)"
            )
        asked = self._ask(inputs, additional_forward_args)
        targets = asked.targets(target)
        credit = asked.explain({"method": "lrp", "rule": {"rule": "epsilon", "epsilon": 1e-9}}, targets)
        found = asked.split(credit)
        if not return_convergence_delta:
            return found
        missed = asked.values(asked.rows, targets) - credit.sum(axis=1)
        return found, torch.as_tensor(missed, dtype=torch.float32, device=asked.inputs[0].device)


class GradientShap(Attribution):
    """GradientSHAP. Draws are Captum's: the same seeds of NumPy and torch give the same attributions."""

    def __init__(self, forward_func: Any, multiply_by_inputs: bool = True) -> None:
        super().__init__(forward_func)
        self._multiply_by_inputs = multiply_by_inputs

    def has_convergence_delta(self) -> bool:
        return True

    @property
    def multiplies_by_inputs(self) -> bool:
        return self._multiply_by_inputs

    def attribute(
        self, inputs: Inputs, baselines: Any, n_samples: int = 5, stdevs: Any = 0.0, target: Any = None,
        additional_forward_args: Any = None, return_convergence_delta: bool = False,
    ) -> Any:
        asked = self._ask(inputs, additional_forward_args)
        drawn = baselines() if callable(baselines) else baselines
        rows = [b if isinstance(b, Tensor) else torch.as_tensor(b) for b in (drawn if isinstance(drawn, tuple) else (drawn,))]
        count = asked.count * n_samples
        starts = [row[np.random.choice(row.shape[0], count).tolist()] for row in rows]
        sizes = stdevs if isinstance(stdevs, tuple) else (float(stdevs),) * len(asked.inputs)
        ends = [noisy(tensor, size, n_samples) for tensor, size in zip(asked.inputs, sizes, strict=True)]
        fixed = [tensor.repeat_interleave(n_samples, dim=0) for tensor in asked.fixed]
        times = np.random.uniform(0.0, 1.0, count)[:, None]
        start, end = asked.flat(starts, fixed), asked.flat(ends, fixed)
        targets = [t for t in asked.targets(target) for _ in range(n_samples)]
        at = np.ascontiguousarray(times * end + (1 - times) * start)
        gradient = asked.native.gradients(at, targets)[1].reshape(count, -1)
        credit = (gradient * (end - start) if self._multiply_by_inputs else gradient)[:, : asked.explained]
        found = asked.split(credit.reshape(asked.count, n_samples, -1).mean(axis=1))
        if not return_convergence_delta:
            return found
        change = asked.values(end, targets) - asked.values(start, targets)
        return found, torch.as_tensor(credit.sum(axis=1) - change, dtype=torch.float32, device=asked.inputs[0].device)


def noisy(tensor: Tensor, size: float, samples: int) -> Tensor:
    """Copies with normal noise, drawn by torch."""
    spread = torch.tensor(size, device=tensor.device).repeat((tensor.shape[0] * samples, *tensor.shape[1:]))
    return tensor.repeat_interleave(samples, dim=0) + torch.normal(0, spread)


class NoiseTunnel:
    """SmoothGrad and its relatives on any method here. Draws are Captum's: the same seed gives the same attributions."""

    def __init__(self, attribution_method: Attribution) -> None:
        self.attribution_method = attribution_method

    def has_convergence_delta(self) -> bool:
        """Whether ``return_convergence_delta`` can be asked for."""
        return self.attribution_method.has_convergence_delta()

    def attribute(
        self, inputs: Inputs, nt_type: str = "smoothgrad", nt_samples: int = 5, nt_samples_batch_size: int | None = None,
        stdevs: Any = 1.0, draw_baseline_from_distrib: bool = False, **kwargs: Any,
    ) -> Any:
        """Attributions averaged over noisy copies of the inputs."""
        if nt_type not in ("smoothgrad", "smoothgrad_sq", "vargrad"):
            raise SettingError(f"there is no nt_type {nt_type!r}\nhint: choose smoothgrad, smoothgrad_sq or vargrad")
        given = inputs if isinstance(inputs, tuple) else (inputs,)
        sizes = stdevs if isinstance(stdevs, tuple) else (float(stdevs),) * len(given)
        batch = nt_samples if nt_samples_batch_size is None else min(nt_samples, nt_samples_batch_size)
        counts = [batch] * (nt_samples // batch) + ([nt_samples % batch] if nt_samples % batch else [])
        sums: list[Any] = [0.0] * len(given)
        squares: list[Any] = [0.0] * len(given)
        deltas: list[Tensor] = []
        for i, samples in enumerate(counts):
            if i == 0 or samples != counts[0]:
                expanded = self._expanded(kwargs, given, samples, draw_baseline_from_distrib)
            copies = tuple(noisy(tensor, size, samples) for tensor, size in zip(given, sizes, strict=True))
            found = self.attribution_method.attribute(copies if isinstance(inputs, tuple) else copies[0], **expanded)
            if kwargs.get("return_convergence_delta"):
                found, delta = found
                deltas.append(delta)
            for j, part in enumerate(found if isinstance(found, tuple) else (found,)):
                folded = part.reshape(-1, samples, *part.shape[1:])
                sums[j] = sums[j] + folded.sum(dim=1)
                squares[j] = squares[j] + (folded**2).sum(dim=1)
        means = [total / nt_samples for total in sums]
        if nt_type != "smoothgrad":
            second = [total / nt_samples for total in squares]
            means = second if nt_type == "smoothgrad_sq" else [s - m * m for s, m in zip(second, means, strict=True)]
        result = tuple(means) if isinstance(inputs, tuple) else means[0]
        return (result, torch.cat(deltas)) if deltas else result

    @staticmethod
    def _expanded(kwargs: dict[str, Any], inputs: tuple[Tensor, ...], samples: int, draw: bool) -> dict[str, Any]:
        """Arguments of the method, repeated for each copy."""
        count = inputs[0].shape[0]

        def repeated(value: Any) -> Any:
            many = isinstance(value, Tensor) and value.ndim > 0 and value.shape[0] == count and count > 1
            return value.repeat_interleave(samples, dim=0) if many else value

        def drawn(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            return value[np.random.choice(value.shape[0], samples * count).tolist()] if draw else repeated(value)

        made = dict(kwargs)
        extra = kwargs.get("additional_forward_args")
        if extra is not None:
            listed = extra if isinstance(extra, tuple) else (extra,)
            made["additional_forward_args"] = tuple(
                v.repeat_interleave(samples, dim=0) if isinstance(v, Tensor) and v.ndim > 0 else v for v in listed
            )
        target = kwargs.get("target")
        if isinstance(target, list) and len(target) > 1:
            made["target"] = [t for t in target for _ in range(samples)]
        elif isinstance(target, Tensor) and target.numel() > 1:
            made["target"] = target.repeat_interleave(samples, dim=0)
        if "baselines" in kwargs:
            given = kwargs["baselines"]
            made["baselines"] = tuple(map(drawn, given)) if isinstance(given, tuple) else drawn(given)
        return made

