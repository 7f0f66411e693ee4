//! What ops do beside computing their results, where compiled code does not do it.

/// An effect that compiled code leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Writes to the log or the terminal.
    Print,
    /// Stops the program, or complains, where a value is not as it should be.
    Check,
    /// Writes events for TensorBoard.
    Summary,
    /// Writes a file.
    File,
    /// Calls a function of the Python process.
    Python,
}

impl Effect {
    /// What a node does, behind "that".
    pub fn words(self) -> &'static str {
        match self {
            Effect::Print => "print",
            Effect::Check => "check values",
            Effect::Summary => "write summaries",
            Effect::File => "write files",
            Effect::Python => "call Python",
        }
    }
}

/// The effect of an op; none of what only computes, and of what changes variables and tables, which is state.
pub fn effect(op: &str) -> Option<Effect> {
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
