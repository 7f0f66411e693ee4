//! Arguments of a call: read from an npz file, or reproducible random values.
use super::npz::{self, Arrays};
use super::sizes;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::lower::Lowered;
use crate::tensor::{DType, DTypeClass, Tensor, TensorInfo};
use std::path::Path;

/// Reads the arguments `wanted` from an npz file, or generates random ones without a file.
///
/// The key of an array is the argument's name in the signature, or the tensor's name; `x` stands for `x:0`.
///
/// # Errors
/// `Code::BadInputs` for every argument without a fitting array, and every array that is no argument.
pub fn load(path: Option<&Path>, wanted: &[TensorInfo]) -> Result<Vec<Tensor>> {
    let Some(path) = path else {
        return wanted.iter().enumerate().map(|(i, info)| random_array(info, i as u64)).collect();
    };
    select_arguments(&npz::read(path)?, wanted).map_err(|e| e.in_file(path))
}

/// Reads or generates the arguments of a function. A varying size is taken from the arrays, else from `values` by name, else it is the
/// largest.
///
/// ```
/// use tfaot::{ModelFile, Request, arguments};
///
/// let functions = ModelFile::open("testdata/graphs/attention/graph.pb").lower(&Request::default())?;
/// let random = arguments(None, &functions.all[0].1, &[])?;
/// assert_eq!(random.len(), functions.all[0].1.args.len());
/// # Ok::<(), tfaot::Error>(())
/// ```
///
/// # Errors
/// Errors of [`load`], [`sizes::assign_by_name`] and [`sizes::resolve_sizes`].
pub fn for_function(path: Option<&Path>, lowered: &Lowered, values: &[(String, u64)]) -> Result<Vec<Tensor>> {
    let none = Default::default();
    let sized = lowered.size_variants.as_ref().map_or(&none, |s| &s.sizes);
    let chosen = sizes::assign_by_name(sized, values)?;
    let infos = &lowered.args;
    let Some(path) = path else {
        let given = sizes::resolve_sizes(sized, infos, |_| None, &chosen)?;
        return load(None, &sizes::actual_types(infos, &sized.args, &given));
    };
    let arrays = npz::read(path)?;
    let given = sizes::resolve_sizes(sized, infos, |i| find(&arrays, &infos[i], infos), &chosen);
    let selected = given.and_then(|given| select_arguments(&arrays, &sizes::actual_types(infos, &sized.args, &given)));
    selected.map_err(|e| e.in_file(path))
}

/// Selects the arguments `wanted` from arrays by key.
///
/// # Errors
/// As [`load`].
pub fn select_arguments(arrays: &Arrays, wanted: &[TensorInfo]) -> Result<Vec<Tensor>> {
    let mut problems = Vec::new();
    let mut found = Vec::with_capacity(wanted.len());
    for info in wanted {
        match find(arrays, info, wanted).map(|array| convert_to_argument(array, info)) {
            Some(Ok(tensor)) => found.push(tensor),
            Some(Err(e)) => problems.extend(e.into_diagnostics()),
            None => {
                let keys: Vec<_> = arrays.keys().map(|k| format!("`{k}`")).collect();
                problems.push(
                    Diagnostic::new(
                        Code::BadInputs,
                        format!("there is no array for `{}`, {}", info.display_name(), info.type_text()),
                    )
                    .note(format!("the file has {}", if keys.is_empty() { "none".into() } else { keys.join(", ") })),
                );
            }
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(Error::User(problems)) }
}

/// Finds the array of a tensor: by TensorFlow's name for it, by the signature's, or by TensorFlow's name without `:0` unless
/// that is the signature's name of another one of `all`.
pub fn find<'a>(arrays: &'a Arrays, info: &TensorInfo, all: &[TensorInfo]) -> Option<&'a Tensor> {
    let name = &info.name;
    let bare = name.strip_suffix(":0").unwrap_or(name);
    let taken = all.iter().any(|other| other.called.as_deref() == Some(bare));
    let called = info.called.as_deref().and_then(|called| arrays.get(called));
    let short = || if taken { None } else { arrays.get(bare) };
    arrays.get(name).or(called).or_else(short).or_else(|| arrays.get(&format!("{name}:0")))
}

