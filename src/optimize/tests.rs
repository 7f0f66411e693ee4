//! Passes on small modules: the shape and the value of the result.
use super::*;
use crate::hlo::attrs::*;
use crate::hlo::{Builder, CompId, InstId, Literal, Op, Shape};
use crate::interp;
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, Tensor};

/// Small numbers of both signs that do not repeat.
fn sample(dims: &[u64], seed: usize) -> Tensor {
    let n: u64 = dims.iter().product();
    let values: Vec<f32> = (0..n as usize).map(|i| (((i * 7 + seed * 13) % 29) as f32 - 14.0) / 8.0).collect();
    Tensor::of(dims, &values)
}

fn param(b: &mut Builder, dims: &[u64]) -> InstId {
    b.parameter(Shape::array(DType::F32, dims))
}

fn weight(b: &mut Builder, dims: &[u64], seed: usize) -> InstId {
    b.constant(sample(dims, seed))
}

/// The names of the entry's ops, operands first, without parameters.
fn ops(module: &Module) -> Vec<String> {
    let insts = module.entry().insts.values();
    insts.map(|i| i.op.name().to_string()).filter(|n| n != "parameter").collect()
}

/// The module that `build` makes, before and after optimization, checked to have the same type.
fn both(build: impl FnOnce(&mut Builder) -> InstId) -> (Module, Module) {
    let mut b = Builder::new("m");
    let root = build(&mut b);
    let before = b.finish(root).expect("the shapes fit");
    let mut after = before.clone();
    run(&mut after).expect("the passes succeed");
    let shape = |m: &Module| m.entry()[m.entry().root].shape.clone();
    assert!(shape(&before).same_type_and_dims(&shape(&after)), "{} became {}", shape(&before), shape(&after));
    (before, after)
}

/// Optimises what `build` makes and checks that type and value stay; returns the result.
fn optimised(build: impl FnOnce(&mut Builder) -> InstId) -> Module {
    let (before, after) = both(build);
    let args: Vec<Literal> = before
        .entry()
        .params
        .iter()
        .enumerate()
        .map(|(i, &p)| Literal::Array(sample(&before.entry().array_shape(p).dims, i)))
        .collect();
    let value = |m: &Module| interp::evaluate(m, m.entry, &args).expect("the module can be evaluated");
    for (x, y) in value(&before).leaves().iter().zip(value(&after).leaves()) {
        assert_eq!((x.dtype, &x.dims), (y.dtype, &y.dims));
        for i in 0..x.len() {
            let (p, q) = (x.get_f64(i).unwrap_or(0.0), y.get_f64(i).unwrap_or(0.0));
            assert!((p - q).abs() <= 1e-4 * p.abs().max(1.0), "element {i}: {p} became {q}");
        }
    }
    after
}

fn conv_dims(groups: u64, size: u64) -> ConvDims {
    let window = vec![WindowDim { size, ..WindowDim::default() }; 2];
    ConvDims { feature_group_count: groups, ..ConvDims::channels_last(window) }
}

fn conv(b: &mut Builder, x: InstId, w: InstId, groups: u64) -> InstId {
    let size = b.dims(w)[0];
    b.add_inst(Op::Convolution(Box::new(conv_dims(groups, size))), &[x, w])
}

fn batch_norm(b: &mut Builder, x: InstId, axis: usize) -> InstId {
    let dims = b.dims(x).to_vec();
    let c = dims[axis];
    let variance = b.constant(Tensor::of(&[c], &(0..c).map(|i| 0.5 + i as f32).collect::<Vec<_>>()));
    let (mean, scale, offset) = (weight(b, &[c], 1), weight(b, &[c], 2), weight(b, &[c], 3));
    let epsilon = b.full(DType::F32, &[c], 1e-3);
    let shifted = b.add(variance, epsilon);
    let root = b.unary(ScalarOp::Rsqrt, shifted);
    let factor = b.mul(root, scale);
    let [factor, offset, mean] = [factor, offset, mean].map(|v| b.broadcast(v, &dims, &[axis]));
    let centred = b.sub(x, mean);
    let scaled = b.mul(centred, factor);
    b.add(scaled, offset)
}

