//! Varying sizes: dimensions of a function's arrays that change from call to call, up to a bound.
use super::TensorInfo;

/// A size that varies from call to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// The name of the size in the C interface, unique within the function.
    pub name: String,
    /// The smallest valid value.
    pub least: u64,
    /// The largest valid value: the size's bound.
    pub most: u64,
    /// Whether the call returns the size, because it follows from data or other sizes; else the caller passes it.
    pub is_result: bool,
    /// Whether this is not a size but a run-time check, which fails if the value is not 0.
    pub is_check: bool,
}

/// Bounds of data-dependent sizes that nothing in the program limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The bound for nodes without one of their own.
    pub most: u64,
    /// Bounds for individual nodes, by name.
    pub of_nodes: Vec<(String, u64)>,
}

impl Bounds {
    /// The default bound: the largest dimension of any argument, clamped to 64..=4096, because data-dependent sizes are mostly no larger than
    /// the arguments, and arrays are allocated at the bound.
    pub fn default_bound<'a>(args: impl IntoIterator<Item = &'a TensorInfo>) -> u64 {
        let largest = args.into_iter().flat_map(|info| &info.dims).copied().max().unwrap_or(0);
        largest.clamp(64, 4096)
    }
    /// The bound for a node.
    pub fn node_bound(&self, node: &str) -> u64 {
        self.of_nodes.iter().find(|(name, _)| name == node).map_or(self.most, |(_, most)| *most)
    }
}

/// The varying sizes of a function, those passed by the caller first, and the axes of its arrays that have them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// All varying sizes.
    pub all: Vec<Size>,
    /// By argument and axis: index into `all`; `None` for a fixed dimension.
    pub args: Vec<Vec<Option<usize>>>,
    /// By result and axis: index into `all`; `None` for a fixed dimension.
    pub results: Vec<Vec<Option<usize>>>,
}

impl Sizes {
    /// Whether there are no varying sizes.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
    /// The number of sizes that the caller passes.
    pub fn caller_size_count(&self) -> usize {
        self.all.iter().take_while(|s| !s.is_result).count()
    }
    /// `dims` with the sizes of a call on the varying axes; `values` are in the order of `all`.
    pub fn actual_dims(axes: &[Option<usize>], dims: &[u64], values: &[u64]) -> Vec<u64> {
        let one =
            |(i, &d): (usize, &u64)| axes.get(i).copied().flatten().and_then(|s| values.get(s).copied()).unwrap_or(d);
        dims.iter().enumerate().map(one).collect()
    }
    /// Types of arrays with names and bounds of varying sizes, such as `f32[n<=64,28,28]`; `axes` are those of `args` or `results`.
    pub fn type_texts(&self, infos: &[TensorInfo], axes: &[Vec<Option<usize>>]) -> Vec<String> {
        let size = |info: &TensorInfo, i: usize, array: usize| {
            let named = axes.get(array).and_then(|a| a.get(i)).copied().flatten().and_then(|s| self.all.get(s));
            named.map_or_else(|| info.dims[i].to_string(), |s| format!("{}<={}", s.name, s.most))
        };
        let one = |(array, info): (usize, &TensorInfo)| {
            let dims: Vec<String> = (0..info.dims.len()).map(|i| size(info, i, array)).collect();
            format!("{}[{}]", info.dtype, dims.join(","))
        };
        infos.iter().enumerate().map(one).collect()
    }
}
