"""``brenier.explain`` against Captum's recorded numbers and against the command line."""

from __future__ import annotations

import json
import pickle
import subprocess
from pathlib import Path
from typing import Any

import brenier
import numpy as np
import pytest
from conftest import FIXTURES

Fixture = tuple[str, Any]


@pytest.mark.parametrize(
    ("name", "arguments", "recorded"),
    [
        ("gradient", {}, "gradient"),
        ("gradient-input", {}, "gradient_input"),
        ("guided-backprop", {}, "guided_backprop"),
        ("deconvnet", {}, "deconvnet"),
        ("ig", {"steps": 20}, "ig_gausslegendre"),
        ("ig", {"steps": 20, "rule": "left"}, "ig_riemann_left"),
        ("ig", {"steps": 20, "rule": "midpoint"}, "ig_riemann_middle"),
    ],
)
def test_methods_give_what_captum_gives(convnet: Fixture, name: str, arguments: dict[str, Any], recorded: str) -> None:
    model, data = convnet
    baseline = {"baseline": data["baselines"]} if name == "ig" else {}
    found = brenier.explain(model, data["inputs"], name, target=data["targets"], **baseline, **arguments)
    assert found.shape == data["inputs"].shape
    np.testing.assert_allclose(found.values, data[recorded], atol=2e-5)


def test_credit_sums_to_the_change_within_the_tolerance(smooth: Fixture) -> None:
    model, data = smooth
    found = brenier.explain(model, data["inputs"], tolerance=1e-4, target=data["targets"], baseline=data["baselines"])
    change = found.scores - found.reference_scores
    assert np.all(np.abs(found.values.sum(axis=1) - change) <= 1e-4 * np.abs(change) + 1e-9)
    assert found.verdicts == ["pass", "pass"]
    assert found.certificates[0]["path"]["rule"]["tolerance"] == 1e-4


ASKED: list[tuple[str, dict[str, Any], list[str]]] = [
    ("ig", {"tolerance": 1e-3}, ["--tolerance", "1e-3"]),
    ("ig", {"map_tolerance": 1e-2, "max_gradients": 500}, ["--map-tolerance", "1e-2", "--max-gradients", "500"]),
    ("smoothgrad", {"samples": 6, "seed": 3}, ["--samples", "6", "--seed", "3"]),
    ("guided-backprop", {}, []),
    ("grad-cam", {}, []),
    ("lrp", {"lrp_rule": "epsilon"}, ["--lrp-rule", "epsilon"]),
    ("deeplift", {}, []),
    ("guided-ig", {"steps": 10}, ["--steps", "10"]),
    ("blur-ig", {"tolerance": 1e-2}, ["--tolerance", "1e-2"]),
    ("occlusion", {"window": (3, 2, 2), "stride": (3, 2, 2)}, ["--window", "3,2,2", "--stride", "3,2,2"]),
    ("kernel-shap", {"groups": "patches:4x4"}, ["--groups", "patches:4x4"]),
    ("lime", {"groups": "patches:4x4", "samples": 60}, ["--groups", "patches:4x4", "--samples", "60"]),
    ("rise", {"samples": 50}, ["--samples", "50"]),
    ("shapley-values", {"groups": "patches:4x4"}, ["--groups", "patches:4x4"]),
]


@pytest.mark.parametrize(("name", "arguments", "flags"), ASKED, ids=[name for name, *_ in ASKED])
def test_the_same_bits_as_the_command_line(
    convnet: Fixture, program: str, tmp_path: Path, name: str, arguments: dict[str, Any], flags: list[str]
) -> None:
    model, data = convnet
    np.save(tmp_path / "x.npy", data["inputs"])
    out = tmp_path / "out"
    command = [program, "explain", "-m", model, str(tmp_path / "x.npy"), "--method", name, *flags, "-o", str(out), "--quiet"]
    subprocess.run(command, check=True, capture_output=True)
    found = brenier.explain(model, data["inputs"], name, **arguments)
    theirs = brenier.Explanations.load(out)
    np.testing.assert_array_equal(found.values, theirs.values)
    ours, others = found.certificates, theirs.certificates
    for certificate in (*ours, *others):
        certificate.pop("name")
    assert ours == others


