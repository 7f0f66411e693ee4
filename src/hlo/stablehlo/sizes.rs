//! Open sizes: a module is converted for given argument sizes, from which every type follows.
//!
//! Shape computations are integers computed from constants, so that the operands that operations take as shapes are known.
//! Operations whose sizes are operands become those with sizes as attributes; the result sizes of all others follow from their
//! operands.
use super::converter::{Converter, ShapeAssertions, error_at};
use super::tree::{FuncOp, MlirAttr, Operation, RegionBlock};
use crate::diag::{Code, Result};
use crate::hlo::{ArrayShape, CompId, InstId, Literal, Op, Shape, infer, symbolic};
use crate::symbolic::{Dim, product};

/// Stand-in for an unknown size.
pub(super) const OPEN: u64 = u64::MAX;

/// Largest number of elements of a list of sizes.
const MOST_SIZES: u64 = 64;

/// Whether all sizes in `shape` are known.
pub(super) fn has_fixed_sizes(shape: &Shape) -> bool {
    shape.leaves().iter().all(|a| !a.dims.contains(&OPEN))
}

/// Whether a function has open sizes, or needs its caller's context: sizes or the platform as arguments, or functions of a
/// graph.
pub(super) fn has_open_sizes(function: &FuncOp) -> bool {
    function.args.iter().any(|port| port.text("jax.global_constant").is_some()) || region_is_open(&function.body)
}

fn region_is_open(region: &RegionBlock) -> bool {
    let own = |op: &Operation| {
        !op.types.iter().all(has_fixed_sizes)
            || op.regions.iter().any(region_is_open)
            || matches!(call_target(op), Some("tf.call_tf_function" | "shape_assertion"))
    };
    !region.args.iter().all(|(_, shape)| has_fixed_sizes(shape)) || region.ops.iter().any(own)
}

/// Target of a custom call.
pub(super) fn call_target(op: &Operation) -> Option<&str> {
    match op.attr(&["call_target_name", "callee"]) {
        Some(MlirAttr::Symbol(name) | MlirAttr::Text(name)) if op.name == "stablehlo.custom_call" => Some(name),
        _ => None,
    }
}

/// Indices of the operands with the result sizes of a custom call, as JAX writes it for varying sizes.
fn size_operands(op: &Operation) -> Vec<i64> {
    op.attr(&["indices_of_shape_operands"]).and_then(MlirAttr::ints).unwrap_or_default()
}

/// Operands of a custom call, without those that only hold result sizes.
pub(super) fn drop_size_operands(op: &Operation, operands: &[InstId]) -> Vec<InstId> {
    let sizes = size_operands(op);
    (0i64..).zip(operands).filter(|(i, _)| !sizes.contains(i)).map(|(_, &operand)| operand).collect()
}

/// An operation with sizes converted to attributes.
pub(super) struct StaticOperation {
    pub op: Operation,
    pub operands: Vec<InstId>,
    /// Computations that the operation names, if any.
    pub comps: Option<Vec<CompId>>,
    /// Sizes, one list for each attribute, as expressions of the arguments' sizes.
    pub numbers: Vec<Vec<Dim>>,
}

