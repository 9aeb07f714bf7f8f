//! Inputs by name, for models with several, and values inside a model.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use brenier::data::{Dataset, OpenOptions, expect_honest_npy};
use brenier::runs::explain::Inputs as _;
use brenier::{ModelFile, NamedInputs, Packing};
use clap::Args;
use ndarray::{Array2, ArrayD, IxDyn, OwnedRepr};
use ndarray_npy::{NpzReader, ReadNpyError, ReadNpzError, read_npy};

use super::inputs::Sources;
use super::model::{Loaded, ModelArgs};
use super::text::TextArgs;
use crate::engine_args::EngineArgs;

/// Models with several inputs, and values inside a model
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Several inputs")]
pub(crate) struct NamedArgs {
    /// One input of several: NAME=FILE, NAME=TABLE:COLUMN, or an .npz file whose arrays have the inputs' names
    #[arg(long = "input", value_name = "NAME=FILE")]
    pub(crate) input: Vec<String>,
    /// The inputs that get credit, with commas between, ids at their embedding; default: all of floats
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    explain: Vec<String>,
    /// The inputs that stay as they are, with commas between; default: all of integers
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    hold: Vec<String>,
    /// Explain values inside the model, by their names or those of their nodes (`brenier inspect --values`)
    #[arg(long, value_name = "VALUES", value_delimiter = ',')]
    at: Vec<String>,
    #[command(flatten)]
    pub(crate) text: TextArgs,
}

pub(super) type Arrays = BTreeMap<String, ArrayD<f64>>;

/// Inputs by name, as they were read.
pub(crate) struct Named {
    packing: Packing,
    inputs: NamedInputs,
    /// Ids as they were given, by the input's name, for the report.
    pub(crate) tokens: BTreeMap<String, Vec<Vec<String>>>,
    pub(crate) sources: Sources,
    /// References that stand for no text, where they were asked for.
    no_text: Option<Array2<f64>>,
}

impl NamedArgs {
    fn is_empty(&self) -> bool {
        !self.text.is_given()
            && self.input.is_empty()
            && self.explain.is_empty()
            && self.hold.is_empty()
            && self.at.is_empty()
    }

    /// Reads the inputs; nothing where none was given by name and no inner value is asked for.
    pub(crate) fn read(
        &self,
        files: &[PathBuf],
        model: &ModelArgs,
        options: &OpenOptions,
        engine: &EngineArgs,
        baseline: Option<&str>,
    ) -> Result<Option<Named>> {
        if self.is_empty() {
            return Ok(None);
        }
        let file = ModelFile::open(&model.model)?;
        let graph = &file.model()?.graph;
        let (mut files, mut input) = (files.to_vec(), self.input.clone());
        let texts = self.text.read(&mut files, &mut input, &self.explain, graph, options)?;
        let (mut arrays, mut origin) = match (input.as_slice(), files.as_slice()) {
            ([], []) if texts.is_some() => (Arrays::new(), "text".to_string()),
            ([], files) => self.of_the_only_input(files, model, options, engine)?,
            (given, []) => {
                let mut arrays = Arrays::new();
                for one in given {
                    read_named(one, options, &mut arrays)?;
                }
                (arrays, given.join(" "))
            }
            (_, [first, ..]) => bail!(
                "{} has no name, and other inputs have one\nhint: give it as --input NAME={0}",
                first.display()
            ),
        };
        let mut explain = (!self.explain.is_empty()).then(|| self.explain.clone());
        if let Some(texts) = &texts {
            origin = texts.origin();
            if explain.is_none() && self.at.is_empty() {
                let floats = |name: &&String| graph.input(name).is_some_and(|input| input.dtype.is_float());
                let given = arrays.keys().filter(floats).filter(|name| !self.hold.contains(name)).cloned();
                explain = Some(given.chain([texts.inputs.ids.clone()]).collect());
            }
            arrays.extend(texts.inputs.arrays.clone());
        }
        let packing = Packing { explain, hold: self.hold.clone(), at: self.at.clone(), ..Packing::default() };
        let packing = packing.sized_by(graph, &arrays);
        let config = model.packed(packing.clone()).config(engine)?;
        let inputs = NamedInputs::new(file.model()?, &config)?;
        let rows = inputs.rows(&arrays)?;
        if rows.nrows() == 0 {
            bail!("{origin} holds no examples");
        }
        let Some(texts) = texts else {
            let tokens = tokens(&inputs, &arrays);
            let sources = Sources::of_rows(&origin, rows);
            return Ok(Some(Named { packing, inputs, tokens, sources, no_text: None }));
        };
        let no_text = texts.baselines(graph, &inputs, &arrays, baseline)?;
        let sources = Sources::of_texts(texts.names, texts.inputs.tokens, rows);
        Ok(Some(Named { packing, inputs, tokens: BTreeMap::new(), sources, no_text }))
    }

