//! Whether XLA can compile a node: tests its kernel, its types and the functions that it calls, as TensorFlow's
//! RecursiveCompilabilityChecker does.
use super::beyond_xla::{CheckAndPrintPolicy, Effects};
use super::flow::{FlowGraph, OpClass};
use super::reason::ExclusionReason;
use super::registrations::{OpRegistration, ResourceKind};
use super::signature;
use crate::graph::{Attr, FuncRef, Function, Node, Program};
use crate::opdef::{self, OpDef, RESOURCE, VARIANT, type_bit};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum nesting depth of calls.
pub const MAX_DEPTH: usize = 50;

/// Ops that draw random numbers from a generator inside the kernel.
const STATEFUL_RANDOM: &[&str] =
    &["RandomUniform", "RandomShuffle", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal", "Multinomial"];
/// Ops whose XLA code is slow; that of the first two is inaccurate as well.
const SLOW: &[&str] = &[
    "SelfAdjointEigV2",
    "Svd",
    "Qr",
    "MatrixInverse",
    "MatrixSolve",
    "ResizeBilinearGrad",
    "NonMaxSuppressionV3",
    "NonMaxSuppressionV4",
];

/// Decides whether XLA can compile nodes. Results are cached by function for the whole program.
pub struct CompilabilityChecker<'p> {
    program: &'p Program,
    /// Whether `--tf_xla_cluster_exclude_ops` excludes `Where`.
    pub exclude_where: bool,
    /// Whether only ops on stacks are filtered out, as on the XLA devices.
    pub lenient: bool,
    /// Whether the function under test is marked with `jit_compile=True`: every op with a kernel passes, variables included.
    for_marked: bool,
    /// By function: nesting depth of its calls, or the reason why XLA can't compile it.
    verdicts: HashMap<Arc<str>, Result<usize, ExclusionReason>>,
    call_stack: Vec<Arc<str>>,
    effects: Effects<'p>,
}

/// A node under test with the facts known of its op.
struct Site<'a> {
    node: &'a Node,
    class: OpClass,
    def: Option<&'static OpDef>,
    row: Option<&'static OpRegistration>,
    /// Whether a data input is connected to a reference output.
    from_ref: bool,
}

impl<'p> CompilabilityChecker<'p> {
    /// A checker for nodes of `program`, with TensorFlow's rules for auto-clustering.
    pub fn new(program: &'p Program) -> Self {
        CompilabilityChecker {
            program,
            exclude_where: false,
            lenient: false,
            for_marked: false,
            verdicts: HashMap::new(),
            call_stack: Vec::new(),
            effects: Effects::new(program, CheckAndPrintPolicy::Kept),
        }
    }

    /// A checker with the rules for functions marked with `jit_compile=True`, where TensorFlow does not choose: TensorFlow compiles all
    /// that XLA can and refuses to run the rest.
    pub fn for_jit_compile(program: &'p Program) -> Self {
        CompilabilityChecker { for_marked: true, lenient: true, ..CompilabilityChecker::new(program) }
    }

    /// Checks whether XLA can compile node `n` of the top-level graph.
    pub fn check_node(&mut self, flow: &FlowGraph<'p>, n: u32) -> Result<(), ExclusionReason> {
        let Some(node) = flow.nodes[n as usize].node else { return Err(ExclusionReason::GraphArgument) };
        let kind = flow.op_facts(n);
        if matches!(kind.op, "_Arg" | "_Retval") {
            return Err(ExclusionReason::GraphArgument);
        }
        let from_ref = kind.class == OpClass::Identity
            && flow
                .in_edges(n)
                .any(|e| e.src_port >= 0 && is_ref_output(flow.nodes[e.src as usize].node, e.src_port as usize));
        let site = Site { node, class: kind.class, def: kind.def, row: kind.registration, from_ref };
        self.check(&site).map(|_| ())
    }

    /// Checks a node and returns the nesting depth of its calls.
    fn check(&mut self, site: &Site) -> Result<usize, ExclusionReason> {
        let node = site.node;
        for attr in ["_scoped_allocator", "_forward_from"] {
            if node.attr(attr).is_some() {
                return Err(ExclusionReason::Attribute(attr));
            }
        }
        let mut depth = 0;
        if site.class == OpClass::Call {
            depth = self.check_call(node)?;
        } else {
            check_kernel(site)?;
        }
        match site.class {
            OpClass::While => depth = depth.max(self.check_attr(node, "cond")?).max(self.check_attr(node, "body")?),
            OpClass::If => {
                depth = depth.max(self.check_attr(node, "then_branch")?).max(self.check_attr(node, "else_branch")?)
            }
            OpClass::Case => {
                if let Some(Attr::Funcs(branches)) = node.attr("branches") {
                    for f in branches {
                        depth = depth.max(self.check_function(f)?);
                    }
                }
            }
            _ => {}
        }
        self.check_filters(site)?;
        Ok(depth)
    }

    fn check_filters(&self, site: &Site) -> Result<(), ExclusionReason> {
        if self.for_marked {
            return Ok(());
        }
        let op = &*site.node.op;
        let strict = !self.lenient;
        if strict && STATEFUL_RANDOM.contains(&op) {
            return Err(ExclusionReason::StatefulRandom);
        }
        if strict && matches!(op, "ControlTrigger" | "Assert" | "CheckNumerics") {
            return Err(ExclusionReason::NotElided);
        }
        match op {
            "CollectiveReduceV2" => return Err(ExclusionReason::Collective),
            "Where" if self.exclude_where => return Err(ExclusionReason::DynamicShape),
            "Unique" => return Err(ExclusionReason::DynamicShape),
            _ => {}
        }
        let bits = signature::all_type_bits(self.program, site.node, site.def);
        if strict && bits & type_bit(VARIANT) != 0 {
            return Err(ExclusionReason::Variant);
        }
        match site.row.and_then(|r| r.resource) {
            Some((_, ResourceKind::Stack)) => return Err(ExclusionReason::StackOrTensorArray),
            Some((_, ResourceKind::TensorArray)) if strict => return Err(ExclusionReason::StackOrTensorArray),
            _ => {}
        }
        let inputs = signature::packed_input_types(self.program, site.node, site.def);
        if !self.call_stack.is_empty() && inputs & type_bit(RESOURCE) != 0 {
            return Err(ExclusionReason::ResourceInFunction);
        }
        if strict && SLOW.contains(&op) {
            return Err(ExclusionReason::Slow);
        }
        Ok(())
    }

