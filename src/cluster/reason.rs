//! Why a node is in no cluster, an edge joined nothing, a cluster was dropped: each with a stable code.
use super::table;
use crate::diag::Code;
use crate::opdef::{self, Effect};
use std::sync::Arc;

/// Why a node is in no cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExclusionReason {
    /// A node carried `_XlaAlreadyClustered`, or TPUExecute: the pass leaves the whole graph alone.
    PassStopped(Arc<str>),
    /// Loops of the graph cross each other: the pass gives up.
    LoopsCross,
    /// Clustering is off for the node's device and the node does not ask for it.
    Off,
    /// `_XlaCompile` is false.
    Refused,
    /// The caller asked to form clusters without the node.
    UnsupportedOps,
    /// Nothing is compiled for the device.
    NoDevice(String),
    /// The fuel was spent.
    Fuel,
    /// An argument or a result of the graph.
    GraphArgument,
    /// An attribute forbids it, or lacks.
    Attribute(&'static str),
    /// XLA has no kernel for the op.
    NoKernel,
    /// XLA's kernel does not take the type.
    Dtype {
        /// The attribute.
        attr: &'static str,
        /// The node's type, as a `DataType` number.
        found: i32,
        /// The op.
        op: &'static str,
    },
    /// A constant of strings.
    StringConstant,
    /// An input is a reference to a variable of TensorFlow 1.
    Reference,
    /// A called function is not in the library.
    MissingFunction(Arc<str>),
    /// Calls nest deeper than fifty, or a function calls itself.
    CallDepth(Arc<str>),
    /// A node of a called function can't be compiled.
    InFunction {
        /// The function.
        function: Arc<str>,
        /// The node.
        node: Box<str>,
        /// The inner node's op.
        op: Arc<str>,
        /// The reason why the inner node can't be compiled.
        why: Box<ExclusionReason>,
    },
    /// The node calls this function, which is marked with `jit_compile=True`: a cluster of its own.
    OwnCluster(Arc<str>),
    /// The node is marked with `jit_compile=True`, and TensorFlow refuses to run it.
    MarkedInVain(Box<ExclusionReason>),
    /// The op draws from a random generator of its own.
    StatefulRandom,
    /// An effect that XLA would drop.
    NotElided,
    /// A collective.
    Collective,
    /// The size of its result depends on values.
    DynamicShape,
    /// A variant, such as a TensorList.
    Variant,
    /// A stack or a TensorArray of TensorFlow 1.
    StackOrTensorArray,
    /// A function's body uses a variable.
    ResourceInFunction,
    /// XLA's code for it is slow or inaccurate.
    Slow,
    /// The op is not in the allow list of `--tf_xla_ops_to_cluster`.
    NotListed,
    /// The value must be a compile-time constant, and the node is stateful.
    StatefulConstant,
    /// The node drives constants of a loop.
    LoopConstant,
    /// The node's cluster had too few nodes.
    TooSmall {
        /// Effective nodes of the cluster.
        size: i64,
        /// The minimum that `--tf_xla_min_cluster_size` sets.
        least: i64,
    },
    /// A constant of more than 16,384 elements that others use.
    LargeConstant,
    /// A Fill that only others use.
    OutsideFill,
    /// Others want its value in host memory.
    HostValue,
    /// XLA must know its value, and gets it from outside.
    OutsideConstant,
    /// The node asks for the shape of a tensor outside.
    OutsideShape,
    /// A Slice that was made anew, so that where it begins may change.
    Remade,
    /// The device of its cluster is not compiled for.
    ClusterOff,
    /// The program was cut: nothing that is fetched needs it.
    Pruned,
    /// The node stands for a call that was inlined, or control flow that was lowered.
    Expanded,
}