    /// The rows of a model with one input, for its inner values.
    fn of_the_only_input(
        &self,
        files: &[PathBuf],
        model: &ModelArgs,
        options: &OpenOptions,
        engine: &EngineArgs,
    ) -> Result<(Arrays, String)> {
        if self.at.is_empty() {
            bail!(
                "--explain and --hold are for inputs that are given by name\nhint: give them as --input NAME=FILE"
            );
        }
        let plain = Loaded::load(model, engine, false)?;
        let options = model.bind(&plain, options.clone(), None)?;
        let sources = Sources::open(files, &options, plain.values())?;
        let rows = sources.rows(0..sources.len())?;
        let shape: Vec<usize> =
            std::iter::once(rows.nrows()).chain(plain.values().shape().iter().copied()).collect();
        let array = rows.as_standard_layout().into_owned().into_shape_with_order(IxDyn(&shape))?;
        let file = ModelFile::open(&model.model)?;
        let used = file.model()?.graph.use_counts().keys().map(|name| name.to_string()).collect::<Vec<_>>();
        let input = file.model()?.graph.inputs.iter().find(|input| used.contains(&input.name));
        let name = input.map(|input| input.name.clone()).context("the model has no input")?;
        let origin = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" ");
        Ok((Arrays::from([(name, array)]), origin))
    }
}

impl Named {
    /// The model as it takes these inputs.
    pub(crate) fn model(&self, model: &ModelArgs) -> ModelArgs {
        model.packed(self.packing.clone())
    }

    /// References that stand for no text.
    pub(super) fn no_text(&self) -> Option<Array2<f64>> {
        self.no_text.clone()
    }

    /// References by name: a row for all inputs, or one for each.
    pub(crate) fn baselines(&self, file: &str, options: &OpenOptions, count: usize) -> Result<Array2<f64>> {
        if !Path::new(file).exists() {
            bail!(
                "there is no baseline '{file}'\nhint: say zero, or give an .npz file with an array for each input; of text also pad, \
                 mask, mean and token:WORD"
            );
        }
        if !file.ends_with(".npz") {
            bail!(
                "{file} is one array\nhint: give references of several inputs as an .npz file with an array for each"
            );
        }
        let mut arrays = Arrays::new();
        read_named(file, options, &mut arrays)?;
        let rows = self.inputs.rows(&arrays)?;
        if rows.nrows() != 1 && rows.nrows() != count {
            bail!(
                "{file} holds {} references for {count} inputs\nhint: give one, or one for each",
                rows.nrows()
            );
        }
        Ok(rows)
    }
}

/// The ids of every example, as text.
fn tokens(inputs: &NamedInputs, arrays: &Arrays) -> BTreeMap<String, Vec<Vec<String>>> {
    let ids = inputs.packed().explained().filter_map(|input| input.embeds.as_ref());
    let of = |name: &String| {
        let rows = arrays.get(name)?.outer_iter();
        let words = rows.map(|row| row.iter().map(f64::to_string).collect()).collect();
        Some((name.clone(), words))
    };
    ids.filter_map(of).collect()
}

/// Reads `NAME=FILE`, `NAME=TABLE:COLUMN`, or all arrays of an .npz file.
fn read_named(text: &str, options: &OpenOptions, into: &mut Arrays) -> Result<()> {
    let Some((name, file)) = text.split_once('=').filter(|_| !Path::new(text).exists()) else {
        if !text.ends_with(".npz") {
            bail!("'{text}' is no NAME=FILE and no .npz file\nhint: --input image=photos.npy");
        }
        let mut npz = open_npz(Path::new(text))?;
        for name in npz.names().with_context(|| format!("cannot read {text}"))? {
            let array =
                array_of(&mut npz, &name).with_context(|| format!("cannot read '{name}' of {text}"))?;
            insert(into, name, array)?;
        }
        return Ok(());
    };
    insert(into, name.to_string(), read_file(file, name, options)?)
}

