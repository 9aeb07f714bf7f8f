"""Torch modules: exported to ONNX in eval mode, or, where that fails, asked as they are."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _internal
from .exceptions import BrenierError

LOG = logging.getLogger("brenier")


def weights_key(module: Any) -> str:
    """A fingerprint of all weights and buffers: of their contents, because a module keeps its identity when its weights
    change."""
    import torch

    key = hashlib.sha256(repr(type(module)).encode())
    for name, value in module.state_dict().items():
        key.update(name.encode())
        if hasattr(value, "detach"):
            array = value.detach().cpu().contiguous()
            key.update(str((array.dtype, tuple(array.shape))).encode())
            key.update(array.flatten().view(torch.uint8).numpy().tobytes() if array.numel() else b"")
        else:
            key.update(repr(value).encode())
    return key.hexdigest()


@contextlib.contextmanager
def eval_mode(module: Any, warn: bool = True) -> Iterator[None]:
    """The module in eval mode, and afterwards every part of it in its own mode again."""
    modes = [(part, part.training) for part in module.modules()]
    if warn and any(mode for _, mode in modes):
        warnings.warn(
            "the module is in training mode; brenier explains it in eval mode, without dropout and with the running means of "
            "its batch normalisations",
            stacklevel=4,
        )
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def exported(module: Any, example: Any, output_names: list[str] | None = None) -> bytes:
    """The ONNX file of a module for batches like the example, with any number of rows."""
    import torch

    names = output_names or ["scores"]
    axes = {"x": {0: "batch"}, **{name: {0: "batch"} for name in names}}
    file = io.BytesIO()
    # The exporter prints what it cannot do, and attention has a shortcut for inference that it does not know.
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    shortcut = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with warnings.catch_warnings(), torch.no_grad(), quiet[0], quiet[1]:
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module, (example,), file, input_names=["x"], output_names=names, dynamic_axes=axes, opset_version=17,
                dynamo=False,
            )
    finally:
        torch.backends.mha.set_fastpath_enabled(shortcut)
    return file.getvalue()


def like(module: Any, array: Any, example: Any = None) -> Any:
    """An array as a tensor of the module's type, on its device; of the example's where the module has no weights."""
    import torch

    weights = module.parameters() if isinstance(module, torch.nn.Module) else iter(())
    first = next((p for p in weights if p.is_floating_point()), example)
    if first is None or not first.is_floating_point():
        return torch.as_tensor(np.asarray(array), dtype=torch.float32, device=None if first is None else first.device)
    return torch.as_tensor(np.asarray(array), dtype=first.dtype, device=first.device)


def native(module: Any, example: Any, options: str) -> tuple[_internal.Model, list[str]]:
    """The module as a native model, and what the user should know."""
    with eval_mode(module):
        try:
            content = exported(module, like(module, example))
            made = _internal.Model.from_bytes(content, options)
            made.outputs()
            return made, []
        except BrenierError as error:
            reason = str(error).split("\n")[0]
        except Exception as error:  # the exporter raises anything
            reason = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
    notice = f"torch itself computes scores and gradients, because the module cannot be exported to ONNX ({reason})"
    LOG.warning(notice)
    return fallback(module, tuple(np.shape(example)[1:])), [notice]


def fallback(module: Any, shape: tuple[int, ...], example: Any = None) -> _internal.Model:
    """The module asked as it is: scores by a forward pass, gradients by autograd."""
    import torch

    def forward(batch: Any) -> Any:
        out = module(batch)
        return out.reshape(out.shape[0], -1) if out.ndim != 1 else out[:, None]

    def scores(x: Any) -> Any:
        with _in_eval(module), torch.no_grad():
            return forward(like(module, x, example)).double().cpu().numpy()

    def gradients(x: Any, targets: Any) -> Any:
        with _in_eval(module), torch.enable_grad():
            batch = like(module, x, example).requires_grad_()
            found = forward(batch)
            chosen = found.gather(1, torch.as_tensor(targets, device=found.device)[:, None])
            (gradient,) = torch.autograd.grad(chosen.sum(), batch)
        return found.detach().double().cpu().numpy(), gradient.double().cpu().numpy()

    return _internal.Model.from_functions(shape, scores, gradients)


def _in_eval(module: Any) -> contextlib.AbstractContextManager[None]:
    return eval_mode(module, warn=False) if hasattr(module, "modules") else contextlib.nullcontext()
