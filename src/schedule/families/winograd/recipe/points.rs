//! The points of Winograd's F(4, r): r + 3 products make 4 results of r taps. They are ∞, pairs ±p, and 0 where their number is
//! even. Those along one axis were the best of 1771 sets with sums of 256·r terms of normal numbers: the largest error is 1.2
//! (r = 2), 0.5 (3), 1.3 (4) and 2.0 (5) times that of direct sums, whose terms are added one after another.
use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

/// Results per tile along each axis.
pub const RESULTS: u64 = 4;

/// The points at which the polynomials of a tile are evaluated, in this order: 0 if `has_zero`, ±p for each of `pairs`, and ∞.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvaluationPoints {
    /// Whether 0 is a point.
    pub has_zero: bool,
    /// The pairs ±p.
    pub pairs: &'static [f64],
    /// Factor of the weights at finite points, and with it of the results: 1, or one that leaves no fraction in weights of integers.
    pub scale: f64,
    /// Factor of the weights at ∞, a divisor of `scale`: the products there are multiplied by the rest.
    pub scale_at_infinity: f64,
}

impl EvaluationPoints {
    /// Largest number of taps that points exist for.
    pub const MOST_TAPS: u64 = 5;
    /// The points for 3 taps along two axes: with them the largest error of sums of 9·64 and 9·256 terms is about twice that of direct
    /// sums, with the usual 0, ±1, ±2 five times that of these.
    pub const SQUARE: EvaluationPoints = EvaluationPoints::of_floats(true, &[FRAC_1_SQRT_2, SQRT_2]);
    /// The points for 3 taps along two axes of integers, which make whole numbers of inputs and weights: all products of weights at
    /// finite points by 24 are whole, and by 12 at ∞, where 24 would leave 16 bits along two axes.
    pub const INTEGER_SQUARE: EvaluationPoints =
        EvaluationPoints { has_zero: true, pairs: &[1.0, 2.0], scale: 24.0, scale_at_infinity: 12.0 };

    const fn of_floats(has_zero: bool, pairs: &'static [f64]) -> EvaluationPoints {
        EvaluationPoints { has_zero, pairs, scale: 1.0, scale_at_infinity: 1.0 }
    }

    /// The points for `taps` taps along one axis.
    pub fn for_taps(taps: u64) -> Option<EvaluationPoints> {
        Some(match taps {
            2 => EvaluationPoints::of_floats(false, &[0.45, 4.0 / 3.0]),
            3 => EvaluationPoints::of_floats(true, &[FRAC_1_SQRT_2, 1.15]),
            4 => EvaluationPoints::of_floats(false, &[0.4, 0.9, 1.75]),
            5 => EvaluationPoints::of_floats(true, &[0.65, 1.0, 1.6]),
            _ => return None,
        })
    }

    /// Number of points: the products of a tile, and the elements that it reads.
    pub fn count(&self) -> u64 {
        u64::from(self.has_zero) + 2 * self.pairs.len() as u64 + 1
    }

    /// Factors of the taps at all points, `[point][tap]`: the powers of the point over the product of its distances from the other points,
    /// times the scale.
    pub fn tap_factors(&self, taps: u64) -> Vec<f64> {
        let zero = self.has_zero.then_some(0.0);
        let finite: Vec<f64> = zero.into_iter().chain(self.pairs.iter().flat_map(|&p| [p, -p])).collect();
        let of_point = |&p: &f64| {
            let apart: f64 = finite.iter().filter(|&&q| q != p).map(|q| p - q).product();
            (0..taps).map(move |l| self.scale * p.powi(l as i32) / apart)
        };
        let at_infinity = (0..taps).map(|l| if l + 1 == taps { self.scale_at_infinity } else { 0.0 });
        finite.iter().flat_map(of_point).chain(at_infinity).collect()
    }
}

/// Distance in elements of points that have `n` elements each: padded where `n` would put all points into the same sets of a cache.
pub fn point_stride(n: u64) -> u64 {
    if n.is_multiple_of(512) { n + 16 } else { n }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Π (x − q)` over the points, the lowest power first.
    fn polynomial(points: &[f64]) -> Vec<f64> {
        points.iter().fold(vec![1.0], |all, q| {
            let mut next = vec![0.0; all.len() + 1];
            for (i, c) in all.iter().enumerate() {
                next[i + 1] += c;
                next[i] -= q * c;
            }
            next
        })
    }

    #[test]
    fn tiles_make_what_windows_make() {
        for taps in 2..=EvaluationPoints::MOST_TAPS {
            let points = EvaluationPoints::for_taps(taps).expect("points");
            let square = [EvaluationPoints::SQUARE, EvaluationPoints::INTEGER_SQUARE];
            let all = std::iter::once(points).chain(square.into_iter().filter(|_| taps == 3));
            all.for_each(|points| makes_what_windows_make(points, taps));
        }
    }

    fn makes_what_windows_make(points: EvaluationPoints, taps: u64) {
        let n = points.count();
        assert_eq!(n, RESULTS + taps - 1);
        let zero = points.has_zero.then_some(0.0);
        let finite: Vec<f64> = zero.into_iter().chain(points.pairs.iter().flat_map(|&p| [p, -p])).collect();
        let (x, g): (Vec<f64>, Vec<f64>) =
            ((0..n).map(|i| (i as f64 * 0.7).sin()).collect(), (0..taps).map(|i| (i as f64 + 0.3).cos()).collect());
        let factors = points.tap_factors(taps);
        let product = |j: usize| {
            let others: Vec<f64> = finite.iter().enumerate().filter(|(i, _)| *i != j).map(|(_, &q)| q).collect();
            let read: f64 = polynomial(&others).iter().zip(&x).map(|(c, x)| c * x).sum();
            let taps = taps as usize;
            read * factors[j * taps..][..taps].iter().zip(&g).map(|(f, g)| f * g).sum::<f64>()
        };
        for i in 0..RESULTS {
            let made: f64 = (0..n as usize)
                .map(|j| {
                    let last = if i + 1 == RESULTS { points.scale / points.scale_at_infinity } else { 0.0 };
                    product(j) * finite.get(j).map_or(last, |p| p.powi(i as i32)) / points.scale
                })
                .sum();
            let want: f64 = (0..taps).map(|l| x[(i + l) as usize] * g[l as usize]).sum();
            assert!((made - want).abs() < 1e-12, "{taps} taps: {made} instead of {want}");
        }
    }
}
