"""Exported explainers against `brenier.explain` and Captum: ten networks, five methods each. Prints the table of docs/export.md.

    pip install . onnx onnxruntime torch==2.15.0 captum==0.9.0        # the networks' weights are drawn by torch
    python bench/export/table.py [--without-torch] [--networks mlp,vgg] [--times 5]

An error is the largest difference of any credit, relative to the largest credit of the other side. The exported file is run by
ONNX Runtime on one thread. SmoothGrad is given the same noise on all sides: that of the file. Expected Gradients is the mean over the
same references and nodes. Times are processor time for one input by `ig`, the median of several rounds that take turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import brenier
import numpy as np
import onnx
import onnxruntime

TORCH = Path(__file__).resolve().parents[2] / "fixtures/torch"
NETWORKS = [
    "conv1d", "convnext", "densenet", "efficientnet", "mlp", "mobilenet_v3", "resnet", "swin", "vgg", "vit",
]
METHODS = ["gradient", "gradient-input", "ig", "expected-gradients", "smoothgrad"]
STEPS, REFERENCES, COPIES, NOISE, SEED = 20, 4, 10, 0.15, 3
# What the page promises: against `explain`, and against Captum.
LIMITS = (1e-5, 1e-4)

Array = Any
Explain = Callable[[str, Array, Array, dict[str, Any]], Array]


def settings(method: str, references: Array) -> dict[str, Any]:
    """The settings of an exported method."""
    return {
        "ig": {"steps": STEPS},
        "expected-gradients": {"steps": STEPS, "background": references},
        "smoothgrad": {"samples": COPIES, "noise": NOISE, "seed": SEED},
    }.get(method, {})


def noise_in(file: Path, shape: tuple[int, ...]) -> Array:
    """The noise that a file holds, for all copies, in units of an input's range."""
    wanted = (COPIES + 1, 1, *shape)
    found = [
        onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(file).graph.initializer if tuple(tensor.dims) == wanted
    ]
    # Weights of all copies have ones in place of the sizes of the shape, unless the input has a single feature.
    (noise,) = found
    return noise[1:, 0]


def by_parts(gradient_at: Callable[[str, Array, Array, Array | None], Array]) -> Callable[..., Array]:
    """Five methods out of three that every library has: gradient, gradient x input, ig from one reference."""

    def credit(method: str, x: Array, targets: Array, references: Array, noise: Array | None) -> Array:
        if method == "expected-gradients":
            return np.mean([gradient_at("ig", x, targets, one) for one in references], axis=0)
        if method == "smoothgrad":
            assert noise is not None
            axes = tuple(range(1, x.ndim))
            size = x.max(axis=axes, keepdims=True) - x.min(axis=axes, keepdims=True)
            return np.mean([gradient_at("gradient", x + (size * one).astype(x.dtype), targets, None) for one in noise], axis=0)
        return gradient_at(method, x, targets, None)

    return credit


def ours(model: brenier.Model) -> Callable[[str, Array, Array, Array | None], Array]:
    def at(method: str, x: Array, targets: Array, reference: Array | None) -> Array:
        more: dict[str, Any] = {}
        if method == "ig":
            more = {"rule": "gauss-legendre", "steps": STEPS, "baseline": "zero" if reference is None else reference[None]}
        return brenier.explain(model, x, method, target=targets.tolist(), **more).values

    return at


def captums(network: Any) -> Callable[[str, Array, Array, Array | None], Array]:
    import torch
    from captum.attr import InputXGradient, IntegratedGradients, Saliency

    def at(method: str, x: Array, targets: Array, reference: Array | None) -> Array:
        rows = torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32)).requires_grad_()
        wanted = torch.from_numpy(np.asarray(targets))
        if method == "gradient":
            found = Saliency(network).attribute(rows, target=wanted, abs=False)
        elif method == "gradient-input":
            found = InputXGradient(network).attribute(rows, target=wanted)
        else:
            start = None if reference is None else torch.from_numpy(reference[None].astype(np.float32))
            found = IntegratedGradients(network).attribute(rows, start, target=wanted, n_steps=STEPS)
        whole: Array = found.detach().numpy()
        return whole

    return at


