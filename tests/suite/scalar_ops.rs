//! Every pointwise op on every element type, as machine code against `scalar::eval`, on special values: signed zeros,
//! infinities, NaN, the smallest and largest numbers, halves, and bits at random. One module a family of types for this
//! machine's processor, one of a choice of types for older ones and for AArch64 under an emulator.
use crate::common::formula::Lines;
use crate::common::{random::Random, toolchains::Toolchain};
use std::fmt::Write;
use tfaot::codegen::Launches;
use tfaot::scalar::small_float::is_sign_bit_alone;
use tfaot::scalar::{CompareKind, Direction, PLAIN_OPS, ScalarOp, eval, formula};
use tfaot::target::Target;
use tfaot::tensor::{DTYPES, DType, DTypeClass, Tensor};

/// Special values of a type; operands are all pairs of them.
const VALUES: usize = 16;
/// Elements of an array: two more than whole vectors.
const COUNT: usize = VALUES * VALUES + 2;

/// An op in HLO text, with its operands' number and the type of its result.
struct Case {
    op: ScalarOp,
    from: DType,
}

impl Case {
    fn text(&self) -> String {
        let arity = self.op.arity();
        let args = ["x", "y", "z"].map(|n| format!("{n}.{}", self.from));
        let mut args = args[..arity].join(", ");
        if self.op == ScalarOp::Select {
            args = format!("p.{0}, x.{0}, y.{0}", self.from);
        }
        let attrs = match self.op {
            ScalarOp::Compare(d, kind) => format!(
                ", direction={}{}",
                format!("{d:?}").to_uppercase(),
                if kind == CompareKind::Total { ", type=TOTALORDER" } else { "" }
            ),
            ScalarOp::ReducePrecision { exponent_bits, mantissa_bits } => {
                format!(", exponent_bits={exponent_bits}, mantissa_bits={mantissa_bits}")
            }
            _ => String::new(),
        };
        format!("{}({args}){attrs}", self.op.name())
    }
    fn result(&self) -> DType {
        self.op.result(&[self.from])
    }
    fn operands(&self, [x, y, z, p]: &[Tensor; 4]) -> Vec<Tensor> {
        match self.op {
            ScalarOp::Select => vec![p.clone(), x.clone(), y.clone()],
            op => [x, y, z][..op.arity()].iter().map(|t| (*t).clone()).collect(),
        }
    }
}

/// The unsigned type that holds the bits of an element, of a part where it is complex.
fn carrier(dtype: DType) -> DType {
    match dtype.real_part().bytes() {
        1 => DType::U8,
        2 => DType::U16,
        4 => DType::U32,
        _ => DType::U64,
    }
}

/// Bits of special values.
fn specials(dtype: DType, random: &mut Random) -> Vec<u64> {
    let bits = dtype.bits();
    let all = u64::MAX >> (64 - bits);
    let mut out = match dtype.class() {
        DTypeClass::Pred => vec![0, 1],
        DTypeClass::Signed | DTypeClass::Unsigned => {
            let top = all >> 1;
            vec![0, 1, 2, 3, all, all - 1, top, top + 1, u64::from(bits) - 1, u64::from(bits), 7]
        }
        DTypeClass::Float => {
            let of = |v: f64| {
                let mut word = [0u8; 8];
                let t = Tensor::scalar_from_f64(dtype, v);
                word[..t.bytes.len()].copy_from_slice(&t.bytes);
                u64::from_le_bytes(word)
            };
            let (least, infinity) = (1, of(f64::INFINITY));
            let numbers = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, 10.0, -0.001].map(of);
            let nan = of(f64::NAN);
            [&numbers[..], &[least, infinity, infinity - 1, infinity | 1 << (bits - 1), nan, nan | 1]].concat()
        }
        DTypeClass::Complex => unreachable!("parts are floats"),
    };
    while out.len() < VALUES {
        out.push(random.next());
    }
    out.iter().map(|v| if dtype == DType::Pred { v & 1 } else { v & all }).collect()
}

