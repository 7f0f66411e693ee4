//! Functions of single doubles for arguments that vectors can't do: called lane by lane, and rarely.
use super::super::function::FunctionEmitter;
use super::super::value::Val;
use crate::target::Arch;
use crate::tensor::DType;
use std::fmt::Write;

/// A helper function in the LLVM module for arguments outside the range of the vector code, called lane by lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowPathFunction {
    /// The remainder of two nonnegative numbers by long division, 11 bits a step.
    Remainder,
    /// The number of whole quarter turns in an angle, modulo 4, as a double.
    Quadrant,
    /// The remainder of the angle after whole quarter turns, at most an eighth turn.
    Rest,
}

/// Symbol of the function that replaces lanes of an f32 vector whose angles are too large for the vector code by their sines (phase 0) or
/// cosines (phase 1).
const SINES: &str = "@tfaot.sines";
/// Largest angle for which the f32 vector code is exact enough.
pub const MOST_F32: f64 = 131_072.0;

/// Emits sines (phase 0) or cosines (phase 1) of those angles `x` that are too large for the f32 vector code; other lanes keep `y`.
pub fn large_angle_sines(f: &mut FunctionEmitter, x: &Val, y: &Val, phase: u64) -> Val {
    let [from, to] = [x, y].map(|v| f.spill_to_stack(v));
    f.push_line(&format!("call void {SINES}(ptr {from}, ptr {to}, i64 {}, i64 {phase})", x.lanes));
    f.push_instruction(&format!("load {}, ptr {to}", y.ty()), y.dtype, y.lanes)
}

/// The LLVM text of the function [`SINES`], which computes in f64 with [`SlowPathFunction::Quadrant`] and [`SlowPathFunction::Rest`].
fn sines_text() -> String {
    let bits = |v: f64| format!("0x{:016X}", v.to_bits());
    let series = |name: &str, odd: f64| {
        let mut terms = vec![1.0];
        for k in 1..=5 {
            let k = 2.0 * f64::from(k) + odd;
            terms.push(-terms[terms.len() - 1] / (k * (k - 1.0)));
        }
        let (mut text, mut sum) = (String::new(), bits(terms[5]));
        for (i, &term) in terms[..5].iter().enumerate().rev() {
            let _ = writeln!(text, "  %{name}m{i} = fmul double {sum}, %square");
            let _ = writeln!(text, "  %{name}{i} = fadd double %{name}m{i}, {}", bits(term));
            sum = format!("%{name}{i}");
        }
        text
    };
    format!(
        "define internal void {SINES}(ptr %x, ptr %y, i64 %n, i64 %phase) #1 {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
  %j = add i64 %i, 1
  %more = icmp ult i64 %i, %n
  br i1 %more, label %one, label %done
one:
  %from = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %from
  %size = call float @llvm.fabs.f32(float %v)
  %far = fcmp ogt float %size, {}
  br i1 %far, label %turn, label %next
turn:
  %d = fpext float %v to double
  %q = call double {}(double %d)
  %r = call double {}(double %d)
  %q0 = fptoui double %q to i64
  %quadrant = add i64 %q0, %phase
  %square = fmul double %r, %r
{}{}  %sine = fmul double %s0, %r
  %bit = trunc i64 %quadrant to i1
  %either = select i1 %bit, double %c0, double %sine
  %half = lshr i64 %quadrant, 1
  %turned = trunc i64 %half to i1
  %minus = fneg double %either
  %signed = select i1 %turned, double %minus, double %either
  %nothing = fsub double %d, %d
  %sum = fadd double %signed, %nothing
  %result = fptrunc double %sum to float
  %to = getelementptr float, ptr %y, i64 %i
  store float %result, ptr %to
  br label %next
next:
  br label %head
done:
  ret void
}}
",
        bits(MOST_F32),
        SlowPathFunction::Quadrant.name(),
        SlowPathFunction::Rest.name(),
        series("s", 1.0),
        series("c", 0.0),
    )
}

impl SlowPathFunction {
    fn name(self) -> &'static str {
        match self {
            SlowPathFunction::Remainder => "@tfaot.remainder",
            SlowPathFunction::Quadrant => "@tfaot.quadrant",
            SlowPathFunction::Rest => "@tfaot.rest",
        }
    }
    /// Emits a call of the helper function on scalars.
    pub fn call(self, f: &mut FunctionEmitter, args: &[&Val]) -> Val {
        let list: Vec<String> = args.iter().map(|a| format!("double {}", a.text)).collect();
        f.push_instruction(&format!("call double {}({})", self.name(), list.join(", ")), DType::F64, 1)
    }
}