def test_transport_follows_a_flow(program: str, tmp_path: Path) -> None:
    flow = str(FIXTURES / "flows/rows.onnx")
    x = np.load(FIXTURES / "flows/rows.npz")["x"].astype(np.float64)

    def scores(batch: Any) -> Any:
        return np.sin(batch).sum(axis=1)

    def gradients(batch: Any, _targets: Any) -> Any:
        return np.cos(batch)

    model = brenier.Model(scores, input_shape=(2,), gradients=gradients)
    found = brenier.explain(model, x, flow=flow, tolerance=1e-5)
    assert found.method == "transport"
    # An additive score is credited feature by feature, whatever the path.
    np.testing.assert_allclose(found.values, np.sin(x) - np.sin(found.references), atol=1e-4)
    loaded = brenier.Flow.load(flow)
    np.testing.assert_allclose(loaded.invert(x), found.references, atol=1e-3)
    np.testing.assert_allclose(loaded.forward(loaded.invert(x)), x, atol=1e-3)
    again = pickle.loads(pickle.dumps(loaded))
    np.testing.assert_array_equal(again.sample(3, seed=1), loaded.sample(3, seed=1))
    assert loaded.sample(3, seed=1).shape == (3, 2)


def test_functions_are_explained_with_and_without_gradients() -> None:
    weights = np.array([1.0, -2.0, 0.5])
    x = np.array([[1.0, 1.0, 2.0], [0.0, 3.0, -1.0]])
    plain = brenier.Model(lambda batch: batch @ weights, input_shape=(3,))
    np.testing.assert_allclose(brenier.explain(plain, x, "occlusion").values, x * weights, atol=1e-9)
    with pytest.raises(brenier.NoGradientError, match="scores only"):
        brenier.explain(plain, x, "ig")
    both = brenier.Model(
        lambda batch: batch @ weights, input_shape=(3,), gradients=lambda batch, _: np.tile(weights, (len(batch), 1))
    )
    np.testing.assert_allclose(brenier.explain(both, x, "ig").values, x * weights, atol=1e-9)
    pair = brenier.Model(
        lambda batch: batch @ weights, input_shape=(3,),
        gradients=lambda batch, _: (batch @ weights, np.tile(weights, (len(batch), 1))),
    )
    np.testing.assert_array_equal(brenier.explain(pair, x, "ig").values, brenier.explain(both, x, "ig").values)


def test_several_targets_and_the_predicted_one(convnet: Fixture) -> None:
    model, data = convnet
    loaded = brenier.Model(model)
    every = brenier.explain(loaded, data["inputs"], "gradient", targets="all")
    assert every.shape == (10, 3, 8, 8)
    assert every.targets.tolist() == [0, 1, 2, 3, 4] * 2
    assert every.examples.tolist() == [0] * 5 + [1] * 5
    best = brenier.explain(loaded, data["inputs"], "gradient")
    assert best.targets.tolist() == data["scores"].argmax(axis=1).tolist()
    np.testing.assert_array_equal(best.values[1], every.values[5 + best.targets[1]])
    named = brenier.Model(model, classes=list("abcde"))
    np.testing.assert_array_equal(
        brenier.explain(named, data["inputs"], "gradient", target="c").values, every.values[[2, 7]]
    )


def test_explanations_are_indexed_joined_saved_and_pickled(smooth: Fixture, tmp_path: Path) -> None:
    model, data = smooth
    found = brenier.explain(model, data["inputs"], feature_names=list("uvwxyz"), baseline=data["baselines"])
    assert found[0] + found[1] == found
    assert found[[True, False]] == found[0] == found[:1]
    drawn = brenier.explain(model, data["inputs"], "smoothgrad")
    assert drawn[0] + drawn[1] == drawn and drawn[1].standard_errors is not None
    assert len(list(found)) == 2 and np.asarray(found).shape == (2, 6)
    assert pickle.loads(pickle.dumps(found)) == found
    found.save(tmp_path / "out")
    assert brenier.load(tmp_path / "out") == found
    assert (tmp_path / "out/explanations.npz").exists()
    assert "2 explanations by ig" in repr(found)
    assert "data:image" not in found._repr_html_() and "<td>u</td>" in found._repr_html_()
    with pytest.raises(brenier.FileError):
        brenier.load(tmp_path / "nothing")


def test_images_are_shown_without_a_network(convnet: Fixture) -> None:
    model, data = convnet
    page = brenier.explain(model, data["inputs"], "gradient")._repr_html_()
    assert page.count("data:image/png;base64,") == 2 and "http" not in page


