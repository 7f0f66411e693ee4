//! Random expressions against plain integers, at every value of small ranges.
use super::*;

/// A generator of numbers that are the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n.max(1)
    }
}

/// An expression as it was asked for.
enum Plain {
    Var(usize),
    Constant(i64),
    Add(Box<Plain>, Box<Plain>),
    Sub(Box<Plain>, Box<Plain>),
    Mul(Box<Plain>, Box<Plain>),
    Floor(Box<Plain>, Box<Plain>),
    Rem(Box<Plain>, Box<Plain>),
    Max(Box<Plain>, Box<Plain>),
    Min(Box<Plain>, Box<Plain>),
}

impl Plain {
    fn random(numbers: &mut Numbers, depth: u32) -> Plain {
        if depth == 0 || numbers.below(5) == 0 {
            return match numbers.below(3) {
                0 => Plain::Constant(numbers.below(13) as i64 - 6),
                v => Plain::Var(v as usize - 1),
            };
        }
        let kind = numbers.below(7);
        let x = Box::new(Plain::random(numbers, depth - 1));
        let divisor = |numbers: &mut Numbers| {
            let any = numbers.below(4) == 0;
            if any { Plain::random(numbers, depth - 1) } else { Plain::Constant(1 + numbers.below(9) as i64) }
        };
        let y = Box::new(if matches!(kind, 3 | 4) { divisor(numbers) } else { Plain::random(numbers, depth - 1) });
        match kind {
            0 => Plain::Add(x, y),
            1 => Plain::Sub(x, y),
            2 => Plain::Mul(x, y),
            3 => Plain::Floor(x, y),
            4 => Plain::Rem(x, y),
            5 => Plain::Max(x, y),
            _ => Plain::Min(x, y),
        }
    }

    /// The value in 128 bits; `None` for a division by 0.
    fn eval(&self, at: [i64; 2]) -> Option<i128> {
        let of = |x: &Plain, y: &Plain| Some((x.eval(at)?, y.eval(at)?));
        let floor = |(a, b): (i128, i128)| {
            let quotient = a.checked_div(b)?;
            Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
        };
        match self {
            Plain::Var(v) => Some(at[*v].into()),
            Plain::Constant(n) => Some((*n).into()),
            Plain::Add(x, y) => of(x, y).map(|(a, b)| a + b),
            Plain::Sub(x, y) => of(x, y).map(|(a, b)| a - b),
            Plain::Mul(x, y) => of(x, y).and_then(|(a, b)| a.checked_mul(b)),
            Plain::Floor(x, y) => of(x, y).and_then(floor),
            Plain::Rem(x, y) => of(x, y).and_then(|(a, b)| Some(a - b * floor((a, b))?)),
            Plain::Max(x, y) => of(x, y).map(|(a, b)| a.max(b)),
            Plain::Min(x, y) => of(x, y).map(|(a, b)| a.min(b)),
        }
    }

    fn expr(&self) -> Option<SizeExpr<usize>> {
        let of = |x: &Plain, y: &Plain| Some((x.expr()?, y.expr()?));
        match self {
            Plain::Var(v) => Some(SizeExpr::var(*v)),
            Plain::Constant(n) => Some(SizeExpr::constant(*n)),
            Plain::Add(x, y) => of(x, y).and_then(|(a, b)| a.add(&b)),
            Plain::Sub(x, y) => of(x, y).and_then(|(a, b)| a.sub(&b)),
            Plain::Mul(x, y) => of(x, y).and_then(|(a, b)| a.mul(&b)),
            Plain::Floor(x, y) => of(x, y).and_then(|(a, b)| a.floor_div(&b)),
            Plain::Rem(x, y) => of(x, y).and_then(|(a, b)| a.rem(&b)),
            Plain::Max(x, y) => of(x, y).and_then(|(a, b)| a.maximum(&b)),
            Plain::Min(x, y) => of(x, y).and_then(|(a, b)| a.minimum(&b)),
        }
    }
}

const RANGES: [(i64, i64); 2] = [(0, 12), (-3, 9)];

fn points() -> impl Iterator<Item = [i64; 2]> {
    let [(a, b), (c, d)] = RANGES;
    (a..=b).flat_map(move |n| (c..=d).map(move |m| [n, m]))
}

fn interval(v: &usize) -> Interval {
    Interval::new(RANGES[*v].0.into(), RANGES[*v].1.into())
}

