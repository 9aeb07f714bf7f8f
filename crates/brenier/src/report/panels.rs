//! Several charts side by side under one heading.
//!
//! What is compared by eye needs the same axes: [`Axes::Equal`] gives all panels one range, and a unit the same
//! length across and up, so that circles are circles and straight means straight.

use super::chart::{Axis, Chart, Frame, escape, picture};

/// How the axes of panels go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axes {
    /// Every panel has its own; legends stand below their panels.
    Own,
    /// All have one range and one unit, which must be linear; the first panel's legend stands for all.
    Equal,
}

/// Charts from left to right.
#[derive(Debug, Clone)]
pub struct Panels {
    /// The heading of all.
    pub title: String,
    /// The charts, each with a heading of its own.
    pub charts: Vec<Chart>,
    /// How their axes go together.
    pub axes: Axes,
}

/// The first panel's left edge, the width of a plot, the distance between plots, and the top edge.
const LEFT: f64 = 84.0;
const WIDTH: f64 = 330.0;
const GAP: f64 = 90.0;
const TOP: f64 = 84.0;

impl Panels {
    /// The panels as SVG.
    pub fn svg(&self) -> String {
        let mut axes: Vec<(Axis, Axis)> = self.charts.iter().map(Chart::axes).collect();
        let mut height = 300.0;
        if let (Axes::Equal, Some(&(first_x, first_y))) = (self.axes, axes.first()) {
            let widest = |first: Axis, all: &mut dyn Iterator<Item = Axis>| {
                all.fold(first, |a, b| Axis { low: a.low.min(b.low), high: a.high.max(b.high), ..a })
            };
            let x = widest(first_x, &mut axes.iter().map(|pair| pair.0));
            let y = widest(first_y, &mut axes.iter().map(|pair| pair.1));
            height = WIDTH * (y.high - y.low) / (x.high - x.low);
            axes.fill((x, y));
        }
        let names = |chart: &Chart| chart.series.iter().filter(|s| !s.name.is_empty()).count();
        let legends = match self.axes {
            Axes::Own => self.charts.iter().map(names).max().unwrap_or(0),
            Axes::Equal => self.charts.first().map_or(0, names),
        };
        let mut body = format!("<text x=\"20\" y=\"30\" font-size=\"18\">{}</text>\n", escape(&self.title));
        let bottom = TOP + height;
        for (i, (chart, (x, y))) in self.charts.iter().zip(&axes).enumerate() {
            let left = LEFT + i as f64 * (WIDTH + GAP);
            body.push_str(&chart.draw(Frame { left, right: left + WIDTH, top: TOP, bottom }, x, y));
            if self.axes == Axes::Own || i == 0 {
                body.push_str(&chart.legend(left, bottom + 74.0));
            }
        }
        let width = LEFT + self.charts.len() as f64 * (WIDTH + GAP) - GAP + 24.0;
        picture(width, bottom + 70.0 + 20.0 * legends as f64, &body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Mark, Scale, Series};

    fn chart(points: Vec<(f64, f64)>) -> Chart {
        let series = vec![Series { name: "a & b".into(), points, mark: Mark::Dots, colour: 0 }];
        let axis = |name: &str| (name.to_string(), Scale::Linear);
        Chart { title: "one".into(), x: axis("x"), y: axis("y"), series }
    }

    /// Where the circles of the series are, without those of the legend.
    fn circles(svg: &str) -> Vec<(f64, f64)> {
        let number = |line: &str, name: &str| -> f64 {
            let rest = line.split(&format!("{name}=\"")).nth(1).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        let lines = svg.lines().filter(|l| l.starts_with("<circle") && l.contains("r=\"2.6\""));
        lines.map(|line| (number(line, "cx"), number(line, "cy"))).collect()
    }

    #[test]
    fn equal_axes_have_one_unit_in_both_directions_and_all_panels() {
        let panels = |axes| Panels {
            title: "<two>".into(),
            charts: vec![chart(vec![(0.0, 0.0), (4.0, 1.0)]), chart(vec![(0.0, 0.0), (1.0, 2.0)])],
            axes,
        };
        let svg = panels(Axes::Equal).svg();
        assert!(svg.contains("&lt;two&gt;") && !svg.contains("NaN"));
        assert_eq!(svg.matches("a &amp; b").count(), 1, "one legend");
        let at = circles(&svg);
        let unit = (at[1].0 - at[0].0) / 4.0;
        assert!((at[0].1 - at[1].1 - unit).abs() < 0.3, "{at:?}");
        assert!((at[3].0 - at[2].0 - unit).abs() < 0.3 && (at[2].1 - at[3].1 - 2.0 * unit).abs() < 0.3);
        let own = panels(Axes::Own).svg();
        assert_eq!(own.matches("a &amp; b").count(), 2);
        let at = circles(&own);
        assert!(((at[1].0 - at[0].0) - (at[3].0 - at[2].0)).abs() < 0.3, "each fills its panel: {at:?}");
    }
}
