//! Reasons why a node is in no cluster or two clusters were not merged, each with a stable diagnostic code.
use super::registrations;
use crate::diag::Code;
use crate::opdef::{self, Effect};
use std::sync::Arc;

/// Why a node is in no cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExclusionReason {
    /// A node has `_XlaAlreadyClustered` or the op TPUExecute: the pass leaves the whole graph alone.
    PassStopped(Arc<str>),
    /// Frames of loops cross, and the pass gives up.
    LoopsCross,
    /// Clustering is off for the node's device, and the node does not request compilation.
    Off,
    /// The attribute `_XlaCompile` is false.
    Refused,
    /// The options exclude the node ([`super::ClusteringOptions::excluded_nodes`]).
    LeftOut,
    /// The node's device, named here, is of a kind for which XLA does not compile.
    NoDevice(String),
    /// `--tf_xla_clustering_fuel` was spent on earlier nodes.
    Fuel,
    /// The node is an argument or a result of the graph.
    GraphArgument,
    /// The attribute forbids compilation, or is missing.
    Attribute(&'static str),
    /// XLA has no kernel for the op.
    NoKernel,
    /// XLA's kernel does not support the node's type.
    Dtype {
        /// Name of the op's type attribute that was rejected, such as `T`.
        attr: &'static str,
        /// The node's type, as a `DataType` number.
        found: i32,
        /// The op whose kernel was tried.
        op: &'static str,
    },
    /// The node is a constant of strings.
    StringConstant,
    /// An input is a reference to a TensorFlow 1 variable.
    Reference,
    /// A called function, named here, is not in the library.
    MissingFunction(Arc<str>),
    /// Calls nest deeper than fifty, or the function named here calls itself.
    CallDepth(Arc<str>),
    /// A node of a called function can't be compiled.
    InFunction {
        /// Name of the called function.
        function: Arc<str>,
        /// Name of the inner node.
        node: Box<str>,
        /// Op of the refused node inside the called function.
        op: Arc<str>,
        /// The reason why the inner node can't be compiled.
        why: Box<ExclusionReason>,
    },
    /// The node calls this function, which is marked with `jit_compile=True` and forms a cluster of its own.
    OwnCluster(Arc<str>),
    /// The node is marked with `jit_compile=True`, but TensorFlow refuses to run it, for this reason.
    MarkedInVain(Box<ExclusionReason>),
    /// The op draws random numbers from a generator inside the kernel.
    StatefulRandom,
    /// The op has a side effect that XLA would drop.
    NotElided,
    /// The op is a collective.
    Collective,
    /// The size of the op's result depends on values.
    DynamicShape,
    /// The node takes or returns a variant, such as a TensorList.
    Variant,
    /// The op works on a stack or a TensorArray of TensorFlow 1.
    StackOrTensorArray,
    /// The body of a function uses a variable.
    ResourceInFunction,
    /// XLA's code for the op is slow or inaccurate.
    Slow,
    /// The op is not in the allow list of `--tf_xla_ops_to_cluster`.
    NotListed,
    /// The value must be a compile-time constant, and the node is stateful.
    StatefulConstant,
    /// Constants in a loop body have control dependencies on the node.
    LoopConstant,
    /// The node's cluster had too few nodes.
    TooSmall {
        /// Number of effective nodes of the cluster: those that are not trivial, such as constants and identities.
        size: i64,
        /// The minimum that `--tf_xla_min_cluster_size` sets.
        least: i64,
    },
    /// The node is a constant of more than 16,384 elements with users outside of its cluster.
    LargeConstant,
    /// The node is a Fill whose users are all outside of its cluster.
    OutsideFill,
    /// Nodes outside need the value in host memory.
    HostValue,
    /// XLA must know the value at compile time, but its inputs come from outside.
    OutsideConstant,
    /// The node takes the shape of a tensor from outside of the cluster.
    OutsideShape,
    /// The node is a Slice that was replaced by one with a variable beginning.
    Remade,
    /// Clustering is off for the device of the node's cluster.
    ClusterOff,
    /// No fetch needs the node, which was pruned.
    Pruned,
    /// The node was a call that was inlined, or control flow that was lowered.
    Expanded,
}

