//! Whether XLA can compile a node: its kernel, its types, the functions that it calls.
use super::beyond_xla::{CheckPolicy, Effects};
use super::flow::{Flow, OpClass};
use super::reason::ExclusionReason;
use super::signature;
use super::table::{OpRegistration, Resource};
use crate::graph::{Attr, FuncRef, Function, Node, Program};
use crate::opdef::{self, OpDef, RESOURCE, VARIANT, type_bit};
use std::collections::HashMap;
use std::sync::Arc;

/// How deep calls may nest.
pub const MAX_DEPTH: usize = 50;

/// Ops that draw from a generator of their own.
const STATEFUL_RANDOM: &[&str] =
    &["RandomUniform", "RandomShuffle", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal", "Multinomial"];
/// Ops whose code under XLA is slow; the first two are inaccurate besides.
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

/// Answers for functions, kept for the whole program.
pub struct Compilable<'p> {
    program: &'p Program,
    /// Whether `Where` is excluded.
    pub exclude_where: bool,
    /// Whether all but stack ops is let through, as on the XLA devices.
    pub lenient: bool,
    /// Whether it is asked of functions that the user marked: all that has a kernel is let through, variables too.
    whole: bool,
    /// By function: how deep its calls nest, or what stops it.
    known: HashMap<Arc<str>, Result<usize, ExclusionReason>>,
    open: Vec<Arc<str>>,
    effects: Effects<'p>,
}

/// A node with what is known of its op.
struct Site<'a> {
    node: &'a Node,
    class: OpClass,
    def: Option<&'static OpDef>,
    row: Option<&'static OpRegistration>,
    /// Whether a data input comes from an output that is a reference.
    from_ref: bool,
}

impl<'p> Compilable<'p> {
    /// For the functions of `program`.
    pub fn new(program: &'p Program) -> Self {
        Compilable {
            program,
            exclude_where: false,
            lenient: false,
            whole: false,
            known: HashMap::new(),
            open: Vec::new(),
            effects: Effects::new(program, CheckPolicy::Kept),
        }
    }

    /// For functions that the user marked with `jit_compile=True`: TensorFlow does not choose there, it compiles what it can and
    /// refuses to run the rest.
    pub fn for_marked_functions(program: &'p Program) -> Self {
        Compilable { whole: true, lenient: true, ..Compilable::new(program) }
    }

    /// Whether node `n` of a top-level graph can be compiled, or what stops it.
    pub fn node(&mut self, flow: &Flow<'p>, n: u32) -> Result<(), ExclusionReason> {
        let Some(node) = flow.nodes[n as usize].node else { return Err(ExclusionReason::GraphArgument) };
        let kind = flow.kind_of_node(n);
        if matches!(kind.op, "_Arg" | "_Retval") {
            return Err(ExclusionReason::GraphArgument);
        }
        let from_ref = kind.class == OpClass::Identity
            && flow.ins(n).any(|e| e.src_port >= 0 && is_ref(flow.nodes[e.src as usize].node, e.src_port as usize));
        let site = Site { node, class: kind.class, def: kind.def, row: kind.row, from_ref };
        self.check(&site).map(|_| ())
    }

    /// How deep the calls of a node nest, or what stops it.
    fn check(&mut self, site: &Site) -> Result<usize, ExclusionReason> {
        let node = site.node;
        for attr in ["_scoped_allocator", "_forward_from"] {
            if node.attr(attr).is_some() {
                return Err(ExclusionReason::Attribute(attr));
            }
        }
        let mut depth = 0;
        if site.class == OpClass::Call {
            depth = self.call(node)?;
        } else {
            kernel(site)?;
        }
        match site.class {
            OpClass::While => depth = depth.max(self.attr(node, "cond")?).max(self.attr(node, "body")?),
            OpClass::If => depth = depth.max(self.attr(node, "then_branch")?).max(self.attr(node, "else_branch")?),
            OpClass::Case => {
                if let Some(Attr::Funcs(branches)) = node.attr("branches") {
                    for f in branches {
                        depth = depth.max(self.function(f)?);
                    }
                }
            }
            _ => {}
        }
        self.filters(site)?;
        Ok(depth)
    }

