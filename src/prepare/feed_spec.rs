//! `NAME=f32[1,?,3]`: a feed as the user writes it.
use super::Binding;
use super::binding::Bound;
use crate::diag::{Code, Diagnostic, Result};
use crate::tensor::{DTYPES, DType};

/// A feed, and what the user says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedSpec {
    /// `node` or `node:index`.
    pub name: String,
    /// The element type; `None`: as the graph says.
    pub dtype: Option<DType>,
    /// The sizes; `None`: as the graph says, also for one of them.
    pub dims: Option<Vec<Option<u64>>>,
    /// The sizes that dimensions may have whose size is `None`; shorter where there are none.
    pub bounds: Vec<Option<Bound>>,
}

impl FeedSpec {
    /// Parses `NAME`, `NAME=TYPE`, `NAME=[DIMS]` or `NAME=TYPE[DIMS]`; a dimension is a number, `?`, or a bound:
    /// `n<=64`, `<=64`, `n=2..64`.
    ///
    /// # Errors
    /// `BadOption`.
    pub fn parse(text: &str) -> Result<FeedSpec> {
        let bad = |what: String| Diagnostic::new(Code::BadOption, what).help("write NAME, or NAME=f32[1,224,224,3]");
        let (name, spec) = text.split_once('=').map_or((text, None), |(name, spec)| (name, Some(spec.trim())));
        let name = name.trim();
        if name.is_empty() {
            return Err(bad(format!("the feed `{text}` has no name")).into());
        }
        let mut feed = FeedSpec { name: name.to_string(), ..FeedSpec::default() };
        let Some(spec) = spec else { return Ok(feed) };
        let (dtype, dims) = spec.split_once('[').map_or((spec, None), |(dtype, dims)| (dtype, Some(dims)));
        if !dtype.is_empty() {
            feed.dtype = Some(parse_dtype(dtype).ok_or_else(|| {
                let names: Vec<&str> = DTYPES.iter().map(|t| t.name()).collect();
                bad(format!("`{dtype}` is no type")).note(format!("types are {}", names.join(", ")))
            })?);
        }
        if let Some(dims) = dims {
            let inner =
                dims.strip_suffix(']').ok_or_else(|| bad(format!("the sizes of `{text}` do not end in `]`")))?;
            let parts: Vec<&str> = if inner.trim().is_empty() { Vec::new() } else { inner.split(',').collect() };
            let mut dims = Vec::with_capacity(parts.len());
            for part in parts {
                let (size, bound) = match (part.trim(), Binding::parse(part)) {
                    ("?", _) => (None, None),
                    (_, Some(Binding::Size(n))) => (Some(n), None),
                    (_, Some(Binding::Bound(bound))) => (None, Some(bound)),
                    (part, None) => return Err(bad(format!("`{part}` is no size")).into()),
                };
                dims.push(size);
                feed.bounds.push(bound);
            }
            feed.dims = Some(dims);
        }
        Ok(feed)
    }
}

/// The type called `name` by XLA, numpy or TensorFlow.
pub fn parse_dtype(name: &str) -> Option<DType> {
    const OTHERS: &[(&str, DType)] = &[
        ("bool", DType::Pred),
        ("int4", DType::S4),
        ("uint4", DType::U4),
        ("float8_e5m2", DType::F8E5M2),
        ("float8_e4m3fn", DType::F8E4M3FN),
        ("int8", DType::S8),
        ("int16", DType::S16),
        ("int32", DType::S32),
        ("int64", DType::S64),
        ("uint8", DType::U8),
        ("uint16", DType::U16),
        ("uint32", DType::U32),
        ("uint64", DType::U64),
        ("half", DType::F16),
        ("float16", DType::F16),
        ("bfloat16", DType::BF16),
        ("float", DType::F32),
        ("float32", DType::F32),
        ("double", DType::F64),
        ("float64", DType::F64),
        ("complex64", DType::C64),
        ("complex128", DType::C128),
    ];
    DType::parse(name).or_else(|| OTHERS.iter().find(|(n, _)| *n == name).map(|(_, t)| *t))
}
