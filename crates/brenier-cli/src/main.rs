//! `brenier`: explain a model's prediction along the path by which the data came to be.

fn main() {}
