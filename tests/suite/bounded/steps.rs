//! Random functions of arrays whose sizes vary.
use crate::bounded::compared::Numbers;
use tfaot::dims;
use tfaot::hlo::attrs::{PadDim, WindowDim};
use tfaot::hlo::symbolic::{
    AssumedSizes, Builder, CompId, Dim, DotDims, InstId, Op, ScatterDims, Shape, SizeAssumptions, Transpose,
};
use tfaot::lower::{Lowered, SizeRecordingLowering, SymbolicLowering};
use tfaot::scalar::{Direction, ScalarOp};
use tfaot::tensor::{DType, TensorInfo};

/// Steps that are the same for every size, by the numbers of a generator; what they are of is `n`, `m`, and small numbers.
struct Steps<'a> {
    b: Builder,
    numbers: &'a mut Numbers,
    made: Vec<InstId>,
    /// What is no more than a result: it may be empty.
    ends: Vec<InstId>,
    /// A run-time index.
    index: InstId,
}

impl Steps<'_> {
    fn any(&mut self) -> InstId {
        let at = self.numbers.below(self.made.len() as u64);
        self.made[at as usize]
    }
    /// An axis of `x`; always one, as values have no rank 0.
    fn axis(&mut self, x: InstId) -> usize {
        self.numbers.below(self.b.rank(x) as u64) as usize
    }
    fn scalar(&mut self, value: f64) -> InstId {
        self.b.scalar(DType::F32, value)
    }
    fn folded(&mut self, x: InstId, axis: usize) -> InstId {
        let (op, init) =
            [(ScalarOp::Add, 0.0), (ScalarOp::Maximum, f64::NEG_INFINITY), (ScalarOp::Minimum, f64::INFINITY)]
                [self.numbers.below(3) as usize];
        let init = self.scalar(init);
        self.b.reduce(x, init, op, &[axis])
    }
    fn across(&mut self, x: InstId, row: InstId, axis: usize) -> InstId {
        let dims = self.b.dims(x).to_vec();
        let map: Vec<usize> = (0..dims.len()).filter(|&a| a != axis).collect();
        self.b.broadcast(row, &dims, &map)
    }

    /// `x` as a line, and as many of its first elements as are above a border. Where that is no sum of thousandths, no order of sums
    /// changes how many these are.
    fn first(&mut self, x: InstId, border: f64) -> (InstId, InstId) {
        let total: Dim = self.b.dims(x).iter().product();
        let flat = self.b.reshape(x, &[total]);
        let border = self.b.full(DType::F32, &[total], border);
        let holds = self.b.compare(Direction::Gt, flat, border);
        let ones = self.b.convert(holds, DType::S32);
        let none = self.b.scalar(DType::S32, 0.0);
        let count = self.b.reduce(ones, none, ScalarOp::Add, &[0]);
        let size = self.b.add_data_dependent_size(count, total).expect("sizes may vary here");
        (flat, self.b.slice_axis(flat, 0, Dim::from(0), size))
    }

    /// `x` less a half of the largest of the first elements; how many of these there are follows from `x` alone.
    fn lessened(&mut self, x: InstId, border: f64) -> InstId {
        let (_, first) = self.first(x, border);
        let least = self.scalar(-4.0);
        let largest = self.b.reduce(first, least, ScalarOp::Maximum, &[0]);
        let half = self.scalar(0.5);
        let half = self.b.mul(largest, half);
        let dims = self.b.dims(x).to_vec();
        let all = self.b.broadcast(half, &dims, &[]);
        self.b.sub(x, all)
    }

    /// A computation of a tuple, in which values may say sizes.
    fn within(&mut self, shapes: &[Shape], made: impl Fn(&mut Self, &[InstId]) -> InstId) -> CompId {
        self.b.begin_computation("within");
        let depth = self.b.nesting_depth();
        let before = self.b.set_carried_depth(depth);
        let state = self.b.parameter(Shape::Tuple(shapes.to_vec()));
        let parts: Vec<InstId> = (0..shapes.len()).map(|i| self.b.get_tuple_element(state, i)).collect();
        let root = made(self, &parts);
        self.b.set_carried_depth(before);
        self.b.end_computation(root)
    }

    /// What is left of the rows of `x` by the factor of their products with one another.
    fn solved(&mut self, x: InstId) -> InstId {
        let x = self.b.unary(ScalarOp::Tanh, x);
        let d = DotDims { lhs_contracting: vec![1], rhs_contracting: vec![1], ..DotDims::default() };
        let squares = self.b.dot(x, x, d);
        let dims = self.b.dims(squares).to_vec();
        let (rows, columns) = (self.b.iota(DType::S32, &dims, 0), self.b.iota(DType::S32, &dims, 1));
        let diagonal = self.b.compare(Direction::Eq, rows, columns);
        let diagonal = self.b.convert(diagonal, DType::F32);
        let sum = self.b.add(squares, diagonal);
        let lower = self.numbers.below(2) == 0;
        let factor = self.b.add_inst(Op::Cholesky { lower }, &[sum]);
        let solve = Op::TriangularSolve { left_side: true, lower, unit_diagonal: false, transpose_a: Transpose::No };
        self.b.add_inst(solve, &[factor, x])
    }

    /// Three rounds, each of which may have another size.
    fn looped(&mut self, x: InstId) -> InstId {
        let shapes = [Shape::array(DType::S32, []), self.b.shape(x).clone()];
        let count = |s: &mut Self, n| s.b.scalar(DType::S32, n);
        let cond = self.within(&shapes, |s, parts| {
            let three = count(s, 3.0);
            s.b.compare(Direction::Lt, parts[0], three)
        });
        let body = self.within(&shapes, |s, parts| {
            let one = count(s, 1.0);
            let next = [s.b.add(parts[0], one), s.lessened(parts[1], 0.0004)];
            s.b.tuple(&next)
        });
        let zero = count(self, 0.0);
        let init = self.b.tuple(&[zero, x]);
        let end = self.b.add_inst(Op::While { cond, body }, &[init]);
        self.b.get_tuple_element(end, 1)
    }

    /// One of two branches, each with a size of its own.
    fn branched(&mut self, x: InstId) -> InstId {
        let shapes = [self.b.shape(x).clone()];
        let branches = [0.0004, 0.3004].map(|border| {
            self.within(&shapes, |s, parts| {
                let less = s.lessened(parts[0], border);
                s.b.tuple(&[less])
            })
        });
        let operand = self.b.tuple(&[x]);
        let out = self.b.add_inst(Op::Conditional(branches.to_vec()), &[self.index, operand, operand]);
        self.b.get_tuple_element(out, 0)
    }

    fn step(&mut self) {
        let x = self.any();
        let rank = self.b.rank(x);
        let axis = self.axis(x);
        let size = self.b.dims(x)[axis];
        let new = match self.numbers.below(22) {
            0 => self.b.unary(ScalarOp::Tanh, x),
            1 => {
                let by = self.numbers.below(rank as u64) as usize;
                let perm: Vec<usize> = (0..rank).map(|a| (a + by) % rank).collect();
                self.b.transpose(x, &perm)
            }
            2 if rank > 1 => self.folded(x, axis),
            3 => {
                let row = self.folded(x, axis);
                let row = self.across(x, row, axis);
                self.b.sub(x, row)
            }
            4 if rank > 1 => {
                let mut dims = self.b.dims(x).to_vec();
                let at = axis.min(rank - 2);
                let inner = dims.remove(at + 1);
                dims[at] *= inner;
                self.b.reshape(x, &dims)
            }
            5 => {
                let mut dims = self.b.dims(x).to_vec();
                dims.insert(axis, Dim::from(1));
                if rank < 4 { self.b.reshape(x, &dims) } else { x }
            }
            6 => {
                let other = self.b.unary(ScalarOp::Negate, x);
                self.b.concatenate(&[x, other, x], axis)
            }
            7 => self.b.add_inst(Op::Reverse(vec![axis]), &[x]),
            8 => self.b.slice_axis(x, axis, size - 1, size),
            9 => {
                let mut dims = vec![PadDim::default(); rank];
                dims[axis] =
                    PadDim { low: Dim::from(1), high: Dim::from(2), interior: Dim::from(self.numbers.below(2)) };
                let fill = self.scalar(0.5);
                self.b.pad(x, fill, &dims)
            }
            10 => {
                // sums of all before
                let mut window = vec![WindowDim::default(); rank];
                window[axis] = WindowDim { size, pad_low: size - 1, ..WindowDim::default() };
                let comp = self.b.scalar_computation(ScalarOp::Add, DType::F32);
                let zero = self.scalar(0.0);
                self.b.add_inst(Op::ReduceWindow { window, comp }, &[x, zero])
            }
            11 => {
                let mut window = vec![WindowDim::default(); rank];
                window[axis] = WindowDim {
                    size: Dim::from(3),
                    stride: Dim::from(2),
                    pad_low: Dim::from(1),
                    pad_high: Dim::from(1),
                    ..WindowDim::default()
                };
                let comp = self.b.scalar_computation(ScalarOp::Maximum, DType::F32);
                let init = self.scalar(f64::NEG_INFINITY);
                self.b.add_inst(Op::ReduceWindow { window, comp }, &[x, init])
            }
            12 => {
                self.b.begin_computation("less");
                let a = self.b.parameter(Shape::array(DType::F32, []));
                let b = self.b.parameter(Shape::array(DType::F32, []));
                let less = self.b.compare(Direction::Lt, a, b);
                let comp = self.b.end_computation(less);
                self.b.add_inst(Op::Sort { dim: axis, is_stable: true, comp }, &[x])
            }
            13 => {
                let d = DotDims { lhs_contracting: vec![axis], rhs_contracting: vec![axis], ..DotDims::default() };
                let y = self.b.unary(ScalarOp::Tanh, x);
                if rank == 2 { self.b.dot(x, y, d) } else { y }
            }
            14 => {
                let mut sizes = self.b.dims(x).to_vec();
                sizes[axis] = Dim::from(1);
                let zero = self.b.scalar(DType::S32, 0.0);
                let mut operands = vec![x];
                operands.extend((0..rank).map(|a| if a == axis { self.index } else { zero }));
                let one = self.b.add_inst(Op::DynamicSlice(sizes), &operands);
                operands.insert(1, one);
                let twice = self.b.add(one, one);
                operands[1] = twice;
                self.b.add_inst(Op::DynamicUpdateSlice, &operands)
            }
            15 => {
                // rows at places that go beyond the axis
                let indices = self.b.iota(DType::S32, &[size], 0);
                let indices = self.b.add(indices, self.index);
                self.b.gather_along_axis(x, axis, indices, false)
            }
            16 => {
                // all rows added to one
                let dims = self.b.dims(x).to_vec();
                let mut one = dims.clone();
                one[axis] = Dim::from(1);
                let to = self.b.full(DType::F32, &one, 0.0);
                let indices = self.b.full(DType::S32, &dims![size, 1], 0.0);
                let d = ScatterDims {
                    update_window_dims: (0..rank).filter(|&a| a != axis).collect(),
                    inserted_window_dims: vec![axis],
                    scatter_dims_to_operand_dims: vec![axis],
                    index_vector_dim: 1,
                    ..ScatterDims::default()
                };
                let comp = self.b.scalar_computation(ScalarOp::Add, DType::F32);
                self.b.add_inst(Op::Scatter { dims: Box::new(d), comp }, &[to, indices, x])
            }
            17 => {
                let (flat, first) = self.first(x, 0.0004);
                let twice = self.b.concatenate(&[first, flat, first], 0);
                self.ends.extend([first, twice]);
                let sum = self.folded(twice, 0);
                self.b.broadcast(sum, &dims![4], &[])
            }
            20 if rank == 2 => self.solved(x),
            18 => self.looped(x),
            19 => self.branched(x),
            _ => {
                let n = self.b.full_like(x, size);
                self.b.div(x, n)
            }
        };
        // nothing grows without end
        if self.b.dims(new).iter().product::<Dim>().concrete_value() < 4000 {
            self.made.push(new);
        }
    }
}

