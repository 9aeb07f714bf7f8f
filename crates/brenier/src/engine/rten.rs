//! RTen: a pure Rust engine, so that a build needs nothing but the Rust toolchain.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ::rten::{RunOptions, ThreadPool, Value, ValueOrView, ValueView};
use ndarray::{ArrayD, CowArray, IxDyn};
use onnx_grad::{Attribute, DType, Graph, Model, WeightGradient};
use rten_tensor::Layout;

use super::signature::Signature;
use super::{Arithmetic, Engine, Plan, Program, Tensor, TensorView, Weights};
use crate::error::{EngineError, Error, Remedy, Result};

mod arg;
mod partition;
mod quirks;
mod spelling;

use self::partition::{Staged, Stopped, Workbench};
use self::quirks::{merge_outputs, spell_out};

/// The built-in engine: [RTen](https://github.com/robertknight/rten), 32-bit floats on the CPU.
///
/// All programs of a load share one copy of the weights. RTen would silently compute 64-bit floats in 32
/// bits, so models that have any are refused.
#[derive(Debug)]
pub struct Rten {
    workers: usize,
    arithmetic: Arithmetic,
}

impl Rten {
    pub(super) const NAME: &'static str = "RTen";

    /// The engine, with this many workers.
    pub fn new(workers: usize) -> Rten {
        Rten { workers, arithmetic: Arithmetic::default() }
    }

    /// The same with another arithmetic.
    pub fn with_arithmetic(self, arithmetic: Arithmetic) -> Rten {
        Rten { arithmetic, ..self }
    }
}

impl Engine for Rten {
    fn name(&self) -> &'static str {
        Rten::NAME
    }

    fn version(&self) -> &str {
        // RTen does not tell at run time; a test compares this with the lock file.
        "0.27.0"
    }

    fn described(&self) -> String {
        format!("{} {}, {} arithmetic", self.name(), self.version(), self.arithmetic)
    }

    fn plan(&self, _weights: Weights) -> Plan {
        Plan { fused: true, weight_gradient: WeightGradient::Im2col, place_matters: false }
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn load_many(&self, model: &Model, count: usize) -> Result<Vec<Box<dyn Program>>> {
        refuse_f64(&model.graph)?;
        let mut model = spell_out(model)?;
        model.graph = self.plan(Weights::Constants).fuse(model.graph);
        let (signature, mut model) = Signature::of(&model, Rten::NAME)?;
        let places = merge_outputs(&mut model.graph);
        let load_error = |node: Option<&str>, reason: String| {
            Error::Engine(EngineError::Load {
                engine: Rten::NAME,
                node: node.and_then(|name| signature.node_in(name)),
                reason,
                remedy: Remedy::OnnxRuntime,
            })
        };
        let staged = caught(|| Staged::load(&model, self.arithmetic, load_error))
            .unwrap_or_else(|why| Err(load_error(None, why)))?;
        let shared = Arc::new(Shared { staged, places, signature });
        Ok((0..count)
            .map(|_| {
                let pool = Arc::new(ThreadPool::with_num_threads(1));
                let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&pool)));
                let workbench = Workbench::new(&shared.staged, options);
                Box::new(RtenProgram { shared: Arc::clone(&shared), pool, workbench }) as Box<dyn Program>
            })
            .collect())
    }
}

/// What a panic of RTen's says: it is an error like any other.
fn caught<T>(run: impl FnOnce() -> T) -> std::result::Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let told = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        format!("it panicked ({})", told.unwrap_or("no message"))
    })
}

/// What all programs of a load have in common; RTen runs a model from several threads at once.
struct Shared {
    staged: Staged,
    /// Where each output of the signature is among those of the stages.
    places: Vec<usize>,
    signature: Signature,
}

struct RtenProgram {
    shared: Arc<Shared>,
    pool: Arc<ThreadPool>,
    workbench: Workbench,
}