impl ExclusionReason {
    /// The code.
    pub fn code(&self) -> Code {
        match self {
            ExclusionReason::PassStopped(_) => Code::AlreadyClustered,
            ExclusionReason::LoopsCross => Code::LoopsCross,
            ExclusionReason::Off | ExclusionReason::ClusterOff => Code::ClusteringOff,
            ExclusionReason::Refused => Code::XlaCompileFalse,
            ExclusionReason::UnsupportedOps => Code::UnsupportedOps,
            ExclusionReason::NoDevice(_) => Code::NoCompilationDevice,
            ExclusionReason::Fuel => Code::FuelSpent,
            ExclusionReason::GraphArgument => Code::GraphArgument,
            ExclusionReason::Attribute(_) => Code::BadAttr,
            ExclusionReason::NoKernel => Code::NoXlaKernel,
            ExclusionReason::Dtype { .. } | ExclusionReason::StringConstant => Code::NoXlaType,
            ExclusionReason::Reference => Code::ReferenceInput,
            ExclusionReason::MissingFunction(_) | ExclusionReason::CallDepth(_) => Code::BadFunction,
            ExclusionReason::InFunction { .. } | ExclusionReason::MarkedInVain(_) => Code::FunctionNotCompilable,
            ExclusionReason::OwnCluster(_) => Code::OwnCluster,
            ExclusionReason::StatefulRandom => Code::StatefulRandom,
            ExclusionReason::NotElided | ExclusionReason::Collective => Code::EffectKept,
            ExclusionReason::DynamicShape => Code::DynamicShape,
            ExclusionReason::Variant => Code::VariantTensor,
            ExclusionReason::StackOrTensorArray => Code::StackOrTensorArray,
            ExclusionReason::ResourceInFunction => Code::ResourceInFunction,
            ExclusionReason::Slow => Code::SlowUnderXla,
            ExclusionReason::NotListed => Code::NotInAllowList,
            ExclusionReason::StatefulConstant => Code::StatefulConstant,
            ExclusionReason::LoopConstant => Code::LoopConstant,
            ExclusionReason::TooSmall { .. } => Code::ClusterTooSmall,
            ExclusionReason::LargeConstant
            | ExclusionReason::OutsideFill
            | ExclusionReason::HostValue
            | ExclusionReason::OutsideConstant
            | ExclusionReason::OutsideShape => Code::Declustered,
            ExclusionReason::Pruned => Code::NotFetched,
            ExclusionReason::Expanded | ExclusionReason::Remade => Code::ExpandedNode,
        }
    }

    /// Whether nodes that check values or print, in functions that it calls, are what keeps the node out.
    pub fn is_for_checks(&self) -> bool {
        let ExclusionReason::InFunction { op, why, .. } = self else { return false };
        **why == ExclusionReason::NotElided && opdef::effect(op).is_some_and(Effect::is_check)
    }

    /// One sentence about a node of op `op`.
    pub fn text(&self, op: &str) -> String {
        match self {
            ExclusionReason::PassStopped(by) => {
                format!("the graph was clustered before: `{by}` says so, and the pass leaves it alone")
            }
            ExclusionReason::LoopsCross => {
                "the frames of loops cross each other, and the pass forms no clusters at all".into()
            }
            ExclusionReason::Off => "clustering is off for its device and the node does not ask for it".into(),
            ExclusionReason::ClusterOff => "clustering is off for the device of its cluster".into(),
            ExclusionReason::Refused => "`_XlaCompile` is false on it".into(),
            ExclusionReason::UnsupportedOps => "clusters are formed without it, as was asked".into(),
            ExclusionReason::NoDevice(device) => format!("nothing is compiled for its device `{device}`"),
            ExclusionReason::Fuel => "--tf_xla_clustering_fuel was spent before it".into(),
            ExclusionReason::GraphArgument => "arguments and results of a graph are in no cluster".into(),
            ExclusionReason::Attribute(attr) if attr.starts_with('_') => format!("its attribute `{attr}` forbids it"),
            ExclusionReason::Attribute(attr) => format!("its attribute `{attr}` is missing"),
            ExclusionReason::NoKernel => format!("XLA has no kernel for `{op}`"),
            ExclusionReason::Dtype { attr, found, op } => {
                let takes = table::find(op).map_or(Vec::new(), |row| table::types_of(row, attr));
                format!(
                    "XLA's kernel of `{op}` takes `{attr}` of {}, not {}",
                    takes.join(", "),
                    opdef::type_name(*found)
                )
            }
            ExclusionReason::StringConstant => "XLA has no strings".into(),
            ExclusionReason::Reference => "its input is a reference to a variable of TensorFlow 1".into(),
            ExclusionReason::MissingFunction(name) => format!("the library has no function `{name}`"),
            ExclusionReason::CallDepth(name) => format!("calls nest deeper than fifty, or `{name}` calls itself"),
            ExclusionReason::InFunction { function, node, op, why } => {
                format!("it calls `{function}`, whose node `{node}` ({op}) is not compiled: {}", why.text(op))
            }
            ExclusionReason::OwnCluster(function) => {
                format!("`{function}` is marked with jit_compile=True: TensorFlow compiles it as a cluster of its own")
            }
            ExclusionReason::MarkedInVain(why) => {
                format!("it is marked with jit_compile=True, and TensorFlow refuses to run it: {}", why.text(op))
            }
            ExclusionReason::StatefulRandom => {
                format!("`{op}` draws from a generator of its own; its stateless kin are compiled")
            }
            ExclusionReason::NotElided => format!("`{op}` has an effect that compiled code would drop"),
            ExclusionReason::Collective => format!("`{op}` talks to other processes"),
            ExclusionReason::DynamicShape => {
                format!("the size of what `{op}` returns depends on values, and XLA fixes sizes when it compiles")
            }
            ExclusionReason::Variant => "it takes or returns a variant, such as a TensorList".into(),
            ExclusionReason::StackOrTensorArray => "stacks and TensorArrays of TensorFlow 1 are not compiled".into(),
            ExclusionReason::ResourceInFunction => "it uses a variable inside a function".into(),
            ExclusionReason::Slow => format!("XLA's code for `{op}` is slow or inaccurate"),
            ExclusionReason::NotListed => format!("`{op}` is not in --tf_xla_ops_to_cluster"),
            ExclusionReason::StatefulConstant => {
                "another op needs its value when it is compiled, and it is stateful".into()
            }
            ExclusionReason::LoopConstant => "it holds back the constants of a loop until the loop runs".into(),
            ExclusionReason::TooSmall { size, least } => {
                format!("its cluster has {size} effective nodes, and --tf_xla_min_cluster_size asks for {least}")
            }
            ExclusionReason::LargeConstant => {
                "a constant of more than 16,384 elements that others use stays outside".into()
            }
            ExclusionReason::OutsideFill => "only nodes outside of its cluster use it".into(),
            ExclusionReason::HostValue => {
                "nodes outside want its value in host memory, so it is computed outside too".into()
            }
            ExclusionReason::OutsideConstant => {
                "XLA would compile anew for each of its values, and what it is computed from is outside".into()
            }
            ExclusionReason::OutsideShape => "it asks for the shape of something outside".into(),
            ExclusionReason::Remade => {
                "it was made anew below `static_shaped_slice`, so that where it begins may change".into()
            }
            ExclusionReason::Pruned => "nothing that is fetched needs it".into(),
            ExclusionReason::Expanded => "it was inlined or lowered; the nodes that it became are in the list".into(),
        }
    }
}