#[test]
fn equal_instructions_and_computations_become_one() {
    let module = optimised(|b| {
        let x = param(b, &[4, 3]);
        let zero = b.scalar(DType::F32, 0.0);
        let one = b.reduce(x, zero, ScalarOp::Add, &[1]);
        let zero = b.scalar(DType::F32, 0.0);
        let two = b.reduce(x, zero, ScalarOp::Add, &[1]);
        let dead = b.add(one, two);
        b.mul(dead, dead);
        b.tuple(&[one, two])
    });
    assert_eq!(ops(&module), ["constant", "reduce", "tuple"]);
    assert_eq!(module.comps.len(), 2);
}

#[test]
fn unknown_passes_are_refused() {
    let mut b = Builder::new("m");
    let root = b.scalar(DType::F32, 0.0);
    let mut module = b.finish(root).expect("the shapes fit");
    assert!(run_passes(&mut module, &["no-such"], |_, _, _, _| {}).is_err());
}

#[test]
fn batch_norm_becomes_weights_and_bias() {
    let module = optimised(|b| {
        let x = param(b, &[1, 6, 6, 4]);
        let w = weight(b, &[3, 3, 4, 5], 4);
        let y = conv(b, x, w, 1);
        let bias = weight(b, &[5], 5);
        let y = b.add(y, bias);
        batch_norm(b, y, 3)
    });
    assert_eq!(ops(&module), ["constant", "convolution", "constant", "broadcast", "add"]);
}

#[test]
fn batch_norm_of_depthwise_becomes_weights_and_bias() {
    let module = optimised(|b| {
        let x = param(b, &[1, 6, 6, 4]);
        let w = weight(b, &[3, 3, 4, 2], 4);
        let w = b.reshape(w, &[3, 3, 1, 8]);
        let y = conv(b, x, w, 4);
        batch_norm(b, y, 3)
    });
    assert_eq!(ops(&module), ["constant", "convolution", "constant", "broadcast", "add"]);
}

#[test]
fn batch_norm_of_product_becomes_weights_and_bias() {
    let module = optimised(|b| {
        let x = param(b, &[3, 4]);
        let w = weight(b, &[4, 6], 4);
        let dims = DotDims { lhs_contracting: vec![1], rhs_contracting: vec![0], ..DotDims::default() };
        let y = b.dot(x, w, dims);
        let y = b.reshape(y, &[1, 3, 6]);
        batch_norm(b, y, 2)
    });
    assert_eq!(ops(&module), ["constant", "dot", "reshape", "constant", "broadcast", "add"]);
}

#[test]
fn scale_of_shared_convolution_stays() {
    let module = optimised(|b| {
        let x = param(b, &[1, 6, 6, 4]);
        let w = weight(b, &[3, 3, 4, 5], 4);
        let y = conv(b, x, w, 1);
        let s = weight(b, &[5], 5);
        let scaled = b.mul(y, s);
        b.tuple(&[y, scaled])
    });
    assert!(ops(&module).contains(&"multiply".to_string()));
}

#[test]
fn pad_becomes_padding_of_windows() {
    let (_, module) = both(|b| {
        let x = param(b, &[1, 5, 5, 2]);
        let zero = b.scalar(DType::F32, 0.0);
        let pads = [(0, 0), (1, 2), (2, 1), (0, 0)].map(|(low, high)| PadDim { low, high, interior: 0 });
        let padded = b.pad(x, zero, &pads);
        let w = weight(b, &[3, 3, 2, 2], 4);
        let y = conv(b, padded, w, 1);
        let zeros = b.full_like(y, 0.0);
        let y = b.max(y, zeros);
        let padded =
            b.pad(y, zero, &[(0, 0), (1, 1), (1, 1), (0, 0)].map(|(low, high)| PadDim { low, high, interior: 0 }));
        let comp = b.scalar_computation(ScalarOp::Maximum, DType::F32);
        let lowest = b.scalar(DType::F32, f64::NEG_INFINITY);
        let wide = WindowDim { size: 3, stride: 2, ..WindowDim::default() };
        let window = vec![WindowDim::default(), wide, wide, WindowDim::default()];
        b.add_inst(Op::ReduceWindow { window, comp }, &[padded, lowest])
    });
    assert!(!ops(&module).contains(&"pad".to_string()), "{:?}", ops(&module));
}

