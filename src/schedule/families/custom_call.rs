//! `custom-call` of a function that the user writes: no kernel, but a step between kernels. The function gets whole arrays in memory,
//! dense and row-major, so that what it reads is made before and nothing is inlined into it.
use crate::diag::{Code, Diagnostic};
use crate::hlo::Shape;
use crate::hlo::attrs::ForeignOp;
use crate::kernel::{CallTarget, Callee, HostFunction};
use crate::optimize::HOST_CALL;
use crate::prepare::is_reserved;
use crate::schedule::loops::prelude::*;
use crate::tensor::TensorInfo;

/// The family of calls of the user's functions.
pub const FAMILY: Family = Family {
    name: "custom-call",
    recipe: |_, request| match request.op() {
        Op::Foreign(call) if call.opcode == "custom-call" => Ok(Some(RecipeSetup::Plain)),
        _ => Ok(None),
    },
    emit: |s, root, _| s.custom_call(root),
};

impl<'a> Emitter<'a> {
    fn custom_call(&mut self, KernelRoot { id, out, .. }: KernelRoot<'_>) -> Result<()> {
        let comp = self.scope.comp;
        let Op::Foreign(call) = &comp[id].op else { return Err(unsupported_error(comp, id, "")) };
        let operands = &comp[id].operands;
        if let Some(number) = call.number(HOST_CALL) {
            let name = call.attr("custom_call_target").unwrap_or("").to_string();
            let arrays = operands.len() + out.leaves.len();
            return self.emit_call(CallTarget::Host(HostFunction { name, number, arrays }), operands, out);
        }
        let args = tensor_infos("x", operands.iter().map(|&o| (comp[o].name.as_str(), &comp[o].shape)));
        let results = tensor_infos("y", std::iter::once((comp[id].name.as_str(), &comp[id].shape)));
        let to = Callee {
            name: target(call)?.to_string(),
            api_version: call.call_api_version(),
            opaque: call.call_config(&comp[id].extra),
            args,
            results,
        };
        self.emit_call(CallTarget::Function(to), operands, out)
    }
}

/// Descriptions of the arrays of `values` for a C interface: array `i` has the C name `field` followed by `i`.
fn tensor_infos<'s>(field: &str, values: impl Iterator<Item = (&'s str, &'s Shape)>) -> Vec<TensorInfo> {
    let mut all = Vec::new();
    for (name, shape) in values {
        for array in shape.leaves() {
            all.push(TensorInfo {
                name: name.to_string(),
                called: None,
                field: format!("{field}{}", all.len()),
                dtype: array.dtype,
                dims: array.dims.clone(),
            });
        }
    }
    all
}

/// The name of the called function. Errors: `Code::HloUnsupported` if no C file can define it, or if it is another program's.
fn target(call: &ForeignOp) -> Result<&str> {
    let target = call.attr("custom_call_target").unwrap_or("");
    let refuse = |why: &str, help: &str| {
        let told = format!("the custom call `{target}` {why}");
        Err(Diagnostic::new(Code::HloUnsupported, told).help(help).into())
    };
    let mut chars = target.chars();
    let starts = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !starts || !chars.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return refuse("has no name that a function of C can have", "call it by a C identifier");
    }
    if target.starts_with("xla_") {
        return refuse(
            "is a function of XLA's or JAX's own runtime, which compiled code does not have",
            "compute it with other ops, or give the function a name of your own",
        );
    }
    if is_reserved(target) || OWN.contains(&target) || target.starts_with("tfaot_") {
        return refuse("has a name that C or the object has already", "give the function another name");
    }
    if call.attr("output_to_operand_aliasing").is_some_and(|a| a != "{}") {
        return refuse(
            "writes its results over its operands",
            "without output_to_operand_aliasing results have memory of their own",
        );
    }
    Ok(target)
}

/// C symbols that generated objects define or use themselves, and that a user's function cannot have.
const OWN: &[&str] = &["main", "memcpy", "memmove", "memset"];
