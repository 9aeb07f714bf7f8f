"""Torch modules, and Captum's classes under their own names. Skipped where torch is not installed."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import brenier
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; it is too heavy for every run")

from brenier import captum as ours  # noqa: E402
from torch import nn  # noqa: E402


def net(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(4 * 36, 3))


def images(count: int = 2) -> Any:
    return torch.rand(count, 1, 8, 8, generator=torch.Generator().manual_seed(1))


def test_a_module_is_explained_in_eval_mode_and_keeps_its_mode() -> None:
    module, x = net(), images()
    module[2].eval()
    with pytest.warns(UserWarning, match="training mode"):
        found = brenier.explain(module, x, "gradient", target=1)
    assert module.training and not module[2].training
    module.eval()
    x.requires_grad_()
    (expected,) = torch.autograd.grad(module(x)[:, 1].sum(), x)
    np.testing.assert_allclose(found.values, expected.numpy(), atol=1e-5)


def test_new_weights_of_the_same_module_are_followed() -> None:
    module, x = net().eval(), images()
    model = brenier.Model(module, example=x)
    before = brenier.explain(model, x, "gradient", target=0).values
    first = model._native
    brenier.explain(model, x, "gradient", target=0)
    assert model._native is first
    module[4].weight.data.mul_(2.0)
    np.testing.assert_allclose(brenier.explain(model, x, "gradient", target=0).values, 2 * before, atol=1e-6)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(brenier.explain(again, x, "gradient", target=0).values, 2 * before, atol=1e-6)


class Unexportable(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Any) -> Any:
        return self.drop(torch.special.bessel_j0(x)).sum(dim=1, keepdim=True)


def test_what_cannot_be_exported_is_asked_itself_and_says_so() -> None:
    x = torch.rand(2, 4, dtype=torch.float64)
    module = Unexportable()
    with pytest.warns(UserWarning, match="training mode"):
        model = brenier.Model(module, example=x)
        found = brenier.explain(model, x, "gradient")
    assert module.drop.training
    np.testing.assert_allclose(found.values, -torch.special.bessel_j1(x).numpy(), atol=1e-5)
    assert "torch itself" in model.notices[0]


def test_signatures_are_captums() -> None:
    theirs = pytest.importorskip("captum.attr", reason="captum is not installed")
    for name in ours.__all__:
        for part in ("__init__", "attribute"):
            expected = inspect.signature(getattr(getattr(theirs, name), part)).parameters.values()
            found = inspect.signature(getattr(getattr(ours, name), part)).parameters.values()
            assert [(p.name, p.default, p.kind) for p in found] == [(p.name, p.default, p.kind) for p in expected], (name, part)


def test_tuples_in_give_tuples_out_and_other_arguments_are_held_fixed() -> None:
    class Two(nn.Module):
        def forward(self, a: Any, b: Any, c: Any, factor: float) -> Any:
            return (a * b).sum(dim=1, keepdim=True) * factor * c.sum(dim=1, keepdim=True)

    a, b, c = torch.rand(3, 4), torch.rand(3, 4), torch.rand(3, 2)
    found, delta = ours.IntegratedGradients(Two()).attribute(
        (a, b), additional_forward_args=(c, 2.0), return_convergence_delta=True
    )
    assert isinstance(found, tuple) and found[0].dtype == torch.float32
    share = a * b * c.sum(dim=1, keepdim=True)
    torch.testing.assert_close(found[0], share, atol=1e-5, rtol=0)
    torch.testing.assert_close(found[1], share, atol=1e-5, rtol=0)
    assert delta.shape == (3,) and delta.abs().max() < 1e-4
    one = ours.IntegratedGradients(lambda x: x.sum(dim=1)).attribute(a)
    torch.testing.assert_close(one, a, atol=1e-5, rtol=0)


def test_targets_out_of_range_and_missing_ones() -> None:
    module, x = net().eval(), images()
    with pytest.raises(brenier.TargetError, match="out of range"):
        ours.Saliency(module).attribute(x, target=3)
    with pytest.raises(brenier.TargetError, match="target="):
        ours.Saliency(module).attribute(x)


def test_every_public_object_is_pickled() -> None:
    module, x = net().eval(), images()
    for name in ("Saliency", "IntegratedGradients", "GuidedBackprop", "FeatureAblation"):
        method = getattr(ours, name)(module)
        before = method.attribute(x, target=0)
        after = pickle.loads(pickle.dumps(method)).attribute(x, target=0)
        torch.testing.assert_close(after, before, atol=0, rtol=0)


def test_the_trapezoid_is_right() -> None:
    x = torch.tensor([[2.0, 3.0]])
    found = ours.IntegratedGradients(lambda v: (v**2).sum(dim=1)).attribute(x, method="riemann_trapezoid", n_steps=5)
    torch.testing.assert_close(found, x**2, atol=1e-6, rtol=0)


def test_quantus_gets_exactly_an_array_and_new_weights() -> None:
    from brenier.quantus import explain_func

    module, x = net().eval(), images().numpy()
    first = explain_func(module, x, np.array([0, 1]), method="gradient", device="cpu")
    assert type(first) is np.ndarray and first.shape == x.shape
    module[4].weight.data.mul_(3.0)
    np.testing.assert_allclose(explain_func(module, x, np.array([0, 1]), method="gradient"), 3 * first, atol=1e-6)
