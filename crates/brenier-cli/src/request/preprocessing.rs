//! What a model wants done to an input before it sees it, as flags; what the file beside the model says stands
//! behind them.

use brenier::{ChannelOrder, Layout, Preprocessing};
use clap::{Args, ValueEnum};
use ndarray::Array2;

use crate::data_args::size;

/// What is done to an input before it goes into the model; credit belongs to the input as you gave it
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Preprocessing (also in model.toml beside model.onnx)")]
pub(crate) struct PreprocessingArgs {
    /// Divide by this: 255 for a model of 0 to 1 and inputs of 0 to 255; 1/255 the other way round
    #[arg(long, value_name = "NUMBER", value_parser = quotient)]
    scale: Option<f64>,
    /// Then subtract this: one number, or one for each channel in the model's order
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', allow_hyphen_values = true)]
    mean: Vec<f64>,
    /// Then divide by this: one number, or one for each channel in the model's order
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    std: Vec<f64>,
    /// The order of colours that the model takes
    #[arg(long, value_enum)]
    channel_order: Option<Order>,
    /// The order of axes that the model takes
    #[arg(long, value_enum)]
    layout: Option<Axes>,
    /// Resize inputs to HEIGHTxWIDTH inside the model, such as 224x224
    #[arg(long, value_name = "SIZE", value_parser = size)]
    model_size: Option<(usize, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    /// Red first
    Rgb,
    /// Blue first
    Bgr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Axes {
    /// Channels first
    Nchw,
    /// Channels last
    Nhwc,
}

fn quotient(text: &str) -> Result<f64, String> {
    Preprocessing::parse_scale(text).ok_or_else(|| format!("'{text}' is no scale such as 255 or 1/255"))
}

/// Root mean square, after the preprocessing, above which inputs cannot be in the units that it expects: 1 is usual.
const FAR: f64 = 20.0;

/// What to say of inputs that are in other units than the mean and deviation of the preprocessing, such as 0 to 255 instead of
/// 0 to 1.
pub(super) fn unlike(preprocessing: &Preprocessing, inputs: &Array2<f64>) -> Option<String> {
    let middle =
        |numbers: &[f64]| (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64);
    let deviation = middle(&preprocessing.std)?;
    let (scale, mean) = (preprocessing.scale.unwrap_or(1.0), middle(&preprocessing.mean).unwrap_or(0.0));
    let size = inputs.mapv(|v| ((v / scale - mean) / deviation).powi(2)).mean()?.sqrt();
    (size > FAR).then(|| {
        format!(
            "notice: the inputs do not look like what the model's preprocessing expects: after it they are of size {size:.0}, \
             where 1 is usual; give them in the units that the model was trained on (--maximum 255 divides the inputs, \
             --scale 255 divides inside the model)"
        )
    })
}

impl PreprocessingArgs {
    /// What the flags mean.
    pub(super) fn preprocessing(&self) -> Preprocessing {
        Preprocessing {
            scale: self.scale,
            mean: self.mean.clone(),
            std: self.std.clone(),
            channels: self.channel_order.map(|order| match order {
                Order::Rgb => ChannelOrder::Rgb,
                Order::Bgr => ChannelOrder::Bgr,
            }),
            layout: self.layout.map(|axes| match axes {
                Axes::Nchw => Layout::Nchw,
                Axes::Nhwc => Layout::Nhwc,
            }),
            size: self.model_size.map(|(height, width)| [height, width]),
        }
    }
}
