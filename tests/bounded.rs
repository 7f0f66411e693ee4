//! One function for every size up to a bound, against the same function lowered for exactly each size: the interpreter evaluates
//! both, the first on arrays whose padding is as bad as it can be.
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tfaot::compile;
use tfaot::hlo::attrs::{DotDims, GatherDims, PadDim, ScatterDims, WindowDim};
use tfaot::hlo::{Assumed, Builder, InstId, Literal, Op, Shape};
use tfaot::interp;
use tfaot::kernel;
use tfaot::lower::{Exact, Lowered};
use tfaot::prepare::{FeedSpec, Request};
use tfaot::scalar::{Direction, ScalarOp};
use tfaot::target::Target;
use tfaot::tensor::{DType, Size, Sizes, Tensor, TensorInfo};

/// A generator of numbers that are the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n.max(1)
    }
    fn tensor(&mut self, dtype: DType, dims: &[u64]) -> Tensor {
        let count: u64 = dims.iter().product();
        let one = |_| match dtype {
            t if t.is_float() => self.below(2001) as f64 / 1000.0 - 1.0,
            DType::Pred => self.below(2) as f64,
            _ => self.below(7) as f64,
        };
        let bytes: Vec<u8> = (0..count).map(one).flat_map(|v| Tensor::scalar_of(dtype, v).bytes.to_vec()).collect();
        Tensor::new(dtype, dims.to_vec(), bytes)
    }
}

/// `x` at the first places of an array of `dims` whose other elements are NaN, or as large as the type has them.
fn padded(x: &Tensor, dims: &[u64]) -> Tensor {
    let bad = if x.dtype.is_float() { f64::NAN } else { 1e9 };
    let width = x.dtype.bytes();
    let fill = Tensor::scalar_of(x.dtype, bad).bytes;
    let count: u64 = dims.iter().product();
    let mut bytes: Vec<u8> = (0..count).flat_map(|_| fill.to_vec()).collect();
    for i in 0..x.len() {
        let (mut rest, mut at, mut stride) = (i as u64, 0, 1);
        for (&n, &bound) in x.dims.iter().zip(dims).rev() {
            at += rest % n * stride;
            rest /= n;
            stride *= bound;
        }
        let at = at as usize * width;
        bytes[at..at + width].copy_from_slice(&x.bytes[i * width..(i + 1) * width]);
    }
    Tensor::new(x.dtype, dims.to_vec(), bytes)
}

/// Statements that kernels of a test may run.
const MOST_STATEMENTS: u64 = 200_000_000;
/// Functions some of whose loops end where what is needed ends.
static LIMITED: AtomicU64 = AtomicU64::new(0);

fn evaluated(module: &tfaot::hlo::Module, args: Vec<Tensor>) -> Vec<Tensor> {
    let args: Vec<Literal> = args.into_iter().map(Literal::Array).collect();
    let root = interp::evaluate(module, module.entry, &args).expect("it can be evaluated");
    root.leaves().into_iter().cloned().collect()
}

fn close(got: &Tensor, want: &Tensor) -> bool {
    let pair = |i| (got.get_f64(i).unwrap_or(f64::NAN), want.get_f64(i).unwrap_or(f64::NAN));
    got.dims == want.dims
        && (0..want.len())
            .map(pair)
            .all(|(g, w)| (g - w).abs() <= 1e-4 + 1e-3 * w.abs() || g == w || g.is_nan() && w.is_nan())
}

