//! Images: a folder of them, one file, or the rows of another format that are to be changed.
//!
//! In a folder the class of an image is the name of the sub-folder it is in, classes sorted by name as text
//! (as torchvision's ImageFolder numbers them). Files that are not images by their name are passed over. A
//! photograph is turned upright as its camera noted; transparent pixels are seen on white; 16-bit
//! channels are rounded to 8.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use image::imageops::FilterType;
use image::{DynamicImage, GrayImage, ImageDecoder, ImageReader, RgbImage};
use rayon::prelude::*;

use super::dataset::Names;
use super::{Color, DataError, Dataset, OpenOptions, Part, Transform, file};
use crate::error::{Error, Result};

const EXTENSIONS: [&str; 7] = ["png", "jpg", "jpeg", "pgm", "ppm", "pnm", "pbm"];
/// Files decoded at once: enough to keep the cores busy, few enough to hold in memory at full size.
const AT_ONCE: usize = 64;

/// Pixels that an image may have: larger ones are read by no model.
pub(crate) const MOST_PIXELS: u64 = 1 << 28;
/// Bytes of pixels for each byte of a file, beyond which it is made to fill memory.
const DENSEST: u64 = 4096;
/// Bytes of pixels that any file may have.
const LITTLE: u64 = 1 << 20;

/// Whether a file is an image by its name.
pub(crate) fn is_image(path: &Path) -> bool {
    EXTENSIONS.contains(&file::extension(path).as_str())
}

/// The pixels of an image `[channels, height, width]`, with that shape.
pub(crate) struct Planes {
    pub(crate) shape: [usize; 3],
    pub(crate) pixels: Vec<u8>,
}

/// Reads a folder of images.
pub(crate) fn open_folder(folder: &Path, options: &OpenOptions) -> Result<Dataset> {
    let parts = part_folders(folder, options)?;
    let (mut paths, mut labels, mut classes) = (Vec::new(), Vec::new(), Vec::new());
    let mut loose: Option<PathBuf> = None;
    let mut class_of: Vec<(usize, String)> = Vec::new();
    for part in &parts {
        for entry in file::entries(part)? {
            let first = paths.len();
            if entry.is_dir() {
                collect(&entry, options, &mut paths)?;
                if paths.len() > first {
                    class_of.extend((first..paths.len()).map(|index| (index, file::name(&entry))));
                }
            } else if wanted(&entry, options) {
                loose.get_or_insert_with(|| entry.clone());
                paths.push(entry);
            }
        }
    }
    if paths.is_empty() {
        return Err(DataError::Empty {
            path: folder.to_path_buf(),
            looked_for: options.extension.clone().unwrap_or_else(|| EXTENSIONS.join(", ")),
            hint: "give a folder of images (a sub-folder per class), or the file itself for csv, parquet, npy, npz".into(),
        }
        .into());
    }
    let labelled = !class_of.is_empty();
    // Before anything is decoded; classes are numbered as in the whole folder.
    let kept = options.limit.map_or(paths.len(), |limit| limit.min(paths.len()));
    if let (true, Some(loose)) = (labelled, loose) {
        return Err(DataError::Unrecognised {
            path: folder.to_path_buf(),
            reason: format!(
                "some images are in sub-folders, but {} is in none, so it has no class",
                loose.display()
            ),
            hint: "move it to the sub-folder of its class, or give a sub-folder".into(),
        }
        .into());
    }
    if labelled {
        classes = class_of.iter().map(|(_, class)| class.clone()).collect();
        classes.sort();
        classes.dedup();
        if !options.classes.is_empty() {
            classes.clone_from(&options.classes);
        }
        for (index, class) in &class_of[..kept] {
            let label = classes.iter().position(|known| known == class).ok_or_else(|| DataError::Label {
                path: paths[*index].clone(),
                row: *index,
                label: class.clone(),
                classes: classes.len(),
            })?;
            labels.push(label);
        }
    }
    paths.truncate(kept);
    let names = paths
        .iter()
        .map(|path| path.strip_prefix(folder).unwrap_or(path).to_string_lossy().replace('\\', "/"))
        .collect();
    let data = read_all(&folder.display().to_string(), &paths, options)?.with_names(Names::Each(names));
    if labelled { data.with_labels(labels, classes) } else { Ok(data) }
}

/// Reads one image file as a data set of one row.
pub(crate) fn open_file(path: &Path, options: &OpenOptions) -> Result<Dataset> {
    let data = read_all(&path.display().to_string(), &[path.to_path_buf()], options)?;
    Ok(data.with_names(Names::Each(vec![file::name(path)])))
}

