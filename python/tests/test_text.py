"""Text from Python: sentences, tokens and words (`fixtures/text/generate.py`)."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import brenier
import numpy as np
import pytest
from brenier.exceptions import BrenierError
from conftest import FIXTURES

MODEL, TOKENIZER = str(FIXTURES / "text/model.onnx"), FIXTURES / "text/tokenizer.json"
SENTENCES = (FIXTURES / "text/sentences.txt").read_text(encoding="utf-8").splitlines()


def explained(texts: Any, method: str | None = None, **arguments: Any) -> brenier.Explanations:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return brenier.explain(MODEL, texts, method, tokenizer=TOKENIZER, target=1, **arguments)


def test_credit_of_tokens_is_captums() -> None:
    expected = np.load(FIXTURES / "text/expected.npz")
    found = explained(SENTENCES, rule="gauss-legendre", steps=200)
    assert found.values.shape == expected["tokens"].shape
    assert np.abs(found.values - expected["tokens"]).max() < 1e-4 * np.abs(expected["tokens"]).max()
    assert (found.inputs == expected["ids"]).all()
    assert found.tokens[1][:2] == ["[CLS]", "It"]
    assert np.allclose(found.scores, expected["scores"][:, 1], atol=1e-4)
    word, credit = max(found.words(1), key=lambda pair: pair[1])
    assert word == "quicksilver"
    pieces = found.tokens[1].index("qu")
    assert credit == pytest.approx(found.values[1, pieces : pieces + 5].sum())
    assert sum(credit for _, credit in found.words(1)) == pytest.approx(found.values[1].sum())


def test_explanations_of_text_are_as_others(tmp_path: Path) -> None:
    found = explained(SENTENCES[:3])
    assert "quicksilver</span>" in found[1:]._repr_html_()
    found.save(tmp_path / "out")
    again = brenier.Explanations.load(tmp_path / "out")
    assert again.words(1) == found.words(1)
    assert pickle.loads(pickle.dumps(found)) == found
    hidden = explained(SENTENCES[:3], "occlusion")
    assert max(hidden.words(1), key=lambda pair: pair[1])[0] == "quicksilver"
    assert explained(SENTENCES[:1], "gradient").values.shape[0] == 1
    references = {name: float(explained(SENTENCES[:1], baseline=name).reference_scores[0]) for name in ("pad", "mask", "mean", "zero", "token:film")}
    assert len(set(references.values())) == 5
    cut = explained(SENTENCES[:2], max_tokens=6)
    assert cut.values.shape == (2, 6)
    with pytest.warns(UserWarning, match="'attention_mask' is made of the text"):
        brenier.explain(MODEL, SENTENCES[:1], tokenizer=TOKENIZER)


@pytest.mark.parametrize(
    ("texts", "arguments", "says"),
    [
        ("one", {}, "the input is one string"),
        ([], {}, "there is no text"),
        (["one", 2], {}, "text 1 is a int"),
        (["a film", " "], {}, "text 1 is empty"),
        (["a film " * 30], {}, "cut texts with max_tokens="),
        (["a film"], {"baseline": "pud"}, "there is no baseline 'pud' for text"),
        (["a film"], {"baseline": "token:zeppelin"}, "'zeppelin' is 5 tokens"),
        (["a film"], {"background": np.zeros((2, 3))}, "are for inputs of numbers"),
    ],
)
def test_mistakes_are_told(texts: Any, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(BrenierError, match=says):
        explained(texts, **arguments)


def test_what_needs_a_tokenizer_says_so() -> None:
    with pytest.raises(BrenierError, match="makes no difference without tokenizer="):
        brenier.explain(str(FIXTURES / "methods/smooth.onnx"), np.zeros((1, 6)), max_tokens=3)
    with pytest.raises(BrenierError, match="tokenizer= is a dict"):
        brenier.explain(MODEL, ["a film"], tokenizer={})
