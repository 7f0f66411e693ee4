//! The loops of a contraction, and how far each moves both sides.

/// A loop with the strides, in elements, by which it moves through both operands.
#[derive(Clone, Copy, Debug)]
pub struct ContractionAxis {
    /// Trip count.
    pub extent: u64,
    /// Stride of the left operand.
    pub a: i64,
    /// Stride of the right operand.
    pub b: i64,
}

/// Merges neighboring axes that step through memory without a gap.
pub fn merge_axes(axes: &[ContractionAxis]) -> Vec<ContractionAxis> {
    let mut out: Vec<ContractionAxis> = Vec::new();
    for axis in axes.iter().filter(|x| x.extent != 1) {
        match out.last_mut() {
            Some(last) if last.a == axis.a * axis.extent as i64 && last.b == axis.b * axis.extent as i64 => {
                *last = ContractionAxis { extent: last.extent * axis.extent, ..*axis };
            }
            _ => out.push(*axis),
        }
    }
    out
}

/// `axes`, or one axis of extent 1 if there is none.
pub fn at_least_one_axis(axes: Vec<ContractionAxis>) -> Vec<ContractionAxis> {
    if axes.is_empty() { vec![ContractionAxis { extent: 1, a: 0, b: 0 }] } else { axes }
}

pub fn extent_product(axes: &[ContractionAxis]) -> u64 {
    axes.iter().map(|x| x.extent).product()
}

/// Offset in the right side, in elements, of the element with the row-major number `i` along `axes` from the first one.
pub fn right_offset(axes: &[ContractionAxis], mut i: u64) -> i64 {
    let mut at = 0i64;
    for axis in axes.iter().rev() {
        at += (i % axis.extent) as i64 * axis.b;
        i /= axis.extent;
    }
    at
}
