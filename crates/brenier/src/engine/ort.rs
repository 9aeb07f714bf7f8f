//! ONNX Runtime: the accelerated engine, a shared library that is found and loaded at run time.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ::ort::environment::Environment;
use ::ort::ep::{self, ExecutionProvider, ExecutionProviderDispatch};
use ::ort::logging::LogLevel;
use ::ort::session::builder::{AutoDevicePolicy, GraphOptimizationLevel, SessionBuilder};
use ::ort::session::{Session, SessionInputValue};
use ::ort::value::{DynValue, Outlet, PrimitiveTensorElementType, TensorElementType, TensorRef, ValueType};
use ndarray::{ArrayD, ArrayViewD};
use onnx_grad::{DType, Dim, Model, ValueInfo, WeightGradient, fused};

use super::signature::Signature;
use super::{AsItIs, Engine, Plan, Program, Tensor, TensorView, Weights};
use crate::error::{EngineError, Error, Remedy, Result};

mod kernels;
mod library;
mod provider;

pub use self::provider::Provider;

/// [ONNX Runtime](https://onnxruntime.ai), 32- and 64-bit floats, on the CPU or through an execution provider.
///
/// The shared library is, in this order: the path given; `ORT_DYLIB_PATH`; the one inside the Python package
/// `onnxruntime` of `$VIRTUAL_ENV`, or of the `python3` on the path. It is loaded once per
/// process. A provider that is not available is an error, never a silent fall back to the CPU.
#[derive(Debug)]
pub struct OnnxRuntime {
    environment: Environment,
    version: String,
    provider: Provider,
    workers: usize,
}

/// The library that this process has loaded. ONNX Runtime allows one environment per process.
static LOADED: Mutex<Option<Loaded>> = Mutex::new(None);

struct Loaded {
    path: PathBuf,
    environment: Option<Environment>,
}

impl OnnxRuntime {
    pub(super) const NAME: &'static str = "ONNX Runtime";

    /// Finds and loads the library, or takes the one that this process has loaded already.
    pub fn new(library: Option<&Path>, provider: Provider, workers: usize) -> Result<OnnxRuntime> {
        let (environment, path) = environment(library)?;
        let version = library::version(&path).unwrap_or_else(|| {
            let commit = ::ort::info().split("git-commit-id=").nth(1).and_then(|s| s.split(',').next());
            format!("commit {}", commit.unwrap_or("unknown"))
        });
        let engine = OnnxRuntime { environment, version, provider, workers };
        if !available(provider) {
            return Err(engine.provider_error("this ONNX Runtime was built without it".to_string()));
        }
        Ok(engine)
    }

    fn provider_error(&self, reason: String) -> Error {
        Error::Engine(EngineError::Provider {
            engine: OnnxRuntime::NAME,
            provider: self.provider.name(),
            reason,
            available: Provider::ALL.into_iter().filter(|p| available(*p)).map(Provider::name).collect(),
            remedy: None,
        })
    }

    /// One thread and every optimisation. Idle workers sleep instead of spinning: others need the core.
    fn builder(&self) -> ::ort::Result<SessionBuilder> {
        Ok(Session::builder(&self.environment)?
            // Otherwise `ort` may pick another device than the one asked for.
            .with_auto_device(AutoDevicePolicy::PreferCPU)?
            .with_intra_threads(1)?
            .with_inter_threads(1)?
            .with_parallel_execution(false)?
            .with_optimization_level(GraphOptimizationLevel::All)?
            .with_memory_pattern(true)?
            .with_intra_op_spinning(false)?
            .with_inter_op_spinning(false)?)
    }
}