/// The LLVM definitions of the helper functions that `text` calls.
pub fn helper_definitions(text: &str, arch: Arch) -> String {
    let mut out = String::new();
    if text.contains(SlowPathFunction::Remainder.name()) {
        out += REMAINDER;
    }
    let sines = text.contains(SINES);
    if sines {
        out += &sines_text();
    }
    if sines || [SlowPathFunction::Quadrant, SlowPathFunction::Rest].iter().any(|turn| text.contains(turn.name())) {
        let words: Vec<String> = TWO_OVER_PI.iter().map(|w| format!("i64 {w}")).collect();
        let _ = writeln!(
            out,
            "@tfaot.two_over_pi = private unnamed_addr constant [{} x i64] [{}]\n{TURNS}",
            words.len(),
            words.join(", ")
        );
        // LLVM calls a function of the C compiler's library for products of 128 bits there
        out += if arch == Arch::Wasm32 { PRODUCT_OF_HALVES } else { PRODUCT };
    }
    out
}

/// LLVM text of the remainder: x and y are 53-bit integers times powers of two, and x's is divided with 11 zero bits brought down per step.
const REMAINDER: &str = "define internal double @tfaot.remainder(double %x, double %y) #1 {
entry:
  %xb = bitcast double %x to i64
  %yb = bitcast double %y to i64
  %less = icmp ult i64 %xb, %yb
  br i1 %less, label %itself, label %divide
itself:
  ret double %x
divide:
  %xe0 = lshr i64 %xb, 52
  %ye0 = lshr i64 %yb, 52
  %xm0 = and i64 %xb, 4503599627370495
  %ym0 = and i64 %yb, 4503599627370495
  %xn = icmp ne i64 %xe0, 0
  %yn = icmp ne i64 %ye0, 0
  %xm1 = or i64 %xm0, 4503599627370496
  %ym1 = or i64 %ym0, 4503599627370496
  %xm = select i1 %xn, i64 %xm1, i64 %xm0
  %ym = select i1 %yn, i64 %ym1, i64 %ym0
  %xe = select i1 %xn, i64 %xe0, i64 1
  %ye = select i1 %yn, i64 %ye0, i64 1
  %first = urem i64 %xm, %ym
  %zeros = sub i64 %xe, %ye
  br label %head
head:
  %r = phi i64 [ %first, %divide ], [ %next, %step ]
  %left = phi i64 [ %zeros, %divide ], [ %fewer, %step ]
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %step, label %done
step:
  %few = icmp slt i64 %left, 11
  %by = select i1 %few, i64 %left, i64 11
  %moved = shl i64 %r, %by
  %next = urem i64 %moved, %ym
  %fewer = sub i64 %left, %by
  br label %head
done:
  %count = uitofp i64 %r to double
  %k = sub i64 %ye, 1075
  %k1 = ashr i64 %k, 1
  %k2 = sub i64 %k, %k1
  %b1 = add i64 %k1, 1023
  %b2 = add i64 %k2, 1023
  %p1 = shl i64 %b1, 52
  %p2 = shl i64 %b2, 52
  %f1 = bitcast i64 %p1 to double
  %f2 = bitcast i64 %p2 to double
  %part = fmul double %count, %f1
  %out = fmul double %part, %f2
  ret double %out
}
";

