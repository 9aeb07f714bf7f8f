"""Does `brenier shift` find what was moved, on real tables? Housing, adult census and bike sharing, a network and boosted trees each.

    python bench/shift_tables/run.py PROGRAM FOLDER [--rows 300] [--shifts 30] [--only adult:boosted] [--single]

FOLDER has the files of shapiq 1.4.1 (`shapiq/datasets/data/*.csv`). Needs requirements.txt beside this file.

A shift moves one column of one half of the rows: a number by a factor about its mean, in its upper tail, or by a constant; a
category by giving a part of the rows another level. The truth is the mean credit along the planted move itself (a straight line for
every row) over up to 4,000 rows. Coverage is how often the 95 % interval of a column has it. Errors and leaks are parts of the
true change, and net: what `shift` says of the very same rows without the move is subtracted. `still` are intervals that leave out 0
where nothing was moved. `--single` compares single rows: the credit of the moved column against a reference population, by
`explain --against` and by shap's interventional TreeSHAP with 100 rows of the same population.
"""

import argparse
import csv
import json
import pathlib
import subprocess

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier, LGBMRegressor
from onnxmltools.convert.lightgbm.operator_converters.LightGbm import convert_lightgbm
from skl2onnx import to_onnx, update_registered_converter
from skl2onnx.common import shape_calculator
from sklearn.compose import make_column_transformer
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

OPSETS = {"": 18, "ai.onnx.ml": 3}
TRUTH = 4000
# Columns that may be moved: numbers with many values, and categories.
TABLES = {
    "housing": ("california_housing.csv", "MedHouseVal", [], ["MedInc", "HouseAge", "AveRooms", "AveOccup", "Latitude"]),
    "adult": (
        "adult_census.csv", "class", ["fnlwgt", "education", "relationship", "native-country", "sex"],
        ["age", "education-num", "hours-per-week", "workclass", "marital-status", "occupation"],
    ),
    "bike": ("bike.csv", "count", ["feel_temp"], ["temp", "humidity", "windspeed", "season", "weather"]),
}


def table(folder, name):
    file, label, dropped, movable = TABLES[name]
    data = pd.read_csv(folder / file).drop(columns=dropped).dropna()
    data = data[~data.isin(["?"]).any(axis=1)]
    y = np.log1p(data[label]) if name == "bike" else data[label]
    x = data.drop(columns=label)
    x = x.astype({column: np.float32 for column in x if x[column].dtype.kind in "if"})
    rename = {column: column.replace("-", "_") for column in x}
    return x.rename(columns=rename), y, [rename[column] for column in movable]


def fitted(x, y, kind):
    numbers = [column for column in x if x[column].dtype.kind == "f"]
    words = [column for column in x if column not in numbers]
    steps = [(StandardScaler(), numbers)] + ([(OneHotEncoder(handle_unknown="ignore"), words)] if words else [])
    classes = y.dtype.kind not in "if"
    if kind == "boosted":
        model = (LGBMClassifier if classes else LGBMRegressor)(n_estimators=100, num_leaves=15, random_state=0, verbose=-1, n_jobs=1)
    else:
        model = (MLPClassifier if classes else MLPRegressor)(hidden_layer_sizes=(32,), activation="tanh", max_iter=60, random_state=0)
    return make_pipeline(make_column_transformer(*steps), model).fit(x, y), model


def export(pipeline, model, x, file):
    options = {id(model): {"zipmap": False}} if hasattr(model, "predict_proba") else None
    file.write_bytes(to_onnx(pipeline, x[:1], target_opset=OPSETS, options=options).SerializeToString())


def planted(rng, x, column):
    """A move of one column: a name, and the function from rows to moved rows."""
    if x[column].dtype.kind != "f":
        levels = x[column].value_counts()
        source, goal = rng.choice(levels.index[:3], 2, replace=False)
        part, seed = rng.uniform(0.2, 0.6), int(rng.integers(1 << 30))

        def move(rows):
            chosen = (rows[column] == source) & (np.random.default_rng(seed).random(len(rows)) < part)
            return rows.assign(**{column: rows[column].where(~chosen, goal)})

        return "category", move
    mean, deviation = float(x[column].mean()), float(x[column].std())
    kind = rng.choice(["scale", "tail", "location"])
    factor, edge = rng.uniform(1.2, 1.6), float(x[column].quantile(0.7))
    step = deviation * rng.uniform(0.3, 0.8) * rng.choice([-1, 1])

    def move(rows):
        old = rows[column]
        new = {
            "scale": lambda: mean + factor * (old - mean),
            "tail": lambda: old.where(old <= edge, edge + (1 + factor) * (old - edge)),
            "location": lambda: old + step,
        }[kind]()
        return rows.assign(**{column: new.astype(np.float32)})

    return kind, move