#[test]
fn moves_cancel() {
    let module = optimised(|b| {
        let x = param(b, &[2, 3, 4]);
        let y = b.transpose(x, &[2, 0, 1]);
        let y = b.unary(ScalarOp::Negate, y);
        let y = b.unary(ScalarOp::Negate, y);
        let y = b.transpose(y, &[1, 2, 0]);
        let y = b.reshape(y, &[24]);
        let y = b.reshape(y, &[6, 4]);
        let one = b.full_like(y, 1.0);
        let y = b.mul(y, one);
        let y = b.div(y, one);
        let parts = [b.slice_axis(y, 0, 0, 2), b.slice_axis(y, 0, 2, 6)];
        b.concatenate(&parts, 0)
    });
    assert_eq!(ops(&module), ["reshape"]);
}

#[test]
fn broadcasts_move_behind_pointwise_ops() {
    let module = optimised(|b| {
        let v = param(b, &[3]);
        let x = b.broadcast(v, &[2, 3], &[1]);
        let c = weight(b, &[3], 1);
        let y = b.mul(x, c);
        let half = b.full_like(y, 0.5);
        b.sub(y, half)
    });
    assert_eq!(ops(&module), ["constant", "multiply", "constant", "broadcast", "subtract", "broadcast"]);
}

#[test]
fn known_choices_are_made() {
    let module = optimised(|b| {
        let x = param(b, &[4, 3]);
        let two = b.scalar(DType::S32, 2.0);
        let zero = b.scalar(DType::S32, 0.0);
        let row = b.add_inst(Op::DynamicSlice(vec![1, 3]), &[x, two, zero]);
        let less = b.compare(Direction::Lt, zero, two);
        let other = b.unary(ScalarOp::Exp, row);
        b.select(less, row, other)
    });
    assert_eq!(ops(&module), ["slice"]);
}

/// A loop of three rounds: state (i, x, w, unread) -> (i + 1, x * w, w, unread + x).
fn a_loop(b: &mut Builder) -> InstId {
    let vector = Shape::array(DType::F32, [4]);
    let state = Shape::Tuple(vec![Shape::array(DType::S32, []), vector.clone(), vector.clone(), vector]);
    b.begin_computation("cond");
    let s = b.parameter(state.clone());
    let i = b.get_tuple_element(s, 0);
    let three = b.scalar(DType::S32, 3.0);
    let root = b.compare(Direction::Lt, i, three);
    let cond: CompId = b.end_computation(root);
    b.begin_computation("body");
    let s = b.parameter(state);
    let [i, x, w, unread] = [0, 1, 2, 3].map(|n| b.get_tuple_element(s, n));
    let one = b.scalar(DType::S32, 1.0);
    let i = b.add(i, one);
    let unread = b.add(unread, x);
    let x = b.mul(x, w);
    let root = b.tuple(&[i, x, w, unread]);
    let body = b.end_computation(root);
    let x = param(b, &[4]);
    let (i, w) = (b.scalar(DType::S32, 0.0), weight(b, &[4], 3));
    let init = b.tuple(&[i, x, w, x]);
    let done = b.add_inst(Op::While { cond, body }, &[init]);
    let parts = [1, 2].map(|n| b.get_tuple_element(done, n));
    b.tuple(&parts)
}

#[test]
fn loops_carry_what_changes_and_is_read() {
    let module = optimised(a_loop);
    let state = module.entry().insts.values().find(|i| matches!(i.op, Op::While { .. })).expect("the loop stays");
    assert_eq!(state.shape.as_tuple().map(<[Shape]>::len), Some(2));
    assert_eq!(module.comps.len(), 3);
}

