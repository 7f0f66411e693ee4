//! Constant weights that are bytes times a scale for each output feature, as fake quantisation leaves them when constants are folded.
use crate::tensor::{DType, Tensor};

/// Largest number of levels on one side of zero.
const MOST_LEVELS: i32 = 128;
/// Largest relative difference of a weight from its level times the scale. A weight is rounded once when a level is multiplied by its scale, and once
/// more when a factor of the feature, such as that of a batch normalisation, is folded into it; each time by at most 2^-24 of itself.
const MOST_DIFFERENCE: f64 = 1.0 / (1 << 22) as f64;

/// Weights as integers of 8 bits.
pub struct WeightLevels {
    /// The levels, an array of `s8` with the sizes of the weights.
    pub levels: Tensor,
    /// The scale of each output feature.
    pub scales: Vec<f64>,
    /// The sum of the levels of each output feature.
    pub sums: Vec<i64>,
}

impl WeightLevels {
    /// The levels of an array of `f32` whose output features lie along `axes`; `None` if some feature is no multiple of one scale.
    pub fn of_weights(weights: &Tensor, axes: &[usize]) -> Option<WeightLevels> {
        let features = feature_numbers(weights, axes);
        let count = axes.iter().map(|&axis| weights.dims[axis]).product::<u64>() as usize;
        let values = weights.view::<f32>();
        let mut by_feature: Vec<Vec<f32>> = vec![Vec::with_capacity(values.len() / count.max(1)); count];
        for (&value, &feature) in values.iter().zip(&features) {
            by_feature[feature].push(value);
        }
        let scales = by_feature.iter().map(|values| scale_of_feature(values)).collect::<Option<Vec<f64>>>()?;
        let mut sums = vec![0i64; count];
        let mut levels = Vec::with_capacity(values.len());
        for (&value, &feature) in values.iter().zip(&features) {
            let level = (f64::from(value) / scales[feature]).round();
            sums[feature] += level as i64;
            levels.push(level as i8);
        }
        Some(WeightLevels { levels: Tensor::from_vec(DType::S8, weights.dims.clone(), levels), scales, sums })
    }
}

/// For each element of an array the number of its feature, whose axes are `axes`.
fn feature_numbers(weights: &Tensor, axes: &[usize]) -> Vec<usize> {
    let mut steps = vec![0usize; weights.dims.len()];
    let mut step = 1;
    for &axis in axes.iter().rev() {
        steps[axis] = step;
        step *= weights.dims[axis] as usize;
    }
    let mut index = vec![0u64; weights.dims.len()];
    let mut feature = 0usize;
    let mut numbers = Vec::with_capacity(weights.len());
    for _ in 0..weights.len() {
        numbers.push(feature);
        for axis in (0..index.len()).rev() {
            index[axis] += 1;
            feature += steps[axis];
            if index[axis] < weights.dims[axis] {
                break;
            }
            feature -= steps[axis] * weights.dims[axis] as usize;
            index[axis] = 0;
        }
    }
    numbers
}

/// The scale of which all weights are multiples by -128 to 127, up to [`MOST_DIFFERENCE`] of each.
fn scale_of_feature(values: &[f32]) -> Option<f64> {
    let largest = values.iter().copied().fold(0f32, |most, v| if v.abs() > most.abs() { v } else { most });
    if !values.iter().all(|v| v.is_finite()) {
        return None;
    }
    if largest == 0.0 {
        return Some(1.0);
    }
    (1..=MOST_LEVELS).rev().find_map(|level| scale_for_level(values, f64::from(largest).abs() / f64::from(level)))
}

/// A scale near `guess` of which all weights are multiples.
///
/// The guess has the rounding of the largest weight; the scale in the middle of those that the weights ask for comes nearest to all.
fn scale_for_level(values: &[f32], guess: f64) -> Option<f64> {
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for &value in values.iter().filter(|&&v| v != 0.0) {
        let level = (f64::from(value) / guess).round();
        if level == 0.0 || !(-128.0..=127.0).contains(&level) {
            return None;
        }
        let scale = f64::from(value) / level;
        (least, most) = (least.min(scale), most.max(scale));
        if most - least > 2.0 * MOST_DIFFERENCE * least {
            return None;
        }
    }
    let scale = (least + most) / 2.0;
    let is_near = |&value: &f32| {
        let value = f64::from(value);
        ((value / scale).round() * scale - value).abs() <= MOST_DIFFERENCE * value.abs()
    };
    (scale >= f64::from(f32::MIN_POSITIVE) && values.iter().all(is_near)).then_some(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_that_were_multiplied() {
        // two input features, three output features; scales that no float has exactly
        let levels: [i8; 9] = [127, -3, 5, -128, 64, 0, 1, 2, -100];
        let (steps, factors) = ([0.013f32, 1.7, 3e-5], [1.1f32, 0.3, 7.0]);
        let weights: Vec<f32> =
            levels.iter().enumerate().map(|(i, &q)| f32::from(q) * steps[i % 3] * factors[i % 3]).collect();
        let found = WeightLevels::of_weights(&Tensor::of(&[3, 3], &weights), &[1]).expect("multiples");
        let by_scale = |i: usize| f64::from(found.levels.view::<i8>()[i]) * found.scales[i % 3];
        for (i, &weight) in weights.iter().enumerate() {
            assert!((by_scale(i) - f64::from(weight)).abs() <= MOST_DIFFERENCE * f64::from(weight).abs());
        }
        let sum = |feature: usize| {
            found.levels.view::<i8>().iter().skip(feature).step_by(3).map(|&q| i64::from(q)).sum::<i64>()
        };
        assert_eq!(found.sums, [sum(0), sum(1), sum(2)]);
    }

    #[test]
    fn other_numbers_have_no_levels() {
        let weights: Vec<f32> = (1..50u32).map(|i| (i as f32 * 0.37).sin()).collect();
        assert!(WeightLevels::of_weights(&Tensor::of(&[49, 1], &weights), &[1]).is_none());
        let infinite = Tensor::of(&[2, 1], &[1.0, f32::INFINITY]);
        assert!(WeightLevels::of_weights(&infinite, &[1]).is_none());
    }
}
