//! Parsing of feeds as the user writes them: `NAME=f32[1,?,3]`, `NAME=0.5`.
use super::Binding;
use super::binding::DimBound;
use crate::diag::{Code, Diagnostic, Result};
use crate::tensor::{DTYPES, DType};

/// A feed as the user specifies it: name, type, sizes and value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedSpec {
    /// Tensor name, `node` or `node:index`, or a name in the signature.
    pub name: String,
    /// Element type; `None` takes that of the graph.
    pub dtype: Option<DType>,
    /// Dimensions; `None` takes those of the graph, for all or for one of them.
    pub dims: Option<Vec<Option<u64>>>,
    /// Bounds of the dimensions that are `None` in `dims`; the list may be shorter than `dims`.
    pub bounds: Vec<Option<DimBound>>,
    /// Constant value in the syntax of HLO literals, with the dimensions `dims`; `None` for arguments.
    pub value: Option<String>,
}

impl FeedSpec {
    /// Parses `NAME`, `NAME=TYPE`, `NAME=[DIMS]` or `NAME=TYPE[DIMS]`; a dimension is a number, `?`, or a bound:
    /// `n<=64`, `<=64`, `n=2..64`. A value is `NAME=0.5`, `NAME={{1,2},{3,4}}` or one behind type and dimensions.
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
        if is_value(spec) {
            feed.dims = Some(nested(spec).into_iter().map(Some).collect());
            feed.value = Some(spec.to_string());
            return Ok(feed);
        }
        let (spec, value) = match spec.split_once(']').map(|(_, value)| value.trim()) {
            Some(value) if is_value(value) => (spec[..spec.len() - value.len()].trim_end(), Some(value)),
            _ => (spec, None),
        };
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
        if value.is_some() && feed.dims.iter().flatten().any(Option::is_none) {
            return Err(bad(format!("`{text}` has a value and open sizes")).into());
        }
        feed.value = value.map(str::to_string);
        Ok(feed)
    }
}

/// Whether a text begins like a value, which no type name does.
fn is_value(text: &str) -> bool {
    let bare = text.trim_start_matches('-');
    bare.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '{' | '('))
        || ["true", "false", "inf", "nan"].contains(&bare)
}

/// Upper bound on the axes of a value.
const MAX_AXES: usize = 64;

/// Dimensions of a nested list such as `{{1,2},{3,4}}`, taken from the first element at each level.
fn nested(mut text: &str) -> Vec<u64> {
    let mut dims = Vec::new();
    while let Some(inner) = text.trim().strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
        let (mut depth, mut count, mut first) = (0i64, u64::from(!inner.trim().is_empty()), inner);
        for (i, c) in inner.char_indices() {
            match c {
                '{' | '(' => depth += 1,
                '}' | ')' => depth -= 1,
                ',' if depth == 0 => {
                    first = if count == 1 { &inner[..i] } else { first };
                    count += 1;
                }
                _ => {}
            }
        }
        dims.push(count);
        text = first;
        if dims.len() > MAX_AXES {
            break;
        }
    }
    dims
}

/// Element type with this name in XLA, NumPy or TensorFlow.
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
