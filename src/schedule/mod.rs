//! HLO to kernels. [`plan`] says which instructions share a kernel, how each kernel is made and where arrays lie; [`emit`] writes
//! the loops; [`search`] looks at what memory they need and asks for other plans.
mod emit;
mod layout;
mod plan;
mod search;

use crate::diag::{Code, Error, Result};
use crate::hlo::{Computation, InstId, Literal, Module, Op};
use crate::kernel::Program;
use crate::lower::Lowered;
use crate::target::Target;
use crate::tensor::TensorInfo;
use plan::convolution::Methods;
use plan::halves::{self, Cuts};
use plan::{Plan, late, scaled};
use search::Aims;

/// By how much constants may grow for speed, at most, beside a twenty-fourth.
const MOST_SPARE: u64 = 128 << 10;
/// Bytes by which code may be larger than tfcompile's, which has constants twice, so that no object is.
const MOST_CODE: u64 = 48 << 10;
/// The part of what is beyond that by which constants may grow where the workspace shrinks.
const MOST_GROWN: (u64, u64) = (3, 4);

/// Schedules an optimised module.
pub fn build(lowered: &Lowered, name: &str, source: &str, target: &Target) -> Result<Program> {
    let apart = late::apart(&lowered.module);
    let module = apart.as_ref().unwrap_or(&lowered.module);
    let scaled = scaled::into_weights(module);
    let module = scaled.as_ref().unwrap_or(module);
    let results: u64 = lowered.results.iter().map(TensorInfo::bytes).sum();
    let workspace = halves::dense(module, target).saturating_sub(results);
    let empty = Program {
        name: name.to_string(),
        source: source.to_string(),
        args: lowered.args.clone(),
        results: lowered.results.clone(),
        ..Program::default()
    };
    let least = |module: &Module| {
        let all = constant_bytes(module);
        let grown = all / 24 + all.saturating_sub(MOST_CODE) * MOST_GROWN.0 / MOST_GROWN.1;
        let aims = Aims { workspace, constants: all + grown };
        let methods = Methods::of(module, target);
        search::least(&aims, plan::lower_order(module, target, &methods), |choices| {
            let plan = Plan::of(module, target, &methods, choices)?;
            emit::emit(module, &plan, target, empty.clone(), choices.in_results)
        })
    };
    let halved = halves::cut(module, Cuts::Once, target);
    let module = halved.as_ref().unwrap_or(module);
    let mut program = least(module)?;
    if program.workspace_bytes > workspace
        && let Some(module) = halves::cut(module, Cuts::Twice, target)
    {
        let twice = least(&module)?;
        if search::spares_much(&program, &twice) {
            program = twice;
        }
    }
    crate::kernel::verify(&program)?;
    Ok(program)
}

/// By how much the constants of a module may grow for speed: a twenty-fourth, and what they have beyond the bytes by which code
/// may be larger, at most an eighth of a mebibyte, so that no object becomes larger than tfcompile's; what fills up the last
/// panels takes about as much again.
fn spare_bytes(module: &Module) -> u64 {
    let all = constant_bytes(module);
    all / 24 + all.saturating_sub(MOST_CODE).min(MOST_SPARE)
}

/// Bytes of all constants of a module.
fn constant_bytes(module: &Module) -> u64 {
    let insts = module.comps.values().flat_map(|c| c.insts.values());
    let constants = insts.map(|i| match &i.op {
        Op::Constant(Literal::Array(t)) => t.bytes.len() as u64,
        _ => 0,
    });
    constants.sum()
}

fn refuse(comp: &Computation, id: InstId, why: &str) -> Error {
    let inst = &comp[id];
    let error =
        Error::user(Code::HloUnsupported, format!("native code has no `{}` of {}{why}", inst.op.name(), inst.shape));
    if inst.metadata.op_name.is_empty() {
        return error;
    }
    error.map(|d| d.at_node(&inst.metadata.op_name, &inst.metadata.op_type))
}
