"""``brenier.explain``: credit for every feature of every input, with certificates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _internal, _settings
from ._explanations import Explanations
from ._flow import Flow
from ._inputs import given, rows
from ._model import Model, model as as_model
from ._progress import Progress
from ._scoring import scoring
from ._text import Texts
from .exceptions import SettingError, ShapeError, TargetError


def explain(
    model: Any,
    x: Any,
    method: str | None = None,
    *,
    flow: Flow | str | Sequence[Flow | str] | None = None,
    target: Any = None,
    targets: Any = None,
    reduce: str | None = None,
    within: Any = None,
    minus: Any = None,
    tolerance: float | None = None,
    map_tolerance: float | None = None,
    max_gradients: int | None = None,
    rule: str | None = None,
    steps: int | None = None,
    baseline: Any = None,
    background: Any = None,
    against: Any = None,
    among: Any = None,
    samples: int | None = None,
    noise: float | None = None,
    groups: Any = None,
    window: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
    layer: str | None = None,
    lrp_rule: str | None = None,
    neighbours: int | None = None,
    solver_tolerance: float | None = None,
    inversion_steps: int | None = None,
    seed: int | None = None,
    tokenizer: Any = None,
    max_tokens: int | None = None,
    feature_names: Sequence[str] | None = None,
    progress: bool | None = None,
) -> Explanations:
    """Explains the model's score of every input.

    ``model`` is a :class:`brenier.Model`, or anything that makes one. ``x`` is a batch: NumPy, torch, a pandas or polars
    frame (its column names survive), PIL images. ``method`` is a name of :func:`brenier.methods`; ``transport`` where there
    is a ``flow``, else ``ig``.

    ``target`` is ``"predicted"`` (the default), an output by number or name, or one for each input; ``targets`` explains
    several for every input: ``"all"``, ``"top3"``, or a list. An output with several axes takes a tuple with something for each:
    ``target=(3, 10, 12)`` is one place, ``(5, slice(None), slice(None))`` with ``reduce="mean"`` (or ``"sum"``, ``"max"``) a map put
    together, weighted by ``within`` (a mask) where it is given; ``("predicted", 10, 12)`` the class with the highest score there.
    ``minus`` is a score that is taken from the target's, in the same form, or ``"highest-other"`` for the margin. ``tolerance`` is how far credit may miss the score's change,
    relative; ``map_tolerance`` how far the map may be from the converged one, relative to its norm; ``max_gradients`` says when
    to give up (2000); ``rule`` and ``steps`` choose a rule of fixed size instead. ``baseline`` is ``"zero"``, ``"mean"``, ``"blur"``,
    ``"noise"``, ``"background"``, one row, or one for each input; ``background`` are rows of the kind that the model was
    trained on. What a method does not use is refused.

    ``against`` are rows to compare with, "why this and not that": every input is carried to its counterpart among them, along
    the ``flow`` (from them to rows like the inputs), or without one by optimal transport between two fitted Gaussians, and
    ``among`` are rows like the inputs; the inputs themselves where not given. Certificates then say how far the comparison
    itself can be trusted, under ``comparison``.

    With ``tokenizer``, the path of a ``tokenizer.json``, ``x`` are texts, and credit is for their tokens: ``values`` is
    ``[N, tokens]``, :attr:`Explanations.tokens` what they stand for, :meth:`Explanations.words` the credit of words. ``baseline`` is
    then ``"pad"`` (the default where the tokenizer has such a token), ``"mask"``, ``"mean"``, ``"token:WORD"`` or ``"zero"``. Longer texts are
    cut to ``max_tokens``.

    ``progress`` shows a line on stderr: None where somebody looks (a terminal, a notebook), True, or False. Ctrl-C stops it.
    """
    text: Texts | None = None
    if tokenizer is not None:
        if reduce is not None or within is not None or minus is not None:
            raise SettingError("reduce=, within= and minus= are for inputs of numbers\nhint: leave them out with tokenizer=")
        if background is not None or against is not None or flow is not None:
            raise SettingError("background=, against= and flow= are for inputs of numbers\nhint: leave them out with tokenizer=")
        text = Texts(as_model(model), x, tokenizer, baseline, max_tokens)
        taken, asked, native = given(text.rows), text.model, text.native
        takes_baseline = any(spec["name"] == (method or "ig") and "baseline" in spec["arguments"] for spec in methods())
        baseline = text.no_text if takes_baseline or baseline is not None else None
    else:
        if max_tokens is not None:
            raise SettingError("max_tokens= makes no difference without tokenizer=\nhint: leave it out, or give the tokenizer")
        taken = given(x)
        asked = as_model(model, taken)
        native = asked._open(taken)
        if targets is not None and (reduce is not None or minus is not None):
            raise SettingError("reduce= and minus= speak of one target\nhint: give target= instead of targets=")
        asks = target is not None or reduce is not None or within is not None or minus is not None
        if asks and targets is None:
            scores = scoring(asked, native.axes(), target, reduce, within, minus)
            if scores is not None:
                asked = asked._scored(scores)
                native = asked._open(taken)
                if scores["target"]:
                    target = "predicted" if "each" in scores["target"] else 0
    shape = tuple(native.shape())
    taken = asked._bound(taken)
    flat = rows(taken, shape)
    flows = _flows(flow, shape)
    arguments = dict(
        tolerance=tolerance, map_tolerance=map_tolerance, max_gradients=max_gradients, rule=rule, steps=steps,
        baseline=baseline, samples=samples, noise=noise, groups=groups,
        window=window, stride=stride, layer=layer, lrp_rule=lrp_rule, neighbours=neighbours,
        solver_tolerance=solver_tolerance, inversion_steps=inversion_steps, seed=seed,
    )
    name = method or ("transport" if flows or against is not None else "ig")
    chosen, given_rows = _settings.method(name, arguments, flow=bool(flows), background=background is not None)
    compared = _compared(asked, against, among, flat, shape, json.loads(chosen)["method"])
    if target is not None and targets is not None:
        raise SettingError("target= and targets= are both given\nhint: give one of them")
    wanted = _several(asked, targets) if targets is not None else asked.targets(target, len(flat))
    names = list(feature_names) if feature_names is not None else taken.columns
    if names is not None and len(names) != flat.shape[1]:
        raise ShapeError(f"{len(names)} feature names are given for {flat.shape[1]} features\nhint: give one for each")
    with Progress(len(flat), json.loads(chosen)["method"], progress) as line:
        found = _internal.explain(
            native,
            flat,
            chosen,
            wanted,
            baselines=_settings.baseline_rows(given_rows, shape, len(flat)),
            background=None if background is None else rows(asked._bound(background, "the background"), shape, "the background"),
            flows=[one._native_flow() for one in flows],
            against=compared,
            progress=line,
        )
    if text is not None:
        found, shape = text.folded(found), text.ids.shape[1:]
    return Explanations._of(found, shape, feature_names=names, classes=asked.classes or None)


def _compared(asked: Model, against: Any, among: Any, flat: Any, shape: tuple[int, ...], method: str) -> Any:
    """The rows to compare with, and rows like the inputs."""
    if against is None:
        if among is not None:
            raise SettingError("among= makes no difference without against=\nhint: give the rows to compare with as against=")
        return None
    usable = [spec["name"] for spec in methods() if "against" in spec["arguments"]]
    if method not in usable:
        raise SettingError(f"against= makes no difference to {method}\nhint: leave method= out, or choose from {', '.join(usable)}")
    other = rows(asked._bound(against, "the rows to compare with"), shape, "the rows to compare with")
    own = flat if among is None else rows(asked._bound(among, "the rows like the inputs"), shape, "the rows like the inputs")
    return other, own


def _flows(flow: Any, shape: tuple[int, ...]) -> list[Flow]:
    if flow is None:
        return []
    listed = list(flow) if isinstance(flow, (list, tuple)) else [flow]
    return [one if isinstance(one, Flow) else Flow.load(one) for one in listed]


def _several(model: Model, targets: Any) -> tuple[str, list[int]]:
    """Several targets for every input."""
    if isinstance(targets, str):
        if targets == "all":
            return "same", list(range(model.outputs))
        if targets.startswith("top") and targets[3:].isdigit():
            count = int(targets[3:])
            if not 1 <= count <= model.outputs:
                raise TargetError(
                    f"the highest {count} scores are asked for, but the model has {model.outputs} outputs\nhint: ask for 1 to "
                    f"{model.outputs}"
                )
            return "highest", [count]
        return "same", [model._target(targets)]
    listed = [model._target(one) for one in np.asarray(targets).reshape(-1).tolist()]
    if len(set(listed)) != len(listed):
        raise TargetError(f"targets are given twice: {listed}\nhint: give each once")
    return "same", listed


def methods() -> list[dict[str, Any]]:
    """All methods: name, help, what they need, which arguments make a difference to them, what their numbers mean."""
    return _internal.methods()


def inspect(model: Any) -> dict[str, Any]:
    """What an ONNX model is: inputs, outputs, size, cost, and the nodes that gradients do not get through."""
    source = model._source if isinstance(model, Model) else model
    if hasattr(source, "SerializeToString"):
        source = source.SerializeToString()
    if isinstance(source, (bytes, bytearray, memoryview)):
        found: dict[str, Any] = json.loads(_internal.inspect(content=bytes(source)))
        return found
    if not isinstance(source, str) and not hasattr(source, "__fspath__"):
        raise SettingError(f"a {type(source).__name__} is no ONNX model\nhint: give a path, bytes, or an onnx.ModelProto")
    return dict(json.loads(_internal.inspect(path=source)))