impl Converter<'_, '_> {
    /// Integers in an operand.
    fn numbers(&mut self, op: &Operation, operands: &[InstId], i: usize) -> Result<Vec<Dim>> {
        let known =
            operands.get(i).and_then(|&id| self.host.known(id)).and_then(|known| known.with_expressions().sizes);
        known.ok_or_else(|| error_at(op, Code::HloUnsupported, format!("operand {i} holds sizes that are not known")))
    }
    /// Converts size operands to attributes, if the operation has such operands or is in a custom call.
    pub fn as_static_operation(&mut self, op: &Operation, operands: &[InstId]) -> Result<Option<StaticOperation>> {
        let (name, taken, names): (&str, usize, &[&str]) = match (op.name.as_str(), call_target(op)) {
            ("stablehlo.dynamic_pad", _) => {
                ("stablehlo.pad", 2, &["edge_padding_low", "edge_padding_high", "interior_padding"])
            }
            ("stablehlo.real_dynamic_slice", _) => {
                ("stablehlo.slice", 1, &["start_indices", "limit_indices", "strides"])
            }
            ("stablehlo.dynamic_gather", _) => ("stablehlo.gather", 2, &["slice_sizes"]),
            ("stablehlo.dynamic_conv", _) => ("stablehlo.convolution", 2, &["padding"]),
            (_, Some("stablehlo.dynamic_reduce_window")) => (
                "stablehlo.reduce_window",
                operands.len().saturating_sub(5),
                &["window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding"],
            ),
            (_, Some("stablehlo.dynamic_rng_bit_generator")) => ("stablehlo.rng_bit_generator", 1, &[]),
            (_, Some("stablehlo.dynamic_top_k")) => ("chlo.top_k", 1, &["k"]),
            (_, Some(own)) if own.starts_with("mhlo.") => return Ok(in_a_call(op, own, operands)),
            _ => return Ok(None),
        };
        if operands.len() < taken + names.len() {
            return Err(error_at(op, Code::HloSyntax, format!("{} operands are too few", operands.len())));
        }
        let mut fixed = Operation { name: name.to_string(), ..op.clone() };
        let mut numbers = Vec::with_capacity(names.len());
        for (i, name) in names.iter().enumerate() {
            let own = self.numbers(op, operands, taken + i)?;
            let at_hand = own.iter().map(|n| MlirAttr::index(n.concrete_value())).collect();
            fixed.attrs.retain(|a| a.0 != *name);
            fixed.attrs.push((name.to_string(), MlirAttr::List(at_hand)));
            numbers.push(own);
        }
        if name == "stablehlo.rng_bit_generator" {
            fixed.types = vec![
                op.types.first().cloned().unwrap_or(Shape::Token),
                self.shape_from_operand(op, operands, 1)?.pin_sizes(),
            ];
        }
        let comps = if op.name == "stablehlo.custom_call" { Some(self.called_computations(op)?) } else { None };
        Ok(Some(StaticOperation { op: fixed, operands: operands[..taken].to_vec(), comps, numbers }))
    }
    /// Computations that a custom call names.
    pub(super) fn called_computations(&mut self, op: &Operation) -> Result<Vec<CompId>> {
        let Some(MlirAttr::List(names)) = op.attr(&["called_computations"]) else { return Ok(Vec::new()) };
        let mut comps = Vec::with_capacity(names.len());
        for name in names {
            let (MlirAttr::Symbol(name) | MlirAttr::Text(name)) = name else {
                return Err(error_at(op, Code::HloSyntax, "a called computation has no name"));
            };
            comps.push(self.convert_static_function(op, name)?);
        }
        Ok(comps)
    }
    /// Shape of result `i` of a custom call whose sizes are in an operand.
    fn shape_from_operand(&mut self, op: &Operation, operands: &[InstId], i: usize) -> Result<symbolic::Shape> {
        let declared = op.types.get(i).cloned().unwrap_or(Shape::Token);
        let Some(a) = declared.as_array().filter(|_| !has_fixed_sizes(&declared)) else {
            return Ok(declared.to_symbolic());
        };
        let places = size_operands(op);
        let place = places.get(i).and_then(|&p| usize::try_from(p).ok());
        let place =
            place.ok_or_else(|| error_at(op, Code::HloUnsupported, format!("the sizes of {declared} are not told")))?;
        self.array_of_sizes(op, a, operands, place)
    }
    /// Shape of an array whose sizes are in operand `i`.
    fn array_of_sizes(
        &mut self,
        op: &Operation,
        a: &ArrayShape,
        operands: &[InstId],
        i: usize,
    ) -> Result<symbolic::Shape> {
        let dims: Option<Vec<Dim>> = self.numbers(op, operands, i)?.into_iter().map(Dim::into_nonnegative).collect();
        let dims = dims.ok_or_else(|| error_at(op, Code::ShapeMismatch, "a size is negative"))?;
        Ok(symbolic::Shape::array(a.dtype, dims))
    }
    /// Shape of the result of `made`, declared as `declared`; `sizes` are operands that hold its sizes.
    pub fn result_shape(
        &mut self,
        op: &Operation,
        made: &symbolic::Op,
        declared: Shape,
        operands: &[InstId],
        sizes: &[InstId],
    ) -> Result<symbolic::Shape> {
        if has_fixed_sizes(&declared) {
            return Ok(declared.to_symbolic());
        }
        let found = match (made, &declared) {
            (Op::Iota(_) | Op::Reshape | Op::Broadcast(_), Shape::Array(a)) => self.array_of_sizes(op, a, sizes, 0)?,
            (Op::Foreign(f), _) if f.opcode == "custom-call" => {
                let all = (0..op.types.len())
                    .map(|i| self.shape_from_operand(op, operands, i))
                    .collect::<Result<Vec<_>>>()?;
                if let [one] = &all[..] { one.clone() } else { symbolic::Shape::Tuple(all) }
            }
            // Foreign functions of one operand are pointwise.
            (Op::Foreign(_), Shape::Array(a)) if operands.len() == 1 => {
                symbolic::Shape::array(a.dtype, self.builder().dims(operands[0]).to_vec())
            }
            (Op::BitcastConvertWidth, Shape::Array(a)) => {
                let known = a.dims.iter().zip(self.builder().dims(operands[0]));
                let dims = known.map(|(&d, &x)| if d == OPEN { x } else { Dim::from(d) });
                symbolic::Shape::array(a.dtype, dims.collect::<Vec<Dim>>())
            }
            _ => {
                let b = self.builder();
                let shapes: Vec<&symbolic::Shape> = operands.iter().map(|&o| b.shape(o)).collect();
                let found = infer::infer(made, &shapes, b.module());
                found.map_err(|m| error_at(op, Code::ShapeMismatch, m))?
            }
        };
        let counted = |a: &&symbolic::ArrayShape| product(&a.dims).is_some();
        if matches_declared(&found, &declared) && found.leaves().iter().all(counted) {
            return Ok(found);
        }
        Err(error_at(
            op,
            Code::ShapeMismatch,
            format!("the result has the shape {found}, where {declared} is declared"),
        ))
    }
    /// Replaces `id` by a constant if it is a small integer array computed from constants.
    ///
    /// Folded values must not depend on the sizes, or modules for two sizes would differ in more than numbers: so only results with
    /// declared sizes are folded.
    pub fn fold_if_constant(&mut self, op: &Operation, id: InstId) -> InstId {
        let comp = self.builder().current_computation();
        let inst = &comp.insts[id];
        let Some(a) = inst.shape.as_array() else { return id };
        if let Op::GetDimensionSize(axis) = inst.op {
            let size = comp.insts[inst.operands[0]].shape.as_array().and_then(|x| x.dims.get(axis)).copied();
            return size.map_or(id, |n| self.builder().size_constant(crate::tensor::DType::S32, &[], vec![n]));
        }
        let known = |o: &InstId| matches!(comp.insts[*o].op, Op::Constant(Literal::Array(_)));
        let is_small = op.types.iter().all(has_fixed_sizes) && a.elements() <= MOST_SIZES;
        let is_number = !a.dtype.is_float() && !a.dtype.is_complex();
        if !is_small || !is_number || inst.operands.is_empty() || !inst.operands.iter().all(known) {
            return id;
        }
        match self.host.known(id) {
            Some(known) => {
                let known = if self.builder().depends_on_sizes(id) { known.with_expressions() } else { known };
                known.add_constant(self.builder())
            }
            None => id,
        }
    }
    /// Whether an operation concerns the context of the module.
    pub fn belongs_to_context(&self, op: &Operation) -> bool {
        matches!(call_target(op), Some("tf.call_tf_function" | "shape_assertion"))
    }
    /// Converts an assertion about sizes, or a call of a function of the surrounding graph.
    pub fn convert_assertion_or_call(&mut self, op: &Operation, operands: &[InstId]) -> Result<Vec<InstId>> {
        if call_target(op) == Some("shape_assertion") {
            return self.assertion(op, operands).map(|()| Vec::new());
        }
        let entries = match op.attr(&["tf.backend_config"]) {
            Some(MlirAttr::Dict(entries)) => &entries[..],
            _ => &[],
        };
        let entry = |name: &str| entries.iter().find(|e| e.0 == name).map(|e| &e.1);
        let Some(&MlirAttr::Int(index, _)) = entry("called_index") else {
            return Err(error_at(op, Code::HloSyntax, "`called_index` is expected but not seen"));
        };
        let token = matches!(entry("has_token_input_output"), Some(MlirAttr::Bool(true)));
        let args = operands.get(usize::from(token)..).unwrap_or_default();
        let mut results = self.host.call(index, args)?;
        if token {
            results.insert(0, self.builder().add_inst(Op::AfterAll, &[]));
        }
        let b = self.host.builder();
        if results.len() != op.types.len()
            || results.iter().zip(&op.types).any(|(&r, t)| !matches_declared(b.shape(r), t))
        {
            let found: Vec<String> = results.iter().map(|&r| b.shape(r).to_string()).collect();
            return Err(error_at(op, Code::ShapeMismatch, format!("the function gives ({})", found.join(", "))));
        }
        Ok(results)
    }
    /// Rejects sizes that JAX was told not to expect; assertions on run-time values are ignored.
    fn assertion(&mut self, op: &Operation, operands: &[InstId]) -> Result<()> {
        let holds = operands.first().and_then(|&id| self.host.constant(id)).and_then(|t| t.get_i64(0));
        if holds != Some(0) || self.checks == ShapeAssertions::None {
            return Ok(());
        }
        let mut told = match op.attr(&["error_message"]) {
            Some(MlirAttr::Text(text)) => text.clone(),
            _ => "the sizes are not those that the module was exported for".to_string(),
        };
        for (i, &id) in operands[1..].iter().enumerate() {
            let value = self.host.constant(id).and_then(|t| t.get_i64(0));
            told = told.replace(&format!("{{{i}}}"), &value.map_or("?".to_string(), |v| v.to_string()));
        }
        Err(error_at(op, Code::ShapeMismatch, told))
    }
}