impl OnnxRuntime {
    /// Sessions of the same file, with our kernels where it needs them. `load_error` says what is wrong with it.
    fn sessions(
        &self,
        file: &[u8],
        count: usize,
        kernels: bool,
        load_error: impl Fn(&::ort::Error) -> Error,
    ) -> Result<Vec<Session>> {
        let mut sessions = Vec::with_capacity(count);
        for _ in 0..count {
            let mut builder = self.builder().map_err(|e| load_error(&e))?;
            if kernels {
                let domain = kernels::domain().map_err(|e| load_error(&e))?;
                builder = builder.with_operators(domain).map_err(|e| load_error(&e.into()))?;
            }
            if let Some(registration) = registration(self.provider) {
                builder = builder
                    .with_execution_providers([registration])
                    .map_err(|e| self.provider_error(one_line(e.message())))?;
            }
            sessions.push(builder.commit_from_memory(file).map_err(|e| load_error(&e))?);
        }
        Ok(sessions)
    }
}

/// The process's environment and the library it came from.
fn environment(library: Option<&Path>) -> Result<(Environment, PathBuf)> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let path = match (loaded.as_ref(), library) {
        (Some(loaded), None) => loaded.path.clone(),
        _ => library::find(library)?,
    };
    if let Some(Loaded { path: old, environment }) = loaded.as_ref() {
        if *old != path {
            return Err(Error::Engine(EngineError::OnnxRuntimeTwice { loaded: old.clone(), asked: path }));
        }
        if let Some(environment) = environment {
            return Ok((environment.clone(), path));
        }
    }
    let unusable = |reason: String| {
        Error::Engine(EngineError::OnnxRuntimeLibrary {
            path: path.clone(),
            reason,
            oldest: ::ort::MINOR_VERSION,
        })
    };
    let builder = ::ort::init_from(&path).map_err(|e| {
        use ::ort::LoadDynamicError as E;
        unusable(match e {
            E::Dlopen { error, .. } => error.to_string(),
            E::MissingApi { .. } => "it is not an ONNX Runtime library".to_string(),
            E::InvalidVersionString => "it does not tell its version".to_string(),
            E::BadVersion { version_str, .. } => format!("it is version {version_str}, which is too old"),
        })
    })?;
    // From here on the library stays, whatever happens.
    let loaded = loaded.insert(Loaded { path: path.clone(), environment: None });
    let environment = builder
        .with_name("brenier")
        .with_telemetry(false)
        .build()
        .map_err(|e| unusable(e.message().to_string()))?;
    if std::env::var_os("ORT_LOG").is_none() {
        // What goes wrong is returned as an error; ONNX Runtime would print it as well.
        environment.set_log_level(LogLevel::Fatal);
    }
    loaded.environment = Some(environment.clone());
    Ok((environment, path))
}

/// Whether the loaded library has the provider built in.
fn available(provider: Provider) -> bool {
    match provider {
        Provider::Cpu => Ok(true),
        Provider::Cuda => ep::CUDA::is_available(),
        Provider::TensorRt => ep::TensorRT::is_available(),
        Provider::Rocm => ep::ROCm::is_available(),
        Provider::MiGraphX => ep::MIGraphX::is_available(),
        Provider::CoreMl => ep::CoreML::is_available(),
        Provider::DirectMl => ep::DirectML::is_available(),
        Provider::OpenVino => ep::OpenVINO::is_available(),
    }
    .unwrap_or(false)
}

/// What to register with a session; nothing for the CPU, which every session has (with its arena).
fn registration(provider: Provider) -> Option<ExecutionProviderDispatch> {
    let registration = match provider {
        Provider::Cpu => return None,
        Provider::Cuda => ep::CUDA::default().build(),
        Provider::TensorRt => ep::TensorRT::default().build(),
        Provider::Rocm => ep::ROCm::default().build(),
        Provider::MiGraphX => ep::MIGraphX::default().build(),
        Provider::CoreMl => ep::CoreML::default().build(),
        Provider::DirectMl => ep::DirectML::default().build(),
        Provider::OpenVino => ep::OpenVINO::default().build(),
    };
    Some(registration.error_on_failure())
}