/// Applies the options for images to data that were read from another format.
pub(crate) fn transform(data: Dataset, options: &OpenOptions) -> Result<Dataset> {
    if options.transforms.is_empty() && options.color == Color::AsStored {
        return Ok(data);
    }
    let (true, &[channels, height, width]) = (data.is_pixels() && data.is_images(), data.shape()) else {
        return Err(DataError::Option {
            option: "a resize, crop or choice of colour",
            path: data.origin().into(),
            kind: "numbers that are not 8-bit images",
        }
        .into());
    };
    let mut shape = [channels, height, width];
    let mut pixels = Vec::new();
    for row in 0..data.len() {
        let planes = data.pixels(row).unwrap_or_default();
        let image = if channels == 1 {
            GrayImage::from_raw(width as u32, height as u32, planes.to_vec()).map(DynamicImage::from)
        } else {
            let interleaved = (0..height * width)
                .flat_map(|at| (0..3).map(move |channel| planes[channel * height * width + at]));
            RgbImage::from_raw(width as u32, height as u32, interleaved.collect()).map(DynamicImage::from)
        };
        let image = image.ok_or_else(|| Error::Shape {
            what: data.name(row),
            expected: vec![channels * height * width],
            found: vec![planes.len()],
        })?;
        let changed = prepare(image, &data.name(row), options)?;
        shape = changed.shape;
        pixels.extend_from_slice(&changed.pixels);
    }
    data.with_pixels(&shape, pixels)
}

/// `train` and `test` sub-folders, where a folder has both; otherwise the folder itself.
fn part_folders(folder: &Path, options: &OpenOptions) -> Result<Vec<PathBuf>> {
    let train = folder.join("train");
    let test = ["test", "val", "valid", "validation"]
        .iter()
        .map(|name| folder.join(name))
        .find(|path| path.is_dir());
    let Some(test) = test.filter(|_| train.is_dir()) else {
        if options.part == Part::Test {
            return Err(DataError::NoPart { path: folder.to_path_buf(), part: "test" }.into());
        }
        return Ok(vec![folder.to_path_buf()]);
    };
    Ok([(Part::Train, train), (Part::Test, test)]
        .into_iter()
        .filter(|(part, _)| options.part.wants(*part))
        .map(|(_, path)| path)
        .collect())
}

/// Whether a folder has a `train` and a `test` part.
pub(crate) fn has_parts(folder: &Path) -> bool {
    let test = OpenOptions { part: Part::Test, ..OpenOptions::default() };
    part_folders(folder, &test).is_ok()
}

fn collect(folder: &Path, options: &OpenOptions, paths: &mut Vec<PathBuf>) -> Result<()> {
    for entry in file::entries(folder)? {
        if entry.is_dir() {
            collect(&entry, options, paths)?;
        } else if wanted(&entry, options) {
            paths.push(entry);
        }
    }
    Ok(())
}

fn wanted(path: &Path, options: &OpenOptions) -> bool {
    is_image(path)
        && options
            .extension
            .as_ref()
            .is_none_or(|end| end.trim_start_matches('.').eq_ignore_ascii_case(&file::extension(path)))
}

fn read_all(origin: &str, paths: &[PathBuf], options: &OpenOptions) -> Result<Dataset> {
    let mut images = Gathered::default();
    for chunk in paths.chunks(AT_ONCE) {
        let decoded: Vec<Result<Planes>> = chunk
            .par_iter()
            .map(|path| prepare(decode_file(path)?, &path.display().to_string(), options))
            .collect();
        // In the order of the files, so that the first bad file is the one that is named.
        for (path, planes) in chunk.iter().zip(decoded) {
            images.push(path.clone(), planes?)?;
        }
    }
    images.finish(origin)
}

/// Images one after another, all of the first one's size.
#[derive(Default)]
pub(crate) struct Gathered {
    first: Option<(PathBuf, [usize; 3])>,
    pixels: Vec<u8>,
}

impl Gathered {
    pub(crate) fn push(&mut self, place: PathBuf, planes: Planes) -> Result<()> {
        match &self.first {
            None => self.first = Some((place, planes.shape)),
            Some((first, shape)) if *shape != planes.shape => {
                return Err(DataError::MixedSizes {
                    first: first.clone(),
                    first_shape: shape.to_vec(),
                    second: place,
                    second_shape: planes.shape.to_vec(),
                }
                .into());
            }
            Some(_) => {}
        }
        self.pixels.extend_from_slice(&planes.pixels);
        Ok(())
    }

    pub(crate) fn finish(self, origin: &str) -> Result<Dataset> {
        let shape = self.first.map(|(_, shape)| shape).unwrap_or_default();
        Dataset::from_pixels(origin, &shape, self.pixels)
    }
}

/// Decodes an image file.
pub(crate) fn decode_file(path: &Path) -> Result<DynamicImage> {
    let bytes = file::read(path)?;
    decode(&bytes, &path.display().to_string())
}