impl Program for RtenProgram {
    fn run(&mut self, inputs: &[(&str, TensorView)]) -> Result<Vec<Tensor>> {
        let Shared { staged, places, signature } = self.shared.as_ref();
        signature.check(inputs)?;
        let fed: Vec<Fed> = inputs.iter().map(|(name, view)| feed(name, view)).collect::<Result<_>>()?;
        let values = inputs.iter().zip(&fed).map(|((name, _), fed)| (*name, fed.value())).collect();
        let failed = |node: Option<String>, reason: String| {
            Error::Engine(EngineError::Run {
                engine: Rten::NAME,
                inputs: Signature::describe(inputs),
                node,
                reason,
            })
        };
        // All stages on one thread of the pool: going there takes as long as a small stage.
        let workbench = &mut self.workbench;
        let outputs = caught(|| self.pool.run(|| workbench.run(staged, values)))
            .map_err(|reason| failed(None, reason))?
            .map_err(|Stopped { node, reason }| failed(node.and_then(|n| signature.node_in(&n)), reason))?;
        let mut tensors: Vec<Option<Value>> = outputs.into_iter().map(Some).collect();
        let mut results = Vec::with_capacity(places.len());
        for (i, (output, &place)) in signature.outputs.iter().zip(places).enumerate() {
            // Taken where this is its last use, so that only what is handed out twice is copied.
            let last = !places[i + 1..].contains(&place);
            let value = if last { tensors[place].take() } else { tensors[place].clone() };
            let found = value.as_ref().map_or("nothing".to_string(), |value| value.dtype().to_string());
            results.push(value.and_then(|value| tensor(value, output.dtype)).ok_or_else(|| {
                failed(None, format!("output '{}' is a {found}, not {}", output.name, output.dtype))
            })?);
        }
        Ok(results)
    }
}

/// An input in a form that RTen can borrow.
enum Fed<'a> {
    F32(CowArray<'a, f32, IxDyn>),
    I32(ArrayD<i32>),
}

fn feed<'a>(name: &str, view: &'a TensorView) -> Result<Fed<'a>> {
    Ok(match view {
        TensorView::F32(array) => Fed::F32(array.as_standard_layout()),
        // RTen computes integers and booleans in 32 bits.
        TensorView::I64(array) => {
            let too_large = array.iter().find(|&&v| i32::try_from(v).is_err());
            if let Some(&value) = too_large {
                return Err(Error::Engine(EngineError::IntegerRange { name: name.to_string(), value }));
            }
            Fed::I32(array.as_standard_layout().mapv(|v| v as i32))
        }
        TensorView::Bool(array) => Fed::I32(array.as_standard_layout().mapv(i32::from)),
        TensorView::F64(_) => return Err(no_f64(name)),
    })
}

impl Fed<'_> {
    fn value(&self) -> ValueOrView<'_> {
        let view = match self {
            Fed::F32(array) => {
                ValueView::from_shape(array.shape(), array.as_slice().unwrap_or_default()).ok()
            }
            Fed::I32(array) => {
                ValueView::from_shape(array.shape(), array.as_slice().unwrap_or_default()).ok()
            }
        };
        view.expect("an array in standard layout is a slice that fits its shape").into()
    }
}

/// The output without copying, where it is a tensor of floats in row-major order.
fn tensor(value: Value, dtype: DType) -> Option<Tensor> {
    match (value, dtype) {
        (Value::FloatTensor(t), DType::F32) => {
            let shape = t.shape().to_vec();
            ArrayD::from_shape_vec(shape, t.into_data()).ok().map(Tensor::F32)
        }
        (Value::Int32Tensor(t), DType::I64 | DType::I32) => {
            let shape = t.shape().to_vec();
            let data = t.into_data().into_iter().map(i64::from).collect();
            ArrayD::from_shape_vec(shape, data).ok().map(Tensor::I64)
        }
        (Value::Int32Tensor(t), DType::Bool) => {
            let shape = t.shape().to_vec();
            let data = t.into_data().into_iter().map(|v| v != 0).collect();
            ArrayD::from_shape_vec(shape, data).ok().map(Tensor::Bool)
        }
        _ => None,
    }
}

fn no_f64(value: &str) -> Error {
    Error::Engine(EngineError::ElementType {
        engine: Rten::NAME,
        value: value.to_string(),
        dtype: DType::F64,
        remedy: Remedy::OnnxRuntimeOrFloat32,
    })
}

fn refuse_f64(graph: &Graph) -> Result<()> {
    let ends = graph.inputs.iter().chain(&graph.outputs).map(|v| (v.name.as_str(), v.dtype));
    let constants = graph.initializers.iter().map(|(name, tensor)| (name.as_str(), tensor.dtype()));
    if let Some((name, _)) = ends.chain(constants).find(|(_, dtype)| *dtype == DType::F64) {
        return Err(no_f64(name));
    }
    for node in &graph.nodes {
        let constant = |a: &Attribute| matches!(a, Attribute::Tensor(t) if t.dtype() == DType::F64);
        let cast = node.is("Cast") && node.int("to", 0) == i64::from(DType::F64.code());
        if cast || node.attributes.values().any(constant) {
            return Err(no_f64(node.wanted_outputs().next().unwrap_or_default()));
        }
        node.bodies().try_for_each(refuse_f64)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_locked_one() {
        let lock = include_str!("../../../../Cargo.lock");
        let version = Rten::new(1).version().to_string();
        assert!(lock.contains(&format!("name = \"rten\"\nversion = \"{version}\"")));
    }
}
