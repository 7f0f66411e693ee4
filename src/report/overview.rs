//! The model as its user sees it: one function per signature, or what prevents it from being compiled, and suggested next steps.
use super::model::Report;
use crate::diag::{Code, Diagnostic, Group, grouped};
use crate::hlo::{Module, Op};
use crate::tensor::TensorInfo;
use serde::Serialize;

/// A function of the model that was compiled as a whole, or the causes that prevent it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FunctionSummary {
    /// The signature's name; empty if the file has none, or none could be chosen.
    pub signature: String,
    /// The function's inputs.
    pub inputs: Vec<InterfaceTensor>,
    /// The function's outputs.
    pub outputs: Vec<InterfaceTensor>,
    /// Number of floating-point elements in constants and initial values of variables.
    pub parameters: u64,
    /// Size in bytes of the variables that calls change.
    pub state_bytes: u64,
    /// The function's code, as an index into [`super::Report::code`]; none if something blocks.
    pub code: Option<u32>,
    /// Causes that keep the function from being compiled whole, most nodes first.
    pub blocked: Vec<BlockingCause>,
}

/// An input or output of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InterfaceTensor {
    /// The name in the signature, or else in TensorFlow's graph.
    pub name: String,
    /// Type and shape, such as `f32[1,224,224,3]`.
    pub shape: String,
}

/// A cause that prevents a model from being compiled as a whole.
#[derive(Clone, Debug, Serialize)]
pub struct BlockingCause {
    /// The code, such as `TFA0009`.
    pub code: String,
    /// The diagnostic code's name in words.
    pub slug: &'static str,
    /// The message of the first diagnostic with this cause.
    pub text: String,
    /// The remedy.
    pub help: Option<String>,
    /// Number of nodes with the problem.
    pub nodes: usize,
    /// Names of the first nodes with this cause.
    pub first: Vec<String>,
}

/// An action suggested to the reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NextStep {
    /// Benefit of the suggested command, as a sentence.
    pub what: String,
    /// A command to copy; empty where there is none.
    pub command: String,
}

/// Inputs or outputs of a function; `spelled` are their types as text.
pub fn interface_tensors(infos: &[TensorInfo], spelled: Vec<String>) -> Vec<InterfaceTensor> {
    let value = |(info, shape): (&TensorInfo, String)| InterfaceTensor { name: info.display_name().to_string(), shape };
    infos.iter().zip(spelled).map(value).collect()
}

/// Number of floating-point elements in the constants of a module.
pub fn parameter_count(module: &Module) -> u64 {
    let constants = module.comps.values().flat_map(|c| c.insts.values()).filter_map(|i| match &i.op {
        Op::Constant(literal) => Some(literal),
        _ => None,
    });
    let arrays = constants.flat_map(|literal| literal.leaves()).filter(|a| a.dtype.is_float());
    arrays.fold(0, |sum, a| sum.saturating_add(a.len() as u64))
}

/// Groups diagnostics by cause.
pub fn group_by_cause(all: Vec<Diagnostic>) -> Vec<BlockingCause> {
    let cause = |group: &Group| {
        let row = group.first.code.row();
        BlockingCause {
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

/// Suggested next steps. `graph` is the file with the flags that select its parts and sizes, in the form in which they follow
/// `tfaot VERB` on the command line.
pub fn suggest_next_steps(report: &Report, graph: &str) -> Vec<NextStep> {
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