class Runner:
    def __init__(self, program, folder, model, target):
        self.program, self.folder, self.model, self.target = program, folder, model, target

    def run(self, *words):
        done = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def shift(self, a, b, seed):
        a.to_csv(self.folder / "a.csv", index=False)
        b.to_csv(self.folder / "b.csv", index=False)
        self.run("shift", "a.csv", "b.csv", "-m", self.model, "--target", self.target, "--seed", str(seed), "-o", "out", "--force")
        rows = list(csv.DictReader(open(self.folder / "out/shift.csv")))
        rows = [row for row in rows if row["group"] == "all"]
        of = {row["column"]: (float(row["credit"]), float(row["low"]), float(row["high"])) for row in rows}
        columns = json.loads((self.folder / "out/shift.json").read_text())["columns"]
        return [of[column["name"]] for column in columns], columns

    def lines(self, start, end, columns):
        """Mean credit of every column along straight lines between rows."""
        start.to_csv(self.folder / "start.csv", index=False)
        end.to_csv(self.folder / "end.csv", index=False)
        if not (self.folder / "zero.npy").exists():
            width = sum(len(column["kind"].get("values", [0])) for column in columns)
            np.save(self.folder / "zero.npy", np.zeros((1, width), np.float32))
        common = ["-m", self.model, "--target", self.target, "-q", "--force"]
        self.run("explain", "start.csv", *common, "--method", "gradient-input" if "network" in self.model else "ig", "-o", "coded")
        coded = np.load(self.folder / "coded/explanations.npz")["inputs"]
        np.save(self.folder / "coded.npy", coded.astype(np.float32))
        self.run("explain", "end.csv", *common, "--method", "ig", "--baseline", "coded.npy", "-o", "lines")
        return by_column(np.load(self.folder / "lines/explanations.npz")["values"], columns)


def by_column(values, columns):
    widths = [len(column["kind"].get("values", [0])) for column in columns]
    ends = np.cumsum(widths)
    return np.stack([values[:, end - width:end].sum(axis=1) for end, width in zip(ends, widths)], 1)


def quantiles(values):
    return f"{np.median(values):.3f} / {np.quantile(values, 0.9):.3f}" if len(values) else "-"


def measure(runner, x, movable, rows, shifts):
    rng = np.random.default_rng(7)
    covered, outside, errors, leaks, first = [], [], [], [], []
    for seed in range(shifts):
        column = movable[seed % len(movable)]
        _, move = planted(rng, x, column)
        drawn = rng.permutation(len(x))
        a, still = x.iloc[drawn[:rows]], x.iloc[drawn[rows:2 * rows]]
        some = x.iloc[drawn[:TRUTH]]
        found, columns = runner.shift(a, move(still), seed)
        without, _ = runner.shift(a, still, seed)
        truth = runner.lines(some, move(some), columns).mean(axis=0)
        # The truth of these very rows, for what is net.
        own = runner.lines(still, move(still), columns).mean(axis=0)
        names = [one["name"] for one in columns]
        moved = names.index(column)
        covered.append([low <= t <= high for (_, low, high), t in zip(found, truth)])
        outside.append([not low <= 0 <= high for _, low, high in without])
        change = abs(own.sum())
        if change < 0.02 * runner.deviation:
            continue
        net = np.array([f[0] - w[0] for f, w in zip(found, without)])
        errors.append(abs(net[moved] - own[moved]) / change)
        leaks.append(np.abs(np.delete(net - own, moved)).sum() / change)
        first.append(int(np.argmax(np.abs([f[0] for f in found])) == moved))
    covered, outside = np.array(covered), np.array(outside)
    return (
        f"{rows} | {shifts} | {covered.mean():.3f} | {covered.mean(axis=0).min():.3f} | {outside.mean():.3f} | "
        f"{quantiles(errors)} | {quantiles(leaks)} | {np.mean(first):.2f} of {len(first)}"
    )