/// Compares every bound that there is code for with exact functions, `rounds` sizes each.
fn compared(lowered: &Lowered, rounds: usize, seed: u64) {
    let sized = lowered.sized.as_ref().expect("sizes vary");
    let sizes = &sized.sizes;
    let given = sizes.given();
    let mut numbers = Numbers(seed);
    let whole: Vec<u64> = sizes.all[..given].iter().map(|s| s.most).collect();
    let bounds = std::iter::once((&whole, &lowered.module)).chain(sized.smaller.iter().map(|r| (&r.most, &r.module)));
    let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v3"), None).expect("a target");
    let (_, program) = compile::plan(lowered.clone(), "f", "", &target).expect("kernels");
    LIMITED.fetch_add(program.kernels.values().any(|k| k.label == "limits").into(), Ordering::Relaxed);
    for (most, module) in bounds {
        tfaot::hlo::verify::verify(module).expect("it is a module");
        for _ in 0..rounds {
            let of = |(s, &most): (&tfaot::tensor::Size, &u64)| s.least + numbers.below(most - s.least + 1);
            let now: Vec<u64> = sizes.all.iter().zip(most).map(of).collect();
            let at = |axes: &[Option<usize>], dims: &[u64], sizes: &[u64]| Sizes::actual(axes, dims, sizes);
            let args: Vec<Tensor> = lowered
                .args
                .iter()
                .zip(&sizes.args)
                .map(|(info, axes)| numbers.tensor(info.dtype, &at(axes, &info.dims, &now)))
                .collect();
            let (_, want) = tfaot::bounded::evaluate(&sized.exact, &now, &args).expect("it can be evaluated");
            let mut all: Vec<Tensor> = args
                .iter()
                .zip(lowered.args.iter().zip(&sizes.args))
                .map(|(x, (info, axes))| padded(x, &at(axes, &info.dims, most)))
                .collect();
            all.extend(now.iter().map(|&n| Tensor::scalar(n as i32)));
            // loops of the largest bound end where what is needed ends
            let by_kernels = std::ptr::eq(module, &lowered.module);
            let by_kernels =
                by_kernels.then(|| kernel::evaluate(&program, &all, MOST_STATEMENTS).expect("kernels run"));
            let got = evaluated(module, all);
            let found = &got[lowered.results.len()..];
            let mut values = now.clone();
            values.extend(found.iter().map(|t| t.to_i64s().expect("integers")[0] as u64));
            for (((got, want), info), axes) in got.iter().zip(&want).zip(&lowered.results).zip(&sizes.results) {
                let cut = interp::first_part(got, at(axes, &info.dims, &values));
                assert!(close(&cut, want), "seed {seed}: `{}` at {now:?} of {most:?}:\n{cut:?}\n{want:?}", info.name);
            }
            let made = by_kernels.iter().flatten();
            for (((got, want), info), axes) in made.zip(&want).zip(&lowered.results).zip(&sizes.results) {
                let cut = interp::first_part(got, at(axes, &info.dims, &values));
                assert!(
                    close(&cut, want),
                    "seed {seed}: `{}` by kernels at {now:?} of {most:?}:\n{cut:?}\n{want:?}",
                    info.name
                );
            }
        }
    }
}

