"""Every public object can be pickled, and does the same afterwards."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import brenier
import numpy as np
import pytest
from brenier import batches, exceptions

Fixture = tuple[str, Any]


def again(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


def halving() -> bytes:
    """A flow dx/dt = -x as the bytes of an ONNX file."""
    import onnx
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("Reshape", ["t", "column"], ["times"]), helper.make_node("Mul", ["times", "zero"], ["nothing"]),
         helper.make_node("Neg", ["x"], ["minus"]), helper.make_node("Add", ["minus", "nothing"], ["v"])],
        "flow",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2]), helper.make_tensor_value_info("t", TensorProto.FLOAT, ["N"])],
        [helper.make_tensor_value_info("v", TensorProto.FLOAT, ["N", 2])],
        [helper.make_tensor("column", TensorProto.INT64, [2], [-1, 1]), helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0])],
    )  # fmt: skip
    content: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()
    return content


def scores(x: Any) -> Any:
    return np.stack([x[:, 0] * x[:, 1], x[:, 0]], axis=1)


def test_models(smooth: Fixture) -> None:
    model, data = smooth
    x = data["inputs"]
    for made in (brenier.Model(model), brenier.Model(open(model, "rb").read()), brenier.Model(model, classes=list("abc"))):
        expected = brenier.explain(made, x, "gradient").values
        for other in (again(made), copy.deepcopy(made)):
            np.testing.assert_array_equal(brenier.explain(other, x, "gradient").values, expected)
            assert (other.shape, other.outputs, other.hash) == (made.shape, made.outputs, made.hash)
    function = brenier.Model(scores, input_shape=(2,))
    found = brenier.explain(again(function), np.ones((1, 2)), "occlusion", target=0)
    assert found == brenier.explain(function, np.ones((1, 2)), "occlusion", target=0)


def test_flows_and_what_they_did() -> None:
    flow = brenier.Flow.load(halving())
    flow.sample(2, seed=0)
    other = again(flow)
    assert (other.shape, other.hash, other.is_diffusion) == (flow.shape, flow.hash, flow.is_diffusion)
    np.testing.assert_array_equal(other.sample(3, seed=1), flow.sample(3, seed=1))
    x = np.array([[0.5, -1.0]])
    np.testing.assert_allclose(other.forward(flow.invert(x)), x, atol=1e-6)


def test_results(smooth: Fixture) -> None:
    model, data = smooth
    found = brenier.explain(model, data["inputs"], "smoothgrad", feature_names=list("uvwxyz"))
    for other in (again(found), copy.deepcopy(found), again(found[0])):
        assert other == found or other == found[0]
    assert again(found).feature_names == list("uvwxyz")
    table = brenier.evaluate(model, data["inputs"], ["ig"], ["relative-residual"])
    assert again(table).rows == table.rows and repr(again(table)) == repr(table)
    moved = brenier.shift(model, data["inputs"], data["inputs"] + 0.5, target=0)
    assert repr(again(moved)) == repr(moved)


def test_the_class_of_data_engines(smooth: Fixture) -> None:
    model, data = smooth
    explainer = batches.Explainer(model, method="gradient", input_column="x", id_column="id")
    batch = {"id": np.arange(2), "x": data["inputs"]}
    expected = explainer(batch)
    # Engines send it to their workers before its first batch and after it.
    for other in (again(explainer), again(batches.Explainer(model, method="gradient", input_column="x", id_column="id"))):
        found = other(batch)
        np.testing.assert_array_equal(np.stack(list(found["credit"])), np.stack(list(expected["credit"])))


def test_errors() -> None:
    for name in exceptions.__all__:
        error = getattr(brenier, name)("it failed\nhint: try again")
        other = again(error)
        assert type(other) is type(error) and str(other) == str(error) and other.hint == "try again"


def test_captums_classes() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    import brenier.captum as captum

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3)).eval()
    x = torch.randn(2, 4)
    for name in captum.__all__:
        kind = getattr(captum, name)
        if name == "NoiseTunnel":
            made = kind(captum.Saliency(module))
        elif name.startswith("Layer"):
            made = kind(module, module[0])
        else:
            made = kind(module)
        other = again(made)
        if name in ("Saliency", "IntegratedGradients", "InputXGradient", "LRP", "GuidedBackprop"):
            assert torch.equal(other.attribute(x, target=1), made.attribute(x, target=1)), name


def test_a_closed_file(smooth: Fixture, tmp_path: Any) -> None:
    model, data = smooth
    with open(model, "rb") as file:
        pass
    with pytest.raises(brenier.BrenierError):
        brenier.Model(file)
    # A file that is gone after it was opened: the model stays as it was loaded.
    place = tmp_path / "model.onnx"
    place.write_bytes(open(model, "rb").read())
    loaded = brenier.Model(place)
    expected = brenier.explain(loaded, data["inputs"], "gradient").values
    place.unlink()
    np.testing.assert_array_equal(brenier.explain(loaded, data["inputs"], "gradient").values, expected)