/// LLVM text of the angle reduction by Payne and Hanek: the mantissa times 192 bits of 2/π, from the first bit that matters modulo 4. Of
/// the product's 192 lowest bits the upper two are the quadrant, those below the fraction; rounded to nearest, the fraction times π/2 is
/// the rest.
const TURNS: &str = "define internal i128 @tfaot.turns(double %x) #1 {
  %b = bitcast double %x to i64
  %e0 = lshr i64 %b, 52
  %e = and i64 %e0, 2047
  %m0 = and i64 %b, 4503599627370495
  %m = or i64 %m0, 4503599627370496
  %at = sub i64 %e, 1013
  %word = lshr i64 %at, 6
  %bit = and i64 %at, 63
  %p0 = getelementptr i64, ptr @tfaot.two_over_pi, i64 %word
  %p1 = getelementptr i64, ptr %p0, i64 1
  %p2 = getelementptr i64, ptr %p0, i64 2
  %p3 = getelementptr i64, ptr %p0, i64 3
  %t0 = load i64, ptr %p0
  %t1 = load i64, ptr %p1
  %t2 = load i64, ptr %p2
  %t3 = load i64, ptr %p3
  %w0 = call i64 @llvm.fshl.i64(i64 %t0, i64 %t1, i64 %bit)
  %w1 = call i64 @llvm.fshl.i64(i64 %t1, i64 %t2, i64 %bit)
  %w2 = call i64 @llvm.fshl.i64(i64 %t2, i64 %t3, i64 %bit)
  %low = call i128 @tfaot.product(i64 %m, i64 %w2)
  %carry = lshr i128 %low, 64
  %mid = call i128 @tfaot.product(i64 %m, i64 %w1)
  %sum = add i128 %mid, %carry
  %high = mul i64 %m, %w0
  %high1 = zext i64 %high to i128
  %high2 = shl i128 %high1, 64
  %all = add i128 %high2, %sum
  %negative = icmp slt i64 %b, 0
  %minus = sub i128 0, %all
  %signed = select i1 %negative, i128 %minus, i128 %all
  ret i128 %signed
}
define internal double @tfaot.quadrant(double %x) #1 {
  %t = call i128 @tfaot.turns(double %x)
  %near = add i128 %t, 42535295865117307932921825928971026432
  %q = lshr i128 %near, 126
  %n = trunc i128 %q to i64
  %d = uitofp i64 %n to double
  ret double %d
}
define internal double @tfaot.rest(double %x) #1 {
  %t = call i128 @tfaot.turns(double %x)
  %up = shl i128 %t, 2
  %negative = icmp slt i128 %up, 0
  %minus = sub i128 0, %up
  %size = select i1 %negative, i128 %minus, i128 %up
  %zeros = call i128 @llvm.ctlz.i128(i128 %size, i1 false)
  %few = and i128 %zeros, 127
  %high0 = lshr i128 %size, 64
  %high = trunc i128 %high0 to i64
  %low = trunc i128 %size to i64
  %by = trunc i128 %few to i64
  %far = icmp ugt i64 %by, 63
  %first = select i1 %far, i64 %low, i64 %high
  %second = select i1 %far, i64 0, i64 %low
  %top = call i64 @llvm.fshl.i64(i64 %first, i64 %second, i64 %by)
  %count = uitofp i64 %top to double
  %exponent = sub i64 959, %by
  %power = shl i64 %exponent, 52
  %scale = bitcast i64 %power to double
  %turn = fmul double %count, %scale
  %rest = fmul double %turn, 0x3FF921FB54442D18
  %other = fneg double %rest
  %out = select i1 %negative, double %other, double %rest
  ret double %out
}
";

/// LLVM text of the full 128-bit product of two 64-bit integers.
const PRODUCT: &str = "define internal i128 @tfaot.product(i64 %x, i64 %y) #1 {
  %xx = zext i64 %x to i128
  %yy = zext i64 %y to i128
  %xy = mul i128 %xx, %yy
  ret i128 %xy
}
";

/// LLVM text of the 128-bit product of two 64-bit integers from four 32-bit products.
const PRODUCT_OF_HALVES: &str = "define internal i128 @tfaot.product(i64 %x, i64 %y) #1 {
  %x0 = and i64 %x, 4294967295
  %y0 = and i64 %y, 4294967295
  %x1 = lshr i64 %x, 32
  %y1 = lshr i64 %y, 32
  %p00 = mul i64 %x0, %y0
  %p01 = mul i64 %x0, %y1
  %p10 = mul i64 %x1, %y0
  %p11 = mul i64 %x1, %y1
  %h0 = lshr i64 %p00, 32
  %l1 = and i64 %p01, 4294967295
  %s0 = add i64 %h0, %l1
  %s1 = add i64 %s0, %p10
  %h1 = lshr i64 %p01, 32
  %h2 = lshr i64 %s1, 32
  %t0 = add i64 %p11, %h1
  %high = add i64 %t0, %h2
  %low0 = and i64 %p00, 4294967295
  %low1 = shl i64 %s1, 32
  %low = or i64 %low0, %low1
  %low2 = zext i64 %low to i128
  %high1 = zext i64 %high to i128
  %high2 = shl i128 %high1, 64
  %all = or i128 %high2, %low2
  ret i128 %all
}
";

/// 64 zero bits, then the bits of 2/π after the binary point.
const TWO_OVER_PI: [u64; 22] = [
    0x0000000000000000,
    0xA2F9836E4E441529,
    0xFC2757D1F534DDC0,
    0xDB6295993C439041,
    0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0,
    0x06492EEA09D1921C,
    0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484,
    0xE99C7026B45F7E41,
    0x3991D639835339F4,
    0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F,
    0xEF2F118B5A0A6D1F,
    0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B,
    0x3D0739F78A5292EA,
    0x6BFB5FB11F8D5D08,
    0x56033046FC7B6BAB,
    0xF0CFBC209AF4361D,
    0xA9E391615EE61B08,
];
