"""Puts x * sigmoid(5 x) in the place of every ReLU: python3 assets/cifar10/smooth.py classifier.onnx smooth.onnx

The result has the same weights and lost accuracy; training goes on from there (see assets/README.md). Needs the
package onnx (1.23 here).
"""

import sys

import numpy
import onnx
from onnx import helper, numpy_helper

STEEPNESS = 5.0

source, target = sys.argv[1:]
model = onnx.load(source)
graph = model.graph
graph.initializer.append(numpy_helper.from_array(numpy.float32(STEEPNESS), "steepness"))
nodes = []
for node in graph.node:
    if node.op_type != "Relu":
        nodes.append(node)
        continue
    (value,), (out,) = node.input, node.output
    nodes.append(helper.make_node("Mul", [value, "steepness"], [f"{out}.steep"], f"{out}.steep"))
    nodes.append(helper.make_node("Sigmoid", [f"{out}.steep"], [f"{out}.gate"], f"{out}.gate"))
    nodes.append(helper.make_node("Mul", [value, f"{out}.gate"], [out], f"{out}.smooth"))
del graph.node[:]
graph.node.extend(nodes)
onnx.checker.check_model(model)
onnx.save(model, target)