def test_models_from_bytes_and_pickled_models(smooth: Fixture) -> None:
    model, data = smooth
    loaded = brenier.Model(Path(model).read_bytes())
    x = data["inputs"]
    expected = brenier.explain(model, x).values
    np.testing.assert_array_equal(brenier.explain(loaded, x).values, expected)
    again = pickle.loads(pickle.dumps(loaded))
    np.testing.assert_array_equal(brenier.explain(again, x).values, expected)
    np.testing.assert_allclose(loaded.scores(x), data["scores"], atol=1e-5)
    assert loaded.shape == (6,) and loaded.outputs == 3 and loaded.hash == brenier.Model(model).hash
    scores, gradients = loaded.gradients(x, data["targets"])
    np.testing.assert_allclose(gradients * x, data["gradient_input"], atol=1e-5)
    np.testing.assert_allclose(scores, data["scores"][[0, 1], data["targets"]], atol=1e-5)


def test_a_forest_runs_in_onnx_runtime() -> None:
    pytest.importorskip("onnxruntime", reason="tree ensembles run in ONNX Runtime")
    data = np.load(FIXTURES / "perturbation/forest.npz")
    content = (FIXTURES / "perturbation/forest.onnx").read_bytes()
    own = brenier.Model(content)
    np.testing.assert_allclose(own.scores(data["inputs"]), data["probabilities"], atol=1e-5)
    forest = brenier.Model(content, engine="ort")
    np.testing.assert_allclose(forest.scores(data["inputs"]), data["probabilities"], atol=1e-5)
    found = brenier.explain(
        forest, data["inputs"], "shapley-values", background=data["background"], target=data["targets"]
    )
    np.testing.assert_allclose(found.values, data["exact"], atol=1e-5)
    found = brenier.explain(own, data["inputs"], "tree-shap", background=data["background"], target=data["targets"])
    np.testing.assert_allclose(found.values, data["exact"], atol=1e-5)


def test_inspect_and_the_lists(convnet: Fixture) -> None:
    model, _ = convnet
    assert brenier.inspect(model)["differentiable"] is True
    assert brenier.inspect(Path(model).read_bytes())["operators"]["Conv"] == 2
    names = [method["name"] for method in brenier.methods()]
    assert "transport" in names and "ig" in names
    assert "tolerance" in next(m for m in brenier.methods() if m["name"] == "ig")["arguments"]
    assert any(metric["name"] == "deletion-zero" for metric in brenier.metrics())


def test_evaluate_compares_methods(convnet: Fixture) -> None:
    model, data = convnet
    table = brenier.evaluate(model, data["inputs"], ["ig", "gradient"], ["relative-residual", "deletion-zero"])
    assert [row["method"] for row in table.rows] == ["ig", "gradient"]
    assert table.rows[0]["relative-residual"] < 1e-2
    assert table.rows[1]["relative-residual"] is None
    assert "deletion-zero" in repr(table)


def test_evaluate_chooses_metrics_and_gives_no_star_for_a_tie(smooth: Fixture) -> None:
    model, data = smooth
    table = brenier.evaluate(model, data["inputs"], ["gradient", "gradient"])
    # Rows of numbers, methods without a path: what needs images or paths is left out, not refused.
    assert "deletion-zero" in table.leads and "satv" not in table.leads
    assert table.left_out["gps"] == "the method has no path"
    assert all(lead["lead"] != "best" for lead in table.leads.values()), table.leads
    assert "*" not in repr(table)


def test_export_writes_a_file_that_onnx_runtime_runs(convnet: Fixture, tmp_path: Path) -> None:
    import onnxruntime

    model, data = convnet
    x = data["inputs"].astype(np.float32)
    brenier.export(model, tmp_path / "explainer.onnx", "ig", steps=30, target=2)
    session = onnxruntime.InferenceSession(tmp_path / "explainer.onnx")
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(None, {session.get_inputs()[0].name: x}), strict=True))
    wanted = brenier.explain(model, x, "ig", steps=30, target=2)
    assert np.abs(found["credit"] - wanted.values).max() < 1e-5 * np.abs(wanted.values).max()
    assert found["explained"].tolist() == [2] * len(x)
    brenier.export(model, tmp_path / "mean.onnx", "expected-gradients", background=x[:2], steps=8, target="input")
    assert [i.name for i in onnxruntime.InferenceSession(tmp_path / "mean.onnx").get_inputs()][1] == "target"
    with pytest.raises(brenier.MethodError, match="cannot be exported"):
        brenier.export(model, tmp_path / "no.onnx", "kernel-shap")
    with pytest.raises(brenier.MethodError, match="background="):
        brenier.export(model, tmp_path / "no.onnx", "expected-gradients")
    with pytest.raises(brenier.MethodError, match="rule="):
        brenier.export(model, tmp_path / "no.onnx", rule="adaptive")
    with pytest.raises(brenier.TargetError):
        brenier.export(model, tmp_path / "no.onnx", target=99)


