//! Reading and writing of npz files, numpy's archives of arrays.
//!
//! Types that numpy lacks are stored as unsigned integers of the same width: see [`storage_dtype`].
use crate::diag::{Code, Diagnostic, Error, Result, io_error};
use crate::import;
use crate::tensor::{DType, DTypeClass, Tensor, element_count};
use indexmap::IndexMap;
use npyz::npz::{NpzArchive, NpzWriter};
use npyz::{DType as Descr, Endianness, Order, TypeChar, TypeStr, WriteOptions, WriterBuilder};
use std::io::{BufWriter, Read, Write};
use std::path::Path;

/// The arrays of a file by key, in the file's order.
pub type Arrays = IndexMap<String, Tensor>;

/// Maximum size of an array in bytes.
const LIMIT_BYTES: u64 = 1 << 34;

/// The type in which npz files store `dtype`: itself, u8 for narrow floats and integers, u16 for bf16.
pub fn storage_dtype(dtype: DType) -> DType {
    match dtype {
        DType::BF16 => DType::U16,
        t if t.bits() < 8 || (t.bits() == 8 && t.is_float()) => DType::U8,
        t => t,
    }
}

/// Reads every array of an npz file.
///
/// # Errors
/// `Code::Io`, `Code::BadEncoding` if it is not an npz file, `Code::BadInputs` for arrays of strings and objects.
pub fn read(path: &Path) -> Result<Arrays> {
    let file = std::fs::File::open(path).map_err(|e| io_error("opened", path, &e))?;
    let broken = |e: std::io::Error| {
        Error::user(Code::BadEncoding, format!("`{}` is not a sound npz file: {e}", path.display()))
    };
    let archive = NpzArchive::new(std::io::BufReader::new(file));
    let mut archive = archive.map_err(|e| foreign(path).unwrap_or_else(|| broken(e)))?;
    let mut names: Vec<String> = archive.array_names().map(String::from).collect();
    names.sort();
    let mut arrays = Arrays::new();
    for name in names {
        if let Some(npy) = archive.by_name(&name).map_err(broken)? {
            let array = read_array(&name, npy).map_err(|e| e.in_file(path))?;
            arrays.insert(name, array);
        }
    }
    Ok(arrays)
}

/// A diagnostic for a file of another known kind.
fn foreign(path: &Path) -> Option<Error> {
    let found = import::diagnose_foreign_file(&import::read_file(path).ok()?)?;
    let told = format!("arrays are wanted, and {}", found.message);
    let told = Diagnostic { code: Code::BadEncoding, message: told, ..found };
    Some(Error::from(told).in_file(path))
}

