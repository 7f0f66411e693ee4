//! The interpreter, the reference semantics of every opcode on tensors. It shares facts with the code generator, never
//! execution.
//!
//! [`evaluate`] runs a computation of a module; [`constant_value`] the part of a computation under construction on which one
//! value depends, and [`constant_value_through_loops`] also the needed parts of loops. All of them run a plan (operands before users),
//! drop a value after its last use, and charge each instruction to a budget.
mod apply;
mod constant;
mod control;
mod conv;
mod devices;
mod dot;
mod excerpt;
mod foreign;
mod gather_scatter;
mod linalg;
mod loop_part;
mod machine;
mod opcodes;
mod operands;
mod rank;
mod ranks;
mod reduce;
mod rng;
mod scan;
mod rounding;
mod sizes;
mod shape_ops;
mod sort;
mod top_k;
mod box_walk;
mod window;

use crate::diag::Result;
use crate::hlo::{CompId, Literal, Module};

pub use constant::{constant_value, symbolic_value};
pub use devices::evaluate_ranks;
pub use loop_part::{constant_value_through_loops, symbolic_value_through_loops};
pub use machine::LowerForSizes;

pub use rounding::{evaluate_with_perturbed_rounding, rounds_to_16_bits};
pub use shape_ops::leading_elements;
pub use sizes::symbolic_elements;

/// Result of computation `comp` for `args`, one per parameter.
///
/// # Errors
/// `HloUnsupported` for opcodes without a meaning on a single device, `SeveralDevices` if a module for several devices
/// communicates, `HloInvalid` for inconsistent shapes, `TooLarge` for arrays beyond 2^34 bytes, `StepLimit` for loops that run
/// more than [`MAX_STEPS`] instructions.
pub fn evaluate(module: &Module, comp: CompId, args: &[Literal]) -> Result<Literal> {
    evaluate_with_step_limit(module, comp, args, MAX_STEPS)
}

/// Default limit on the instructions that loops may run, about a minute of work.
pub const MAX_STEPS: u64 = 50_000_000;

/// Evaluates a computation whose loops may run `max_steps` instructions.
///
/// # Errors
/// Errors of [`evaluate`].
pub fn evaluate_with_step_limit(module: &Module, comp: CompId, args: &[Literal], max_steps: u64) -> Result<Literal> {
    let machine = opcodes::machine_with_every_opcode(module, u64::MAX, max_steps);
    machine.check_args(comp, args)?;
    machine.call(comp, args)
}