/// An array of these bits; types below a byte are stored sign-extended or with zeros above.
fn array(dtype: DType, bits: &[u64]) -> Tensor {
    let width = dtype.bytes();
    let extend = |v: u64| {
        let up = 64 - dtype.bits();
        if dtype.is_signed() { ((v << up) as i64 >> up) as u64 } else { v }
    };
    let bytes: Vec<u8> = bits.iter().flat_map(|&v| extend(v).to_le_bytes()[..width].to_vec()).collect();
    Tensor::new(dtype, vec![bits.len() as u64], bytes)
}

/// Operands x, y, z and the predicate p.
fn operands(dtype: DType, random: &mut Random) -> [Tensor; 4] {
    let special = specials(dtype, random);
    let pick = |f: &dyn Fn(usize) -> usize| (0..COUNT).map(|i| special[f(i) % VALUES]).collect::<Vec<_>>();
    let (x, y) = (pick(&|i| i / VALUES), pick(&|i| i));
    let z = pick(&|i| i * 7 + i / VALUES);
    let p: Vec<u64> = (0..COUNT).map(|_| random.next() & 1).collect();
    [array(dtype, &x), array(dtype, &y), array(dtype, &z), array(DType::Pred, &p)]
}

/// The cases that have a meaning on `from`.
fn cases(from: DType) -> Vec<Case> {
    let mut ops: Vec<ScalarOp> = PLAIN_OPS.to_vec();
    for d in [Direction::Eq, Direction::Ne, Direction::Ge, Direction::Gt, Direction::Le, Direction::Lt] {
        ops.push(ScalarOp::Compare(d, CompareKind::Partial));
        if from.is_float() {
            ops.push(ScalarOp::Compare(d, CompareKind::Total));
        }
    }
    // Floats of a byte are many and alike: one of them goes everywhere and through every function.
    let thorough = from.bits() > 8 || !from.is_float() || from == DType::F8E4M3;
    let few = [DType::F32, DType::F64, DType::F8E4M3, DType::S8, DType::Pred];
    let targets = DTYPES.iter().filter(|t| !t.is_complex() && (thorough || few.contains(t)));
    ops.extend(targets.map(|&t| ScalarOp::Convert(t)));
    ops.retain(|&op| thorough || !is_function(op));
    for (exponent_bits, mantissa_bits) in [(8, 7), (5, 10), (4, 3), (11, 30)] {
        ops.push(ScalarOp::ReducePrecision { exponent_bits, mantissa_bits });
    }
    let one = operands(from, &mut Random::new(1));
    let cases = ops.into_iter().map(|op| Case { op, from });
    cases.filter(|c| is_hlo(c) && eval::eval(c.op, &c.operands(&one).iter().collect::<Vec<_>>()).is_ok()).collect()
}

/// Whether HLO has this op on this type: some mean nothing there that `scalar::eval` answers all the same.
fn is_hlo(case: &Case) -> bool {
    match case.op {
        ScalarOp::Fma | ScalarOp::Complex => false,
        ScalarOp::Real | ScalarOp::Imag => case.from.is_float() && case.from.bits() >= 32,
        ScalarOp::Abs | ScalarOp::Sign | ScalarOp::Popcnt | ScalarOp::Subtract => case.from != DType::Pred,
        _ => true,
    }
}

/// Lines that turn parameter `n` into `name` of type `dtype`.
fn entry(text: &mut String, n: usize, name: &str, dtype: DType) {
    let (raw, shape) = (carrier(dtype), format!("[{COUNT}]"));
    let _ = writeln!(text, "  {name}.raw = {raw}{shape} parameter({n})");
    let _ = match dtype {
        DType::Pred => writeln!(
            text,
            "  {name}.one = u8[] constant(0)\n  {name}.zero = u8{shape} broadcast({name}.one), dimensions={{}}\n  \
             {name} = pred{shape} compare({name}.raw, {name}.zero), direction=NE"
        ),
        t if t.bits() < 8 && t.is_float() => {
            writeln!(
                text,
                "  {name}.u = u4{shape} convert({name}.raw)\n  {name} = {t}{shape} bitcast-convert({name}.u)"
            )
        }
        t if t.bits() < 8 => writeln!(text, "  {name} = {t}{shape} convert({name}.raw)"),
        t => writeln!(text, "  {name} = {t}{shape} bitcast-convert({name}.raw)"),
    };
}

