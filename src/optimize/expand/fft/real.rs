//! Transforms of an even number n of real numbers, as transforms of m = n/2 complex ones.
//!
//! With `z[j] = x[2j] + i·x[2j+1]` and its transform Z, the transforms of the elements with even and with odd indices are
//! `E[k] = (Z[k] + Z*[m-k]) / 2` and `O[k] = (Z[k] - Z*[m-k]) / 2i`, and `X[k] = E[k] + w(n)^k · O[k]` for k from 0 to m.
use super::{ComplexPair, table, transform_lines, unit_root};
use crate::hlo::attrs::PadDim;
use crate::hlo::{Builder, InstId, Op};
use std::f64::consts::TAU;

/// The first n/2 + 1 elements of the transform along the last axis, of n real numbers.
pub fn transform(b: &mut Builder, x: InstId, n: u64) -> ComplexPair {
    let (last, m) = (b.rank(x) - 1, n / 2);
    let mut dims = b.dims(x).to_vec();
    dims[last] = m;
    let lines = dims.iter().product::<u64>() / m;
    let pairs = b.reshape(x, &[lines, m, 2]);
    let [re, im] = [0, 1].map(|at| {
        let part = b.slice_axis(pairs, 2, at, at + 1);
        b.reshape(part, &[lines, m])
    });
    let done = transform_lines(b, ComplexPair { re, im: Some(im) }, false);
    let z = done.map_both(b, |b, x| b.reshape(x, &dims));
    let grown = z.map_both(b, |b, x| {
        let first = b.slice_axis(x, last, 0, 1);
        b.concatenate(&[x, first], last)
    });
    let im = grown.imaginary_or_zero(b);
    let (re_back, im_back) = (reverse_last_axis(b, grown.re), reverse_last_axis(b, im));
    let (even_re, even_im) = (b.add(grown.re, re_back), b.sub(im, im_back));
    let (odd_re, odd_im) = (b.add(im, im_back), b.sub(re_back, grown.re));
    let odd = multiply_by_first_roots(b, odd_re, odd_im, n, false);
    let half = b.full_like(even_re, 0.5);
    let sum = |b: &mut Builder, x, y| {
        let sum = b.add(x, y);
        b.mul(sum, half)
    };
    ComplexPair { re: sum(b, even_re, odd.0), im: Some(sum(b, even_im, odd.1)) }
}

/// The n real numbers whose transform begins with these n/2 + 1 elements along the last axis. Imaginary parts of the first and the last
/// element are taken for zero.
pub fn inverse_transform(b: &mut Builder, x: ComplexPair, n: u64) -> InstId {
    let (last, m) = (b.rank(x.re) - 1, n / 2);
    let im = x.imaginary_or_zero(b);
    let inner = b.slice_axis(im, last, 1, m.max(1));
    let zero = b.scalar(b.dtype(im), 0.0);
    let mut pads = vec![PadDim::default(); last + 1];
    pads[last] = PadDim { low: 1, high: 1, interior: 0 };
    let im = b.pad(inner, zero, &pads);
    let (re_back, im_back) = (reverse_last_axis(b, x.re), reverse_last_axis(b, im));
    let (even_re, even_im) = (b.add(x.re, re_back), b.sub(im, im_back));
    let (odd_re, odd_im) = (b.sub(x.re, re_back), b.add(im, im_back));
    let odd = multiply_by_first_roots(b, odd_re, odd_im, n, true);
    let half = b.full_like(even_re, 0.5);
    let first = |b: &mut Builder, x: InstId| {
        let x = b.mul(x, half);
        b.slice_axis(x, last, 0, m)
    };
    let (re, im) = (b.sub(even_re, odd.1), b.add(even_im, odd.0));
    let mut dims = b.dims(x.re).to_vec();
    let lines = dims[..last].iter().product::<u64>();
    let packed = ComplexPair { re: first(b, re), im: Some(first(b, im)) };
    let packed = packed.map_both(b, |b, x| b.reshape(x, &[lines, m]));
    let done = transform_lines(b, packed, true);
    let im = done.imaginary_or_zero(b);
    let parts = [done.re, im].map(|x| b.reshape(x, &[lines, m, 1]));
    let pairs = b.concatenate(&parts, 2);
    dims[last] = n;
    b.reshape(pairs, &dims)
}

/// The last axis in the opposite order.
fn reverse_last_axis(b: &mut Builder, x: InstId) -> InstId {
    let last = b.rank(x) - 1;
    b.add_inst(Op::Reverse(vec![last]), &[x])
}

/// Complex numbers times the roots of unity w(n)^k, or their conjugates, for k from 0 to n/2: real and imaginary parts.
fn multiply_by_first_roots(b: &mut Builder, re: InstId, im: InstId, n: u64, conjugated: bool) -> (InstId, InstId) {
    // the last root is -1, which has no rounded imaginary part
    let roots: Vec<(f64, f64)> = (0..=n / 2)
        .map(|k| if 2 * k == n { (-1.0, 0.0) } else { unit_root(TAU * k as f64 / n as f64, conjugated) })
        .collect();
    let dtype = b.dtype(re);
    let (cos, sin) = (
        table(b, dtype, &[n / 2 + 1], roots.iter().map(|w| w.0)),
        table(b, dtype, &[n / 2 + 1], roots.iter().map(|w| w.1)),
    );
    let [re_cos, im_sin, re_sin, im_cos] = [(re, cos), (im, sin), (re, sin), (im, cos)].map(|(x, by)| b.mul(x, by));
    (b.sub(re_cos, im_sin), b.add(re_sin, im_cos))
}
