//! [Kernels](brenier_kernels) as custom operators of ONNX Runtime.

use ::ort::operator::{
    ComputeContext, Kernel as OrtKernel, KernelContext, Operator, OperatorDomain, OperatorInput,
    OperatorOutput,
};
use ::ort::value::{TensorElementType, ValueRef};
use brenier_kernels::{Input, Kernel, Misfit};
use onnx_grad::fused::{self, AttributeKind};
use onnx_grad::{Attribute, Node};

/// The domain with all fused operators.
pub(super) fn domain() -> ::ort::Result<OperatorDomain> {
    fused::OPERATORS
        .iter()
        .try_fold(OperatorDomain::new(fused::DOMAIN)?, |domain, &operator| domain.add(Fused(operator)))
}

/// One operator, as it is declared.
struct Fused(fused::Operator);

impl Operator for Fused {
    type Kernel<'attr> = Compute;

    fn name(&self) -> &str {
        self.0.name
    }

    fn inputs(&self) -> impl IntoIterator<Item = OperatorInput> {
        let required = (0..self.0.inputs).map(|_| OperatorInput::required(TensorElementType::Float32));
        let optional = (0..self.0.optional).map(|_| OperatorInput::optional(TensorElementType::Float32));
        required.chain(optional).collect::<Vec<_>>()
    }

    fn outputs(&self) -> impl IntoIterator<Item = OperatorOutput> {
        (0..self.0.outputs).map(|_| OperatorOutput::required(TensorElementType::Float32)).collect::<Vec<_>>()
    }

    fn create_kernel<'attr>(&self, context: &KernelContext<'attr>) -> ::ort::Result<Compute> {
        let mut node = Node { domain: fused::DOMAIN.to_string(), ..Node::new(self.0.name, &[], &[]) };
        for &(name, kind) in self.0.attributes {
            let value = match kind {
                AttributeKind::Ints => context.get(name).map(Attribute::Ints),
                AttributeKind::Int => context.get(name).map(Attribute::Int),
                AttributeKind::Float => context.get(name).map(Attribute::Float),
                AttributeKind::String => context.get(name).map(Attribute::String),
            };
            node.attributes.extend(value.map(|value| (name.to_string(), value)));
        }
        let kernel = Kernel::of(&node).ok_or_else(|| ::ort::Error::new("its attributes are not known"))?;
        Ok(Compute { kernel })
    }
}

/// A node's kernel inside a session, which has one thread.
struct Compute {
    kernel: Kernel,
}

impl OrtKernel for Compute {
    fn compute(&mut self, context: &ComputeContext) -> ::ort::Result<()> {
        let mut values: Vec<ValueRef<'_>> = Vec::new();
        for i in 0..context.num_inputs()? {
            values.extend(context.input(i)?);
        }
        let mut inputs = Vec::with_capacity(values.len());
        for value in &values {
            let (shape, data) = value.try_extract_tensor::<f32>()?;
            let shape: Vec<usize> = shape.iter().map(|&size| usize::try_from(size).unwrap_or(0)).collect();
            inputs.push((shape, data));
        }
        let shapes: Vec<&[usize]> = inputs.iter().map(|(shape, _)| shape.as_slice()).collect();
        let misfit = |e: Misfit| ::ort::Error::new(e.told(&shapes));
        let wanted = self.kernel.shapes(&shapes).map_err(misfit)?;
        let mut results = Vec::with_capacity(wanted.len());
        for (i, shape) in wanted.iter().enumerate() {
            let value = context.output(i, shape.iter().map(|&size| size as i64).collect::<Vec<i64>>())?;
            results.push(value.ok_or_else(|| ::ort::Error::new("an output has no memory"))?);
        }
        let mut outputs = Vec::with_capacity(results.len());
        for result in &mut results {
            outputs.push(result.try_extract_tensor_mut::<f32>()?.1);
        }
        let inputs: Vec<Input> = inputs.iter().map(|(shape, data)| Input { shape, data }).collect();
        self.kernel.run(&inputs, &mut outputs).map_err(misfit)
    }
}
