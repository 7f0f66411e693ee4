//! Facts from running an op's lowering, so that its shapes and values need no second definition.
use crate::graph::{Node, TfType};
use crate::hlo::open::{Builder, Shape};
use crate::interp;
use crate::ops::fact::{Dims, Fact, MOST_ELEMENTS};
use crate::ops::holder::Holders;
use crate::ops::range::Ranges;
use crate::ops::{LowerCtx, OpRow, Store, Value};
use crate::symbolic::fixed;
use crate::symbolic::known;
use crate::tensor::{DType, Tensor, element_count};
use std::collections::HashMap;

/// Cached result types of pointwise ops, by op and input types.
#[derive(Default)]
pub(super) struct PointwiseTypes(HashMap<(&'static str, Vec<DType>), Option<TfType>>);

impl PointwiseTypes {
    /// Result type of a pointwise op: that of its lowering on scalars.
    pub fn pointwise_type(&mut self, row: &OpRow, node: &Node, args: &[Fact]) -> Option<TfType> {
        let types: Option<Vec<DType>> = args.iter().map(|a| a.dtype?.dtype()).collect();
        let types = types?;
        let key = (row.name, types);
        if let Some(found) = self.0.get(&key) {
            return *found;
        }
        let scalars: Vec<Fact> = key.1.iter().map(|&t| Fact::new(Some(TfType::Data(t)), Dims::known(&[]))).collect();
        let found = run_lowering(row, node, &scalars).and_then(|out| out.first()?.dtype);
        self.0.insert(key, found);
        found
    }
}

/// Outputs with values, of a node whose inputs are all constants; `None` for any other node.
pub(super) fn fold_constants(row: &OpRow, node: &Node, args: &[Fact]) -> Option<Vec<Fact>> {
    if args.is_empty() && !matches!(&*node.op, "Const") {
        return None;
    }
    if let Some(crate::graph::Attr::Tensor(value)) = node.attr("value").filter(|_| args.is_empty()) {
        return Some(vec![Fact::constant(value)]);
    }
    if args.is_empty() || args.iter().any(|a| a.tensor().is_none()) {
        return None;
    }
    run_lowering(row, node, args)
}

/// Outputs of a node whose input types and shapes are all known; `None` for any other node.
pub(super) fn infer_outputs(row: &OpRow, node: &Node, args: &[Fact]) -> Option<Vec<Fact>> {
    let whole = |a: &Fact| a.dims.fixed().is_some_and(|d| element_count(&d).is_some()) && a.dtype.is_some();
    if args.iter().all(whole) { run_lowering(row, node, args) } else { None }
}

fn run_lowering(row: &OpRow, node: &Node, args: &[Fact]) -> Option<Vec<Fact>> {
    let mut b = Builder::new("infer");
    let mut values = Vec::with_capacity(args.len());
    for arg in args {
        values.push(match (arg.tensor(), arg.dtype?, arg.dims.fixed()?) {
            (Some(t), _, _) => Value::Array(b.constant(t.clone())),
            (None, TfType::Data(dtype), dims) => Value::Array(b.parameter(Shape::array(dtype, fixed(&dims)))),
            (None, other, _) => Value::Unavailable(other),
        });
    }
    let folds = args.iter().all(|a| a.tensor().is_some());
    let outputs = row
        .run(&mut LowerCtx {
            node,
            b: &mut b,
            args: values,
            store: &mut Store::default(),
            holders: &mut Holders::default(),
            ranges: &mut Ranges::default(),
            calls: &[],
        })
        .ok()?;
    if b.take_error().is_some() || b.depth() != 1 {
        return None;
    }
    outputs.iter().map(|value| value_fact(&b, value, folds)).collect()
}

fn value_fact(b: &Builder, value: &Value, folds: bool) -> Option<Fact> {
    let Value::Array(id) = value else { return None };
    let shape = b.shape(*id).as_array()?;
    let mut fact = Fact::new(Some(TfType::Data(shape.dtype)), Dims::known(&known(&shape.dims)));
    if folds && shape.elements() <= MOST_ELEMENTS {
        let value: Option<Tensor> = interp::constant_value(b, *id);
        if let Some(value) = value {
            fact = Fact::constant(&value);
        }
    }
    Some(fact)
}
