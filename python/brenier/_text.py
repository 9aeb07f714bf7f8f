"""Sentences as inputs: a tokenizer makes ids of them, and credit is for their tokens."""

from __future__ import annotations

import copy
import json
import os
import warnings
from typing import Any

from . import _internal
from ._inputs import Rows
from ._model import Model
from .exceptions import DataError, ModelError, SettingError

NAMES = ("zero", "pad", "mask", "mean")


def texts(x: Any) -> list[str]:
    """The sentences that were given: a list, a column of a frame, an array of strings."""
    if isinstance(x, str):
        raise DataError("the input is one string\nhint: give a list of texts, such as [text]")
    listed = x.tolist() if hasattr(x, "tolist") else x.to_list() if hasattr(x, "to_list") else list(x)
    wrong = next((i for i, text in enumerate(listed) if not isinstance(text, str)), None)
    if wrong is not None:
        raise DataError(f"text {wrong} is a {type(listed[wrong]).__name__}\nhint: with tokenizer= inputs are strings")
    if not listed:
        raise DataError("there is no text\nhint: give at least one")
    return listed


class Texts:
    """Sentences as rows of a model."""

    def __init__(self, model: Model, x: Any, tokenizer: Any, baseline: Any, max_tokens: int | None) -> None:
        if not isinstance(tokenizer, (str, os.PathLike)):
            raise SettingError(
                f"tokenizer= is a {type(tokenizer).__name__}\nhint: give the path of tokenizer.json; of a fast tokenizer, "
                "tokenizer.save_pretrained(folder) writes it"
            )
        if model._kind != "onnx":
            raise ModelError("text is for ONNX models that take ids of tokens\nhint: export the model with its ids as an input")
        named = isinstance(baseline, str) and (baseline in NAMES or baseline.startswith("token:"))
        if baseline is not None and not named:
            raise SettingError(
                f"there is no baseline {baseline!r} for text\nhint: say 'zero', 'pad', 'mask', 'mean' or 'token:WORD'"
            )
        self.native, self.rows, self.no_text, self.ids, tokens, self.name, notices = _internal.text(
            model._open(), os.fspath(tokenizer), texts(x), baseline, max_tokens
        )
        self.tokens: list[dict[str, Any]] = [json.loads(line) for line in tokens]
        for notice in notices:
            warnings.warn(notice, stacklevel=4)
        # Everything but the rows is as before.
        self.model = copy.copy(model)
        self.model._native = self.native

    def folded(self, found: Any) -> tuple[Any, ...]:
        """Credit of numbers as credit of tokens, with the tokens in the certificates."""
        values, _, _, _, lines = found
        certificates = [json.loads(line) for line in lines.splitlines()]
        for certificate in certificates:
            certificate["text"] = self.tokens[certificate["example"]]
        credit: Rows = _internal.token_credit(self.native, self.name, values)
        ids = self.ids[[certificate["example"] for certificate in certificates]]
        return credit, ids, None, None, "".join(json.dumps(one) + "\n" for one in certificates)
