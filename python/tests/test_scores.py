"""Scores that are not one number of a vector, from Python."""

from __future__ import annotations

from typing import Any

import brenier
import numpy as np
import pytest
from conftest import FIXTURES

MODEL = FIXTURES / "nets" / "segments.dynamo.onnx"
DATA = np.load(FIXTURES / "nets" / "segments.npz")
ALL = slice(None)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("pixel", {"target": (3, 5, 2)}),
        ("mean", {"target": (2, ALL, ALL), "reduce": "mean"}),
        ("largest", {"target": (1, ALL, ALL), "reduce": "max"}),
        ("patch", {"target": (1, slice(2, 6), slice(3, None)), "reduce": "sum"}),
        ("segment", {"target": (2, ALL, ALL), "reduce": "mean", "within": DATA["inside"]}),
        ("difference", {"target": (3, 5, 2), "minus": (0, 5, 2)}),
        ("margin", {"target": ("predicted", 5, 2), "minus": "highest-other"}),
    ],
)
def test_scores_and_gradients_are_autograds(name: str, asked: dict[str, Any]) -> None:
    found = brenier.explain(MODEL, DATA["x"], "gradient", **asked)
    np.testing.assert_allclose(found.scores, DATA[f"score_{name}"], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.values, DATA[f"gradient_{name}"], atol=1e-4 * np.abs(DATA[f"gradient_{name}"]).max())


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"target": 5}, "3 axes behind the batch"),
        ({"target": (1, ALL, ALL)}, "reduce='mean'"),
        ({"target": (1, ALL, ALL), "reduce": "median"}, "choose from 'mean', 'sum', 'max'"),
        ({"target": (1, 2, -3)}, "-3 is no place along an axis"),
        ({"within": DATA["inside"]}, "within= makes no difference without reduce="),
        ({"targets": "all", "minus": 1}, "speak of one target"),
    ],
)
def test_wrong_uses_have_a_sentence(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(brenier.BrenierError, match=".") as error:
        brenier.explain(MODEL, DATA["x"], "gradient", **asked)
    assert told in str(error.value)


def test_functions_keep_their_scores() -> None:
    with pytest.raises(brenier.BrenierError, match="taken as they are"):
        brenier.explain(lambda x: x, np.ones((2, 3)), "occlusion", target=1, minus=0)
