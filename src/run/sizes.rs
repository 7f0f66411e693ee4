//! Varying sizes of a call, determined from names and arrays, and padding of arrays to the bounds.
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::tensor::{Size, Sizes, Tensor, TensorInfo};

/// Assigns values by name to the sizes that the caller of a function passes; an empty name stands for every size. `None` for sizes
/// without a value.
///
/// # Errors
/// `Code::BadOption` for an unknown name, and for a number beyond the bounds.
pub fn assign_by_name(sizes: &Sizes, values: &[(String, u64)]) -> Result<Vec<Option<u64>>> {
    let given = &sizes.all[..sizes.caller_size_count()];
    let mut out = vec![None; given.len()];
    for (name, n) in values {
        let named: Vec<usize> = (0..given.len()).filter(|&i| name.is_empty() || given[i].name == *name).collect();
        if named.is_empty() {
            let known: Vec<String> = given.iter().map(|s| format!("`{}`", s.name)).collect();
            let told = match (known.is_empty(), name.is_empty()) {
                (true, _) => "no size varies from call to call".to_string(),
                (false, true) => "no size is said by the caller".to_string(),
                (false, false) => format!("no size is called `{name}`; there is {}", known.join(", ")),
            };
            return Err(Diagnostic::new(Code::BadOption, told).help("--dim n=1..64 bounds a size that is open").into());
        }
        for i in named {
            check_bounds(&given[i], *n, "--size").map_err(|told| Error::user(Code::BadOption, told))?;
            out[i] = Some(*n);
        }
    }
    Ok(out)
}

/// Checks that `n` is within the bounds of a size; `by` names the source of `n` in the message.
fn check_bounds(size: &Size, n: u64, by: &str) -> std::result::Result<(), String> {
    match (size.least..=size.most).contains(&n) {
        true => Ok(()),
        false => Err(format!("`{}` is {n} by {by}, and goes from {} to {}", size.name, size.least, size.most)),
    }
}

/// Determines the sizes that the caller of a function passes: from arrays, else from `chosen`, else the largest.
///
/// # Errors
/// `Code::BadInputs` for a size about which arrays contradict each other, or that is beyond its bounds.
pub fn resolve_sizes<'a>(
    sizes: &Sizes,
    infos: &[TensorInfo],
    array: impl Fn(usize) -> Option<&'a Tensor>,
    chosen: &[Option<u64>],
) -> Result<Vec<u64>> {
    let bad = |told: String| Error::user(Code::BadInputs, told);
    let mut known: Vec<Option<(u64, String)>> = chosen.iter().map(|n| n.map(|n| (n, "--size".to_string()))).collect();
    known.resize(sizes.caller_size_count(), None);
    for (i, (info, axes)) in infos.iter().zip(&sizes.args).enumerate() {
        // arrays of another rank are refused when arrays are checked one by one
        let Some(found) = array(i).filter(|a| a.dims.len() == info.dims.len()) else { continue };
        for (&n, s) in found.dims.iter().zip(axes).filter_map(|(n, axis)| Some((n, (*axis)?))) {
            let (size, by) = (&sizes.all[s], format!("`{}`", info.display_name()));
            check_bounds(size, n, &by).map_err(bad)?;
            match known.get_mut(s) {
                Some(Some((other, first))) if *other != n => {
                    return Err(bad(format!("`{}` is {other} by {first}, and {n} by {by}", size.name)));
                }
                Some(entry) => *entry = Some(entry.take().unwrap_or((n, by))),
                None => {}
            }
        }
    }
    Ok(known.into_iter().zip(&sizes.all).map(|(n, size)| n.map_or(size.most, |n| n.0)).collect())
}

/// Determines the sizes of a call from its arguments.
///
/// # Errors
/// Errors of [`resolve_sizes`].
pub fn sizes_of_arguments(sizes: &Sizes, infos: &[TensorInfo], args: &[Tensor]) -> Result<Vec<u64>> {
    resolve_sizes(sizes, infos, |i| args.get(i), &[])
}

/// Types of arrays with the sizes of a call on their varying axes; axes of unknown size keep the bound.
pub fn actual_types(infos: &[TensorInfo], axes: &[Vec<Option<usize>>], values: &[u64]) -> Vec<TensorInfo> {
    let dims = |i: usize, info: &TensorInfo| match axes.get(i) {
        Some(axes) => Sizes::actual_dims(axes, &info.dims, values),
        None => info.dims.clone(),
    };
    infos.iter().enumerate().map(|(i, info)| TensorInfo { dims: dims(i, info), ..info.clone() }).collect()
}