def test_shift_finds_the_column_that_moved() -> None:
    draw = np.random.default_rng(0)
    before = draw.normal(size=(400, 3))
    after = draw.normal(size=(400, 3)) + [0.0, 1.0, 0.0]
    weights = np.array([1.0, 2.0, 0.0])
    model = brenier.Model(
        lambda x: x @ weights, input_shape=(3,), gradients=lambda x, _: np.tile(weights, (len(x), 1))
    )
    found = brenier.shift(model, before, after)
    assert abs(found.change - (after @ weights).mean() + (before @ weights).mean()) < 1e-6
    assert abs(found.values.sum() - found.change) < 1e-6
    assert found.columns[1]["significant"] and not found.columns[2]["significant"]
    assert "moved by" in repr(found)
    assert pickle.loads(pickle.dumps(found)).facts == found.facts


def test_frames_keep_their_names(smooth: Fixture) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    model, data = smooth
    frame = pandas.DataFrame(data["inputs"], columns=list("uvwxyz"))
    found = brenier.explain(model, frame)
    assert found.feature_names == list("uvwxyz")
    np.testing.assert_array_equal(found.values, brenier.explain(model, data["inputs"]).values)
    table = found.to_frame()
    assert len(table) == 2 and (table["verdict"] == "pass").all()
    after = frame.copy()
    after["v"] += 1.0
    many = [pandas.concat([f] * 3, ignore_index=True) for f in (frame, after[list("zyxwvu")])]
    moved = brenier.shift(model, *many)
    assert [column["name"] for column in moved.columns] == list("uvwxyz")
    assert max(moved.columns, key=lambda column: abs(column["credit"]))["name"] == "v"
    frame.loc[1, "w"] = np.nan
    with pytest.raises(brenier.NotFiniteError, match="row 1 at w"):
        brenier.explain(model, frame)


def test_plots_and_shap(smooth: Fixture, convnet: Fixture) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    rows = brenier.explain(smooth[0], smooth[1]["inputs"])
    assert len(rows.plot(1, top=3).axes[0].patches) == 4
    images = brenier.explain(convnet[0], convnet[1]["inputs"], "gradient")
    for kind in ("side-by-side", "overlay"):
        assert images.plot(0, kind=kind).axes
    with pytest.raises(brenier.ShapeError):
        rows.plot(kind="overlay")


def test_shap_takes_them(smooth: Fixture) -> None:
    pytest.importorskip("shap", reason="shap is not installed")
    found = brenier.explain(smooth[0], smooth[1]["inputs"], "smoothgrad", feature_names=list("uvwxyz"))
    theirs = found.to_shap()
    np.testing.assert_array_equal(theirs.values, found.values)
    np.testing.assert_array_equal(theirs.error_std, found.standard_errors)
    assert list(theirs.feature_names) == list("uvwxyz")


def test_reasons_are_the_columns_that_moved_the_score(smooth: Fixture) -> None:
    model, data = smooth
    names = ["age", "city=Lyon", "city=Oslo", "debt", "rank", "years"]
    found = brenier.explain(model, data["inputs"], feature_names=names, baseline=data["baselines"], target=1)
    columns = np.stack([found.values[:, 0], found.values[:, 1] + found.values[:, 2], *found.values[:, 3:].T], 1)
    for row, credit, score, reference in zip(found.reasons(2), columns, found.scores, found.reference_scores, strict=True):
        sign = 1 if score >= reference else -1
        listed = [reason["credit"] for reason in row["reasons"]]
        np.testing.assert_allclose(listed, sign * np.sort(sign * credit)[::-1][: len(listed)], atol=1e-12)
        assert row["side"] == ("for" if sign > 0 else "against") and all(sign * value > 0 for value in listed)
        assert row["reasons"][0]["counterpart"] is not None
        total = sum(listed) + row["unlisted"] + row["other_side"]
        np.testing.assert_allclose(total, credit.sum(), atol=1e-9)
    said = found.reasons(1, sentence="{column} is {value}")[0]["reasons"][0]
    assert said["sentence"] == f"{said['column']} is {said['value']}"
    with pytest.raises(brenier.exceptions.BrenierError, match="speaking"):
        found.reasons(2, speaking="up")
    with pytest.raises(brenier.exceptions.BrenierError, match="column"):
        found.reasons(2, sentence="{colum}")
    with pytest.raises(brenier.exceptions.BrenierError, match="feature_names"):
        brenier.explain(model, data["inputs"]).reasons(2)