#[test]
fn calls_and_known_branches_are_inlined() {
    let module = optimised(|b| {
        b.begin_computation("negate");
        let x = param(b, &[4]);
        let root = b.unary(ScalarOp::Negate, x);
        let negate = b.end_computation(root);
        b.begin_computation("exp");
        let x = param(b, &[4]);
        let root = b.unary(ScalarOp::Exp, x);
        let exp = b.end_computation(root);
        let x = param(b, &[4]);
        let y = b.add_inst(Op::Call(negate), &[x]);
        let second = b.scalar(DType::S32, 7.0);
        b.add_inst(Op::Conditional(vec![negate, exp]), &[second, y, y])
    });
    assert_eq!(ops(&module), ["negate", "exponential"]);
    assert_eq!(module.comps.len(), 1);
}

#[test]
fn magnitudes_of_unsigned_numbers_keep_a_negation() {
    let left = |dtype: DType| {
        let (_, after) = both(|b| {
            let x = b.parameter(Shape::array(dtype, [3]));
            let negated = b.unary(ScalarOp::Negate, x);
            b.unary(ScalarOp::Abs, negated)
        });
        ops(&after).contains(&"negate".to_string())
    };
    assert!(left(DType::U64) && !left(DType::S64));
}

#[test]
fn the_right_side_of_a_product_is_read_through_its_transpose() {
    let product = |perm: [usize; 4], rhs: usize| {
        optimised(|b| {
            let (x, y) = (param(b, &[2, 3, 4, 5]), param(b, &[2, 3, 5, 4]));
            let y = b.add_inst(Op::Transpose(perm.to_vec()), &[y]);
            let dims = DotDims {
                lhs_batch: vec![0],
                rhs_batch: vec![0],
                lhs_contracting: vec![3],
                rhs_contracting: vec![rhs],
            };
            b.add_inst(Op::Dot(Box::new(dims)), &[x, y])
        })
    };
    assert_eq!(ops(&product([0, 2, 1, 3], 1)), ["dot"]);
    // else what is left of the right side would change its order
    assert_eq!(ops(&product([0, 3, 1, 2], 3)), ["transpose", "dot"]);
}

#[test]
fn products_of_bytes_keep_the_type_of_their_sums() {
    let bytes = |b: &mut Builder, dims: &[u64]| b.parameter(Shape::array(DType::S8, dims));
    let (dims, sums) =
        (DotDims { lhs_contracting: vec![1], rhs_contracting: vec![0], ..DotDims::default() }, DType::S32);
    let after = both(|b| {
        let (x, y) = (bytes(b, &[4, 3]), bytes(b, &[5, 3]));
        let y = b.add_inst(Op::Transpose(vec![1, 0]), &[y]);
        let made = b.push(Op::Dot(Box::new(dims)), &[x, y], Shape::array(sums, [4, 5]));
        b.add_inst(Op::Transpose(vec![1, 0]), &[made])
    })
    .1;
    assert_eq!(ops(&after), ["dot"]);
}

#[test]
fn a_product_is_written_as_its_transpose_wants() {
    let product = |perm: [usize; 4], weights: bool| {
        optimised(|b| {
            let x = param(b, &[2, 3, 4, 5]);
            let y = if weights { weight(b, &[2, 5, 6], 1) } else { param(b, &[2, 5, 6]) };
            let dims =
                DotDims { lhs_batch: vec![0], rhs_batch: vec![0], lhs_contracting: vec![3], rhs_contracting: vec![1] };
            let made = b.add_inst(Op::Dot(Box::new(dims)), &[x, y]);
            b.add_inst(Op::Transpose(perm.to_vec()), &[made])
        })
    };
    assert_eq!(ops(&product([0, 3, 1, 2], false)), ["dot"]);
    // else the order within a side changes, or weights come on the left
    assert_eq!(ops(&product([0, 3, 2, 1], false)), ["dot", "transpose"]);
    assert_eq!(ops(&product([0, 3, 1, 2], true)), ["constant", "dot", "transpose"]);
}