/// Truncates an array or pads it with zeros to `dims`, which has the same rank.
pub fn crop_or_pad(array: &Tensor, dims: &[u64]) -> Tensor {
    if array.dims == dims {
        return array.clone();
    }
    let bytes = array.dtype.bytes();
    let common: Vec<u64> = array.dims.iter().zip(dims).map(|(a, b)| *a.min(b)).collect();
    let total = dims.iter().product::<u64>() as usize * bytes;
    let mut out = vec![0; total];
    let last = common.last().copied().unwrap_or(1) as usize * bytes;
    let rows: u64 = common.iter().rev().skip(1).product();
    for row in 0..if last == 0 { 0 } else { rows } {
        let (mut rest, mut from, mut to, mut steps) = (row, 0, 0, [1, 1]);
        for axis in (0..common.len()).rev() {
            if axis + 1 < common.len() {
                let at = rest % common[axis];
                rest /= common[axis];
                (from, to) = (from + at * steps[0], to + at * steps[1]);
            }
            steps = [steps[0] * array.dims[axis], steps[1] * dims[axis]];
        }
        let (from, to) = (from as usize * bytes, to as usize * bytes);
        out[to..to + last].copy_from_slice(&array.bytes[from..from + last]);
    }
    Tensor::new(array.dtype, dims.to_vec(), out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::DType;

    fn info(name: &str, dims: &[u64]) -> TensorInfo {
        let name = name.to_string();
        TensorInfo { name: name.clone(), called: None, field: name, dtype: DType::F32, dims: dims.to_vec() }
    }

    fn sizes() -> Sizes {
        let size =
            |name: &str, least, most| Size { name: name.to_string(), least, most, is_result: false, is_check: false };
        let args = vec![vec![Some(0), None], vec![Some(1), Some(0)]];
        Sizes { all: vec![size("n", 1, 4), size("m", 0, 9)], args, results: vec![] }
    }

    #[test]
    fn sizes_come_from_arrays_and_flags() {
        let infos = [info("x", &[4, 3]), info("y", &[9, 4])];
        let zeros = |dims: &[u64]| Tensor::of(dims, &vec![0f32; dims.iter().product::<u64>() as usize]);
        let told = |args: &[Tensor]| sizes_of_arguments(&sizes(), &infos, args).map_err(|e| e.to_string());
        assert_eq!(told(&[zeros(&[2, 3]), zeros(&[5, 2])]), Ok(vec![2, 5]));
        assert_eq!(told(&[zeros(&[2, 3])]), Ok(vec![2, 9]), "the bound where nothing tells");
        let contradiction = told(&[zeros(&[2, 3]), zeros(&[5, 3])]).expect_err("two values");
        assert!(contradiction.contains("`n` is 2 by `x`, and 3 by `y`"), "{contradiction}");
        let beyond = told(&[zeros(&[5, 3])]).expect_err("beyond the bound");
        assert!(beyond.contains("`n` is 5 by `x`, and goes from 1 to 4"), "{beyond}");
        let flags = |of: &[(&str, u64)]| {
            let named: Vec<(String, u64)> = of.iter().map(|&(name, n)| (name.to_string(), n)).collect();
            assign_by_name(&sizes(), &named)
        };
        assert_eq!(flags(&[("n", 3)]).ok(), Some(vec![Some(3), None]));
        assert_eq!(flags(&[("", 3), ("m", 0)]).ok(), Some(vec![Some(3), Some(0)]));
        for bad in [("k", 3), ("n", 0)] {
            assert!(flags(&[bad]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn arrays_grow_and_shrink() {
        let all: Vec<f32> = (0..24u8).map(f32::from).collect();
        let array = Tensor::of(&[2, 3, 4], &all);
        let small = crop_or_pad(&array, &[1, 2, 3]);
        assert_eq!(small.to_vec::<f32>(), [0., 1., 2., 4., 5., 6.]);
        let large = crop_or_pad(&small, &[2, 2, 4]);
        assert_eq!(large.to_vec::<f32>()[..8], [0., 1., 2., 0., 4., 5., 6., 0.]);
        assert_eq!(crop_or_pad(&large, &[1, 2, 3]), small);
        for empty in [[0, 3, 4], [2, 0, 4], [2, 3, 0]] {
            assert_eq!(crop_or_pad(&array, &empty).bytes.len(), 0);
            assert_eq!(crop_or_pad(&crop_or_pad(&array, &empty), &[2, 3, 4]).to_vec::<f32>(), [0.; 24]);
        }
    }
}