fn read_array<R: Read>(name: &str, npy: npyz::NpyFile<R>) -> Result<Tensor> {
    let Descr::Plain(descr) = npy.dtype() else {
        return Err(Error::user(Code::BadInputs, format!("array `{name}` is of records, which no graph takes")));
    };
    let dtype = dtype_of(&descr).ok_or_else(|| {
        Error::user(Code::BadInputs, format!("array `{name}` is of type `{descr}`, which no graph takes"))
    })?;
    let dims = npy.shape().to_vec();
    let order = npy.order();
    let too_large = || Error::user(Code::TooLarge, format!("array `{name}` of sizes {dims:?} is too large"));
    let want = element_count(&dims).and_then(|n| n.checked_mul(dtype.bytes() as u64)).ok_or_else(too_large)?;
    if want > LIMIT_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    npy.into_inner().take(want).read_to_end(&mut bytes).map_err(|e| bad(name, &e.to_string()))?;
    if bytes.len() as u64 != want {
        return Err(bad(name, &format!("it has {} bytes of data, not {want}", bytes.len())));
    }
    if descr.endianness() == Endianness::Big {
        let width = dtype.real_part().bytes();
        bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
    if dtype == DType::Pred {
        bytes.iter_mut().for_each(|b| *b = (*b != 0) as u8);
    }
    if order == Order::Fortran {
        bytes = row_major(&bytes, &dims, dtype.bytes());
    }
    Ok(Tensor::new(dtype, dims, bytes))
}

fn bad(name: &str, why: &str) -> Error {
    Error::user(Code::BadEncoding, format!("array `{name}` can't be read: {why}"))
}

/// Converts column-major bytes to row-major ones.
fn row_major(bytes: &[u8], dims: &[u64], width: usize) -> Vec<u8> {
    let mut strides = vec![1usize; dims.len()];
    for i in 1..dims.len() {
        strides[i] = strides[i - 1].saturating_mul(dims[i - 1] as usize);
    }
    let mut index = vec![0u64; dims.len()];
    let mut out = Vec::with_capacity(bytes.len());
    for _ in 0..bytes.len() / width {
        let at: usize = index.iter().zip(&strides).map(|(&i, &s)| i as usize * s).sum();
        out.extend_from_slice(&bytes[at * width..(at + 1) * width]);
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            if index[axis] < dims[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}

fn dtype_of(descr: &TypeStr) -> Option<DType> {
    Some(match (descr.type_char(), descr.size_field()) {
        (TypeChar::Bool, 1) => DType::Pred,
        (TypeChar::Int, 1) => DType::S8,
        (TypeChar::Int, 2) => DType::S16,
        (TypeChar::Int, 4) => DType::S32,
        (TypeChar::Int, 8) => DType::S64,
        (TypeChar::Uint | TypeChar::RawData, 1) => DType::U8,
        (TypeChar::Uint | TypeChar::RawData, 2) => DType::U16,
        (TypeChar::Uint, 4) => DType::U32,
        (TypeChar::Uint, 8) => DType::U64,
        (TypeChar::Float, 2) => DType::F16,
        (TypeChar::Float, 4) => DType::F32,
        (TypeChar::Float, 8) => DType::F64,
        (TypeChar::Complex, 8) => DType::C64,
        (TypeChar::Complex, 16) => DType::C128,
        _ => return None,
    })
}

fn descr_of(dtype: DType) -> String {
    let kind = match dtype.class() {
        DTypeClass::Pred => 'b',
        DTypeClass::Signed => 'i',
        DTypeClass::Unsigned => 'u',
        DTypeClass::Float => 'f',
        DTypeClass::Complex => 'c',
    };
    let order = if dtype.bytes() == 1 { '|' } else { '<' };
    format!("{order}{kind}{}", dtype.bytes())
}

/// Writes arrays to `path`, uncompressed. The file has a temporary name until it is complete.
///
/// Of a repeated key, the first array is written. The bytes depend on the arrays only.
///
/// # Errors
/// `Code::Io`.
pub fn write(path: &Path, arrays: &[(String, Tensor)]) -> Result<()> {
    let temp = crate::package::files::temporary_file_beside(path)?;
    write_to(temp.as_file(), arrays).map_err(|e| io_error("written", path, &e))?;
    crate::package::files::rename_to_final(temp, path)
}

fn write_to(file: &std::fs::File, arrays: &[(String, Tensor)]) -> std::io::Result<()> {
    let mut npz = NpzWriter::new(BufWriter::with_capacity(1 << 20, file));
    let mut seen = std::collections::BTreeSet::new();
    for (key, array) in arrays.iter().filter(|(key, _)| seen.insert(key.clone())) {
        let options = zip::write::FileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .last_modified_time(zip::DateTime::default())
            .large_file(array.bytes.len() >= 1 << 31);
        let zip = npz.zip_writer();
        zip.start_file(npyz::npz::file_name_from_array_name(key), options)?;
        let descr: TypeStr = descr_of(storage_dtype(array.dtype)).parse().map_err(std::io::Error::other)?;
        let header = WriteOptions::new_header_only().dtype(Descr::new_scalar(descr)).shape(&array.dims).writer(zip);
        header.write_header_only()?.write_all(&array.bytes)?;
    }
    npz.zip_writer().finish()?.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("a.npz");
        let arrays = vec![
            ("x:0".to_string(), Tensor::of(&[2, 3], &[1f32, 2., 3., 4., 5., 6.])),
            ("scope/y:1".to_string(), Tensor::from_bools(&[2], &[true, false])),
            ("s".to_string(), Tensor::scalar(7i64)),
            ("h".to_string(), Tensor::scalar(half::f16::ONE)),
            ("b".to_string(), Tensor::scalar(half::bf16::ONE)),
            ("c".to_string(), Tensor::new(DType::C64, vec![1], vec![1u8; 8])),
            ("e".to_string(), Tensor::of::<u16>(&[0, 4], &[])),
        ];
        write(&path, &arrays).expect("written");
        let back = read(&path).expect("read");
        assert_eq!(back.len(), arrays.len());
        for (key, array) in arrays {
            let got = super::super::arguments::as_dtype(&back[&key], array.dtype);
            assert_eq!(got, array, "{key}");
        }
    }

    #[test]
    fn column_major_is_turned() {
        assert_eq!(row_major(&[1, 4, 2, 5, 3, 6], &[2, 3], 1), [1, 2, 3, 4, 5, 6]);
    }
}
