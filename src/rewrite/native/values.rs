//! Values of cluster arguments that follow from constants and sizes; nodes that compute them replace the arguments.
use crate::graph::{Attr, Endpoint, Node, Program, TfType};
use crate::ops::fact::{Fact, InferredInt, KnownElements, integer_tensor};
use crate::ops::symbols::{DimId, InferredDim};
use crate::tensor::{DType, Tensor};
use std::collections::HashMap;
use std::sync::Arc;

/// Value of a cluster's argument of which each element is a constant or equals an unknown size.
#[derive(Clone, Debug)]
pub struct ArgumentValue {
    /// The elements, with 0 for each element that equals an unknown size.
    pub tensor: Tensor,
    /// For each element, the unknown size that it equals; empty if all elements are constants.
    pub sizes: Vec<Option<DimId>>,
}

/// For each unknown size, an argument and an axis of it that has this size, from which the size can be read at run time.
pub type SizeSources = HashMap<DimId, (Endpoint, usize)>;

/// Finds the first axis of `args` that has each unknown size.
pub fn size_sources<'a>(args: impl Iterator<Item = (Endpoint, &'a [InferredDim])>) -> SizeSources {
    let mut sources = SizeSources::new();
    for (at, dims) in args {
        for (axis, dim) in dims.iter().enumerate() {
            if let InferredDim::Unknown(id) = dim {
                sources.entry(*id).or_insert((at, axis));
            }
        }
    }
    sources
}

/// The value that inference found for an argument; `None` unless each element is a constant or a size in `sources`.
pub fn argument_value(fact: &Fact, sources: &SizeSources) -> Option<ArgumentValue> {
    let ints = match fact.value.as_ref()? {
        KnownElements::Tensor(tensor) => return Some(ArgumentValue { tensor: tensor.clone(), sizes: Vec::new() }),
        KnownElements::Ints(ints) => ints,
    };
    let dims = fact.dims.known_sizes()?;
    let mut sizes = Vec::with_capacity(ints.len());
    let mut numbers = Vec::with_capacity(ints.len());
    for int in ints.iter() {
        let (number, size) = match int {
            InferredInt::Known(number) => (*number, None),
            InferredInt::Size(id) if sources.contains_key(id) => (0, Some(*id)),
            InferredInt::Size(_) | InferredInt::Unknown => return None,
        };
        numbers.push(number);
        sizes.push(size);
    }
    let tensor = integer_tensor(fact.dtype?.dtype()?, &dims, &numbers)?;
    Some(ArgumentValue { tensor, sizes })
}

/// Makes all nodes of the top-level graph that read the tensor `at` read added nodes that compute `value` instead.
pub fn replace_by_value(program: &mut Program, at: Endpoint, value: &ArgumentValue, sources: &SizeSources) {
    let name = format!("{}/tfaot_value_{}", program.graph.nodes[at.node].name, at.port);
    let mut made = AddedNodes { program, name, number: 0 };
    let to = made.value(value, sources);
    for node in program.graph.nodes.values_mut() {
        node.inputs.iter_mut().filter(|input| **input == at).for_each(|input| *input = to);
    }
}

/// Nodes under construction that are added to a graph.
struct AddedNodes<'p> {
    program: &'p mut Program,
    /// The prefix of the added nodes' names.
    name: String,
    number: usize,
}

impl AddedNodes<'_> {
    fn node(&mut self, op: &str, inputs: &[Endpoint], attrs: Vec<(&str, Attr)>) -> Endpoint {
        let name = if self.number == 0 { self.name.clone() } else { format!("{}_{}", self.name, self.number) };
        self.number += 1;
        let node = Node {
            name: name.into(),
            op: op.into(),
            device: "".into(),
            inputs: inputs.into(),
            controls: [].into(),
            attrs: attrs.into_iter().map(|(name, attr)| (Arc::from(name), attr)).collect(),
        };
        Endpoint { node: self.program.graph.nodes.push(node), port: 0 }
    }

    fn constant(&mut self, tensor: &Tensor) -> Endpoint {
        let dtype = Attr::Type(TfType::Data(tensor.dtype));
        self.node("Const", &[], vec![("dtype", dtype), ("value", Attr::Tensor(Box::new(tensor.clone())))])
    }

    fn value(&mut self, value: &ArgumentValue, sources: &SizeSources) -> Endpoint {
        let ArgumentValue { tensor, sizes } = value;
        if sizes.is_empty() {
            return self.constant(tensor);
        }
        let dtype = || Attr::Type(TfType::Data(tensor.dtype));
        let numbers = tensor.to_i64s().unwrap_or_default();
        let mut parts = Vec::with_capacity(sizes.len());
        for (number, size) in numbers.iter().zip(sizes) {
            let source = size.and_then(|id| sources.get(&id));
            parts.push(match source {
                Some(&(of, axis)) => self.size(of, axis, tensor.dtype),
                None => {
                    let scalar = integer_tensor(tensor.dtype, &[], &[*number]);
                    self.constant(&scalar.unwrap_or_else(|| tensor.clone()))
                }
            });
        }
        if let ([part], []) = (&parts[..], &tensor.dims[..]) {
            return *part;
        }
        let count = Attr::Int(parts.len() as i64);
        let packed = self.node("Pack", &parts, vec![("N", count), ("T", dtype()), ("axis", Attr::Int(0))]);
        if tensor.dims.len() == 1 {
            return packed;
        }
        let dims: Vec<i64> = tensor.dims.iter().map(|&d| d as i64).collect();
        let dims = self.constant(&Tensor::of(&[dims.len() as u64], &dims));
        let index = Attr::Type(TfType::Data(DType::S64));
        self.node("Reshape", &[packed, dims], vec![("T", dtype()), ("Tshape", index)])
    }

    /// The size of an axis as a scalar tensor.
    fn size(&mut self, of: Endpoint, axis: usize, dtype: DType) -> Endpoint {
        let out = Attr::Type(TfType::Data(dtype));
        let shape = self.node("Shape", &[of], vec![("out_type", out.clone())]);
        let mut at = |n: usize| self.constant(&Tensor::of(&[1], &[n as i32]));
        let (begin, end, step) = (at(axis), at(axis + 1), at(1));
        let index = Attr::Type(TfType::Data(DType::S32));
        let attrs = vec![("T", out), ("Index", index), ("shrink_axis_mask", Attr::Int(1))];
        self.node("StridedSlice", &[shape, begin, end, step], attrs)
    }
}
