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
    /// A thin line alone, for one of many paths.
    Thin,
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

/// Okabe and Ito's colours, told apart by colour-blind readers too.
const PALETTE: [&str; 8] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999"];

/// Where a chart stands in its picture: the edges of the plot. Labels are outside of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// The frame of a chart that stands alone, with its legend to the right.
const ALONE: Frame = Frame { left: 84.0, right: 560.0, top: 48.0, bottom: 400.0 };

impl Chart {
    /// The chart as SVG.
    pub fn svg(&self) -> String {
        let (x, y) = self.axes();
        let mut body = self.draw(ALONE, &x, &y);
        body.push_str(&self.legend(ALONE.right + 14.0, ALONE.top + 8.0));
        picture(800.0, 460.0, &body)
    }

    /// The axes that just hold the series.
    pub(super) fn axes(&self) -> (Axis, Axis) {
        (
            Axis::new(self.x.1, self.series.iter().flat_map(|s| s.points.iter().map(|p| p.0))),
            Axis::new(self.y.1, self.series.iter().flat_map(|s| s.points.iter().map(|p| p.1))),
        )
    }

    /// The heading, the axes and the series in a frame.
    pub(super) fn draw(&self, frame: Frame, x: &Axis, y: &Axis) -> String {
        let Frame { left, right, top, bottom } = frame;
        let across = |value: f64| left + (right - left) * x.place(value);
        let up = |value: f64| bottom - (bottom - top) * y.place(value);
        let mut svg = String::new();
        // Writing to a string cannot fail.
        let mut text = |line: String| _ = writeln!(svg, "{line}");
        text(format!(
            "<text x=\"{left}\" y=\"{}\" font-size=\"16\">{}</text>",
            top - 22.0,
            escape(&self.title)
        ));
        for (value, label) in x.ticks() {
            let at = across(value);
            text(format!(
                "<line x1=\"{at:.1}\" y1=\"{top}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#e4e4e4\"/>"
            ));
            text(format!(
                "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
                bottom + 20.0
            ));
        }
        for (value, label) in y.ticks() {
            let at = up(value);
            text(format!(
                "<line x1=\"{left}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#e4e4e4\"/>"
            ));
            text(format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                left - 8.0,
                at + 4.0
            ));
        }
        text(format!(
            "<rect x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#555\"/>",
            right - left,
            bottom - top
        ));
        text(format!(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            0.5 * (left + right),
            bottom + 44.0,
            escape(&self.x.0)
        ));
        text(format!(
            "<text transform=\"translate({} {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            left - 64.0,
            0.5 * (top + bottom),
            escape(&self.y.0)
        ));
        for series in &self.series {
            let colour = PALETTE[series.colour % PALETTE.len()];
            let drawn: Vec<(f64, f64)> = series
                .points
                .iter()
                .filter(|(a, b)| x.shows(*a) && y.shows(*b))
                .map(|&(a, b)| (across(a), up(b)))
                .collect();
            if series.mark != Mark::Dots {
                let line: Vec<String> = drawn.iter().map(|(a, b)| format!("{a:.1},{b:.1}")).collect();
                let (width, dash) = series.mark.stroke();
                text(format!(
                    "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dash}/>",
                    line.join(" ")
                ));
            }
            if matches!(series.mark, Mark::Line | Mark::Dots) {
                for (a, b) in &drawn {
                    let fade = if series.mark == Mark::Dots { " fill-opacity=\"0.5\"" } else { "" };
                    text(format!("<circle cx=\"{a:.1}\" cy=\"{b:.1}\" r=\"2.6\" fill=\"{colour}\"{fade}/>"));
                }
            }
        }
        svg
    }

    /// The names of the series, a line each, from this corner down.
    pub(super) fn legend(&self, key: f64, mut row: f64) -> String {
        let mut svg = String::new();
        for series in self.series.iter().filter(|series| !series.name.is_empty()) {
            let colour = PALETTE[series.colour % PALETTE.len()];
            // Writing to a string cannot fail.
            _ = match series.mark {
                Mark::Dots => {
                    writeln!(svg, "<circle cx=\"{}\" cy=\"{row}\" r=\"3\" fill=\"{colour}\"/>", key + 11.0)
                }
                mark => writeln!(
                    svg,
                    "<line x1=\"{key}\" y1=\"{row}\" x2=\"{}\" y2=\"{row}\" stroke=\"{colour}\" stroke-width=\"2\"{}/>",
                    key + 22.0,
                    mark.stroke().1
                ),
            };
            _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{}\" font-size=\"12\">{}</text>",
                key + 28.0,
                row + 4.0,
                escape(&series.name)
            );
            row += 20.0;
        }
        svg
    }
}

impl Mark {
    /// The width of the line, and its dashes as an attribute.
    fn stroke(self) -> (f64, &'static str) {
        match self {
            Mark::Dashed => (1.6, " stroke-dasharray=\"6 4\""),
            Mark::Thin => (0.8, ""),
            Mark::Line | Mark::Dots => (1.6, ""),
        }
    }
}

/// A whole SVG file.
pub(super) fn picture(width: f64, height: f64, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n{body}</svg>\n"
    )
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The range of an axis in its own coordinate: the value, or its decimal logarithm.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    pub(super) scale: Scale,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Axis {
    pub(super) fn new(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
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

    pub(super) fn place(&self, value: f64) -> f64 {
        (self.coordinate(value) - self.low) / (self.high - self.low)
    }

    /// Values with their labels: round numbers, or powers of ten. Where there are few of these: powers of two for
    /// counts, and otherwise 1, 2 and 5 times powers of ten.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
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
            Scale::Log if self.low < -0.1 => {
                let decades = self.low.floor() as i32..=self.high.ceil() as i32;
                // Less than a decade has a few more.
                let marks: &[f64] =
                    if span < 1.0 { &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0] } else { &[1.0, 2.0, 5.0] };
                decades
                    .flat_map(|k| marks.iter().map(move |m| m * 10.0_f64.powi(k)))
                    .filter(|v| (self.low..=self.high).contains(&v.log10()))
                    .map(|v| (v, format!("{}", (v * 1e9).round() / 1e9)))
                    .collect()
            }
            Scale::Log => {
                let twos =
                    (self.low / 2.0_f64.log10()).ceil() as i32..=(self.high / 2.0_f64.log10()).floor() as i32;
                twos.map(|k| 2.0_f64.powi(k)).map(|v| (v, format!("{v}"))).collect()
            }
        }
    }
}
