//! Side effects of ops that compiled code does not perform.
use super::{ArgDef, ArgKind, ArgType, OpDef, RESOURCE, STRING};

/// Side effect that compiled code leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Writes to the log or the terminal.
    Print,
    /// Stops the program or reports an error if a value is not as expected.
    Check,
    /// Writes events for TensorBoard.
    Summary,
    /// Writes a file.
    File,
    /// Calls a function of the Python process.
    Python,
    /// Changes state outside of the call: queues, tables, iterators, messages to other devices.
    Outside,
}

impl Effect {
    /// Whether the effect only reports on values, and changes nothing.
    pub fn is_check(self) -> bool {
        matches!(self, Effect::Check | Effect::Print)
    }

    /// The effect as a verb phrase, such as "write files".
    pub fn description(self) -> &'static str {
        match self {
            Effect::Print => "print",
            Effect::Check => "check values",
            Effect::Summary => "write summaries",
            Effect::File => "write files",
            Effect::Python => "call Python",
            Effect::Outside => "use queues, tables or other devices",
        }
    }
}

/// Side effect of an op. `None` for ops that only compute or call functions, and for those that change variables, lists, stacks
/// or tables, which are state of the call.
///
/// Some kinds are known by name. All others follow from the op's definition: an op without outputs exists for its effect, and
/// so does a stateful one that takes the handle of a queue, table, iterator or the like.
pub fn op_effect(op: &str) -> Option<Effect> {
    named(op).or_else(|| super::find_def(op).filter(|def| acts_outside(def)).map(|_| Effect::Outside))
}

fn named(op: &str) -> Option<Effect> {
    match op {
        "Print" | "PrintV2" => Some(Effect::Print),
        "Assert"
        | "Abort"
        | "CheckNumerics"
        | "CheckNumericsV2"
        | "DebugNanCount"
        | "DebugNumericSummary"
        | "DebugNumericSummaryV2"
        | "DebugIdentity"
        | "DebugIdentityV2"
        | "DebugIdentityV3" => Some(Effect::Check),
        "FlushSummaryWriter"
        | "CloseSummaryWriter"
        | "CreateSummaryFileWriter"
        | "CreateSummaryDbWriter"
        | "ImportEvent" => Some(Effect::Summary),
        "WriteFile" | "Save" | "SaveSlices" | "SaveV2" | "MergeV2Checkpoints" => Some(Effect::File),
        "PyFunc" | "PyFuncStateless" | "EagerPyFunc" => Some(Effect::Python),
        _ if op.starts_with("Write") && op.ends_with("Summary") => Some(Effect::Summary),
        _ => None,
    }
}

fn acts_outside(def: &OpDef) -> bool {
    // Exceptions: ops that order others, function results, the stores of loops of control flow v1, tables, which are known or
    // refused, and an op that asks for the shape of a variable by a handle of another name than other ops have.
    let plumbing = matches!(def.name, "NoOp" | "ControlTrigger" | "InitializeTableV2" | "VariableShape")
        || ["_", "Stack", "TensorArray", "LookupTable"].iter().any(|p| def.name.starts_with(p));
    let sends = ["_Send", "_HostSend"].contains(&def.name);
    let is_handle = |arg: &ArgDef| {
        matches!(arg.kind, ArgKind::One(ArgType::Fixed(RESOURCE)))
            || arg.is_ref && matches!(arg.kind, ArgKind::One(ArgType::Fixed(STRING)))
    };
    let variable = def.inputs.first().is_some_and(|arg| matches!(arg.name, "resource" | "var" | "ref"));
    let alone = def.outputs.is_empty() && !def.inputs.is_empty();
    sends || !plumbing && !variable && (alone || def.stateful && def.inputs.iter().any(is_handle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_follow_from_the_definitions() {
        for op in [
            "QueueEnqueueV2",
            "QueueEnqueue",
            "QueueDequeueV2",
            "Send",
            "_Send",
            "InitializeTableFromTextFileV2",
            "IteratorGetNext",
        ] {
            assert_eq!(op_effect(op), Some(Effect::Outside), "{op}");
        }
        for op in [
            "AssignVariableOp",
            "ResourceApplyAdam",
            "ReadVariableOp",
            "VariableShape",
            "Assign",
            "NoOp",
            "_Retval",
            "_Arg",
            "RandomUniform",
            "StackPushV2",
            "TensorArrayWriteV3",
            "StatefulPartitionedCall",
            "While",
            "VarHandleOp",
            "MatMul",
            "FIFOQueueV2",
            "LookupTableImportV2",
        ] {
            assert_eq!(op_effect(op), None, "{op}");
        }
        assert_eq!(
            (op_effect("PrintV2"), op_effect("WriteScalarSummary")),
            (Some(Effect::Print), Some(Effect::Summary))
        );
    }
}
