"""`brenier.ray` on a real cluster of two nodes on this machine, with workers and a node that die midway."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
from ray.cluster_utils import Cluster

import brenier
import brenier.batches
import brenier.ray

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
MODEL = str(FIXTURES / "methods/smooth.onnx")
ROWS = 400


@pytest.fixture(scope="module")
def cluster() -> Any:
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    made.add_node(num_cpus=1, resources={"second": 1})
    ray.init(address=made.address, runtime_env={"env_vars": {"PYTHONPATH": f"{os.environ['PYTHONPATH']}:{Path(__file__).parent}"}}, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture(scope="module")
def rows() -> Any:
    return np.random.default_rng(0).normal(size=(ROWS, 6))


def dataset(rows: Any, blocks: int = 8) -> Any:
    return ray.data.from_items([{"id": i, "x": row} for i, row in enumerate(rows)], override_num_blocks=blocks)


def gathered(found: list[dict[str, Any]]) -> dict[str, Any]:
    ordered = sorted(found, key=lambda row: row["id"])
    return {key: [row[key] for row in ordered] for key in ordered[0]}


def expect_same(found: list[dict[str, Any]], method: str, rows: Any) -> None:
    """The same, to the bit, as the class gives in this process for all rows at once."""
    alone = brenier.batches.Explainer(MODEL, method=method, id_column="id")({"id": np.arange(len(rows)), "x": rows})
    columns = gathered(found)
    assert columns["id"] == list(range(len(rows)))
    assert np.asarray(columns["credit"]).tobytes() == alone["credit"].tobytes()
    for name in ("target", "score", "verdict", "certificate", "error"):
        assert list(columns[name]) == list(alone[name]), name


@pytest.mark.parametrize("method", ["ig", "smoothgrad"])
def test_two_nodes_give_the_bits_of_one_process(cluster: Any, rows: Any, method: str) -> None:
    found = brenier.ray.explain(
        dataset(rows), MODEL, method=method, id_column="id", batch_size=13, compute=ray.data.ActorPoolStrategy(size=2)
    )
    expect_same(found.take_all(), method, rows)
    if method == "ig":
        values = brenier.explain(MODEL, rows, method).values
        assert np.asarray(gathered(found.take_all())["credit"]).tobytes() == values.tobytes()


class Slow(brenier.batches.Explainer):
    """Leaves its process id in a folder and takes its time, so that it can be killed midway."""

    def __init__(self, folder: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.folder = Path(folder)

    def __call__(self, batch: Any) -> dict[str, Any]:
        time.sleep(0.1)
        found = super().__call__(batch)
        node = ray.get_runtime_context().get_node_id()
        (self.folder / f"{os.getpid()}-{node}").touch()
        return found


def slowly(rows: Any, folder: Path) -> Any:
    return dataset(rows).map_batches(
        Slow, fn_constructor_kwargs=dict(folder=str(folder), model=MODEL, method="ig", id_column="id"),
        batch_size=10, batch_format="numpy", compute=ray.data.ActorPoolStrategy(size=2), num_cpus=0.5,
    )


def test_a_killed_worker_loses_nothing(cluster: Any, rows: Any, tmp_path: Path) -> None:
    found, killed = [], False
    for row in slowly(rows, tmp_path).iter_rows():
        found.append(row)
        if not killed:
            os.kill(int(next(tmp_path.iterdir()).name.split("-")[0]), signal.SIGKILL)
            killed = True
    assert killed
    expect_same(found, "ig", rows)
    assert len(list(tmp_path.iterdir())) >= 3, "another worker took over"


def test_failures_are_listed_with_their_ids(cluster: Any, rows: Any, tmp_path: Path) -> None:
    items: list[dict[str, Any]] = [{"id": f"row-{i}", "x": row.tolist()} for i, row in enumerate(rows[:30])]
    items[4]["x"] = [float("nan")] * 6
    items[17]["x"] = items[17]["x"][:5]
    items[22]["x"] = None
    found = brenier.ray.explain(ray.data.from_items(items), MODEL, method="ig", id_column="id", batch_size=7).materialize()
    failed = brenier.ray.failures(found)
    assert sorted(row["id"] for row in failed) == ["row-17", "row-22", "row-4"]
    reasons = {row["id"]: row["error"] for row in failed}
    assert "nan" in reasons["row-4"] and "shape" in reasons["row-17"] and "empty" in reasons["row-22"]
    good = {row["id"]: row["credit"] for row in found.take_all() if not row["error"]}
    assert len(good) == 27
    assert np.asarray(good["row-3"]).tobytes() == brenier.explain(MODEL, rows[3:4], "ig").values[0].tobytes()
    # A model that no actor can load: every row has the reason.
    missing = brenier.ray.explain(ray.data.from_items(items[:3]), str(tmp_path / "no.onnx"), id_column="id")
    assert [row["id"] for row in brenier.ray.failures(missing.materialize())] == ["row-0", "row-1", "row-2"]


def test_a_run_that_broke_off_goes_on(cluster: Any, rows: Any, tmp_path: Path) -> None:
    part = brenier.ray.explain(dataset(rows[:50]), MODEL, method="ig", id_column="id")
    part.write_parquet(str(tmp_path / "out"))
    rest = brenier.ray.explain(dataset(rows[:120]), MODEL, method="ig", id_column="id", written=tmp_path / "out")
    assert rest.count() == 70
    rest.write_parquet(str(tmp_path / "out"))
    expect_same(ray.data.read_parquet(str(tmp_path / "out")).take_all(), "ig", rows[:120])
    with pytest.raises(brenier.SettingError, match="id_column"):
        brenier.ray.explain(dataset(rows), MODEL, written=tmp_path / "out")


def test_metrics_are_summed_over_the_cluster(cluster: Any, rows: Any) -> None:
    methods, metrics = ["ig", "gradient-input"], ["deletion-zero", "completeness-residual"]
    found = brenier.ray.evaluate(dataset(rows[:60]), MODEL, methods, metrics[:1], batch_size=7)
    alone = brenier.evaluate(MODEL, rows[:60], methods, metrics[:1])
    for row, expected in zip(found, alone.facts["rows"], strict=True):
        cell = expected["cells"][0]
        assert (row["method"], row["n"]) == (expected["method"], 60)
        assert row["mean"] == pytest.approx(cell["mean"], rel=1e-12)
        assert row["standard_error"] == pytest.approx(cell["standard_error"], rel=1e-9)


def test_other_engines_take_the_class_as_it_is(rows: Any) -> None:
    import daft

    values = brenier.explain(MODEL, rows[:20], "ig").values
    # Spark hands a predict function the inputs alone.
    assert brenier.batches.Explainer(MODEL, method="ig")(rows[:20])["credit"].tobytes() == values.tobytes()

    @daft.cls
    class Credit(brenier.batches.Explainer):
        @daft.method.batch(return_dtype=daft.DataType.list(daft.DataType.float64()))
        def credit(self, x: daft.Series) -> Any:
            return list(self(np.asarray(x.to_pylist()))["credit"])

    explainer = Credit(MODEL, method="ig")
    frame = daft.from_pydict({"x": [row.tolist() for row in rows[:20]]})
    found = frame.select(explainer.credit(frame["x"]).alias("credit")).to_pydict()["credit"]
    assert np.asarray(found).tobytes() == values.tobytes()


def test_a_killed_node_loses_nothing(cluster: Any, rows: Any, tmp_path: Path) -> None:
    """Last: the second node is gone after it. Another one joins, as on a cluster that mends itself."""
    second = next(node for node in cluster.list_all_nodes() if node is not cluster.head_node)
    found, killed = [], False
    for row in slowly(rows, tmp_path).iter_rows():
        found.append(row)
        if not killed:
            cluster.remove_node(second, allow_graceful=False)
            cluster.add_node(num_cpus=1)
            killed = True
    assert killed
    expect_same(found, "ig", rows)
