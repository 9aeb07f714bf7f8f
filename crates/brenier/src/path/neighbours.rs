//! Shortest ways through the graph of nearest neighbours: geodesics that keep to the data.
//!
//! ```text
//! edges: each point with its k nearest (either way round);   cost(i, j) = |x_i - x_j| s_ij
//! ```
//!
//! `s` is 1 for the geometry of the data alone, or how steep a score is between the two points (Salek et al.,
//! 2025). The graph is made once; a start and an end are joined to it for each path.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

use super::Polyline;
use crate::{Error, Result, error};

/// Points and the pairs of them that are neighbours.
#[derive(Debug, Clone)]
pub struct NeighbourGraph {
    points: Array2<f64>,
    neighbours: usize,
    edges: Vec<(usize, usize)>,
}

impl NeighbourGraph {
    /// Joins each row of `points` to its nearest `neighbours`, by brute force.
    pub fn new(points: Array2<f64>, neighbours: usize) -> Result<Self> {
        if neighbours == 0 {
            return Err(Error::Zero { what: "the number of neighbours" });
        }
        let mut edges = BTreeSet::new();
        for (i, point) in points.rows().into_iter().enumerate() {
            for j in
                nearest(points.view(), point, neighbours + 1).into_iter().filter(|&j| j != i).take(neighbours)
            {
                edges.insert((i.min(j), i.max(j)));
            }
        }
        Ok(Self { points, neighbours, edges: edges.into_iter().collect() })
    }

    /// The pairs of neighbours.
    pub fn edges(&self) -> &[(usize, usize)] {
        &self.edges
    }

    /// The graph with a start and an end joined to their nearest points, and to each other where they are near.
    pub fn joined(&self, start: ArrayView1<f64>, end: ArrayView1<f64>) -> Result<JoinedGraph<'_>> {
        error::expect_shape("the start of the path", &[self.points.ncols()], start.shape())?;
        error::expect_shape("the end of the path", &[self.points.ncols()], end.shape())?;
        let count = self.points.nrows();
        let mut ends = Array2::zeros((2, self.points.ncols()));
        ends.row_mut(0).assign(&start);
        ends.row_mut(1).assign(&end);
        let mut extra = BTreeSet::new();
        for (node, point, other) in [(count, start, end), (count + 1, end, start)] {
            let near = nearest(self.points.view(), point, self.neighbours);
            let between = distance(point, other);
            let full = near.len() == self.neighbours;
            if !full || near.iter().any(|&j| between < distance(point, self.points.row(j))) {
                extra.insert((count, count + 1));
            }
            extra.extend(near.into_iter().map(|j| (j, node)));
        }
        Ok(JoinedGraph { graph: self, ends, extra: extra.into_iter().collect() })
    }
}

/// A graph with one start and one end.
pub struct JoinedGraph<'a> {
    graph: &'a NeighbourGraph,
    ends: Array2<f64>,
    extra: Vec<(usize, usize)>,
}

impl JoinedGraph<'_> {
    /// The pairs that came with the start and the end.
    pub fn extra_edges(&self) -> &[(usize, usize)] {
        &self.extra
    }

    /// A point by its number; the start and the end are the last two.
    pub fn point(&self, node: usize) -> ArrayView1<'_, f64> {
        let count = self.graph.points.nrows();
        if node < count { self.graph.points.row(node) } else { self.ends.row(node - count) }
    }

    /// The cheapest way from start to end, where an edge costs its length times its steepness: those of the
    /// graph's edges first, then those of the extra ones. Times go with length.
    ///
    /// # Errors
    /// If there is no way.
    pub fn shortest(&self, steepness: &[f64], extra_steepness: &[f64]) -> Result<Polyline> {
        error::expect_shape("the steepness of the edges", &[self.graph.edges.len()], &[steepness.len()])?;
        error::expect_shape("the steepness of extra edges", &[self.extra.len()], &[extra_steepness.len()])?;
        let count = self.graph.points.nrows() + 2;
        let (start, end) = (count - 2, count - 1);
        let mut ways: Vec<Vec<(usize, f64)>> = vec![Vec::new(); count];
        let edges = self.graph.edges.iter().zip(steepness).chain(self.extra.iter().zip(extra_steepness));
        for (&(i, j), steepness) in edges {
            let cost = steepness * distance(self.point(i), self.point(j));
            ways[i].push((j, cost));
            ways[j].push((i, cost));
        }
        let mut best = vec![f64::INFINITY; count];
        let mut before = vec![usize::MAX; count];
        best[start] = 0.0;
        // Floats that are not negative are ordered as their bits are.
        let mut queue = BinaryHeap::from([Reverse((0.0_f64.to_bits(), start))]);
        while let Some(Reverse((bits, node))) = queue.pop() {
            let cost = f64::from_bits(bits);
            if cost > best[node] {
                continue;
            }
            for &(next, step) in &ways[node] {
                if cost + step < best[next] {
                    best[next] = cost + step;
                    before[next] = node;
                    queue.push(Reverse(((cost + step).to_bits(), next)));
                }
            }
        }
        if best[end].is_infinite() {
            return Err(Error::Setting {
                name: "the number of neighbours",
                value: self.graph.neighbours.to_string(),
                needs: "with so few, no way through the data leads from the baseline to the input",
                hint: "take more neighbours, more rows of data, or a baseline nearer to the data".into(),
            });
        }
        let mut nodes = vec![end];
        while let Some(&node) = nodes.last().filter(|&&node| node != start) {
            nodes.push(before[node]);
        }
        nodes.reverse();
        self.polyline(&nodes)
    }

    fn polyline(&self, nodes: &[usize]) -> Result<Polyline> {
        let mut kept = vec![nodes[0]];
        for &node in &nodes[1..] {
            if distance(self.point(kept[kept.len() - 1]), self.point(node)) > 0.0 {
                kept.push(node);
            }
        }
        if kept.len() == 1 {
            kept.push(nodes[nodes.len() - 1]);
        }
        let rows: Vec<_> = kept.iter().map(|&node| self.point(node).insert_axis(Axis(0))).collect();
        let mut points = Array2::zeros((kept.len(), self.ends.ncols()));
        for (mut target, row) in points.rows_mut().into_iter().zip(&rows) {
            target.assign(&row.row(0));
        }
        let lengths = kept.windows(2).map(|pair| distance(self.point(pair[0]), self.point(pair[1])));
        let mut times = vec![0.0];
        for length in lengths {
            times.push(times[times.len() - 1] + length);
        }
        let total = times[times.len() - 1];
        if total == 0.0 {
            return Ok(Polyline::new(points)?.named("geodesic"));
        }
        times.iter_mut().for_each(|time| *time /= total);
        Ok(Polyline::with_times(points, times)?.named("geodesic"))
    }
}

