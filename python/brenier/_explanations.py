"""Explanations: arrays with their evidence."""

from __future__ import annotations

import base64
import html
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _internal
from .exceptions import FileError, SettingError, ShapeError

_NAMES = "features.json"


class Explanations:
    """Credit for every feature of some inputs, and how far it can be trusted.

    Behaves as an array of ``values``: ``np.asarray(e)``, ``len(e)``, ``e[3]``, ``e[mask]``, iteration. All of it can be
    pickled, saved and joined.
    """

    def __init__(
        self,
        values: NDArray[np.float64],
        inputs: NDArray[np.float64],
        certificates: Sequence[dict[str, Any]],
        *,
        references: NDArray[np.float64] | None = None,
        standard_errors: NDArray[np.float64] | None = None,
        feature_names: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
    ) -> None:
        if not (len(values) == len(inputs) == len(certificates)) or values.shape != inputs.shape:
            raise ShapeError(
                f"{values.shape} values, {inputs.shape} inputs and {len(certificates)} certificates do not belong together\n"
                "hint: give one of each for every explanation"
            )
        self.values = values
        """The credit, ``[explanations, ...]``."""
        self.inputs = inputs
        """The inputs, ``[explanations, ...]``."""
        self.references = references
        """What each was compared with; None where the method compares with nothing, or with many."""
        self.standard_errors = standard_errors
        """The standard error of each feature's credit, where credit is a mean over draws or flows."""
        self.feature_names = None if feature_names is None else [str(name) for name in feature_names]
        """The names of the features, where the inputs had them."""
        self.classes = None if classes is None else list(classes)
        """The names of the model's outputs, where they are known."""
        self._certificates = list(certificates)

    @classmethod
    def _of(
        cls,
        found: Any,
        shape: tuple[int, ...],
        *,
        feature_names: Sequence[str] | None,
        classes: Sequence[str] | None,
    ) -> Explanations:
        values, inputs, references, standard_errors, lines = found

        def fold(flat: Any) -> Any:
            return None if flat is None else flat.reshape(len(flat), *shape)

        return cls(
            fold(values), fold(inputs), [json.loads(line) for line in lines.splitlines()],
            references=fold(references), standard_errors=fold(standard_errors), feature_names=feature_names,
            classes=classes,
        )

    @property
    def certificates(self) -> list[dict[str, Any]]:
        """The evidence, a dict for each explanation: verdict, score, residual, evaluations, path, draws, hashes."""
        return [dict(certificate) for certificate in self._certificates]

    @property
    def tokens(self) -> list[list[str]]:
        """The tokens of each text, as they stand in it; empty lists where the inputs are no texts."""
        return [list((c.get("text") or {}).get("tokens", [])) for c in self._certificates]

    def words(self, index: int = 0) -> list[tuple[str, float]]:
        """The words of one text in order, each with the credit of its tokens. Those that the tokenizer added are among them."""
        text = self._certificates[index].get("text")
        if text is None or self.values.shape[1:] != (len(text["tokens"]),):
            raise SettingError(
                "credit is not by tokens here\nhint: words are of explanations that were made with tokenizer=; beside saved ones of "
                "the command line, by_input.npz has the credit of tokens"
            )
        return [(word["text"], float(self.values[index, word["first"]:word["end"]].sum())) for word in text["words"]]

    @property
    def method(self) -> str:
        """The method's name."""
        return str(self._certificates[0]["method"]) if self._certificates else ""

    @property
    def targets(self) -> NDArray[np.int64]:
        """Which output each explains."""
        return np.array([c["target"] for c in self._certificates], dtype=np.int64)

    @property
    def examples(self) -> NDArray[np.int64]:
        """Which input each explains, counted from 0; several targets of one input follow each other."""
        return np.array([c["example"] for c in self._certificates], dtype=np.int64)

    @property
    def scores(self) -> NDArray[np.float64]:
        """The score at each input."""
        return np.array([c["score"] for c in self._certificates], dtype=np.float64)

    @property
    def reference_scores(self) -> NDArray[np.float64]:
        """The score that credit is counted from; NaN where the method promises no sum."""
        found = [c.get("reference_score") for c in self._certificates]
        return np.array([np.nan if value is None else value for value in found], dtype=np.float64)

    @property
    def verdicts(self) -> list[str]:
        """``"pass"``, ``"warn"``, ``"not-calibrated"`` or ``"no-check"`` for each."""
        return [str(c["verdict"]["kind"]) for c in self._certificates]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``values``."""
        return tuple(self.values.shape)

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if dtype is None or np.dtype(dtype) == self.values.dtype:
            return self.values.copy() if copy else self.values
        return self.values.astype(dtype)

    def __iter__(self) -> Iterator[Explanations]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Explanations:
        """Some of them: a number, a slice, a list of numbers, or a mask."""
        places = np.atleast_1d(np.arange(len(self))[key])

        def some(array: Any) -> Any:
            return None if array is None else array[places]

        return Explanations(
            self.values[places], self.inputs[places], [self._certificates[i] for i in places],
            references=some(self.references), standard_errors=some(self.standard_errors),
            feature_names=self.feature_names, classes=self.classes,
        )

    def __add__(self, other: Explanations) -> Explanations:
        return concatenate([self, other])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Explanations):
            return NotImplemented

        def same(a: Any, b: Any) -> bool:
            return (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b))

        return (
            same(self.values, other.values) and same(self.inputs, other.inputs)
            and same(self.references, other.references) and same(self.standard_errors, other.standard_errors)
            and self._certificates == other._certificates and self.feature_names == other.feature_names
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        warned = self.verdicts.count("warn")
        kinds = set(self.verdicts)
        verdict = f"{warned} warn" if warned else "all pass" if kinds <= {"pass"} else ", ".join(sorted(kinds)).replace("-", " ")
        return f"<{len(self)} explanations by {self.method or 'no method'}, shape {self.shape}, {verdict}>"

    def to_frame(self) -> Any:
        """The certificates as a pandas frame, or a polars one, a row for each explanation; pandas or polars must be there."""
        table = [_flat(certificate) for certificate in self.certificates]
        for package in ("pandas", "polars"):
            try:
                return __import__(package).DataFrame(table)
            except ImportError:
                continue
        raise SettingError("neither pandas nor polars is installed\nhint: use .certificates, a list of dicts")

    def to_torch(self) -> Any:
        """The values as a tensor that shares their memory."""
        import torch

        return torch.from_numpy(self.values)

    def to_shap(self) -> Any:
        """A ``shap.Explanation`` for ``shap.plots``: standard errors are its ``error_std``."""
        import shap

        return shap.Explanation(
            values=self.values, base_values=self.reference_scores, data=self.inputs, feature_names=self.feature_names,
            error_std=self.standard_errors,
        )

    def reasons(self, count: int = 4, *, speaking: str = "change", sentence: str | None = None) -> list[dict[str, Any]]:
        """The columns that speak most for each row's score, or against it.

        ``speaking`` is ``"change"`` (those that moved the score where it went), ``"for"`` (those that raise it) or ``"against"``. Each
        row is a dict with its scores, its ``reasons`` (column, value, counterpart, credit, interval, tied, sentence), the credit that is
        not listed, and remarks. ``sentence`` is a template with ``{column}``, ``{value}``, ``{counterpart}``, ``{credit}`` and others.
        It is an association, not a cause.
        """
        if speaking not in ("change", "for", "against"):
            raise SettingError(f"there is no side {speaking!r}\nhint: say speaking='change', 'for' or 'against'")
        if count < 1:
            raise SettingError(f"count is {count}\nhint: ask for at least 1 reason")
        if self.feature_names is None:
            raise SettingError("reasons need names of columns\nhint: give explain() a data frame, or feature_names=")

        def flat(array: Any) -> Any:
            return None if array is None else np.ascontiguousarray(array.reshape(len(self), -1), dtype=np.float64)

        lines = "".join(json.dumps(certificate) + "\n" for certificate in self._certificates)
        found: list[dict[str, Any]] = json.loads(_internal.reasons(
            flat(self.values), flat(self.inputs), flat(self.references), flat(self.standard_errors), lines,
            self.feature_names, self.classes or [], count, speaking, sentence,
        ))
        return found

    def save(self, place: str | os.PathLike[str]) -> None:
        """Writes ``explanations.npz`` and ``explanations.jsonl`` into a folder, as the command line does, or one Parquet file.

        `brenier report` reads the folder. A file whose name ends in ``.parquet`` has a row for each explanation, which pandas,
        polars and DuckDB read: ``id``, ``target``, ``score``, ``credit`` as a list, the main facts of the certificate, and all of
        it as JSON.
        """
        count, shape = len(self), self.values.shape[1:]

        def flat(array: Any) -> Any:
            return None if array is None else np.ascontiguousarray(array.reshape(count, -1), dtype=np.float64)

        lines = "".join(json.dumps(certificate) + "\n" for certificate in self._certificates)
        names = json.dumps({"feature_names": self.feature_names, "classes": self.classes})
        is_file = Path(place).suffix == ".parquet"
        _internal.save(
            place, list(shape), flat(self.values), flat(self.inputs), flat(self.references), flat(self.standard_errors), lines,
            names if is_file else None,
        )
        if not is_file:
            (Path(place) / _NAMES).write_text(names, encoding="utf-8")

    @classmethod
    def load(cls, place: str | os.PathLike[str]) -> Explanations:
        """Reads what :meth:`save` or `brenier explain -o` wrote: a folder, or a Parquet file."""
        shape, found, inside = _internal.load(place)
        beside = Path(place) / _NAMES
        try:
            names: dict[str, Any] = json.loads(beside.read_text(encoding="utf-8") if inside is None else inside)
        except (FileNotFoundError, NotADirectoryError):
            names = {}
        except (OSError, ValueError) as error:
            raise FileError(f"cannot read {beside}: {error}\nhint: remove it; only names are lost") from error
        return cls._of(found, tuple(shape), feature_names=names.get("feature_names"), classes=names.get("classes"))

    def plot(self, index: int = 0, **options: Any) -> Any:
        """Draws one explanation with matplotlib: an image with its map, or the largest credits of a row as a waterfall.

        Options: ``kind`` (``"side-by-side"``, ``"overlay"``; ``"waterfall"`` for rows), ``percentile`` (of the map's scale, 99),
        ``top`` (features of a waterfall, 12), ``axes``. Returns the matplotlib figure.
        """
        from ._plot import plot

        return plot(self, index, **options)

    def _repr_html_(self) -> str:
        """The first few as cards: a heat map or bars, and the certificate. Nothing is fetched from anywhere."""
        cards = "".join(self._card(i) for i in range(min(len(self), 6)))
        more = f"<p>and {len(self) - 6} more</p>" if len(self) > 6 else ""
        return f"<div><p>{html.escape(repr(self))}</p><div style='display:flex;flex-wrap:wrap;gap:12px'>{cards}</div>{more}</div>"

    def _card(self, i: int) -> str:
        certificate = self.certificates[i]
        verdict = certificate["verdict"]
        target = certificate["target"]
        name = self.classes[target] if self.classes and target < len(self.classes) else f"output {target}"
        facts = [f"score {certificate['score']:.4g}"]
        if certificate.get("relative_residual") is not None:
            facts.append(f"residual {100 * certificate['relative_residual']:.2g} %")
        reasons = "".join(f"<li>{html.escape(reason)}</li>" for reason in verdict.get("reasons", []))
        colour = {"pass": "#1a7f37", "warn": "#9a6700"}.get(verdict["kind"], "#6e7781")
        return (
            "<div style='border:1px solid #ccc;border-radius:6px;padding:8px;max-width:320px'>"
            f"{self._picture(i)}<div>{html.escape(str(name))} · {html.escape(' · '.join(facts))} · "
            f"<b style='color:{colour}'>{html.escape(verdict['kind'].replace('-', ' '))}</b></div><ul style='margin:0'>{reasons}</ul></div>"
        )

    def _picture(self, i: int) -> str:
        shape = list(self.values.shape[1:])
        if len(shape) == 3 and shape[0] in (1, 3):
            one = [np.ascontiguousarray(array[i].reshape(1, -1), dtype=np.float64) for array in (self.values, self.inputs)]
            png = _internal.heat_map(shape, one[0], one[1], json.dumps(self._certificates[i]) + "\n")
            return f"<img src='data:image/png;base64,{base64.b64encode(png).decode()}' style='max-width:300px'>"
        if self._certificates[i].get("text") is not None and self.values.ndim == 2:
            return self._sentence(i)
        flat = self.values[i].reshape(-1)
        order = np.argsort(-np.abs(flat))[:8]
        largest = float(np.abs(flat[order]).max()) if len(order) else 0.0
        lines = []
        for j in order:
            width = 0 if largest == 0 else int(120 * abs(flat[j]) / largest)
            name = self.feature_names[j] if self.feature_names else f"feature {j}"
            colour = "#b2182b" if flat[j] > 0 else "#2166ac"
            lines.append(
                f"<tr><td>{html.escape(str(name))}</td><td style='text-align:right'>{flat[j]:.3g}</td>"
                f"<td><div style='background:{colour};height:10px;width:{width}px'></div></td></tr>"
            )
        return f"<table>{''.join(lines)}</table>"


    def _sentence(self, i: int) -> str:
        words = self.words(i)
        largest = max((abs(credit) for _, credit in words), default=0.0)
        spans = []
        for word, credit in words:
            part = 0.0 if largest == 0 else abs(credit) / largest
            colour = "178,24,43" if credit > 0 else "33,102,172"
            spans.append(f"<span style='background:rgba({colour},{0.7 * part:.2f})' title='{credit:.3g}'>{html.escape(word)}</span>")
        return f"<p style='line-height:1.8'>{' '.join(spans)}</p>"


def concatenate(parts: Sequence[Explanations]) -> Explanations:
    """Explanations of several calls as one, in order."""
    if not parts:
        raise SettingError("there is nothing to join\nhint: give at least one")
    shapes = {part.values.shape[1:] for part in parts}
    if len(shapes) > 1:
        raise ShapeError(f"explanations of shapes {sorted(shapes)} cannot be joined\nhint: join those of one shape")

    def joined(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if any(array is None for array in arrays) else np.concatenate(arrays)

    first = parts[0]
    return Explanations(
        joined("values"), joined("inputs"), [c for part in parts for c in part._certificates],
        references=joined("references"), standard_errors=joined("standard_errors"),
        feature_names=first.feature_names, classes=first.classes,
    )


def _flat(certificate: dict[str, Any]) -> dict[str, Any]:
    row = {key: value for key, value in certificate.items() if not isinstance(value, dict)}
    row["verdict"] = certificate["verdict"]["kind"]
    row["reasons"] = "; ".join(certificate["verdict"].get("reasons", []))
    for part in ("path", "sampling"):
        for key, value in (certificate.get(part) or {}).items():
            if not isinstance(value, (dict, list)):
                row.setdefault(key, value)
    return row