/// A processor, and what links and runs programs for it here.
struct Machine {
    target: Target,
    toolchain: Toolchain,
    /// Which cases it can run.
    runs: fn(&Case) -> bool,
}

impl Machine {
    fn of(toolchain: Toolchain) -> Machine {
        let target = Target::resolve(Some(toolchain.triple), toolchain.cpu, None).expect("a known target");
        Machine { target, toolchain, runs: |_| true }
    }
    /// This machine, or another x86-64 that it can stand for; `None` without a compiler.
    fn here(cpu: Option<&'static str>) -> Option<Machine> {
        Some(Machine::of(Toolchain::here(cpu)?))
    }
    /// AArch64 under an emulator.
    fn aarch64() -> Option<Machine> {
        Toolchain::aarch64().map(Machine::of)
    }
    /// Compiles a module and runs it on `inputs`; gives the bytes of its results.
    fn run(&self, text: &str, inputs: &[Tensor]) -> Vec<Vec<u8>> {
        let module = tfaot::hlo::text::parse(text).expect("sound HLO text");
        tfaot::hlo::verify::verify(&module).expect("sound HLO");
        let lowered = tfaot::compile::wrap_module(module).expect("arrays in and out");
        let built =
            tfaot::compile::build(lowered, "m", "m", &self.target, Launches::Direct, &mut None).expect("it compiles");
        let folder = tempfile::tempdir().expect("a scratch folder");
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).expect("written");
        write("m.o", &built.object.content.to_bytes());
        write(
            "m.h",
            tfaot::package::header::header(&tfaot::kernel::ModelInterface::of_program(&built.program), &[&self.target])
                .as_bytes(),
        );
        for (i, input) in inputs.iter().enumerate() {
            write(&format!("in.{i}"), &input.bytes);
        }
        self.toolchain.call(folder.path());
        let results = 0..built.program.results.len();
        results.map(|i| std::fs::read(folder.path().join(format!("out.{i}"))).expect("the driver wrote it")).collect()
    }
}

/// Runs all cases of `types` in one module, and gives what departs.
fn departures(types: &[DType], machine: &Machine) -> Vec<String> {
    let mut random = Random::new(7);
    let mut text = "HloModule scalar_ops\n\nENTRY main {\n".to_string();
    let (mut inputs, mut roots, mut shapes, mut wanted) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for &t in types {
        let values = operands(t, &mut random);
        for (name, value) in ["x", "y", "z", "p"].iter().zip(&values) {
            entry(&mut text, inputs.len(), &format!("{name}.{t}"), value.dtype);
            inputs.push(value.clone());
        }
        for case in cases(t).into_iter().filter(machine.runs) {
            let (n, to) = (roots.len(), case.result());
            let (line, raw) = (case.text(), carrier(to));
            let _ = writeln!(text, "  r{n} = {to}[{COUNT}] {line}");
            let _ = match to {
                DType::Pred => writeln!(text, "  o{n} = u8[{COUNT}] convert(r{n})"),
                to if to.bits() < 8 && to.is_float() => {
                    writeln!(text, "  b{n} = u4[{COUNT}] bitcast-convert(r{n})\n  o{n} = u8[{COUNT}] convert(b{n})")
                }
                to if to.bits() < 8 => writeln!(text, "  o{n} = u8[{COUNT}] convert(r{n})"),
                _ => writeln!(text, "  o{n} = {raw}[{COUNT}] bitcast-convert(r{n})"),
            };
            roots.push(format!("o{n}"));
            shapes.push(format!("{raw}[{COUNT}]"));
            let want = eval::eval(case.op, &case.operands(&values).iter().collect::<Vec<_>>()).expect("it was tried");
            wanted.push((format!("{} on {t}: {line}", case.op.name()), case, values.clone(), want));
        }
    }
    let _ = writeln!(text, "  ROOT t = ({}) tuple({})\n}}", shapes.join(", "), roots.join(", "));
    let results = machine.run(&text, &inputs);
    let mut wrong = Vec::new();
    for (i, (label, case, values, want)) in wanted.iter().enumerate() {
        let got = Tensor::new(want.dtype, want.dims.clone(), results[i].clone());
        if let Some(at) = (0..COUNT).find(|&e| !close(case.op, case.from, &got, want, e)) {
            let args: Vec<String> =
                case.operands(values).iter().map(|t| format!("{:?}", t.get_f64(at).unwrap_or(0.0))).collect();
            let (g, w) = (got.get_f64(at).unwrap_or(0.0), want.get_f64(at).unwrap_or(0.0));
            wrong.push(format!("{label}: of {} it is {g:e} instead of {w:e}", args.join(", ")));
        }
    }
    wrong
}