impl Engine for OnnxRuntime {
    fn name(&self) -> &'static str {
        OnnxRuntime::NAME
    }

    fn version(&self) -> &str {
        &self.version
    }

    /// Kernels are for the CPU. Where weights are constants, ONNX Runtime's own are in the layout that suits the machine.
    fn plan(&self, weights: Weights) -> Plan {
        let fused = self.provider == Provider::Cpu && weights == Weights::Inputs;
        Plan { fused, weight_gradient: WeightGradient::Im2col, place_matters: true }
    }

    fn workers(&self) -> usize {
        self.workers
    }

    /// A session each: `ort` takes ONNX Runtime's `Run` not to be safe from several threads.
    fn load_many(&self, model: &Model, count: usize) -> Result<Vec<Box<dyn Program>>> {
        let (signature, mut model) = Signature::of(model, OnnxRuntime::NAME)?;
        let signature = Arc::new(signature);
        let load_error = |e: &::ort::Error| {
            let (node, reason) = told(e.message(), &signature);
            let remedy = Remedy::InspectOrNewerOnnxRuntime;
            Error::Engine(EngineError::Load { engine: OnnxRuntime::NAME, node, reason, remedy })
        };
        let kernels = fused::has_any(&model.graph);
        if kernels {
            model.other_opsets.insert(fused::DOMAIN.to_string(), 1);
        }
        let sessions = self.sessions(&model.to_bytes(), count, kernels, load_error)?;
        let program =
            |session| Box::new(OrtProgram { session, signature: signature.clone() }) as Box<dyn Program>;
        Ok(sessions.into_iter().map(program).collect())
    }

    fn load_as_it_is(&self, file: &[u8], count: usize) -> Result<AsItIs> {
        let load_error = |e: &::ort::Error| {
            Error::Engine(EngineError::Load {
                engine: OnnxRuntime::NAME,
                node: None,
                reason: one_line(e.message()),
                remedy: "a newer onnxruntime may know the operator".into(),
            })
        };
        let sessions = self.sessions(file, count, false, load_error)?;
        let (inputs, refused) = interface(sessions.first().map_or(&[][..], |session| session.inputs()));
        if let Some((name, kind)) = refused.first() {
            return Err(Error::Predictor {
                reason: format!("input '{name}' is {kind}, not a tensor of numbers"),
                remedy: "export the model from its numeric features on".into(),
            });
        }
        let (outputs, left_out) = interface(sessions.first().map_or(&[][..], |session| session.outputs()));
        let signature = Arc::new(Signature::of_engine(inputs.clone(), outputs.clone()));
        let program =
            |session| Box::new(OrtProgram { session, signature: signature.clone() }) as Box<dyn Program>;
        Ok(AsItIs { programs: sessions.into_iter().map(program).collect(), inputs, outputs, left_out })
    }
}

/// Those values that are tensors of a type that programs take and return, and the others with what they are.
fn interface(outlets: &[Outlet]) -> (Vec<ValueInfo>, Vec<(String, String)>) {
    let (mut tensors, mut others) = (Vec::new(), Vec::new());
    for outlet in outlets {
        let ValueType::Tensor { ty, shape, dimension_symbols } = outlet.dtype() else {
            others.push((outlet.name().to_string(), outlet.dtype().to_string()));
            continue;
        };
        let dtype = match ty {
            TensorElementType::Float32 => DType::F32,
            TensorElementType::Float64 => DType::F64,
            TensorElementType::Int64 => DType::I64,
            TensorElementType::Int32 => DType::I32,
            TensorElementType::Bool => DType::Bool,
            _ => {
                others.push((outlet.name().to_string(), outlet.dtype().to_string()));
                continue;
            }
        };
        let dims = shape.iter().zip(dimension_symbols.iter());
        let dim = |(&size, symbol): (&i64, &String)| match (size, symbol.as_str()) {
            (0.., _) => Dim::Known(size),
            (_, "") => Dim::Unknown,
            (_, symbol) => Dim::symbol(symbol),
        };
        let shape = Some(dims.map(dim).collect());
        tensors.push(ValueInfo { name: outlet.name().to_string(), dtype, shape });
    }
    (tensors, others)
}

struct OrtProgram {
    session: Session,
    signature: Arc<Signature>,
}