/// Result of the entry of a module with data-dependent sizes, which may differ in each iteration of a loop. `found` are the
/// sizes that the module was lowered for; `lower` lowers the same function for others.
///
/// # Errors
/// Errors of [`evaluate`] and of `lower`.
pub fn evaluate_sized(module: &Module, args: &[Literal], found: Vec<u64>, lower: LowerForSizes) -> Result<Literal> {
    let mut machine = opcodes::machine_with_every_opcode(module, u64::MAX, MAX_STEPS);
    machine.sizes = Some(machine::EvaluatedSizes { found, lower });
    machine.check_args(module.entry, args)?;
    machine.call(module.entry, args)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::attrs::{ConvDims, DotDims, PadDim, SliceDim, WindowDim};
    use crate::hlo::{Builder, InstId, Op};
    use crate::scalar::{Direction, ScalarOp};
    use crate::tensor::{DType, Tensor};

    fn value(build: impl FnOnce(&mut Builder) -> InstId) -> Tensor {
        let mut b = Builder::new("test");
        let id = build(&mut b);
        assert_eq!(b.take_error(), None);
        constant_value(&b, id).expect("a constant")
    }
    fn floats(b: &mut Builder, dims: &[u64], values: &[f32]) -> InstId {
        b.constant(Tensor::of(dims, values))
    }

    #[test]
    fn a_matrix_that_is_not_positive_has_no_factor_at_all() {
        let factor = value(|b| {
            let x =
                b.constant(Tensor::from_vec(DType::F32, vec![2, 2, 2], vec![4f32, 2.0, 2.0, 5.0, 4.0, 2.0, 2.0, -1.0]));
            b.add_inst(Op::Cholesky { lower: true }, &[x])
        });
        let factor = factor.view::<f32>().into_owned();
        assert_eq!(factor[..4], [2.0, 0.0, 1.0, 2.0]);
        assert!(factor[4..].iter().all(|v| v.is_nan()), "{factor:?}");
    }

    #[test]
    fn shape_arithmetic_folds() {
        let t = value(|b| {
            let x = b.constant(Tensor::of(&[4], &[2i32, 3, 5, 7]));
            let s = b.slice(x, &[SliceDim { start: 1, limit: 4, stride: 2 }]);
            let one = b.scalar(DType::S32, 1.0);
            let y = b.reduce(s, one, ScalarOp::Multiply, &[0]);
            let y = b.reshape(y, &[1]);
            b.concatenate(&[s, y], 0)
        });
        assert_eq!(t.to_i64s(), Some(vec![3, 7, 21]));
    }

    #[test]
    fn moves_elements() {
        let t = value(|b| {
            let x = b.iota(DType::F32, &[2, 3], 1);
            let x = b.transpose(x, &[1, 0]);
            let zero = b.scalar(DType::F32, -1.0);
            let x =
                b.pad(x, zero, &[PadDim { low: -1, high: 1, interior: 1 }, PadDim { low: 0, high: -1, interior: 0 }]);
            b.add_inst(Op::Reverse(vec![0]), &[x])
        });
        assert_eq!(t.dims, [5, 1]);
        assert_eq!(t.to_vec::<f32>(), [-1.0, 2.0, -1.0, 1.0, -1.0]);
    }

    #[test]
    fn reduces_along_any_axis() {
        for (axes, want) in [(vec![0], vec![5.0, 7.0, 9.0]), (vec![1], vec![6.0, 15.0]), (vec![0, 1], vec![21.0])] {
            let t = value(|b| {
                let x = floats(b, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
                let zero = b.scalar(DType::F32, 0.0);
                b.reduce(x, zero, ScalarOp::Add, &axes)
            });
            assert_eq!(t.to_vec::<f32>(), want);
        }
    }

    #[test]
    fn reduces_pairs_with_a_computation() {
        // The largest element and its index.
        let mut b = Builder::new("test");
        b.begin_computation("argmax");
        let f = |b: &mut Builder, t| b.parameter(crate::hlo::Shape::array(t, []));
        let (av, ai, bv, bi) =
            (f(&mut b, DType::F32), f(&mut b, DType::S32), f(&mut b, DType::F32), f(&mut b, DType::S32));
        let keep = b.compare(Direction::Ge, av, bv);
        let (v, i) = (b.select(keep, av, bv), b.select(keep, ai, bi));
        let root = b.tuple(&[v, i]);
        let comp = b.end_computation(root);
        let n = 10_000;
        let values: Vec<f32> = (0..n).map(|i| ((i * 7919) % n) as f32).collect();
        let want = values.iter().position(|&v| v == (n - 1) as f32).unwrap_or(0);
        let x = floats(&mut b, &[n as u64], &values);
        let index = b.iota(DType::S32, &[n as u64], 0);
        let (low, zero) = (b.scalar(DType::F32, f64::NEG_INFINITY), b.scalar(DType::S32, 0.0));
        let pair = b.add_inst(Op::Reduce { dims: vec![0], comp }, &[x, index, low, zero]);
        let i = b.get_tuple_element(pair, 1);
        assert_eq!(constant_value(&b, i).and_then(|t| t.get_i64(0)), Some(want as i64));
    }

    #[test]
    fn multiplies_matrices() {
        let t = value(|b| {
            let x = b.iota(DType::F32, &[2, 9], 1);
            let y = b.iota(DType::F32, &[9, 9], 0);
            b.dot(x, y, DotDims { lhs_contracting: vec![1], rhs_contracting: vec![0], ..DotDims::default() })
        });
        assert_eq!(t.to_vec::<f32>(), [204.0; 18]);
    }

    #[test]
    fn convolves_with_stride_and_padding() {
        let t = value(|b| {
            let x = floats(b, &[1, 4, 1], &[1.0, 2.0, 3.0, 4.0]);
            let k = floats(b, &[3, 1, 1], &[1.0, 10.0, 100.0]);
            let window = WindowDim { size: 3, stride: 2, pad_low: 1, pad_high: 1, ..WindowDim::default() };
            let dims = ConvDims::channels_last(vec![window]);
            b.add_inst(Op::Convolution(Box::new(dims)), &[x, k])
        });
        assert_eq!(t.to_vec::<f32>(), [210.0, 432.0]);
    }

    #[test]
    fn a_scan_carries_sums_backwards() {
        let text = "f { x = f32[2] parameter(0) c = f32[2] parameter(1) s = f32[2] add(x, c) ROOT t = (f32[2], f32[2]) tuple(s, s) }
ENTRY e { x = f32[2,3] constant({{1,2,3},{4,5,6}}) i = f32[2] constant({0,10})
ROOT r = (f32[2,3], f32[2]) scan(x, i), dimensions={1}, num_carries=1, is_reverse=true, to_apply=f }";
        let module = crate::hlo::text::parse(text).expect("parses");
        let Literal::Tuple(parts) = evaluate(&module, module.entry, &[]).expect("a value") else { panic!("a tuple") };
        let leaves: Vec<Vec<f32>> = parts.iter().map(|p| p.leaves()[0].to_vec::<f32>()).collect();
        assert_eq!(leaves, [vec![6.0, 5.0, 3.0, 25.0, 21.0, 16.0], vec![6.0, 25.0]]);
    }

    #[test]
    fn a_loop_without_end_is_stopped() {
        let text = "b { p = s32[] parameter(0) ROOT n = s32[] negate(p) }
c { q = s32[] parameter(0) ROOT t = pred[] constant(true) }
ENTRY e { i = s32[] constant(1) ROOT w = s32[] while(i), condition=c, body=b }";
        let module = crate::hlo::text::parse(text).expect("parses");
        let error = evaluate_with_step_limit(&module, module.entry, &[], 1000).expect_err("it has no end");
        assert_eq!(error.into_diagnostics()[0].code, crate::diag::Code::StepLimit);
    }

    #[test]
    fn a_parameter_is_no_constant() {
        let mut b = Builder::new("test");
        let x = b.parameter(crate::hlo::Shape::array(DType::F32, [2]));
        let y = b.add(x, x);
        assert_eq!(constant_value(&b, y), None);
    }

    #[test]
    fn sorts_pairs_stably() {
        let mut b = Builder::new("test");
        b.begin_computation("less");
        let f = |b: &mut Builder, t| b.parameter(crate::hlo::Shape::array(t, []));
        let (x, y) = (f(&mut b, DType::F32), f(&mut b, DType::F32));
        f(&mut b, DType::S32);
        f(&mut b, DType::S32);
        let root = b.compare(Direction::Lt, x, y);
        let comp = b.end_computation(root);
        let keys = floats(&mut b, &[5], &[3.0, 1.0, 2.0, 1.0, 0.0]);
        let index = b.iota(DType::S32, &[5], 0);
        let sorted = b.add_inst(Op::Sort { dim: 0, is_stable: true, comp }, &[keys, index]);
        let order = b.get_tuple_element(sorted, 1);
        assert_eq!(constant_value(&b, order).and_then(|t| t.to_i64s()), Some(vec![4, 1, 3, 2, 0]));
    }

    #[test]
    fn takes_the_maximum_of_windows() {
        let t = value(|b| {
            let x = b.iota(DType::F32, &[4, 4], 1);
            let low = b.scalar(DType::F32, f64::NEG_INFINITY);
            let comp = b.scalar_computation(ScalarOp::Maximum, DType::F32);
            let w = WindowDim { size: 3, stride: 2, pad_low: 1, pad_high: 1, ..WindowDim::default() };
            b.add_inst(Op::ReduceWindow { window: vec![w, w], comp }, &[x, low])
        });
        assert_eq!(t.to_vec::<f32>(), [1.0, 3.0, 1.0, 3.0]);
    }

    #[test]
    fn philox_gives_the_published_words() {
        // TensorFlow's StatelessRandomUniformFullIntV2 for key 5, counter [7, 9].
        let counter = 7u128 | 9u128 << 64;
        assert_eq!(rng::philox(5, counter), [832693445, 132006561, 1697787879, 1890427150]);
        assert_eq!(rng::philox(5, counter + 1)[..2], [1417357930, 3930142501]);
    }
}
