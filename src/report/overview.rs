//! The model as its user sees it: one function a signature, or what keeps it from being one, and what to do next.
use super::model::Report;
use crate::diag::{Code, Diagnostic, Group, grouped};
use crate::hlo::{Module, Op};
use crate::tensor::TensorInfo;
use serde::Serialize;

/// A function of the model, compiled whole.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FunctionSummary {
    /// The signature; empty where the file has none, or none could be chosen.
    pub signature: String,
    /// The function's inputs.
    pub inputs: Vec<InterfaceTensor>,
    /// The function's outputs.
    pub outputs: Vec<InterfaceTensor>,
    /// Floating-point numbers that the model brings along: those of its constants and first values.
    pub parameters: u64,
    /// Bytes of variables that calls change.
    pub state_bytes: u64,
    /// The function's code, as an index into `code`; none where something blocks.
    pub code: Option<u32>,
    /// Causes that keep the function from being compiled whole, most nodes first.
    pub blocked: Vec<Cause>,
}

/// An input or output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InterfaceTensor {
    /// The signature's name, else TensorFlow's.
    pub name: String,
    /// Type and sizes, such as `f32[1,224,224,3]`.
    pub shape: String,
}

/// Why a model is not compiled whole.
#[derive(Clone, Debug, Serialize)]
pub struct Cause {
    /// The code, such as `TFA0009`.
    pub code: String,
    /// The diagnostic code's name in words.
    pub slug: &'static str,
    /// The first message.
    pub text: String,
    /// The remedy.
    pub help: Option<String>,
    /// How many nodes have the problem.
    pub nodes: usize,
    /// The first of them.
    pub first: Vec<String>,
}

/// Something that the reader can do next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NextStep {
    /// The result of the step.
    pub what: String,
    /// A command to copy; empty where there is none.
    pub command: String,
}

/// Inputs or outputs, with their types as they are written.
pub fn values(infos: &[TensorInfo], spelled: Vec<String>) -> Vec<InterfaceTensor> {
    let value = |(info, shape): (&TensorInfo, String)| InterfaceTensor { name: info.shown().to_string(), shape };
    infos.iter().zip(spelled).map(value).collect()
}

/// The floating-point elements of the constants of a module.
pub fn parameters(module: &Module) -> u64 {
    let constants = module.comps.values().flat_map(|c| c.insts.values()).filter_map(|i| match &i.op {
        Op::Constant(literal) => Some(literal),
        _ => None,
    });
    let arrays = constants.flat_map(|literal| literal.leaves()).filter(|a| a.dtype.is_float());
    arrays.fold(0, |sum, a| sum.saturating_add(a.len() as u64))
}

/// Problems by cause.
pub fn causes(all: Vec<Diagnostic>) -> Vec<Cause> {
    let cause = |group: &Group| {
        let row = group.first.code.row();
        Cause {
            code: row.code.id(),
            slug: row.slug,
            text: group.first.message.clone(),
            help: group.first.help.clone(),
            nodes: group.nodes(),
            first: group.named(),
        }
    };
    grouped(all).iter().map(cause).collect()
}

/// Suggestions of next steps. `graph` is the file with the flags that say which part of it at which sizes, as they are written after `tfaot
/// VERB`.
pub fn steps(report: &Report, graph: &str) -> Vec<NextStep> {
    let step = |what: &str, command: String| NextStep { what: what.to_string(), command };
    let mut steps = Vec::new();
    let open = Code::UnknownDim.id();
    for cause in report.models.iter().flat_map(|w| &w.blocked).take(1) {
        if cause.code == open {
            steps.push(step(
                "Bind the sizes that the file leaves open",
                format!("tfaot compile {graph} --dim 1 -o out"),
            ));
            steps.push(step(
                "Or compile for any size up to a bound",
                format!("tfaot compile {graph} --dim 1..64 -o out"),
            ));
        } else {
            steps.push(step("Read what the first cause means", format!("tfaot explain {}", cause.code)));
            steps.push(step("See every node that blocks", format!("tfaot check {graph} --all")));
            let kept = "Compile what can be, and let TensorFlow run the rest";
            steps.push(step(kept, format!("tfaot rewrite {graph} -o fast --mode native")));
        }
    }
    if !report.models.is_empty() && report.models.iter().all(|w| w.blocked.is_empty()) {
        let (all, one) = match &report.models[..] {
            [_] => ("", String::new()),
            several => (" --signature all", format!(" --signature {}", several[0].signature)),
        };
        steps.push(step("Make the object and the header", format!("tfaot compile {graph}{all} -o out")));
        let verified = format!("tfaot verify {graph}{one} --inputs in.npz --expect out.npz");
        steps.push(step("Compare with answers that you trust", verified));
        if report.summary.profiled {
            let tuned = format!("tfaot compile {graph}{all} -o out --tune tuning.json");
            steps.push(step("Try other loops for each product on this machine", tuned));
        } else {
            steps.push(step("Measure the kernels", format!("tfaot report {graph} --profile -o report.html")));
        }
    }
    steps
}