/// Decodes an image; its format is told by how it begins, not by its name.
pub(crate) fn decode(bytes: &[u8], place: &str) -> Result<DynamicImage> {
    let read = || -> image::ImageResult<DynamicImage> {
        let mut decoder = ImageReader::new(Cursor::new(bytes)).with_guessed_format()?.into_decoder()?;
        let (width, height) = decoder.dimensions();
        let (pixels, room) = (u64::from(width) * u64::from(height), decoder.total_bytes());
        // A picture of one colour packs best, by about a thousand.
        if pixels > MOST_PIXELS || room > LITTLE + DENSEST * bytes.len() as u64 {
            let reason = format!("it declares {width}x{height} pixels in {} bytes", bytes.len());
            return Err(image::ImageError::IoError(std::io::Error::other(reason)));
        }
        let orientation = decoder.orientation()?;
        let mut image = DynamicImage::from_decoder(decoder)?;
        image.apply_orientation(orientation);
        Ok(image)
    };
    let image =
        read().map_err(|error| DataError::Image { place: place.to_owned(), reason: error.to_string() })?;
    if ends_early(bytes) {
        let reason = "the JPEG ends before its last line".to_owned();
        return Err(DataError::Image { place: place.to_owned(), reason }.into());
    }
    Ok(image)
}

/// Whether a JPEG has no end marker after its last scan. The decoder fills what is missing with gray and says
/// nothing, which would be a false image.
fn ends_early(bytes: &[u8]) -> bool {
    let scan = bytes.windows(2).rposition(|pair| pair == [0xff, 0xda]);
    bytes.starts_with(&[0xff, 0xd8])
        && scan.is_some_and(|scan| !bytes[scan..].windows(2).any(|pair| pair == [0xff, 0xd9]))
}

/// Applies the options for images, and separates the channels.
pub(crate) fn prepare(image: DynamicImage, place: &str, options: &OpenOptions) -> Result<Planes> {
    let mut image = on_white(image);
    for step in &options.transforms {
        image = apply(image, *step, place)?;
    }
    let gray = match options.color {
        Color::AsStored => !image.color().has_color(),
        Color::Gray => true,
        Color::Rgb => false,
    };
    let (height, width) = (image.height() as usize, image.width() as usize);
    if gray {
        return Ok(Planes { shape: [1, height, width], pixels: image.into_luma8().into_raw() });
    }
    let interleaved = image.into_rgb8().into_raw();
    let mut pixels = Vec::with_capacity(interleaved.len());
    for channel in 0..3 {
        pixels.extend(interleaved[channel.min(interleaved.len())..].iter().step_by(3));
    }
    Ok(Planes { shape: [3, height, width], pixels })
}

fn apply(image: DynamicImage, step: Transform, place: &str) -> Result<DynamicImage> {
    let (height, width) = (image.height() as usize, image.width() as usize);
    let positive =
        |length: usize| if length == 0 { Err(Error::Zero { what: "the side of an image" }) } else { Ok(()) };
    match step {
        Transform::Resize { height, width } => {
            positive(height.min(width))?;
            if (height as u64).saturating_mul(width as u64) > MOST_PIXELS {
                return Err(Error::Setting {
                    name: "the size to resize to",
                    value: format!("{height}x{width}"),
                    needs: "an image may have 268 million pixels",
                    hint: "give height and width in pixels, such as 224x224".into(),
                });
            }
            Ok(image.resize_exact(width as u32, height as u32, FilterType::Triangle))
        }
        Transform::ResizeShorter { side } => {
            positive(side)?;
            let scale = side as f64 / height.min(width) as f64;
            let length = |of: usize| (of as f64 * scale).round().max(1.0) as u32;
            Ok(image.resize_exact(length(width), length(height), FilterType::Triangle))
        }
        Transform::CenterCrop { height: rows, width: columns } => {
            positive(rows.min(columns))?;
            if rows > height || columns > width {
                return Err(DataError::CropTooLarge {
                    place: place.to_owned(),
                    found: [height, width],
                    crop: [rows, columns],
                }
                .into());
            }
            let (left, top) = ((width - columns) / 2, (height - rows) / 2);
            Ok(image.crop_imm(left as u32, top as u32, columns as u32, rows as u32))
        }
        Transform::CenterSquare => {
            let side = height.min(width);
            apply(image, Transform::CenterCrop { height: side, width: side }, place)
        }
    }
}

/// Images without transparency: what shines through is white.
fn on_white(image: DynamicImage) -> DynamicImage {
    if !image.color().has_alpha() {
        return image;
    }
    let blend = |value: u8, alpha: u8| {
        let (value, alpha) = (u32::from(value), u32::from(alpha));
        ((value * alpha + 255 * (255 - alpha) + 127) / 255) as u8
    };
    if image.color().has_color() {
        let image = image.into_rgba8();
        let mut opaque = RgbImage::new(image.width(), image.height());
        for (to, from) in opaque.pixels_mut().zip(image.pixels()) {
            let [red, green, blue, alpha] = from.0;
            to.0 = [blend(red, alpha), blend(green, alpha), blend(blue, alpha)];
        }
        opaque.into()
    } else {
        let image = image.into_luma_alpha8();
        let mut opaque = GrayImage::new(image.width(), image.height());
        for (to, from) in opaque.pixels_mut().zip(image.pixels()) {
            to.0 = [blend(from.0[0], from.0[1])];
        }
        opaque.into()
    }
}
