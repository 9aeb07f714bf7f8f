"""Compares ``brenier.captum`` with Captum itself on five models, and prints the table of ``docs/python.md``.

    pip install . torch captum onnx onnxscript scikit-learn
    python python/parity/captum_live.py

A number is the largest difference of any attribution, relative to the largest attribution of Captum's. Methods that draw are
given the same seeds. KernelShap and Lime draw differently from Captum's, so they are compared where draws do not matter: on a
linear model.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import brenier.captum as ours
import captum
import captum.attr as theirs
import numpy as np
import torch
from torch import nn

LIMIT = 1e-4


class Cnn(nn.Module):
    def __init__(self, pool: Any = nn.MaxPool2d) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 8, 3)
        self.relu1, self.relu2, self.pool = nn.ReLU(), nn.ReLU(), pool(2)
        self.last = nn.Linear(8 * 9, 4)

    def forward(self, x: Any) -> Any:
        return self.last(torch.flatten(self.pool(self.relu2(self.second(self.relu1(self.first(x))))), 1))


class Vit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, stride=4)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.last = nn.Linear(16, 4)

    def forward(self, x: Any) -> Any:
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        return self.last(self.encoder(tokens).mean(dim=1))


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.last = nn.Linear(5, 8), nn.Linear(3, 8), nn.Linear(8, 4)

    def forward(self, a: Any, b: Any, scale: Any = None) -> Any:
        found = self.last(torch.tanh(self.a(a) * self.b(b)))
        return found if scale is None else found * scale


class Text(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.last = nn.Embedding(20, 6), nn.Linear(6, 4)

    def forward(self, ids: Any) -> Any:
        return self.last(torch.tanh(self.embedding(ids)).mean(dim=1))


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.relu, self.two = nn.Linear(7, 12), nn.ReLU(), nn.Linear(12, 4)

    def forward(self, x: Any) -> Any:
        return self.two(self.relu(self.one(x)))


def cases() -> dict[str, tuple[Any, Any, Any, dict[str, Any]]]:
    torch.manual_seed(0)
    made = {
        "CNN": (Cnn(), torch.rand(2, 3, 8, 8), torch.rand(2, 3, 8, 8), {}),
        "ViT": (Vit(), torch.rand(2, 3, 8, 8), torch.rand(2, 3, 8, 8), {}),
        "two inputs": (
            Two(), (torch.rand(2, 5), torch.rand(2, 3)), (torch.rand(2, 5), torch.rand(2, 3)),
            {"additional_forward_args": (torch.rand(2, 1),)},
        ),
        "text": (Text(), torch.randint(20, (2, 9)), torch.zeros(2, 9, dtype=torch.long), {}),
        "MLP": (Mlp(), torch.rand(3, 7), torch.rand(3, 7), {}),
    }
    return {name: (model.eval(), *rest) for name, (model, *rest) in made.items()}


def pair(call: Callable[[Any], Any]) -> float:
    """The largest relative difference between what both packages return."""
    found = []
    for package in (ours, theirs):
        torch.manual_seed(5)
        np.random.seed(5)
        out = call(package)
        found.append([t.detach().double() for t in (out if isinstance(out, tuple) else (out,))])
    scale = max(float(t.abs().max()) for t in found[1])
    assert [t.shape for t in found[0]] == [t.shape for t in found[1]], [[t.shape for t in side] for side in found]
    return max(float((a - b).abs().max()) for a, b in zip(*found, strict=True)) / scale


def calls(model: Any, x: Any, start: Any, extra: dict[str, Any], name: str) -> dict[str, Callable[[Any], Any] | None]:
    target = [1, 2, 3][: (x[0] if isinstance(x, tuple) else x).shape[0]]
    image = name in ("CNN", "ViT")
    whole = {"target": target, **extra}
    gradient, text = name != "text", name == "text"
    window = (3, 2, 2) if image else (2,)
    linear = nn.Linear(5, 4).eval()
    deep = Cnn(nn.AvgPool2d).eval() if name == "CNN" else model
    row = torch.rand(2, 5)
    found: dict[str, Callable[[Any], Any] | None] = {
        "Saliency": (lambda p: p.Saliency(model).attribute(x, **whole)) if gradient else None,
        "InputXGradient": (lambda p: p.InputXGradient(model).attribute(x, **whole)) if gradient else None,
        "IntegratedGradients": (lambda p: p.IntegratedGradients(model).attribute(x, start, **whole)) if gradient else None,
        "IntegratedGradients, riemann_left": (
            (lambda p: p.IntegratedGradients(model, False).attribute(x, start, method="riemann_left", n_steps=20, **whole))
            if gradient else None
        ),
        "GradientShap": (
            (lambda p: p.GradientShap(model).attribute(x, start, n_samples=7, stdevs=0.1, **whole)) if gradient else None
        ),
        "NoiseTunnel": (
            (lambda p: p.NoiseTunnel(p.Saliency(model)).attribute(x, nt_samples=5, stdevs=0.2, nt_samples_batch_size=2, **whole))
            if gradient else None
        ),
        "NoiseTunnel, vargrad": (
            (lambda p: p.NoiseTunnel(p.IntegratedGradients(model)).attribute(
                x, nt_type="vargrad", nt_samples=4, stdevs=0.2, baselines=start, **whole))
            if gradient else None
        ),
        # With a max-pool, Captum's DeepLift does not sum to the score's change; ours does. Here with mean-pools.
        "DeepLift": (lambda p: p.DeepLift(deep).attribute(x, start, **whole)) if name in ("CNN", "MLP") else None,
        "LRP": (lambda p: p.LRP(model).attribute(x, target=target)) if name in ("CNN", "MLP") else None,
        "GuidedBackprop": (lambda p: p.GuidedBackprop(model).attribute(x, target)) if name in ("CNN", "MLP") else None,
        "Deconvolution": (lambda p: p.Deconvolution(model).attribute(x, target)) if name in ("CNN", "MLP") else None,
        "LayerGradCam": (lambda p: p.LayerGradCam(model, model.second).attribute(x, target)) if name == "CNN" else None,
        "LayerIntegratedGradients": (
            (lambda p: p.LayerIntegratedGradients(model, model.embedding if text else model.one).attribute(x, start, target=target))
            if name in ("text", "MLP") else None
        ),
        "FeatureAblation": lambda p: p.FeatureAblation(model).attribute(x, start, **whole),
        "ShapleyValueSampling": lambda p: p.ShapleyValueSampling(model).attribute(x, start, n_samples=3, **whole),
        "Occlusion": (
            (lambda p: p.Occlusion(model).attribute(x, window, strides=window, baselines=start, target=target))
            if not isinstance(x, tuple) and gradient else None
        ),
        "KernelShap, linear model": (
            (lambda p: p.KernelShap(linear).attribute(row, target=1, n_samples=60)) if name == "MLP" else None
        ),
    }
    return found


def main() -> int:
    warnings.simplefilter("ignore")
    made = cases()
    table: dict[str, dict[str, float | None]] = {}
    for column, (model, x, start, extra) in made.items():
        for name, call in calls(model, x, start, extra, column).items():
            table.setdefault(name, {})[column] = None if call is None else pair(call)
    print(f"Captum {captum.__version__}, torch {torch.__version__}\n")
    print("| class | " + " | ".join(made) + " |\n|---|" + "---|" * len(made))
    worst = 0.0
    for name, cells in table.items():
        worst = max([worst, *(cell for cell in cells.values() if cell is not None)])
        print(f"| {name} | " + " | ".join("-" if c is None else f"{c:.0e}" for c in cells.values()) + " |")
    print(f"\nlargest difference: {worst:.1e}, limit {LIMIT:.0e}")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