/// How many units in the last place a function may be off; the others are exact.
fn ulps(op: ScalarOp, dtype: DType) -> u64 {
    match (is_function(op) && dtype.is_float(), dtype) {
        (false, _) => 0,
        (true, DType::F64) if op == ScalarOp::Power => 12,
        (true, DType::F64) => 6,
        (true, DType::F32) => 4,
        (true, _) => 1,
    }
}

/// Whether machine code and the reference may compute this in different ways.
fn is_function(op: ScalarOp) -> bool {
    matches!(
        op,
        ScalarOp::Exp
            | ScalarOp::Expm1
            | ScalarOp::Log
            | ScalarOp::Log1p
            | ScalarOp::Logistic
            | ScalarOp::Rsqrt
            | ScalarOp::Cbrt
            | ScalarOp::Tanh
            | ScalarOp::Sin
            | ScalarOp::Cos
            | ScalarOp::Tan
            | ScalarOp::Erf
            | ScalarOp::Power
            | ScalarOp::Atan2
    )
}

fn close(op: ScalarOp, from: DType, got: &Tensor, want: &Tensor, i: usize) -> bool {
    let width = want.dtype.bytes();
    let word = |t: &Tensor| {
        let mut word = [0u8; 8];
        word[..width].copy_from_slice(&t.bytes[i * width..][..width]);
        u64::from_le_bytes(word) & (u64::MAX >> (64 - want.dtype.bits().min(64)))
    };
    let (g, w) = (word(got), word(want));
    if g == w || !want.dtype.is_float() {
        return g == w;
    }
    let (a, b) = (got.get_f64(i).unwrap_or(0.0), want.get_f64(i).unwrap_or(0.0));
    if a.is_nan() && b.is_nan() {
        // an op on the sign alone keeps the payload
        return !is_sign_bit_alone(op, from);
    }
    let sign = 1u64 << (want.dtype.bits() - 1);
    a.is_sign_negative() == b.is_sign_negative() && (g & !sign).abs_diff(w & !sign) <= ulps(op, from)
}

fn check(types: &[DType], machine: Option<Machine>) {
    let Some(machine) = machine else { return };
    let wrong = departures(types, &machine);
    assert!(wrong.is_empty(), "{} departures on {}:\n{}", wrong.len(), machine.target.cpu, wrong.join("\n"));
}

fn of(keep: impl Fn(DType) -> bool) -> Vec<DType> {
    DTYPES.iter().copied().filter(|&t| !t.is_complex() && keep(t)).collect()
}

/// Types that machines differ in.
const CHOICE: [DType; 8] =
    [DType::F16, DType::BF16, DType::F32, DType::F64, DType::F8E4M3FN, DType::S4, DType::U8, DType::S64];

#[test]
fn integers() {
    check(&of(|t| !t.is_float()), Machine::here(None));
}

#[test]
fn f32_and_f64() {
    check(&[DType::F32, DType::F64], Machine::here(None));
}

#[test]
fn halves() {
    check(&[DType::F16, DType::BF16], Machine::here(None));
}

