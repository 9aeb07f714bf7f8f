//! What is inside the binary: the images, models and flows of the demo. How they were made: `assets/README.md`.

/// A file's name, and what is in it.
pub(crate) type Asset = (&'static str, &'static [u8]);

macro_rules! fashion {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../../assets/fashion-mnist/", $name)))
    };
}

/// Fashion-MNIST images, the first 2,600 to train on and the first 100 that are held out, with their labels.
pub(crate) const IMAGES: [Asset; 5] = [
    fashion!("classes.txt"),
    fashion!("train-images-idx3-ubyte.gz"),
    fashion!("train-labels-idx1-ubyte.gz"),
    fashion!("t10k-images-idx3-ubyte.gz"),
    fashion!("t10k-labels-idx1-ubyte.gz"),
];

/// The flow that carries T-shirts to pullovers.
pub(crate) const PULLOVERS: Asset = fashion!("flow-t-shirt-pullover.onnx");

/// A classifier of such images, the flow that was straightened once, and a diffusion model.
pub(crate) const MODELS: [Asset; 3] =
    [fashion!("classifier.onnx"), fashion!("flow-2rf.onnx"), fashion!("ddpm.onnx")];