def test_pipelines_of_scikit_learn_have_gradients() -> None:
    path, data = FIXTURES / "pipelines/svc_rbf.onnx", np.load(FIXTURES / "pipelines/svc_rbf.npz")
    found = brenier.explain(str(path), data["rows"], "gradient", target=1)
    np.testing.assert_allclose(found.scores, data["scores"][:, 1], atol=1e-5)
    np.testing.assert_allclose(found.values, data["gradients"][:, 1], atol=1e-4)


def test_scikit_learn_models(tmp_path: Path) -> None:
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    draw = np.random.default_rng(0)
    x = draw.normal(size=(50, 4))
    fitted = linear.LinearRegression().fit(x, x @ [1.0, 2.0, 0.0, -1.0] + 3.0)
    found = brenier.explain(fitted, x[:3], "shapley-values", background=x)
    np.testing.assert_allclose(found.values, (x[:3] - x.mean(axis=0)) * [1.0, 2.0, 0.0, -1.0], atol=1e-3)


def test_certificates_are_json(convnet: Fixture) -> None:
    model, data = convnet
    found = brenier.explain(model, data["inputs"], "smoothgrad", samples=5)
    assert json.loads(json.dumps(found.certificates)) == found.certificates
    assert found.certificates[0]["sampling"]["samples"] == 5
    assert found.standard_errors is not None and found.standard_errors.shape == found.shape


def test_an_input_is_carried_to_its_counterpart_among_the_rows_that_it_is_compared_with() -> None:
    weights = np.array([3.0, -0.5])
    model = brenier.Model(
        lambda x: x @ weights, input_shape=(2,), gradients=lambda x, _: np.tile(weights, (len(x), 1))
    )
    # All corners of a box have a diagonal covariance: the map stretches each column by itself.
    corners = np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
    other = np.tile(np.array([1.0, -2.0]) + corners * np.array([0.5, 2.0]), (500, 1))
    own = np.tile(np.array([4.0, 0.0]) + corners * np.array([2.0, 1.0]), (500, 1))
    x = np.array([[5.0, 0.25]])
    found = brenier.explain(model, x, against=other, among=own, target=0)
    counterpart = np.array([1.0 + 0.25 * (5.0 - 4.0), -2.0 + 2.0 * 0.25])
    assert found.references is not None
    np.testing.assert_allclose(found.references[0], counterpart, atol=2e-3)
    np.testing.assert_allclose(found.values[0], weights * (x[0] - found.references[0]), atol=1e-6)
    comparison = found.certificates[0]["comparison"]
    assert comparison["against"] == "against" and abs(comparison["typical_change"] - 8.0) < 1e-5
    with pytest.raises(brenier.SettingError, match="against= makes no difference to ig"):
        brenier.explain(model, x, "ig", against=other)
    with pytest.raises(brenier.SettingError, match="among= makes no difference without against="):
        brenier.explain(model, x, among=other)


@pytest.mark.parametrize("name", ["boosted", "logistic"])
def test_a_pipeline_of_a_data_frame_takes_the_frame(name: str) -> None:
    pandas = pytest.importorskip("pandas")
    path = FIXTURES / f"pipelines/tabular_{name}.onnx"
    frame = pandas.read_csv(FIXTURES / "pipelines/tabular.csv")
    model = brenier.Model(str(path), keep_softmax=True)
    assert [column["name"] for column in model.columns] == ["age", "hours", "gain", "job", "sex"]
    truth = np.load(FIXTURES / "pipelines/tabular.npz")[name]
    np.testing.assert_allclose(model.scores(frame), truth, atol=1e-5)
    # Columns are found by name, in any order.
    turned = frame[list(frame.columns)[::-1]]
    np.testing.assert_array_equal(model.scores(turned), model.scores(frame))
    model = brenier.Model(str(path))
    found = brenier.explain(model, frame[:3], against=frame[12:], among=turned, target=1)
    assert found.feature_names is not None and "job=smith" in found.feature_names
    reasons = found.reasons(2)
    assert {reason["column"] for row in reasons for reason in row["reasons"]} <= {"age", "hours", "gain", "job", "sex"}
    moved = brenier.shift(model, frame[:12], turned[12:], target=1)
    assert {column["name"].split("=")[0] for column in moved.columns} == {"age", "hours", "gain", "job", "sex"}
    with pytest.raises(brenier.DataError, match="'baker', which is none of clerk, nurse, smith, in row 1"):
        model.scores(frame.assign(job=["clerk", "baker"] + ["smith"] * 22))
    with pytest.raises(brenier.DataError, match="no column 'gain'"):
        model.scores(frame.drop(columns="gain"))