    fn check_call(&mut self, node: &Node) -> Result<usize, ExclusionReason> {
        if self.program.functions.contains_key(&node.op) {
            return self.check_function(&FuncRef { name: node.op.clone(), attrs: node.attrs.clone() });
        }
        self.check_attr(node, "f")
    }

    fn check_attr(&mut self, node: &Node, name: &'static str) -> Result<usize, ExclusionReason> {
        match node.func(name) {
            Some(f) => self.check_function(f),
            None => Err(ExclusionReason::Attribute(name)),
        }
    }

    /// Checks a function and returns the nesting depth of its calls, counting itself.
    fn check_function(&mut self, f: &FuncRef) -> Result<usize, ExclusionReason> {
        let answer = match self.verdicts.get(&f.name) {
            Some(known) => known.clone(),
            None => {
                let Some(function) = self.program.functions.get(&f.name) else {
                    return Err(ExclusionReason::MissingFunction(f.name.clone()));
                };
                if self.call_stack.contains(&f.name) || self.call_stack.len() + 1 >= MAX_DEPTH {
                    return Err(ExclusionReason::CallDepth(f.name.clone()));
                }
                self.call_stack.push(f.name.clone());
                let answer = self.check_body(function);
                self.call_stack.pop();
                // A verdict about depth depends on the caller.
                if !matches!(answer, Err(ExclusionReason::CallDepth(_))) {
                    self.verdicts.insert(f.name.clone(), answer.clone());
                }
                answer
            }
        };
        match answer {
            Ok(depth) if self.call_stack.len() + depth >= MAX_DEPTH => Err(ExclusionReason::CallDepth(f.name.clone())),
            other => other,
        }
    }

    fn check_body(&mut self, function: &Function) -> Result<usize, ExclusionReason> {
        let graph = &function.graph;
        let inside = |left: ExclusionReason, node: &Node| match left {
            deep @ (ExclusionReason::InFunction { .. }
            | ExclusionReason::CallDepth(_)
            | ExclusionReason::MissingFunction(_)) => deep,
            left => ExclusionReason::InFunction {
                function: function.name.clone(),
                node: node.name.clone(),
                op: node.op.clone(),
                why: Box::new(left),
            },
        };
        let mut depth = 0;
        for node in graph.nodes.values() {
            let class = super::flow::class_of(&node.op, self.program);
            let from_ref = class == OpClass::Identity
                && node.inputs.iter().any(|e| is_ref_output(Some(&graph.nodes[e.node]), e.port as usize));
            let (def, row) = (opdef::find_def(&node.op), super::registrations::find_registration(&node.op));
            let site = Site { node, class, def, row, from_ref };
            let checked = self.check(&site).map_err(|left| match left {
                // Strings are nearly always the message of an assertion; report the assertion rather than the string.
                ExclusionReason::StringConstant => {
                    self.effects.function_effect(&function.name).unwrap_or_else(|| inside(left, node))
                }
                left => inside(left, node),
            });
            depth = depth.max(checked?);
        }
        for &ret in &function.rets {
            let from = &graph.nodes[ret.node];
            let of = signature::output_type(self.program, from, opdef::find_def(&from.op), ret.port as usize);
            if of == Some(opdef::STRING) {
                let why = ExclusionReason::Dtype { attr: "T", found: opdef::STRING, op: "_Retval" };
                return Err(inside(why, from));
            }
        }
        Ok(depth + 1)
    }
}

fn is_ref_output(node: Option<&Node>, port: usize) -> bool {
    let def = node.and_then(|n| opdef::find_def(&n.op).map(|d| (n, d)));
    def.and_then(|(n, d)| d.output_arg(n, port)).is_some_and(|arg| arg.is_ref)
}

/// Checks that the XLA device has a kernel for the node.
fn check_kernel(site: &Site) -> Result<(), ExclusionReason> {
    let Some(row) = site.row.filter(|r| !r.kernels.is_empty()) else { return Err(ExclusionReason::NoKernel) };
    let Some(def) = site.def else { return Err(ExclusionReason::NoKernel) };
    if def.name == "Const" && def.attr_types(site.node, "dtype").is_some_and(|t| t == [opdef::STRING]) {
        return Err(ExclusionReason::StringConstant);
    }
    if site.from_ref {
        return Err(ExclusionReason::Reference);
    }
    let label = site.node.str("_kernel").unwrap_or("");
    let mut why = ExclusionReason::NoKernel;
    for kernel in row.kernels.iter().filter(|k| k.label == label) {
        let misfit = kernel.types.iter().find_map(|&(attr, allowed)| match def.attr_types(site.node, attr) {
            None => Some(ExclusionReason::Attribute(attr)),
            Some(types) => {
                let found = types.into_iter().find(|&t| type_bit(t) & allowed == 0)?;
                Some(ExclusionReason::Dtype { attr, found, op: def.name })
            }
        });
        match misfit {
            None => return Ok(()),
            Some(misfit) => why = misfit,
        }
    }
    Err(why)
}