pub(super) fn distance(a: ArrayView1<f64>, b: ArrayView1<f64>) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// The rows nearest to a point, the nearest first; of equally near ones the first.
fn nearest(points: ArrayView2<f64>, to: ArrayView1<f64>, count: usize) -> Vec<usize> {
    let mut order: Vec<(f64, usize)> =
        points.rows().into_iter().enumerate().map(|(i, point)| (distance(point, to), i)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    order.into_iter().take(count).map(|(_, i)| i).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;
    use ndarray::array;

    /// Points on a half circle: the way follows the arc, not the chord, and is pi long.
    #[test]
    fn the_way_keeps_to_the_data() {
        let points = Array2::from_shape_fn((200, 2), |(i, axis)| {
            let angle = std::f64::consts::PI * (i as f64 + 0.5) / 200.0;
            if axis == 0 { angle.cos() } else { angle.sin() }
        });
        let graph = NeighbourGraph::new(points, 4).unwrap();
        let joined = graph.joined(array![1.0, 0.0].view(), array![-1.0, 0.0].view()).unwrap();
        let ones = |edges: &[(usize, usize)]| vec![1.0; edges.len()];
        let way = joined.shortest(&ones(graph.edges()), &ones(joined.extra_edges())).unwrap();
        let length: f64 = (0..1000)
            .map(|k| k as f64 / 1000.0)
            .map(|t| (way.at(t + 1e-3) - way.at(t)).dot(&(way.at(t + 1e-3) - way.at(t))).sqrt())
            .sum();
        assert!((length - std::f64::consts::PI).abs() < 1e-2, "{length}");
        let middle = way.at(0.5);
        assert!(middle[1] > 0.99, "{middle}");
        assert_eq!(way.evidence().kind, "geodesic");
        // Where there is a gap there is no way.
        let apart = NeighbourGraph::new(array![[0.0, 0.0], [0.1, 0.0], [9.0, 0.0], [9.1, 0.0]], 1).unwrap();
        let joined = apart.joined(array![0.2, 0.0].view(), array![9.2, 0.0].view()).unwrap();
        let refused = joined.shortest(&ones(apart.edges()), &ones(joined.extra_edges())).unwrap_err();
        assert!(refused.to_string().contains("no way through the data"), "{refused}");
    }

    /// Two ways of equal length: the flat one is taken.
    #[test]
    fn the_way_avoids_what_is_steep() {
        let graph = NeighbourGraph::new(array![[1.0, 1.0], [1.0, -1.0]], 2).unwrap();
        let joined = graph.joined(array![0.0, 0.0].view(), array![2.0, 0.0].view()).unwrap();
        let steep = |node: usize| if node == 0 { 3.0 } else { 1.0 };
        let extra: Vec<f64> = joined
            .extra_edges()
            .iter()
            .map(|&(i, j)| if i < 2 { steep(i) } else { steep(j) * 9.0 })
            .collect();
        let way = joined.shortest(&vec![5.0; graph.edges().len()], &extra).unwrap();
        assert_eq!(way.at(0.5), array![1.0, -1.0]);
    }
}