fn lowered(path: &Path, feeds: &[&str]) -> Lowered {
    let feeds = feeds.iter().map(|f| FeedSpec::parse(f).expect("a feed")).collect();
    let request = Request { feeds, ..Request::default() };
    let mut fronts = compile::fronts(path, None, &request).unwrap_or_else(|e| panic!("{}: {e:?}", path.display()));
    fronts.entries.remove(0).lowered
}

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

    fn step(&mut self) {
        let x = self.any();
        let rank = self.b.rank(x);
        let axis = self.axis(x);
        let size = self.b.dims(x)[axis];
        let new = match self.numbers.below(19) {
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
                dims.insert(axis, 1);
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
                dims[axis] = PadDim { low: 1, high: 2, interior: self.numbers.below(2) };
                let fill = self.scalar(0.5);
                self.b.pad(x, fill, &dims)
            }
            10 => {
                // sums of all before
                let mut window = vec![WindowDim::default(); rank];
                window[axis] = WindowDim { size, pad_low: size as i64 - 1, ..WindowDim::default() };
                let comp = self.b.scalar_computation(ScalarOp::Add, DType::F32);
                let zero = self.scalar(0.0);
                self.b.add_inst(Op::ReduceWindow { window, comp }, &[x, zero])
            }
            11 => {
                let mut window = vec![WindowDim::default(); rank];
                window[axis] = WindowDim { size: 3, stride: 2, pad_low: 1, pad_high: 1, ..WindowDim::default() };
                let comp = self.b.scalar_computation(ScalarOp::Maximum, DType::F32);
                let init = self.scalar(f64::NEG_INFINITY);
                self.b.add_inst(Op::ReduceWindow { window, comp }, &[x, init])
            }
            12 => {
                self.b.begin("less");
                let a = self.b.parameter(Shape::array(DType::F32, []));
                let b = self.b.parameter(Shape::array(DType::F32, []));
                let less = self.b.compare(Direction::Lt, a, b);
                let comp = self.b.end(less);
                self.b.add_inst(Op::Sort { dim: axis, is_stable: true, comp }, &[x])
            }
            13 => {
                let d = DotDims { lhs_contracting: vec![axis], rhs_contracting: vec![axis], ..DotDims::default() };
                let y = self.b.unary(ScalarOp::Tanh, x);
                if rank == 2 { self.b.dot(x, y, d) } else { y }
            }
            14 => {
                let mut sizes = self.b.dims(x).to_vec();
                sizes[axis] = 1;
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
                let mut slice_sizes = self.b.dims(x).to_vec();
                slice_sizes[axis] = 1;
                let d = GatherDims {
                    offset_dims: (0..rank).filter(|&a| a != axis).collect(),
                    collapsed_slice_dims: vec![axis],
                    start_index_map: vec![axis],
                    index_vector_dim: 1,
                    slice_sizes,
                    ..GatherDims::default()
                };
                self.b.add_inst(Op::Gather(d), &[x, indices])
            }
            16 => {
                // all rows added to one
                let dims = self.b.dims(x).to_vec();
                let mut one = dims.clone();
                one[axis] = 1;
                let to = self.b.full(DType::F32, &one, 0.0);
                let indices = self.b.full(DType::S32, &[size, 1], 0.0);
                let d = ScatterDims {
                    update_window_dims: (0..rank).filter(|&a| a != axis).collect(),
                    inserted_window_dims: vec![axis],
                    scatter_dims_to_operand_dims: vec![axis],
                    index_vector_dim: 1,
                    ..ScatterDims::default()
                };
                let comp = self.b.scalar_computation(ScalarOp::Add, DType::F32);
                self.b.add_inst(Op::Scatter { dims: d, comp }, &[to, indices, x])
            }
            17 => {
                // as many of the first elements as are above a border, which no sum of thousandths is: in other orders some would be 0
                let mut dims = self.b.dims(x).to_vec();
                let total: u64 = dims.drain(..).product();
                let flat = self.b.reshape(x, &[total]);
                let border = self.b.full(DType::F32, &[total], 0.0004);
                let holds = self.b.compare(Direction::Gt, flat, border);
                let ones = self.b.convert(holds, DType::S32);
                let none = self.b.scalar(DType::S32, 0.0);
                let count = self.b.reduce(ones, none, ScalarOp::Add, &[0]);
                let size = self.b.found(count, total).expect("it is in the entry");
                let first = self.b.slice_axis(flat, 0, 0, size);
                let twice = self.b.concatenate(&[first, flat, first], 0);
                self.ends.extend([first, twice]);
                let sum = self.folded(twice, 0);
                self.b.broadcast(sum, &[4], &[])
            }
            _ => {
                let n = self.b.full_like(x, size as f64);
                self.b.div(x, n)
            }
        };
        // nothing grows without end
        if self.b.dims(new).iter().product::<u64>() < 4000 {
            self.made.push(new);
        }
    }
}

/// A random function of `count` steps of `f32[n,m,3]` and an index, lowered for exactly these sizes.
fn random(seed: u64, sizes: &[u64], count: u64) -> Lowered {
    let (sizes, assumed) = sizes.split_at(2);
    let mut numbers = Numbers(seed);
    let mut b = Builder::new("random");
    b.assume(Assumed { sizes: assumed.to_vec(), ..Assumed::default() });
    let dims = vec![sizes[0], sizes[1], 3];
    let x = b.parameter(Shape::array(DType::F32, dims.clone()));
    let index = b.parameter(Shape::array(DType::S32, []));
    let mut steps = Steps { b, numbers: &mut numbers, made: vec![x], ends: Vec::new(), index };
    for _ in 0..count {
        steps.step();
    }
    let Steps { mut b, made, ends, .. } = steps;
    let parts: Vec<InstId> = made.into_iter().rev().take(3).chain(ends).collect();
    let info = |name: String, dtype, dims: &[u64]| TensorInfo {
        field: name.clone(),
        name,
        called: None,
        dtype,
        dims: dims.to_vec(),
    };
    let results = parts.iter().enumerate().map(|(i, &p)| info(format!("r{i}"), b.dtype(p), b.dims(p))).collect();
    let founds = b.founds().to_vec();
    let all: Vec<InstId> = parts.into_iter().chain(founds.iter().map(|f| f.count)).collect();
    let root = b.tuple(&all);
    let found = founds.iter().map(|f| (f.assumed, f.most)).collect();
    let module = b.finish(root).expect("it is a module");
    let args = vec![info("x".into(), DType::F32, &dims), info("i".into(), DType::S32, &[])];
    let (state, claims, used) = (Vec::new(), Vec::new(), Vec::new());
    Lowered { module, args, results, state, claims, found, used, sized: None }
}