fn insert(into: &mut Arrays, name: String, array: ArrayD<f64>) -> Result<()> {
    if into.contains_key(&name) {
        bail!("input '{name}' is given twice\nhint: give it once");
    }
    into.insert(name, array);
    Ok(())
}

/// One input: an array, an array of an .npz file under the input's name, images, or one column of a table.
fn read_file(file: &str, name: &str, options: &OpenOptions) -> Result<ArrayD<f64>> {
    let path = Path::new(file);
    if !path.exists() {
        if let Some((table, column)) = file.rsplit_once(':') {
            return read_column(Path::new(table), column, options);
        }
        bail!(
            "there is no {file}, which input '{name}' was to come from\nhint: give a file, or TABLE:COLUMN"
        );
    }
    match path.extension().and_then(|end| end.to_str()) {
        Some("npy") => numbers(path).with_context(|| format!("cannot read {file} as an array of numbers")),
        Some("npz") => {
            let mut npz = open_npz(path)?;
            array_of(&mut npz, name).with_context(|| format!("cannot read '{name}' of {file}"))
        }
        _ => {
            let data = Dataset::open(path, options)?;
            let rows = data.rows_f64(&(0..data.len()).collect::<Vec<_>>())?;
            let shape: Vec<usize> = std::iter::once(data.len()).chain(data.shape().iter().copied()).collect();
            Ok(rows.as_standard_layout().into_owned().into_shape_with_order(IxDyn(&shape))?)
        }
    }
}

/// One column of a table; a category as its levels.
fn read_column(table: &Path, column: &str, options: &OpenOptions) -> Result<ArrayD<f64>> {
    if !table.exists() {
        bail!("there is no {}", table.display());
    }
    let data = Dataset::open(table, options)?;
    let names = data.feature_names();
    let own = |name: &&String| *name == column || name.starts_with(&format!("{column}="));
    let places: Vec<usize> = (0..names.len()).filter(|&i| own(&&names[i])).collect();
    if places.is_empty() {
        let known: Vec<&str> = data.columns().iter().map(|column| column.name.as_str()).collect();
        return Err(anyhow!(
            "{} has no column '{column}'\nhint: it has {}",
            table.display(),
            known.join(", ")
        ));
    }
    let rows = data.rows_f64(&(0..data.len()).collect::<Vec<_>>())?;
    Ok(rows.select(ndarray::Axis(1), &places).into_dyn())
}

fn open_npz(path: &Path) -> Result<NpzReader<File>> {
    let file = brenier::readable::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    NpzReader::new(file).with_context(|| format!("cannot read {} as an .npz file", path.display()))
}

/// Tries the element types that people save, until one is that of the file.
macro_rules! of_any_type {
    ($wrong:pat, |$element:ident| $read:expr) => {
        of_any_type!(@ $wrong, $element, $read; f32 => f64::from, f64 => |v| v, i64 => |v| v as f64, i32 => f64::from,
            bool => |v| f64::from(u8::from(v)), u8 => f64::from, i8 => f64::from, u16 => f64::from, i16 => f64::from,
            u32 => f64::from, u64 => |v| v as f64)
    };
    (@ $wrong:pat, $element:ident, $read:expr; $($type:ty => $convert:expr),+) => {{
        $({
            type $element = $type;
            match $read {
                Ok(array) => return Ok(array.mapv($convert)),
                Err($wrong) => {}
                Err(error) => return Err(error.into()),
            }
        })+
        bail!("its numbers are of no type that is known here\nhint: in NumPy, save x.astype('float32') or 'int64'")
    }};
}

/// An array of numbers of any type.
fn numbers(path: &Path) -> Result<ArrayD<f64>> {
    expect_honest_npy(path)?;
    of_any_type!(ReadNpyError::WrongDescriptor(_), |Element| read_npy::<_, ArrayD<Element>>(path))
}

/// An array of an .npz file, of numbers of any type.
fn array_of(npz: &mut NpzReader<File>, name: &str) -> Result<ArrayD<f64>> {
    of_any_type!(ReadNpzError::Npy(ReadNpyError::WrongDescriptor(_)), |Element| npz
        .by_name::<OwnedRepr<Element>, IxDyn>(name))
}