/// A random function of `count` steps of `f32[n,m,3]` and an index, lowered for exactly these sizes.
pub fn random(seed: u64, sizes: &[u64], count: u64) -> Lowered {
    let (sizes, assumed) = sizes.split_at(2);
    random_open(seed, [Dim::from(sizes[0]), Dim::from(sizes[1])], assumed, count).lowered
}

/// The same with the sizes that it computes.
pub fn random_open(seed: u64, [n, m]: [Dim; 2], assumed: &[u64], count: u64) -> SymbolicLowering {
    let mut numbers = Numbers(seed);
    let mut b = Builder::new("random");
    b.set_size_assumptions(SizeAssumptions {
        sizes: AssumedSizes::Values(assumed.to_vec()),
        ..SizeAssumptions::default()
    });
    let dims = dims![n, m, 3];
    let x = b.parameter(Shape::array(DType::F32, dims.to_vec()));
    let index = b.parameter(Shape::array(DType::S32, []));
    let mut steps = Steps { b, numbers: &mut numbers, made: vec![x], ends: Vec::new(), index };
    for _ in 0..count {
        steps.step();
    }
    let Steps { mut b, made, ends, .. } = steps;
    let parts: Vec<InstId> = made.into_iter().rev().take(3).chain(ends).collect();
    let at_hand = |d: &Dim| u64::try_from(d.concrete_value()).expect("a size");
    let info = |name: String, dtype, dims: &[Dim]| TensorInfo {
        field: name.clone(),
        name,
        called: None,
        dtype,
        dims: dims.iter().map(at_hand).collect(),
    };
    let results = parts.iter().enumerate().map(|(i, &p)| info(format!("r{i}"), b.dtype(p), b.dims(p))).collect();
    let sizes = b.data_dependent_sizes().to_vec();
    let all: Vec<InstId> = parts.into_iter().chain(b.local_data_dependent_sizes().map(|f| f.count)).collect();
    let root = b.tuple(&all);
    let found = sizes.iter().map(|f| (at_hand(&f.assumed), at_hand(&f.most))).collect();
    let module = b.finish(root).expect("it is a module");
    let args = vec![info("x".into(), DType::F32, &dims), info("i".into(), DType::S32, &[])];
    let (state, bound_checks, used) = (Vec::new(), Vec::new(), Vec::new());
    let lowered = Lowered {
        module: module.at_current_sizes(),
        args,
        results,
        state,
        bound_checks,
        data_sizes: found,
        result_counts: used,
        size_variants: None,
    };
    SymbolicLowering { lowered, module, sizes }
}

/// The function of `count` steps with sizes that are recorded; those behind the sizes that the caller says are `fixed`.
pub fn traced(seed: u64, count: u64, fixed: Option<u64>) -> SizeRecordingLowering {
    SizeRecordingLowering::new(move |said| {
        let mut dims = said.to_vec();
        dims.extend(fixed.map(Dim::from));
        Ok(random_open(seed, [dims[0], dims[1]], &[], count))
    })
}