def single(runner, pipeline, model, x, movable, rows, shifts):
    """The error on the moved column of single rows, in deviations of the score: `explain --against`, and TreeSHAP."""
    import shap

    rng = np.random.default_rng(8)
    ours, theirs = [], []
    explainer = None
    for seed in range(shifts):
        column = movable[seed % len(movable)]
        _, move = planted(rng, x, column)
        drawn = rng.permutation(len(x))
        a, still = x.iloc[drawn[:rows]], x.iloc[drawn[rows:2 * rows]]
        moved_rows = move(still)
        changed = (moved_rows[column] != still[column]).to_numpy().nonzero()[0][:20]
        if len(changed) == 0:
            continue
        a.to_csv(runner.folder / "a.csv", index=False)
        moved_rows.to_csv(runner.folder / "b.csv", index=False)
        moved_rows.iloc[changed].to_csv(runner.folder / "x.csv", index=False)
        runner.run("explain", "x.csv", "-m", runner.model, "--target", runner.target, "--against", "a.csv", "--among", "b.csv",
                   "-q", "--force", "-o", "against")
        columns = json.loads((runner.folder / "against/report.json").read_text())["columns"]
        place = [one["name"] for one in columns].index(column)
        found = by_column(np.load(runner.folder / "against/explanations.npz")["values"], columns)[:, place]
        truth = runner.lines(still.iloc[changed], moved_rows.iloc[changed], columns)[:, place]
        coder = pipeline[:-1]
        dense = lambda rows: np.asarray(coder.transform(rows).todense() if hasattr(coder.transform(rows), "todense") else coder.transform(rows))
        names = list(coder.get_feature_names_out())
        own = [i for i, name in enumerate(names) if name.split("__")[1] == column or name.split("__")[1].startswith(column + "_")]
        explainer = shap.TreeExplainer(model, dense(a)[:100], feature_perturbation="interventional")
        values = np.asarray(explainer.shap_values(dense(moved_rows.iloc[changed])))
        values = values[..., 1] if values.ndim == 3 else values
        ours.extend(np.abs(found - truth) / runner.deviation)
        theirs.extend(np.abs(values[:, own].sum(axis=1) - truth) / runner.deviation)
    return f"{rows} | {shifts} | {len(ours)} | {np.median(ours):.3f} ({np.mean(ours):.3f}) | {np.median(theirs):.3f} ({np.mean(theirs):.3f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--shifts", type=int, default=30)
    parser.add_argument("--only", default="")
    parser.add_argument("--single", action="store_true")
    args = parser.parse_args()
    folder, program = pathlib.Path(args.folder), str(pathlib.Path(args.program).resolve())
    for kind, shape in (
        (LGBMClassifier, shape_calculator.calculate_linear_classifier_output_shapes),
        (LGBMRegressor, shape_calculator.calculate_linear_regressor_output_shapes),
    ):
        options = {"zipmap": [True, False, "columns"], "nocl": [True, False]} if kind is LGBMClassifier else {"split": None}
        update_registered_converter(kind, f"LightGbm{kind.__name__}", shape, convert_lightgbm, options=options)
    for name in TABLES:
        for kind in ("network", "boosted"):
            if args.only and args.only not in f"{name}:{kind}" or args.single and kind == "network":
                continue
            x, y, movable = table(folder, name)
            work = folder / f"{name}-{kind}-{args.rows}{'-single' if args.single else ''}"
            work.mkdir(exist_ok=True)
            pipeline, model = fitted(x, y, kind)
            export(pipeline, model, x, work / f"{kind}.onnx")
            runner = Runner(program, work, f"{kind}.onnx", "1" if hasattr(model, "predict_proba") else "0")
            if hasattr(model, "predict_proba"):
                p = np.clip(pipeline.predict_proba(x)[:, 1], 1e-9, 1 - 1e-9)
                runner.deviation = float(np.log(p / (1 - p)).std())
            else:
                runner.deviation = float(np.std(pipeline.predict(x)))
            if args.single:
                line = single(runner, pipeline, model, x, movable, args.rows, args.shifts)
            else:
                line = measure(runner, x, movable, args.rows, args.shifts)
            print(f"| {name}, {kind} | {line} |", flush=True)


if __name__ == "__main__":
    main()