    fn filters(&self, site: &Site) -> Result<(), ExclusionReason> {
        if self.whole {
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
        let bits = signature::bits(self.program, site.node, site.def);
        if strict && bits & type_bit(VARIANT) != 0 {
            return Err(ExclusionReason::Variant);
        }
        match site.row.and_then(|r| r.resource) {
            Some((_, Resource::Stack)) => return Err(ExclusionReason::StackOrTensorArray),
            Some((_, Resource::TensorArray)) if strict => return Err(ExclusionReason::StackOrTensorArray),
            _ => {}
        }
        let inputs = signature::input_bits(self.program, site.node, site.def);
        if !self.open.is_empty() && inputs & type_bit(RESOURCE) != 0 {
            return Err(ExclusionReason::ResourceInFunction);
        }
        if strict && SLOW.contains(&op) {
            return Err(ExclusionReason::Slow);
        }
        Ok(())
    }

    fn call(&mut self, node: &Node) -> Result<usize, ExclusionReason> {
        if self.program.functions.contains_key(&node.op) {
            return self.function(&FuncRef { name: node.op.clone(), attrs: node.attrs.clone() });
        }
        self.attr(node, "f")
    }

    fn attr(&mut self, node: &Node, name: &'static str) -> Result<usize, ExclusionReason> {
        match node.func(name) {
            Some(f) => self.function(f),
            None => Err(ExclusionReason::Attribute(name)),
        }
    }

    /// How deep the calls of a function nest, itself counted, or what stops it.
    fn function(&mut self, f: &FuncRef) -> Result<usize, ExclusionReason> {
        let answer = match self.known.get(&f.name) {
            Some(known) => known.clone(),
            None => {
                let Some(function) = self.program.functions.get(&f.name) else {
                    return Err(ExclusionReason::MissingFunction(f.name.clone()));
                };
                if self.open.contains(&f.name) || self.open.len() + 1 >= MAX_DEPTH {
                    return Err(ExclusionReason::CallDepth(f.name.clone()));
                }
                self.open.push(f.name.clone());
                let answer = self.body(function);
                self.open.pop();
                // A verdict about depth depends on who calls.
                if !matches!(answer, Err(ExclusionReason::CallDepth(_))) {
                    self.known.insert(f.name.clone(), answer.clone());
                }
                answer
            }
        };
        match answer {
            Ok(depth) if self.open.len() + depth >= MAX_DEPTH => Err(ExclusionReason::CallDepth(f.name.clone())),
            other => other,
        }
    }

    fn body(&mut self, function: &Function) -> Result<usize, ExclusionReason> {
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
                && node.inputs.iter().any(|e| is_ref(Some(&graph.nodes[e.node]), e.port as usize));
            let (def, row) = (opdef::find(&node.op), super::table::find(&node.op));
            let site = Site { node, class, def, row, from_ref };
            let checked = self.check(&site).map_err(|left| match left {
                // Strings are nearly always the message of an assertion, which is what keeps the function out.
                ExclusionReason::StringConstant => {
                    self.effects.of_function(&function.name).unwrap_or_else(|| inside(left, node))
                }
                left => inside(left, node),
            });
            depth = depth.max(checked?);
        }
        for &ret in &function.rets {
            let from = &graph.nodes[ret.node];
            let of = signature::output_type(self.program, from, opdef::find(&from.op), ret.port as usize);
            if of == Some(opdef::STRING) {
                let why = ExclusionReason::Dtype { attr: "T", found: opdef::STRING, op: "_Retval" };
                return Err(inside(why, from));
            }
        }
        Ok(depth + 1)
    }
}

fn is_ref(node: Option<&Node>, port: usize) -> bool {
    let def = node.and_then(|n| opdef::find(&n.op).map(|d| (n, d)));
    def.and_then(|(n, d)| d.output_arg(n, port)).is_some_and(|arg| arg.is_ref)
}

/// Whether the device has a kernel for the node.
fn kernel(site: &Site) -> Result<(), ExclusionReason> {
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