/// Converts `array` to the argument `info`. The dimensions must be equal, and the types too, unless npz files store the type as unsigned
/// integers of the same width.
///
/// # Errors
/// `Code::BadInputs` for another type.
pub fn convert_to_argument(array: &Tensor, info: &TensorInfo) -> Result<Tensor> {
    let array = as_dtype(array, info.dtype);
    if array.dtype == info.dtype && array.dims == info.dims {
        return Ok(array);
    }
    let has =
        TensorInfo { name: String::new(), called: None, field: String::new(), dtype: array.dtype, dims: array.dims };
    Err(Diagnostic::new(
        Code::BadInputs,
        format!("the array for `{}` is {}, not {}", info.display_name(), has.type_text(), info.type_text()),
    )
    .into())
}

/// Reinterprets the bytes of `array` as `dtype` if npz files can't represent `dtype` and the widths agree; else returns `array`.
pub fn as_dtype(array: &Tensor, dtype: DType) -> Tensor {
    let carrier = matches!(array.dtype, DType::U8 | DType::S8 | DType::U16);
    if !carrier || npz::storage_dtype(dtype) == dtype || array.dtype.bytes() != dtype.bytes() {
        return array.clone();
    }
    let bytes: Vec<u8> = match (dtype.bits(), dtype.is_signed()) {
        (bits @ (2 | 4), true) => array.bytes.iter().map(|&b| ((b << (8 - bits)) as i8 >> (8 - bits)) as u8).collect(),
        (bits @ (2 | 4), false) => array.bytes.iter().map(|&b| b & ((1 << bits) - 1)).collect(),
        _ => array.bytes.to_vec(),
    };
    Tensor::new(dtype, array.dims.clone(), bytes)
}

/// Generates random values as a function of `info` and `seed`: floats uniform in [0, 1), integers in 0..4 that the type has, booleans.
///
/// # Errors
/// `Code::TooLarge` above 2^34 bytes.
pub fn random_array(info: &TensorInfo, seed: u64) -> Result<Tensor> {
    if info.bytes() > 1 << 34 {
        return Err(Error::user(
            Code::TooLarge,
            format!("`{}`, {}, is too large to make up", info.display_name(), info.type_text()),
        ));
    }
    let dtype = info.dtype;
    let parts = if dtype.is_complex() { 2 } else { 1 };
    let count = info.bytes() / dtype.bytes() as u64 * parts;
    let mut state = initial_generator_state(seed);
    let mut bytes = Vec::with_capacity(info.bytes() as usize);
    for _ in 0..count {
        let word = splitmix64(&mut state);
        let value = match dtype.class() {
            DTypeClass::Pred => (word & 1) as f64,
            DTypeClass::Signed | DTypeClass::Unsigned => {
                let positive_bits = dtype.bits().saturating_sub(u32::from(dtype.is_signed()));
                ((word >> 62) & ((1 << positive_bits.min(2)) - 1)) as f64
            }
            DTypeClass::Float | DTypeClass::Complex => (word >> 40) as f64 / (1u64 << 24) as f64,
        };
        match dtype.real_part() {
            DType::F32 => bytes.extend_from_slice(&(value as f32).to_le_bytes()),
            DType::F64 => bytes.extend_from_slice(&value.to_le_bytes()),
            other => bytes.extend_from_slice(&Tensor::scalar_from_f64(other, value).bytes),
        }
    }
    Ok(Tensor::new(dtype, info.dims.clone(), bytes))
}

/// Initial state of the generator for the array with this seed.
pub fn initial_generator_state(seed: u64) -> u64 {
    seed.wrapping_mul(0x2545_F491_4F6C_DD1D)
}

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014), as fixed by Vigna.
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