impl ExclusionReason {
    /// The diagnostic code of the reason.
    pub fn code(&self) -> Code {
        match self {
            ExclusionReason::PassStopped(_) => Code::AlreadyClustered,
            ExclusionReason::LoopsCross => Code::LoopsCross,
            ExclusionReason::Off | ExclusionReason::ClusterOff => Code::ClusteringOff,
            ExclusionReason::Refused => Code::XlaCompileFalse,
            ExclusionReason::LeftOut => Code::LeftOut,
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

    /// Whether the node is excluded only because functions that it calls check values or print.
    pub fn is_due_to_runtime_checks(&self) -> bool {
        let ExclusionReason::InFunction { op, why, .. } = self else { return false };
        **why == ExclusionReason::NotElided && opdef::op_effect(op).is_some_and(Effect::is_check)
    }

    /// The reason as one sentence about a node of op `op`.
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
            ExclusionReason::LeftOut => "clusters are formed without it, as was asked".into(),
            ExclusionReason::NoDevice(device) => format!("nothing is compiled for its device `{device}`"),
            ExclusionReason::Fuel => "--tf_xla_clustering_fuel was spent before it".into(),
            ExclusionReason::GraphArgument => "arguments and results of a graph are in no cluster".into(),
            ExclusionReason::Attribute(attr) if attr.starts_with('_') => format!("its attribute `{attr}` forbids it"),
            ExclusionReason::Attribute(attr) => format!("its attribute `{attr}` is missing"),
            ExclusionReason::NoKernel => format!("XLA has no kernel for `{op}`"),
            ExclusionReason::Dtype { attr, found, op } => {
                let takes = registrations::find_registration(op)
                    .map_or(Vec::new(), |row| registrations::allowed_types(row, attr));
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

/// Why two neighbouring clusters were not merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnmergedEdgeReason {
    /// The clusters are alive under different predicates.
    Deadness {
        /// The predicate of the source.
        from: String,
        /// The predicate of the destination.
        to: String,
    },
    /// The devices are incompatible.
    Devices,
    /// The XLA scopes differ.
    Scopes {
        /// XLA scope of the edge's source node.
        from: String,
        /// XLA scope of the edge's destination node.
        to: String,
    },
    /// The merged cluster would exceed the maximum size.
    TooLarge {
        /// Number of nodes of both clusters.
        size: i64,
        /// The maximum that `--tf_xla_max_cluster_size` sets.
        most: i64,
    },
    /// The merged cluster would depend on a node of another device.
    CrossDevice,
    /// Merging would lose the order of two resource operations.
    Resources {
        /// The operation that runs first.
        before: String,
        /// The operation that runs second.
        after: String,
    },
    /// Another path leads from the source to the destination.
    Cycle {
        /// Names of the nodes on the path that merging would close to a cycle.
        path: Vec<String>,
    },
}

impl UnmergedEdgeReason {
    /// The diagnostic code of the reason.
    pub fn code(&self) -> Code {
        match self {
            UnmergedEdgeReason::Deadness { .. } => Code::DeadnessDiffers,
            UnmergedEdgeReason::Devices => Code::DevicesDiffer,
            UnmergedEdgeReason::Scopes { .. } => Code::ScopesDiffer,
            UnmergedEdgeReason::TooLarge { .. } => Code::ClusterTooLarge,
            UnmergedEdgeReason::CrossDevice => Code::CrossDevice,
            UnmergedEdgeReason::Resources { .. } => Code::ResourceOrder,
            UnmergedEdgeReason::Cycle { .. } => Code::WouldCycle,
        }
    }
    /// The reason as one sentence.
    pub fn text(&self) -> String {
        match self {
            UnmergedEdgeReason::Deadness { from, to } => {
                format!("the two nodes have mismatching deadness: {from} and {to}")
            }
            UnmergedEdgeReason::Devices => "the two nodes have incompatible devices".into(),
            UnmergedEdgeReason::Scopes { from, to } => {
                format!("the two nodes have mismatching XLA scopes: `{from}` and `{to}`")
            }
            UnmergedEdgeReason::TooLarge { size, most } => {
                format!("the new cluster will be larger than the max cluster size: {size} nodes, {most} are allowed")
            }
            UnmergedEdgeReason::CrossDevice => "the new cluster will introduce a cross device dependency".into(),
            UnmergedEdgeReason::Resources { before, after } => {
                format!("the new cluster would break resource variable semantics: `{before}` and then `{after}`")
            }
            UnmergedEdgeReason::Cycle { path } => {
                format!("contracting the edge would create a cycle via {}", path.join(" -> "))
            }
        }
    }
}