/// Why an edge joined nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeReason {
    /// The ends live and die under different formulas.
    Deadness {
        /// The formula of the source.
        from: String,
        /// The formula of the destination.
        to: String,
    },
    /// The devices do not go together.
    Devices,
    /// The scopes differ.
    Scopes {
        /// The scope of the source.
        from: String,
        /// The scope of the destination.
        to: String,
    },
    /// Together they would be larger than the most.
    TooLarge {
        /// The nodes of both.
        size: i64,
        /// The maximum that `--tf_xla_max_cluster_size` sets.
        most: i64,
    },
    /// The cluster would wait for another device.
    CrossDevice,
    /// Two resource operations would lose their order.
    Resources {
        /// The first.
        before: String,
        /// The second.
        after: String,
    },
    /// Another way leads from one to the other.
    Cycle {
        /// The nodes on the way.
        path: Vec<String>,
    },
}

impl EdgeReason {
    /// The code.
    pub fn code(&self) -> Code {
        match self {
            EdgeReason::Deadness { .. } => Code::DeadnessDiffers,
            EdgeReason::Devices => Code::DevicesDiffer,
            EdgeReason::Scopes { .. } => Code::ScopesDiffer,
            EdgeReason::TooLarge { .. } => Code::ClusterTooLarge,
            EdgeReason::CrossDevice => Code::CrossDevice,
            EdgeReason::Resources { .. } => Code::ResourceOrder,
            EdgeReason::Cycle { .. } => Code::WouldCycle,
        }
    }
    /// One sentence.
    pub fn text(&self) -> String {
        match self {
            EdgeReason::Deadness { from, to } => format!("the two nodes have mismatching deadness: {from} and {to}"),
            EdgeReason::Devices => "the two nodes have incompatible devices".into(),
            EdgeReason::Scopes { from, to } => {
                format!("the two nodes have mismatching XLA scopes: `{from}` and `{to}`")
            }
            EdgeReason::TooLarge { size, most } => {
                format!("the new cluster will be larger than the max cluster size: {size} nodes, {most} are allowed")
            }
            EdgeReason::CrossDevice => "the new cluster will introduce a cross device dependency".into(),
            EdgeReason::Resources { before, after } => {
                format!("the new cluster would break resource variable semantics: `{before}` and then `{after}`")
            }
            EdgeReason::Cycle { path } => {
                format!("contracting the edge would create a cycle via {}", path.join(" -> "))
            }
        }
    }
}