#[test]
fn what_is_sliced_away_behind_a_1x1_convolution_is_not_computed() {
    let after = optimised(|b| {
        let (x, skipped) = (param(b, &[1, 1, 12, 4]), param(b, &[1, 12, 4]));
        let w = weight(b, &[1, 1, 4, 4], 3);
        let made = conv(b, x, w, 1);
        let made = b.reshape(made, &[1, 12, 4]);
        let sum = b.add(made, skipped);
        b.slice_axis(sum, 1, 5, 8)
    });
    let insts = || after.entry().insts.values();
    assert!(insts().all(|i| i.shape.as_array().is_none_or(|a| matches!(i.op, Op::Parameter(_)) || a.elements() <= 16)));
    assert_eq!(insts().filter(|i| matches!(i.op, Op::Convolution(_))).count(), 1);
}

/// `SpaceToBatchND` by 2 and 3, two phases' planes in the order of `phases`, a depthwise or plain 3x2 window, and back.
fn in_space_to_batch(b: &mut Builder, groups: u64, rows_first: bool, crop: u64) -> InstId {
    let x = param(b, &[2, 5, 6, 4]);
    let zero = b.scalar(DType::F32, 0.0);
    let by = |low, high| PadDim { low, high, interior: 0 };
    let padded = b.pad(x, zero, &[by(0, 0), by(2, 3), by(1, 5), by(0, 0)]);
    let cut = b.reshape(padded, &[2, 5, 2, 4, 3, 4]);
    let (order, back) =
        if rows_first { ([2, 4, 0, 1, 3, 5], [2, 3, 0, 4, 1, 5]) } else { ([4, 2, 0, 1, 3, 5], [2, 3, 1, 4, 0, 5]) };
    let moved = b.transpose(cut, &order);
    let planes = b.reshape(moved, &[12, 5, 4, 4]);
    let w = weight(b, &[3, 2, 4 / groups, 4], 2);
    let mut dims = conv_dims(groups, 3);
    dims.window[1].size = 2;
    let made = b.add_inst(Op::Convolution(Box::new(dims)), &[planes, w]);
    let (rows, columns) = if rows_first { (2, 3) } else { (3, 2) };
    let cut = b.reshape(made, &[rows, columns, 2, 3, 3, 4]);
    let moved = b.transpose(cut, &back);
    let whole = b.reshape(moved, &[2, 6, 9, 4]);
    let fewer = b.slice_axis(whole, 1, crop, 6 - crop);
    b.slice_axis(fewer, 2, crop, 9 - 2 * crop)
}

#[test]
fn depthwise_windows_between_space_to_batch_and_back_are_dilated() {
    for (rows_first, crop) in [(true, 0), (true, 1), (false, 1)] {
        let after = optimised(|b| in_space_to_batch(b, 4, rows_first, crop));
        assert_eq!(ops(&after), ["constant", "convolution"], "{crop}");
        let conv = after.entry().insts.values().find_map(|i| match &i.op {
            Op::Convolution(d) => Some(d.window.clone()),
            _ => None,
        });
        let w = conv.expect("a convolution");
        assert_eq!((w[0].rhs_dilate, w[1].rhs_dilate), (2, 3));
        let padding = [w[0].pad_low, w[0].pad_high, w[1].pad_low, w[1].pad_high];
        let crop = crop as i64;
        assert_eq!(padding, [2 - crop, 3 - crop, 1 - crop, 5 - 2 * crop]);
    }
}

#[test]
fn other_windows_between_space_to_batch_and_back_stay() {
    let after = optimised(|b| in_space_to_batch(b, 1, true, 0));
    assert_eq!(ops(&after).iter().filter(|o| *o == "transpose").count(), 2);
    // what is cut is not what is put together
    let after = optimised(|b| {
        let x = param(b, &[1, 6, 6, 4]);
        let cut = b.reshape(x, &[1, 3, 2, 3, 2, 4]);
        let moved = b.transpose(cut, &[2, 4, 0, 1, 3, 5]);
        let planes = b.reshape(moved, &[4, 3, 3, 4]);
        let w = weight(b, &[2, 2, 1, 4], 2);
        let made = conv(b, planes, w, 4);
        let cut = b.reshape(made, &[2, 2, 1, 2, 2, 4]);
        let moved = b.transpose(cut, &[2, 3, 1, 4, 0, 5]);
        b.reshape(moved, &[1, 4, 4, 4])
    });
    assert_eq!(ops(&after).iter().filter(|o| *o == "transpose").count(), 2);
}
