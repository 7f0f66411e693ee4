//! Sizes of a function's arrays that vary from call to call, up to a bound.
use super::TensorInfo;

/// A size that varies from call to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// The name of the size in the C interface; no two sizes of a function have one name.
    pub name: String,
    /// The smallest value that it takes.
    pub least: u64,
    /// The largest value that it takes: its bound.
    pub most: u64,
    /// Whether the call says it, because it follows from the data or from other sizes; else the caller does.
    pub is_result: bool,
    /// Whether it is no size, but a run-time check that fails where it is not 0.
    pub is_check: bool,
}

/// How large sizes may get that values at run time say, where nothing in the program bounds them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The bound of all nodes that have none of their own.
    pub most: u64,
    /// Bounds of single nodes, by the nodes' names.
    pub of_nodes: Vec<(String, u64)>,
}

impl Bounds {
    /// Where callers say nothing: the largest of a few dozen elements and the largest axis of an argument, as rows and parts of what
    /// is fed mostly are no longer than that. Arrays get this size, so that it does not grow without end.
    pub fn assumed<'a>(args: impl IntoIterator<Item = &'a TensorInfo>) -> u64 {
        let largest = args.into_iter().flat_map(|info| &info.dims).copied().max().unwrap_or(0);
        largest.clamp(64, 4096)
    }
    /// The bound of a node.
    pub fn of_node(&self, node: &str) -> u64 {
        self.of_nodes.iter().find(|(name, _)| name == node).map_or(self.most, |(_, most)| *most)
    }
}

/// The sizes of a function, those that the caller says first, and which axes of its arrays have them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Every size.
    pub all: Vec<Size>,
    /// For each argument the size of each axis by its number in `all`; `None`: it is fixed.
    pub args: Vec<Vec<Option<usize>>>,
    /// For each result the size of each axis by its number in `all`; `None`: it is fixed.
    pub results: Vec<Vec<Option<usize>>>,
}

impl Sizes {
    /// Whether every size is fixed.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
    /// How many sizes the caller says.
    pub fn count_from_caller(&self) -> usize {
        self.all.iter().take_while(|s| !s.is_result).count()
    }
    /// `dims` with the sizes of a call on the axes that vary; `values` are in the order of `all`.
    pub fn actual(axes: &[Option<usize>], dims: &[u64], values: &[u64]) -> Vec<u64> {
        let one =
            |(i, &d): (usize, &u64)| axes.get(i).copied().flatten().and_then(|s| values.get(s).copied()).unwrap_or(d);
        dims.iter().enumerate().map(one).collect()
    }
    /// Types of arrays with the names and bounds of sizes where they vary: `f32[n<=64,28,28]`; `axes` are those of `args` or `results`.
    pub fn spelled(&self, infos: &[TensorInfo], axes: &[Vec<Option<usize>>]) -> Vec<String> {
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
