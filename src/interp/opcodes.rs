//! Dispatch of an instruction to the evaluator of its opcode.
use super::machine::Machine;
use super::operands::{Operands, array_shape, invalid_hlo};
use super::rank::Rank;
use super::{
    apply, control, conv, dot, foreign, gather_scatter, linalg, ranks, reduce, rng, shape_ops, sort, top_k, window,
};
use crate::diag::Result;
use crate::hlo::{Computation, Inst, Literal, Module, Op, Shape};
use crate::scalar::{CompareKind, ScalarOp, eval};
use crate::tensor::Tensor;

/// Machine that evaluates all opcodes, with a budget of element operations, whose loops run at most `steps` instructions.
pub(super) fn machine_with_every_opcode(module: &Module, budget: u64, steps: u64) -> Machine<'_> {
    Machine::new(module, budget, steps, evaluate_instruction)
}

/// Value of an instruction from the values of its operands; `args` are the arguments of its computation.
///
/// # Errors
/// `Code::HloInvalid`, `Code::HloUnsupported` and the errors of the opcode's evaluator.
pub(super) fn evaluate_instruction(
    machine: &Machine<'_>,
    comp: &Computation,
    inst: &Inst,
    operands: Operands,
    args: &[Literal],
) -> Result<Literal> {
    let of = |t: Tensor| Ok(Literal::Array(t));
    match &inst.op {
        Op::Parameter(n) => args.get(*n).cloned().ok_or_else(|| invalid_hlo(format!("argument {n} is missing"))),
        Op::Constant(literal) => Ok(literal.clone()),
        Op::Iota(axis) => of(shape_ops::iota(array_shape(inst)?, *axis)?),
        Op::Broadcast(map) => of(shape_ops::broadcast(operands.array(0)?, array_shape(inst)?, map)?),
        Op::Reshape => of(shape_ops::reshape(operands.array(0)?, array_shape(inst)?)?),
        Op::Bitcast => bitcast(comp, inst, operands),
        Op::Copy | Op::OptimizationBarrier | Op::AddDependency => operands.get(0).cloned(),
        Op::BitcastConvertWidth => of(shape_ops::bitcast_convert(operands.array(0)?, array_shape(inst)?)?),
        Op::Transpose(perm) => of(shape_ops::transpose(operands.array(0)?, perm)),
        Op::Reverse(axes) => of(shape_ops::reverse(operands.array(0)?, axes)),
        Op::Slice(dims) => of(shape_ops::slice(operands.array(0)?, dims)),
        Op::Pad(dims) => of(shape_ops::pad(operands.array(0)?, operands.array(1)?, array_shape(inst)?, dims)?),
        Op::Concatenate(axis) => of(shape_ops::concatenate(&operands.arrays()?, array_shape(inst)?, *axis)?),
        Op::DynamicSlice(sizes) => of(shape_ops::dynamic_slice(operands, sizes)?),
        Op::DynamicUpdateSlice => of(shape_ops::dynamic_update_slice(operands)?),
        Op::Gather(dims) => {
            of(gather_scatter::gather(operands.array(0)?, operands.array(1)?, dims, array_shape(inst)?)?)
        }
        Op::Scatter { dims, comp } => gather_scatter::scatter(machine, &operands.arrays()?, dims, *comp),
        Op::Reduce { dims, comp } => reduce::reduce(machine, &operands.arrays()?, dims, *comp),
        Op::ReduceWindow { window, comp } => window::reduce_window(machine, &operands.arrays()?, window, *comp),
        Op::SelectAndScatter { window, select, scatter } => {
            of(window::select_and_scatter(machine, &operands.arrays()?, window, *select, *scatter)?)
        }
        Op::Sort { dim, is_stable: _, comp } => sort::sort(machine, &operands.arrays()?, *dim, *comp),
        Op::TopK { k, largest, kind: CompareKind::Total } => top_k::top_k_total_order(operands.array(0)?, *k, *largest),
        Op::TopK { k, kind: CompareKind::Partial, .. } => top_k::top_k_by_comparison(operands.array(0)?, *k),
        Op::Dot(dims) => of(dot::dot(machine, operands.array(0)?, operands.array(1)?, dims, array_shape(inst)?)?),
        Op::Convolution(dims) => {
            of(conv::convolution(machine, operands.array(0)?, operands.array(1)?, dims, array_shape(inst)?)?)
        }
        Op::Map { comp, dims: _ } => apply::map(machine, &operands.arrays()?, *comp),
        Op::Tuple => Ok(Literal::Tuple(operands.0.iter().map(|&l| l.clone()).collect())),
        Op::GetTupleElement(i) => tuple_element(operands, *i),
        Op::While { cond, body } => control::run_while(machine, operands.get(0)?, *cond, *body),
        Op::Conditional(branches) => control::conditional(machine, operands, branches),
        Op::Call(comp) | Op::Fusion { comp, kind: _ } => {
            let args: Vec<Literal> = operands.0.iter().map(|&l| l.clone()).collect();
            machine.call(*comp, &args)
        }
        Op::Fft { kind, length } => of(linalg::fft(operands.array(0)?, *kind, length, array_shape(inst)?)?),
        Op::Cholesky { lower } => of(linalg::cholesky(operands.array(0)?, *lower)?),
        Op::TriangularSolve { left_side, lower, unit_diagonal, transpose_a } => {
            let (&left_side, &lower, &unit_diagonal, &transpose) = (left_side, lower, unit_diagonal, transpose_a);
            let form = linalg::TriangularForm { left_side, lower, unit_diagonal, transpose };
            of(linalg::triangular_solve(operands.array(0)?, operands.array(1)?, form)?)
        }
        Op::BatchNormTraining { epsilon_bits, feature_index } => {
            linalg::batch_norm_training(&operands.arrays()?, f32::from_bits(*epsilon_bits), *feature_index)
        }
        Op::BatchNormInference { epsilon_bits, feature_index } => {
            linalg::batch_norm_inference(&operands.arrays()?, f32::from_bits(*epsilon_bits), *feature_index)
        }
        Op::BatchNormGrad { epsilon_bits, feature_index } => {
            linalg::batch_norm_grad(&operands.arrays()?, f32::from_bits(*epsilon_bits), *feature_index)
        }
        Op::Rng { normal } => of(rng::rng(operands.array(0)?, operands.array(1)?, *normal, array_shape(inst)?)?),
        Op::RngBitGenerator { algorithm } => rng::bit_generator(operands.array(0)?, algorithm, &inst.shape),
        Op::GetDimensionSize(axis) => of(dimension_size(operands.array(0)?, *axis)?),
        Op::SetDimensionSize(axis) => of(shape_ops::set_dimension_size(operands, *axis)?),
        Op::AfterAll => Ok(Literal::Token),
        Op::PartitionId => of(number(machine, |rank| rank.partition())?),
        Op::ReplicaId => of(number(machine, |rank| rank.replica())?),
        Op::Elementwise(op) => of(elementwise(*op, &operands.arrays()?)?),
        Op::Foreign(f) => match ranks::collective(machine, f, operands, &inst.shape)? {
            Some(value) => Ok(value),
            None => foreign::foreign_call(machine, f, operands, &inst.shape),
        },
    }
}