/// Operation that is written as a custom call of its name.
fn in_a_call(op: &Operation, name: &str, operands: &[InstId]) -> Option<StaticOperation> {
    super::attributes::opcode(name)?;
    let attrs = match op.attr(&["mhlo.attributes"]) {
        Some(MlirAttr::Dict(attrs)) => attrs.clone(),
        _ => Vec::new(),
    };
    let op = Operation { name: name.to_string(), attrs, ..op.clone() };
    Some(StaticOperation { op, operands: operands.to_vec(), comps: None, numbers: Vec::new() })
}

/// Sets the sizes of an op to those in its operands.
pub(super) fn set_size_attributes(op: &mut symbolic::Op, numbers: &[Vec<Dim>]) {
    let at = |list: usize, i: usize| numbers.get(list).and_then(|all| all.get(i)).copied();
    let set = |to: &mut Dim, list: usize, i: usize| *to = at(list, i).unwrap_or(*to);
    match op {
        Op::Slice(dims) => {
            for (i, d) in dims.iter_mut().enumerate() {
                set(&mut d.start, 0, i);
                set(&mut d.limit, 1, i);
                set(&mut d.stride, 2, i);
            }
        }
        Op::Pad(dims) => {
            for (i, d) in dims.iter_mut().enumerate() {
                set(&mut d.low, 0, i);
                set(&mut d.high, 1, i);
                set(&mut d.interior, 2, i);
            }
        }
        Op::Gather(dims) => (0..).zip(&mut dims.slice_sizes).for_each(|(i, d)| set(d, 0, i)),
        Op::Convolution(dims) => {
            for (i, w) in dims.window.iter_mut().enumerate() {
                set(&mut w.pad_low, 0, 2 * i);
                set(&mut w.pad_high, 0, 2 * i + 1);
            }
        }
        Op::TopK { k, .. } => set(k, 0, 0),
        Op::ReduceWindow { window, .. } => {
            for (i, w) in window.iter_mut().enumerate() {
                set(&mut w.size, 0, i);
                set(&mut w.stride, 1, i);
                set(&mut w.lhs_dilate, 2, i);
                set(&mut w.rhs_dilate, 3, i);
                set(&mut w.pad_low, 4, 2 * i);
                set(&mut w.pad_high, 4, 2 * i + 1);
            }
        }
        // Random bits and the like, for which the current sizes were written.
        _ => {
            for n in numbers.iter().flatten() {
                n.guarded_value();
            }
        }
    }
}

/// Whether `found` matches `declared`, whose sizes may be open.
pub(super) fn matches_declared(found: &symbolic::Shape, declared: &Shape) -> bool {
    match (found, declared) {
        (symbolic::Shape::Array(f), Shape::Array(d)) => {
            let same = |(&x, &y): (&Dim, &u64)| y == OPEN || x == y;
            f.dtype == d.dtype && f.rank() == d.rank() && f.dims.iter().zip(&d.dims).all(same)
        }
        (symbolic::Shape::Tuple(f), Shape::Tuple(d)) => {
            f.len() == d.len() && f.iter().zip(d).all(|(x, y)| matches_declared(x, y))
        }
        _ => found.at_current_sizes().same_type_and_dims(declared),
    }
}