#[test]
fn values_are_those_of_plain_integers_and_lie_in_the_interval() {
    let (mut compared, mut made) = (0, 0);
    for seed in 0..4000 {
        let plain = Plain::random(&mut Numbers(seed), 4);
        let Some(expr) = plain.expr() else { continue };
        made += 1;
        let (rough, exact) = (expr.interval(&interval), expr.extremes(&interval));
        for at in points() {
            let Some(want) = plain.eval(at) else { continue };
            let got = expr.eval(&|v| Some(at[*v]));
            assert_eq!(got.map(i128::from), Some(want), "seed {seed} at {at:?}: {expr:?}");
            assert!(rough.least <= want && want <= rough.most, "seed {seed} at {at:?}: {rough:?} of {expr:?}");
            assert!(exact.is_none_or(|e| e.least <= want && want <= e.most), "seed {seed} at {at:?}: {exact:?}");
            compared += 1;
        }
    }
    assert!(made > 3000 && compared > 200_000, "{made} expressions, {compared} values");
}

fn n() -> SizeExpr<usize> {
    SizeExpr::var(0)
}

fn m() -> SizeExpr<usize> {
    SizeExpr::var(1)
}

fn c(value: i64) -> SizeExpr<usize> {
    SizeExpr::constant(value)
}

#[test]
fn equal_expressions_have_one_normal_form() {
    let some = |e: Option<SizeExpr<usize>>| e.expect("it is small");
    let halves = some(some(n().offset_by(1)).floor_div(&c(2)));
    let pairs = [
        (some(some(n().add(&m())).mul(&some(n().sub(&m())))), some(some(n().mul(&n())).sub(&some(m().mul(&m()))))),
        (some(some(n().scale(16)).floor_div(&c(16))), n()),
        (
            some(some(some(n().scale(6)).offset_by(9)).floor_div(&c(4))),
            some(n().add(&some(some(n().scale(2)).offset_by(9)).floor_div(&c(4)).unwrap())),
        ),
        (some(some(halves.offset_by(1)).floor_div(&c(2))), some(some(n().offset_by(3)).floor_div(&c(4)))),
        (some(some(n().minimum(&c(7))).add(&some(n().maximum(&c(7))))), some(n().offset_by(7))),
        (some(some(n().maximum(&m())).maximum(&c(2))), some(n().maximum(&some(m().maximum(&c(2)))))),
        (some(some(n().minimum(&m())).minimum(&c(2))), some(n().minimum(&some(m().minimum(&c(2)))))),
        (some(n().sub(&some(n().minimum(&c(7))))), some(some(n().offset_by(-7)).maximum(&c(0)))),
        (some(some(n().offset_by(3)).maximum(&c(5))), some(some(n().maximum(&c(2))).offset_by(3))),
        (some(some(n().mul(&m())).floor_div(&m())), n()),
        (some(some(n().scale(3)).rem(&c(3))), c(0)),
        (some(n().floor_div(&c(-2))), some(some(n().scale(-1)).floor_div(&c(2)))),
        (some(n().ceil_div(&c(4))), some(some(n().offset_by(3)).floor_div(&c(4)))),
    ];
    for (x, y) in pairs {
        assert_eq!(x, y);
    }
}

#[test]
fn coefficients_beyond_64_bits_are_no_expression() {
    let large = c(i64::MAX);
    assert_eq!(large.offset_by(1), None);
    assert_eq!(n().scale(i64::MAX).and_then(|e| e.scale(2)), None);
    assert_eq!(c(i64::MIN).scale(-1), None);
    assert_eq!(n().floor_div(&c(0)), None);
    assert_eq!(n().scale(i64::MAX).and_then(|e| e.eval(&|_| Some(2))), None);
    let mut sum = n();
    while let Some(next) = sum.mul(&sum).and_then(|e| e.add(&m())) {
        sum = next;
        assert!(sum.terms().count() <= MAX_TERMS);
    }
}

#[test]
fn comparisons_are_decided_where_the_ranges_decide_them() {
    let range = |_: &usize| Interval::new(1, 4000);
    let some = |e: Option<SizeExpr<usize>>| e.expect("it is small");
    assert_eq!(n().is_at_least(&c(1), &range), Some(true));
    assert_eq!(n().is_at_least(&c(4001), &range), Some(false));
    assert_eq!(n().is_at_least(&c(1200), &range), None);
    assert_eq!(some(n().rem(&c(97))).is_at_least(&c(97), &range), Some(false));
    assert_eq!(n().is_at_least(&some(n().minimum(&c(100))), &range), Some(true));
    assert_eq!(some(some(n().floor_div(&c(16))).scale(16)).is_at_least(&some(n().offset_by(1)), &range), Some(false));
    assert_eq!(some(n().add(&m())).is_at_least(&n(), &range), Some(true));
}