/// How many random functions are looked at.
fn rounds() -> u64 {
    std::env::var("TFAOT_RANDOM").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}

#[test]
fn random_functions_are_right_for_every_size() {
    let size = |name: &str, most| Size { name: name.to_string(), least: 1, most, is_result: false };
    let (mut right, mut refused) = (0, 0);
    for seed in 0..rounds() {
        let axes = vec![vec![Some(0), Some(1), None], vec![]];
        let exact = Exact(Arc::new(move |sizes| Ok(random(seed, sizes, 8))));
        match tfaot::bounded::lower(&[size("n", 11), size("m", 9)], axes, exact) {
            Ok(lowered) => {
                compared(&lowered, 3, seed);
                right += 1;
            }
            Err(error) => {
                let all = error.into_diagnostics();
                assert!(all.iter().all(|d| d.code == tfaot::diag::Code::OpenSize), "seed {seed}: {all:?}");
                if std::env::var("TFAOT_TOLD").is_ok() {
                    println!("seed {seed}: {}", all[0].message);
                }
                refused += 1;
            }
        }
    }
    println!("{right} right, {refused} refused, loops end early in {}", LIMITED.load(Ordering::Relaxed));
    assert!(LIMITED.load(Ordering::Relaxed) * 2 > right, "few loops end early");
    assert!(right > 2 * refused, "{right} right, {refused} refused");
}

/// The rows `from..to` of an array.
fn rows(x: &Tensor, from: u64, to: u64) -> Tensor {
    let row = x.bytes.len() / x.dims[0] as usize;
    let dims = [vec![to - from], x.dims[1..].to_vec()].concat();
    Tensor::new(x.dtype, dims, x.bytes[from as usize * row..to as usize * row].to_vec())
}

#[test]
fn random_functions_of_rows_are_the_same_in_pieces() {
    const N: u64 = 7;
    let (mut in_pieces, mut whole) = (0, 0);
    for seed in 0..rounds() {
        let exact = Exact(Arc::new(move |sizes: &[u64]| {
            let (n, assumed) = sizes.split_at(1);
            Ok(random(seed, &[&[n[0], 5], assumed].concat(), 1 + seed % 8))
        }));
        let n = Size { name: "n".to_string(), least: 1, most: 11, is_result: false };
        let axes = vec![vec![Some(0), None, None], vec![]];
        let Ok(lowered) = tfaot::bounded::lower(&[n], axes, exact) else { continue };
        let sized = lowered.sized.expect("a size varies");
        if !sized.by_rows {
            whole += 1;
            continue;
        }
        in_pieces += 1;
        let mut numbers = Numbers(seed);
        let (x, index) = (numbers.tensor(DType::F32, &[N, 5, 3]), numbers.tensor(DType::S32, &[]));
        let of = |n: u64, x: Tensor| {
            tfaot::bounded::evaluate(&sized.exact, &[n], &[x, index.clone()]).expect("it can be evaluated").1
        };
        let all = of(N, x.clone());
        for (from, to) in [(0, 3), (3, 4), (4, N)] {
            for (got, all) in of(to - from, rows(&x, from, to)).iter().zip(&all) {
                let want = rows(all, from, to);
                assert!(close(got, &want), "seed {seed}, rows {from} to {to}:\n{got:?}\n{want:?}");
            }
        }
    }
    println!("{in_pieces} in pieces, {whole} as a whole");
    assert!(in_pieces * 8 > whole, "{in_pieces} in pieces, {whole} as a whole");
}

#[test]
fn graphs_are_right_for_every_size() {
    let graphs = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    for (graph, feeds) in [
        ("saved_model", &["x=f32[n<=9,4]"][..]),
        ("graphs/mlp/graph.pb", &["x=f32[n<=20,?]"]),
        ("graphs/conv_net/graph.pb", &["image=f32[n<=3,?,?,?]"]),
        ("graphs/norms/graph.pb", &["x=f32[n<=3,?,?,?]"]),
        ("graphs/reductions/graph.pb", &["x=f32[n<=7,?,?]"]),
        ("graphs/order/graph.pb", &["zeros=f32[n<=5,m<=60]"]),
    ] {
        compared(&lowered(&graphs.join(graph), feeds), 3, 1);
    }
}
