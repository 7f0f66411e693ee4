//! Facts from running an op's lowering, so that its shapes and values need no second definition.
use crate::graph::{Node, TfType};
use crate::hlo::CheckedQuantity;
use crate::hlo::symbolic::{Builder, Shape};
use crate::interp;
use crate::ops::fact::{Dims, Fact, InferredInt, KnownElements, MOST_ELEMENTS};
use crate::ops::mutable_list::MutableLists;
use crate::ops::range::RangeAnalysis;
use crate::ops::symbols::{DimId, InferredDim, UnknownReason};
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value, VariableStore};
use crate::symbolic::trace::{self, SizeTrace, SizeVariable};
use crate::symbolic::{Dim, Interval, constant_dims, guarded_counts};
use crate::tensor::{DType, Tensor, element_count};
use std::collections::HashMap;

/// Upper bound on the elements of an array that are traced back to sizes.
const MAX_TRACED_ELEMENTS: u64 = 64;

/// Cached result types of pointwise ops, by op and input types.
#[derive(Default)]
pub(super) struct PointwiseTypes(HashMap<(&'static str, Vec<DType>), Option<TfType>>);

impl PointwiseTypes {
    /// Result type of a pointwise op: that of its lowering on scalars.
    pub fn pointwise_type(&mut self, row: &OpLowering, node: &Node, args: &[Fact]) -> Option<TfType> {
        let types: Option<Vec<DType>> = args.iter().map(|a| a.dtype?.dtype()).collect();
        let types = types?;
        let key = (row.name, types);
        if let Some(found) = self.0.get(&key) {
            return *found;
        }
        let scalars: Vec<Fact> =
            key.1.iter().map(|&t| Fact::new(Some(TfType::Data(t)), Dims::from_sizes(&[]))).collect();
        let found = run_lowering(row, node, &scalars).and_then(|out| out.first()?.dtype);
        self.0.insert(key, found);
        found
    }
}

/// Outputs with values, of a node whose inputs are all constants; `None` for any other node.
pub(super) fn fold_constants(row: &OpLowering, node: &Node, args: &[Fact]) -> Option<Vec<Fact>> {
    if args.is_empty() && !matches!(&*node.op, "Const") {
        return None;
    }
    if let Some(crate::graph::Attr::Tensor(value)) = node.attr("value").filter(|_| args.is_empty()) {
        return Some(vec![Fact::constant(value)]);
    }
    if args.is_empty() || args.iter().any(|a| a.as_tensor().is_none()) {
        return None;
    }
    run_lowering(row, node, args)
}

/// Outputs of a node whose input types and ranks are known, from lowering it with its unknown sizes as variables. `None` if lowering depends
/// on these sizes otherwise than by arithmetic, or on a value that is not known.
pub(super) fn infer_outputs(row: &OpLowering, cx: &mut ShapeCtx) -> Option<Vec<Fact>> {
    let args = cx.args;
    let is_counted = |a: &Fact| a.dims.known_sizes().is_none_or(|d| element_count(&d).is_some());
    if !args.iter().all(is_counted) {
        return None;
    }
    let mut sizes = unknown_sizes(args)?;
    let variables: Vec<SizeVariable> = (0..sizes.len()).map(size_variable).collect();
    let (made, record) = trace::trace_size_uses(&variables, |variables| {
        let variable = |id: DimId| sizes.iter().position(|&s| s == id).map(|i| variables[i]);
        let dim = |d: &InferredDim| match *d {
            InferredDim::Known(n) => Some(Dim::from(n)),
            InferredDim::Unknown(id) => variable(id),
        };
        let int = |n: &InferredInt| match *n {
            InferredInt::Known(n) => Some(Dim::from(n)),
            InferredInt::Size(id) => variable(id),
            InferredInt::Unknown => None,
        };
        let mut b = Builder::new("infer");
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            let TfType::Data(dtype) = arg.dtype? else {
                values.push(Value::Unavailable(arg.dtype?));
                continue;
            };
            let ints = match &arg.value {
                Some(KnownElements::Ints(all)) => all.iter().map(int).collect::<Option<Vec<Dim>>>(),
                Some(KnownElements::Tensor(_)) | None => None,
            };
            let dims = arg.dims.as_ranked()?.iter().map(dim).collect::<Option<Vec<Dim>>>()?;
            values.push(Value::Array(match (arg.as_tensor(), ints) {
                (Some(tensor), _) => b.constant(tensor.clone()),
                (None, Some(ints)) => b.size_constant(dtype, &arg.dims.known_sizes()?, ints),
                (None, None) => b.parameter(Shape::array(dtype, dims)),
            }));
        }
        let outputs = run_on(row, cx.node, &mut b, values)?;
        // an upper bound of a requested size is not the size
        let has_capacity =
            b.bound_checks().iter().any(|bound_check| !matches!(bound_check.quantity, CheckedQuantity::Check(_)));
        let outputs = Some(outputs).filter(|_| !has_capacity)?;
        outputs.iter().map(|value| SymbolicOutput::of(&b, value)).collect::<Option<Vec<SymbolicOutput>>>()
    });
    let made = made.filter(|_| record.guards().is_empty())?;
    // data-dependent sizes have the indices behind the others
    let found = record.ranges().len() - sizes.len();
    sizes.extend((0..found).map(|_| cx.symbols.fresh(cx.site, UnknownReason::Data)));
    made.into_iter().map(|output| output.fact(cx, &sizes, &record)).collect()
}

/// Unknown sizes in the shapes and values of a node's inputs, each once; `None` if a rank is not known.
fn unknown_sizes(args: &[Fact]) -> Option<Vec<DimId>> {
    let mut sizes = Vec::new();
    for arg in args {
        let own = arg.dims.as_ranked()?.iter().filter_map(|d| d.unknown_id());
        let ints = match &arg.value {
            Some(KnownElements::Ints(all)) => &all[..],
            Some(KnownElements::Tensor(_)) | None => &[],
        };
        let told = ints.iter().filter_map(|n| if let InferredInt::Size(id) = n { Some(*id) } else { None });
        for id in own.chain(told) {
            if !sizes.contains(&id) {
                sizes.push(id);
            }
        }
    }
    Some(sizes)
}

/// Variable for the unknown size with index `i`. Sizes are below 2^31, as in compiled code; the concrete values for lowering are small and
/// different from one another.
fn size_variable(i: usize) -> SizeVariable {
    SizeVariable { name: String::new(), range: Interval::new(0, i32::MAX.into()), at_hand: 11 + 6 * i as i64 }
}

/// An output of a lowered node, with sizes that are expressions of variables.
struct SymbolicOutput {
    dtype: DType,
    dims: Vec<Dim>,
    /// Elements, if they are computed from sizes.
    elements: Option<Vec<Dim>>,
}

impl SymbolicOutput {
    fn of(b: &Builder, value: &Value) -> Option<SymbolicOutput> {
        let Value::Array(id) = value else { return None };
        let shape = b.shape(*id).as_array()?;
        let is_small = !shape.dims.iter().any(|d| d.varies()) && shape.elements() <= MAX_TRACED_ELEMENTS;
        let known = (is_small && shape.dtype.is_integer()).then(|| interp::symbolic_value(b, *id)).flatten();
        let elements = known.and_then(|known| known.with_expressions().sizes);
        Some(SymbolicOutput { dtype: shape.dtype, dims: shape.dims.clone(), elements })
    }
    /// Fact about the output, with the unknown sizes `sizes` for the variables; `None` for a negative size.
    fn fact(self, cx: &mut ShapeCtx, sizes: &[DimId], record: &SizeTrace) -> Option<Fact> {
        let mut size = |d: Dim| match d.varies() {
            false => u64::try_from(d.concrete_value()).ok().map(InferredDim::Known),
            true => {
                let expr = record.expr(d);
                let cause = expr.vars().first().map(|&v| sizes[v]);
                let expr = expr.substitute(&|&v| cx.symbols.expr(sizes[v].into()));
                Some(cx.symbols.size_of_expr(cx.site, expr, cause))
            }
        };
        let dtype = TfType::Data(self.dtype);
        let dims = self.dims.iter().map(|&d| size(d)).collect::<Option<Vec<InferredDim>>>()?;
        let elements = self.elements.map(|all| {
            let int = |d: &Dim| {
                if d.varies() {
                    size(*d).map_or(InferredInt::Unknown, InferredInt::from)
                } else {
                    InferredInt::Known(d.concrete_value())
                }
            };
            all.iter().map(int).collect::<Vec<InferredInt>>()
        });
        let dims = Dims::ranked(dims);
        Some(match (elements, dims.known_sizes()) {
            (Some(elements), Some(fixed)) => Fact::from_ints(dtype, &fixed, elements),
            _ => Fact::new(Some(dtype), dims),
        })
    }
}

/// Outputs of a node from input types, shapes and values that are all known.
fn run_lowering(row: &OpLowering, node: &Node, args: &[Fact]) -> Option<Vec<Fact>> {
    let mut b = Builder::new("infer");
    let mut values = Vec::with_capacity(args.len());
    for arg in args {
        values.push(match (arg.as_tensor(), arg.dtype?, arg.dims.known_sizes()?) {
            (Some(t), _, _) => Value::Array(b.constant(t.clone())),
            (None, TfType::Data(dtype), dims) => Value::Array(b.parameter(Shape::array(dtype, constant_dims(&dims)))),
            (None, other, _) => Value::Unavailable(other),
        });
    }
    let folds = args.iter().all(|a| a.as_tensor().is_some());
    let outputs = run_on(row, node, &mut b, values)?;
    outputs.iter().map(|value| value_fact(&b, value, folds)).collect()
}

/// Results of lowering a node; `None` if the lowering refuses it or leaves an error in the builder.
fn run_on(row: &OpLowering, node: &Node, b: &mut Builder, args: Vec<Value>) -> Option<Vec<Value>> {
    let outputs = row
        .lower_node(&mut LowerCtx {
            node,
            b,
            args,
            store: &mut VariableStore::default(),
            mutable_lists: &mut MutableLists::default(),
            ranges: &mut RangeAnalysis::default(),
            calls: &[],
        })
        .ok()?;
    (b.take_error().is_none() && b.nesting_depth() == 1).then_some(outputs)
}

fn value_fact(b: &Builder, value: &Value, folds: bool) -> Option<Fact> {
    let Value::Array(id) = value else { return None };
    let shape = b.shape(*id).as_array()?;
    let mut fact = Fact::new(Some(TfType::Data(shape.dtype)), Dims::from_sizes(&guarded_counts(&shape.dims)));
    if folds && shape.elements() <= MOST_ELEMENTS {
        let value: Option<Tensor> = interp::constant_value(b, *id);
        if let Some(value) = value {
            fact = Fact::constant(&value);
        }
    }
    Some(fact)
}
