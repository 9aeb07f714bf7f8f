//! Line and scatter charts as self-contained SVG text.
//!
//! A few shapes and labels are all that the figures need, so this is a page of code instead of a plotting
//! library with fonts: the same input gives the same bytes, and the text stays text.

use std::fmt::Write;

/// How an axis is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal distances for equal differences.
    Linear,
    /// Equal distances for equal ratios; values must be positive, others are left out.
    Log,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Dots joined by a line.
    Line,
    /// Dots alone.
    Dots,
    /// A dashed line alone, for what theory says.
    Dashed,
}

/// Points under one name.
#[derive(Debug, Clone)]
pub struct Series {
    /// The name in the legend; empty for none.
    pub name: String,
    /// The points.
    pub points: Vec<(f64, f64)>,
    /// How they are drawn.
    pub mark: Mark,
    /// Which colour of the palette.
    pub colour: usize,
}

/// A chart with two axes.
#[derive(Debug, Clone)]
pub struct Chart {
    /// The heading.
    pub title: String,
    /// The label of the horizontal axis and its scale.
    pub x: (String, Scale),
    /// The label of the vertical axis and its scale.
    pub y: (String, Scale),
    /// What is drawn, first series at the back.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 560.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 400.0;
/// Okabe and Ito's colours, told apart by colour-blind readers too.
const PALETTE: [&str; 8] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999"];

impl Chart {
    /// The chart as SVG.
    pub fn svg(&self) -> String {
        let x = Axis::new(self.x.1, self.series.iter().flat_map(|s| s.points.iter().map(|p| p.0)));
        let y = Axis::new(self.y.1, self.series.iter().flat_map(|s| s.points.iter().map(|p| p.1)));
        let across = |value: f64| LEFT + (RIGHT - LEFT) * x.place(value);
        let up = |value: f64| BOTTOM - (BOTTOM - TOP) * y.place(value);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"13\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        // Writing to a string cannot fail.
        let mut text = |line: String| _ = writeln!(svg, "{line}");
        text(format!("<text x=\"{LEFT}\" y=\"26\" font-size=\"16\">{}</text>", escape(&self.title)));
        for (value, label) in x.ticks() {
            let at = across(value);
            text(format!(
                "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{BOTTOM}\" stroke=\"#e4e4e4\"/>"
            ));
            text(format!(
                "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
                BOTTOM + 20.0
            ));
        }
        for (value, label) in y.ticks() {
            let at = up(value);
            text(format!(
                "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{RIGHT}\" y2=\"{at:.1}\" stroke=\"#e4e4e4\"/>"
            ));
            text(format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 8.0,
                at + 4.0
            ));
        }
        text(format!(
            "<rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#555\"/>",
            RIGHT - LEFT,
            BOTTOM - TOP
        ));
        text(format!(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            0.5 * (LEFT + RIGHT),
            HEIGHT - 16.0,
            escape(&self.x.0)
        ));
        text(format!(
            "<text transform=\"translate(20 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            0.5 * (TOP + BOTTOM),
            escape(&self.y.0)
        ));
        let mut row = TOP + 8.0;
        for series in &self.series {
            let colour = PALETTE[series.colour % PALETTE.len()];
            let drawn: Vec<(f64, f64)> = series
                .points
                .iter()
                .filter(|(a, b)| x.shows(*a) && y.shows(*b))
                .map(|&(a, b)| (across(a), up(b)))
                .collect();
            let dash = if series.mark == Mark::Dashed { " stroke-dasharray=\"6 4\"" } else { "" };
            if series.mark != Mark::Dots {
                let line: Vec<String> = drawn.iter().map(|(a, b)| format!("{a:.1},{b:.1}")).collect();
                text(format!(
                    "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"{dash}/>",
                    line.join(" ")
                ));
            }
            if series.mark != Mark::Dashed {
                for (a, b) in &drawn {
                    let fade = if series.mark == Mark::Dots { " fill-opacity=\"0.5\"" } else { "" };
                    text(format!("<circle cx=\"{a:.1}\" cy=\"{b:.1}\" r=\"2.6\" fill=\"{colour}\"{fade}/>"));
                }
            }
            if !series.name.is_empty() {
                let key = RIGHT + 14.0;
                match series.mark {
                    Mark::Dots => {
                        text(format!(
                            "<circle cx=\"{}\" cy=\"{row}\" r=\"3\" fill=\"{colour}\"/>",
                            key + 11.0
                        ));
                    }
                    _ => text(format!(
                        "<line x1=\"{key}\" y1=\"{row}\" x2=\"{}\" y2=\"{row}\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>",
                        key + 22.0
                    )),
                }
                text(format!(
                    "<text x=\"{}\" y=\"{}\" font-size=\"12\">{}</text>",
                    key + 28.0,
                    row + 4.0,
                    escape(&series.name)
                ));
                row += 20.0;
            }
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The range of an axis in its own coordinate: the value, or its decimal logarithm.
struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Axis {
    fn new(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let mut axis = Self { scale, low: f64::INFINITY, high: f64::NEG_INFINITY };
        for value in values {
            if axis.shows(value) {
                let c = axis.coordinate(value);
                axis.low = axis.low.min(c);
                axis.high = axis.high.max(c);
            }
        }
        if axis.low > axis.high {
            (axis.low, axis.high) = (0.0, 1.0);
        }
        let margin = (0.03 * (axis.high - axis.low)).max(1e-9);
        axis.low -= margin;
        axis.high += margin;
        axis
    }

    fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }

    fn coordinate(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Log => value.log10(),
        }
    }

    fn place(&self, value: f64) -> f64 {
        (self.coordinate(value) - self.low) / (self.high - self.low)
    }

    /// Values with their labels: round numbers, or powers of ten (of two, where there is less than two decades).
    fn ticks(&self) -> Vec<(f64, String)> {
        let span = self.high - self.low;
        match self.scale {
            Scale::Linear => {
                let rough = span / 6.0;
                let power = 10.0_f64.powf(rough.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0]
                    .into_iter()
                    .map(|m| m * power)
                    .find(|s| *s >= rough)
                    .unwrap_or(rough);
                let first = (self.low / step).ceil() as i64;
                let last = (self.high / step).floor() as i64;
                let places = usize::from(step < 1.0) * (-step.log10().floor()).max(0.0) as usize;
                (first..=last).map(|k| k as f64 * step).map(|v| (v, format!("{v:.places$}"))).collect()
            }
            Scale::Log if span > 2.5 => {
                let every = (span / 8.0).ceil().max(1.0) as usize;
                let decades = self.low.ceil() as i32..=self.high.floor() as i32;
                decades.step_by(every).map(|k| (10.0_f64.powi(k), format!("1e{k}"))).collect()
            }
            Scale::Log => {
                let twos =
                    (self.low / 2.0_f64.log10()).ceil() as i32..=(self.high / 2.0_f64.log10()).floor() as i32;
                twos.map(|k| 2.0_f64.powi(k)).map(|v| (v, format!("{v}"))).collect()
            }
        }
    }
}