def error(found: Array, truth: Array) -> float:
    return float(np.abs(found - truth).max() / np.abs(truth).max())


def cost(runs: dict[str, Callable[[], Any]], times: int, inputs: int) -> dict[str, float]:
    """Milliseconds of processor time for one input; the rounds of all sides take turns."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for round_ in range(times + 1):
        for name, run in runs.items():
            begun = time.process_time()
            run()
            if round_ > 0:
                taken[name].append(1e3 * (time.process_time() - begun) / inputs)
    return {name: statistics.median(some) for name, some in taken.items()}


def built(name: str) -> Any:
    """The network in torch, with the weights of the fixture."""
    import json

    import torch

    sys.path.insert(0, str(TORCH))
    import models

    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)
    (constructor,) = (made for known, made, _, _ in models.MODELS if known == name)
    seed = json.loads((TORCH / "versions.json").read_text())["seeds"][name]
    return models.build(constructor, seed).eval()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without-torch", action="store_true", help="compare with brenier.explain alone")
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--times", type=int, default=5)
    arguments = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    wrong = []
    print("| network | model | explainer | against `explain` | against Captum | ms: explainer | `explain` | Captum |")
    print("|---|---|---|---|---|---|---|---|")
    for name in arguments.networks.split(","):
        file = TORCH / f"{name}.script.onnx"
        x = np.load(TORCH / f"{name}.npz")["x"]
        references = np.random.default_rng(0).normal(size=(REFERENCES, *x.shape[1:])).astype(np.float32) / 2
        model = brenier.Model(file, workers=1)
        targets = model.scores(x).argmax(axis=1)
        network = None if arguments.without_torch else built(name)
        errors: dict[str, list[float]] = {"explain": [], "Captum": []}
        sides = {"explain": by_parts(ours(model))}
        if network is not None:
            sides["Captum"] = by_parts(captums(network))
        with tempfile.TemporaryDirectory() as folder:
            for method in METHODS:
                made = Path(folder, f"{method}.onnx")
                brenier.export(model, made, method, **settings(method, references))
                onnx.checker.check_model(str(made), full_check=True)
                inferred = onnx.shape_inference.infer_shapes(onnx.load(made), strict_mode=True, data_prop=True)
                assert {output.name for output in inferred.graph.output} >= {"scores", "credit", "explained"}
                assert {entry.domain for entry in inferred.opset_import} <= {"", "ai.onnx"}
                session = onnxruntime.InferenceSession(str(made), options, providers=["CPUExecutionProvider"])
                _, credit, explained = session.run(["scores", "credit", "explained"], {"x": x})
                assert (explained == targets).all()
                noise = noise_in(made, x.shape[1:]) if method == "smoothgrad" else None
                for side, truth in sides.items():
                    errors[side].append(error(credit, truth(method, x, targets, references, noise)))
                    if errors[side][-1] > LIMITS[side == "Captum"]:
                        wrong.append(f"{name} {method} against {side}: {errors[side][-1]:.1e}")
            made = Path(folder, "ig.onnx")
            sizes = [path.stat().st_size / 1000 for path in (file, made)]
            session = onnxruntime.InferenceSession(str(made), options, providers=["CPUExecutionProvider"])
            runs: dict[str, Callable[[], Any]] = {
                "explainer": lambda: session.run(None, {"x": x}),
                "explain": lambda: ours(model)("ig", x, targets, None),
            }
            if network is not None:
                runs["Captum"] = lambda: captums(network)("ig", x, targets, None)
            taken = cost(runs, arguments.times, len(x))
        cells = [f"{max(errors[side]):.0e}" if errors[side] else "-" for side in errors]
        cells += [f"{taken[side]:.1f}" if side in taken else "-" for side in ("explainer", "explain", "Captum")]
        print(f"| {name} | {sizes[0]:.0f} kB | {sizes[1]:.0f} kB | {' | '.join(cells)} |", flush=True)
    for complaint in wrong:
        print(complaint, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
