//! ONNX graphs as plain values, and differentiation as a function from graph to graph.