#[test]
fn floats_of_a_byte() {
    check(&of(|t| t.is_float() && t.bits() <= 8), Machine::here(None));
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_baseline() {
    check(&CHOICE, Machine::here(Some("x86-64")));
}

#[test]
#[cfg(target_arch = "x86_64")]
fn avx2() {
    let has = std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma");
    check(&CHOICE, has.then(|| Machine::here(Some("x86-64-v3"))).flatten());
}

#[test]
fn aarch64() {
    check(&CHOICE, Machine::aarch64());
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn riscv() {
    check(&CHOICE, Toolchain::riscv64("rv64gc").map(Machine::of));
}

/// QEMU 7.2 ends with an assertion at `vfncvt.rtz`, by which floats become integers of half their bits or fewer.
#[test]
fn riscv_with_vectors() {
    fn runs(case: &Case) -> bool {
        let to_few_bits = matches!(case.op, ScalarOp::Convert(to) if to.is_integer() && to.bits() <= 32);
        !(case.from.is_float() && to_few_bits)
    }
    check(&CHOICE, Toolchain::riscv64("rv64gcv").map(|toolchain| Machine { runs, ..Machine::of(toolchain) }));
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn webassembly() {
    check(&CHOICE, Toolchain::wasm32().map(Machine::of));
}

/// The elements of an f32 result.
fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

/// x·logistic(x) is one quotient, right to 4 units in the last place wherever it is a normal number.
#[test]
fn swish() {
    let Some(machine) = Machine::here(None) else { return };
    let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 0.0, -0.0, 1e-38, -88.9, -104.5];
    let xs: Vec<f32> = special.into_iter().chain((-2000..2000).map(|i| i as f32 * 0.0613)).collect();
    let n = xs.len();
    let text = format!(
        "HloModule m\n\nENTRY e {{\n  x = f32[{n}] parameter(0)\n  l = f32[{n}] logistic(x)\n  \
         ROOT y = f32[{n}] multiply(x, l)\n}}\n"
    );
    let results = machine.run(&text, &[Tensor::of(&[n as u64], &xs)]);
    for (&x, got) in xs.iter().zip(floats(&results[0])) {
        let want = (f64::from(x) / (1.0 + (-f64::from(x)).exp())) as f32;
        let near = f64::from(got - want).abs() <= 4.0 * f64::from(f32::EPSILON) * f64::from(want).abs() + 1e-35;
        assert!(got == want || near || got.is_nan() && want.is_nan(), "swish of {x:e} is {got:e} instead of {want:e}");
    }
}

/// Up to there erf's series, whose terms are below 150, is exact enough.
const SERIES: f64 = 2.5;

/// erf(x) of an f64.
fn erf_of(x: f64) -> f64 {
    if x.abs() > SERIES {
        return x.signum() * (1.0 - erfc_of(x.abs()));
    }
    let (mut term, mut sum) = (x, x);
    for k in 1..80 {
        term *= -x * x / f64::from(k);
        sum += term / f64::from(2 * k + 1);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}

/// erfc(x) of an f64, far away by a continued fraction.
fn erfc_of(x: f64) -> f64 {
    if x.abs() <= SERIES {
        return 1.0 - erf_of(x);
    }
    let below = (1..=100).rev().fold(x.abs(), |below, k| x.abs() + f64::from(k) / 2.0 / below);
    let far = (-x * x).exp() / std::f64::consts::PI.sqrt() / below;
    if x < 0.0 { 2.0 - far } else { far }
}

/// The formula of erfc, which code generation has a shorter way for, on the best and on older instruction sets: right to 8 units
/// in the last place and what rounding x² costs, wherever it is a normal number.
#[test]
fn erfc() {
    const N: usize = 6008;
    let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 0.0, -0.0, 1e-38];
    let xs: Vec<f32> = special.into_iter().chain((-3000..3000).map(|i| i as f32 * 0.003_713)).collect();
    let (lines, root) = Lines::of("f32[6008]", formula::erfc);
    let text = format!(
        "HloModule m\n\nENTRY e {{\n  x = f32[{N}] parameter(0)\n{lines}  ROOT y = f32[{N}] copy({root})\n}}\n"
    );
    for machine in [Machine::here(None), Machine::here(Some("x86-64")), Machine::aarch64()].into_iter().flatten() {
        let results = machine.run(&text, &[Tensor::of(&[N as u64], &xs)]);
        for (&x, got) in xs.iter().zip(floats(&results[0])) {
            let (wide, cpu) = (f64::from(x), &machine.target.cpu);
            let want = if wide.abs() > 11.0 { 1.0 - wide.signum() } else { erfc_of(wide) };
            let bound =
                (8.0 + (wide * wide).min(121.0)) * f64::from(f32::EPSILON) * want + f64::from(f32::MIN_POSITIVE);
            let near = (f64::from(got) - want).abs() <= bound;
            assert!(near || got.is_nan() && x.is_nan(), "{cpu}: erfc of {x:e} is {got:e} instead of {want:e}");
        }
    }
}

/// What f32 functions should give.
const FUNCTIONS: [(&str, fn(f64) -> f64); 9] = [
    ("exponential", f64::exp),
    ("exponential-minus-one", f64::exp_m1),
    ("log", f64::ln),
    ("log-plus-one", f64::ln_1p),
    ("logistic", |x| 1.0 / (1.0 + (-x).exp())),
    ("tanh", f64::tanh),
    ("erf", erf_of),
    ("sine", f64::sin),
    ("cosine", f64::cos),
];

type Formula = fn(&mut Lines, usize) -> usize;

/// The same of formulas, which code generation has a shorter way for.
const FORMULAS: [(&str, Formula, fn(f64) -> f64); 2] =
    [("softplus", formula::softplus, softplus_of), ("mish", formula::mish, |x| x * softplus_of(x).tanh())];

fn softplus_of(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// Functions of f32 on many numbers of every size that they take, within 2 to 4 units in the last place where the result is normal.
#[test]
fn functions() {
    let near_one = (-2000..2000).map(|i| 1.0 + i as f32 * 1.7e-4);
    let small = (1..2000).flat_map(|i| [1.0, -1.0].map(|sign| sign * i as f32 * 3.1e-5));
    let sizes = (-140..128).flat_map(|e| [1.0f32, 1.37, 1.83].map(|m| m * 2f32.powi(e)));
    let turns = (1..2000).map(|i| (f64::from(i) * std::f64::consts::FRAC_PI_2) as f32);
    let ends = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0];
    let xs: Vec<f32> = near_one
        .chain(small)
        .chain(sizes)
        .chain(turns)
        .chain(ends)
        .chain((-3000..3000).map(|i| i as f32 * 0.0371))
        .collect();
    let shape = format!("f32[{}]", xs.len());
    let ops = FUNCTIONS.map(|(name, want)| (name, (format!("  y = {shape} {name}(x)\n"), "y".to_string()), want));
    let formulas = FORMULAS.map(|(name, formula, want)| (name, Lines::of(&shape, formula), want));
    for machine in [Machine::here(None), Machine::here(Some("x86-64")), Machine::aarch64()].into_iter().flatten() {
        for (name, (lines, root), function) in ops.iter().chain(&formulas) {
            let text = format!(
                "HloModule m\n\nENTRY e {{\n  x = {shape} parameter(0)\n{lines}  ROOT r = {shape} copy({root})\n}}\n"
            );
            let results = machine.run(&text, &[Tensor::of(&[xs.len() as u64], &xs)]);
            for (&x, got) in xs.iter().zip(floats(&results[0])) {
                let want = function(f64::from(x));
                let bound = 2.0 * f64::from(f32::EPSILON) * want.abs() + f64::from(f32::MIN_POSITIVE);
                let equal = f64::from(got) == f64::from(want as f32) || got.is_nan() && want.is_nan();
                let near = (f64::from(got) - want).abs() <= bound;
                assert!(equal || near, "{}: {name} of {x:e} is {got:e} instead of {want:e}", machine.target.cpu);
            }
        }
    }
}