/// Evaluates `bitcast`: arrays are reinterpreted in another layout, other values passed through.
fn bitcast(comp: &Computation, inst: &Inst, operands: Operands) -> Result<Literal> {
    let from = inst.operands.first().map(|&o| &comp[o].shape);
    match (operands.get(0)?, from.and_then(Shape::as_array)) {
        (Literal::Array(x), Some(from)) => Ok(Literal::Array(shape_ops::bitcast(x, from, array_shape(inst)?)?)),
        (other, _) => Ok(other.clone()),
    }
}

/// Element `i` of the tuple in operand 0.
fn tuple_element(operands: Operands, i: usize) -> Result<Literal> {
    match operands.get(0)? {
        Literal::Tuple(parts) => parts.get(i).cloned().ok_or_else(|| invalid_hlo(format!("no part {i}"))),
        Literal::Array(_) | Literal::Token => Err(invalid_hlo("operand 0 is not a tuple")),
    }
}

/// Size of `x` along `axis`, an s32 scalar.
fn dimension_size(x: &Tensor, axis: usize) -> Result<Tensor> {
    let size = x.dims.get(axis).ok_or_else(|| invalid_hlo(format!("dimension {axis} is beyond the rank")))?;
    Ok(Tensor::scalar(*size as i32))
}

/// Number of this device among replicas or partitions.
fn number(machine: &Machine<'_>, of: impl Fn(Rank<'_>) -> u32) -> Result<Tensor> {
    match machine.rank {
        Some(rank) => Ok(Tensor::scalar(of(rank))),
        None => machine.module.require_single_device().map(|()| Tensor::scalar(0u32)),
    }
}

/// Evaluates a pointwise op. If actual sizes differ below equal bounds, the common part of all operands is computed.
fn elementwise(op: ScalarOp, args: &[&Tensor]) -> Result<Tensor> {
    let rank = args.iter().map(|t| t.dims.len()).max().unwrap_or(0);
    let full: Vec<&Tensor> = args.iter().copied().filter(|t| t.dims.len() == rank).collect();
    if full.windows(2).all(|w| w[0].dims == w[1].dims) {
        return eval::eval(op, args);
    }
    let least: Vec<u64> = (0..rank).filter_map(|i| full.iter().map(|t| t.dims[i]).min()).collect();
    let cropped = args
        .iter()
        .map(|&t| if t.dims.len() == rank { shape_ops::leading_elements(t, least.clone()) } else { t.clone() });
    let cropped: Vec<Tensor> = cropped.collect();
    eval::eval(op, &cropped.iter().collect::<Vec<_>>())
}