impl Program for OrtProgram {
    fn run(&mut self, inputs: &[(&str, TensorView)]) -> Result<Vec<Tensor>> {
        self.signature.check(inputs)?;
        let failed = |message: &str| {
            let (node, reason) = told(message, &self.signature);
            Error::Engine(EngineError::Run {
                engine: OnnxRuntime::NAME,
                inputs: Signature::describe(inputs),
                node,
                reason,
            })
        };
        let mut values: Vec<(Cow<str>, SessionInputValue)> = Vec::with_capacity(inputs.len());
        for (name, tensor) in inputs {
            let value = match tensor {
                TensorView::F32(array) => borrow(array),
                TensorView::F64(array) => borrow(array),
                TensorView::Bool(array) => borrow(array),
                TensorView::I64(array) => {
                    let narrow =
                        self.signature.inputs.iter().any(|i| i.name == *name && i.dtype == DType::I32);
                    if narrow { own(narrowed(name, array)?) } else { borrow(array) }
                }
            };
            values.push((Cow::Borrowed(*name), value.map_err(|e| failed(e.message()))?));
        }
        let outputs = self.session.run(values).map_err(|e| failed(e.message()))?;
        let signature = &self.signature;
        signature
            .outputs
            .iter()
            .map(|output| {
                let value = outputs
                    .get(&output.name)
                    .ok_or_else(|| failed(&format!("output '{}' is missing", output.name)))?;
                tensor(value, output.dtype).map_err(|e| failed(e.message()))
            })
            .collect()
    }
}

/// An input without copying, where it is in standard layout.
fn borrow<'a, T>(array: &ArrayViewD<'a, T>) -> ::ort::Result<SessionInputValue<'a>>
where
    T: PrimitiveTensorElementType + std::fmt::Debug + Clone + 'static,
{
    if array.is_standard_layout() {
        Ok(TensorRef::from_array_view(array.clone())?.into())
    } else {
        own(array.to_owned())
    }
}

fn own<T>(array: ArrayD<T>) -> ::ort::Result<SessionInputValue<'static>>
where
    T: PrimitiveTensorElementType + std::fmt::Debug + Clone + 'static,
{
    Ok(::ort::value::Tensor::from_array(array)?.into())
}

fn narrowed(name: &str, array: &ArrayViewD<i64>) -> Result<ArrayD<i32>> {
    if let Some(&value) = array.iter().find(|&&v| i32::try_from(v).is_err()) {
        return Err(Error::Engine(EngineError::IntegerRange { name: name.to_string(), value }));
    }
    Ok(array.mapv(|v| v as i32))
}

/// A copy of an output: its memory belongs to ONNX Runtime.
fn tensor(value: &DynValue, dtype: DType) -> ::ort::Result<Tensor> {
    Ok(match dtype {
        DType::F64 => Tensor::F64(value.try_extract_array::<f64>()?.to_owned()),
        DType::I64 => Tensor::I64(value.try_extract_array::<i64>()?.to_owned()),
        DType::I32 => Tensor::I64(value.try_extract_array::<i32>()?.mapv(i64::from)),
        DType::Bool => Tensor::Bool(value.try_extract_array::<bool>()?.to_owned()),
        _ => Tensor::F32(value.try_extract_array::<f32>()?.to_owned()),
    })
}

/// The node that a message names, and the message's last part: what comes before tells of ONNX Runtime's
/// own source files, as in "... running Add node. Name:'...' Status Message: element_wise_ops.h:563 void ...
/// axis == 1 was false. Attempting to broadcast an axis by a dimension other than 1. 3 by 5".
fn told(message: &str, signature: &Signature) -> (Option<String>, String) {
    let mut text = message;
    for mark in ["Status Message: ", " was false. ", ", Error "] {
        text = text.split(mark).last().filter(|rest| !rest.is_empty()).unwrap_or(text);
    }
    (signature.node_in(message), one_line(text))
}

fn one_line(message: &str) -> String {
    let words: Vec<_> = message.split_whitespace().collect();
    words.join(" ").trim_end_matches(['.', ';']).to_string()
}
