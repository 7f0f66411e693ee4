//! Ops that TensorFlow's XLA has a kernel for on a CPU and that have no row for good, each with the reason.

/// The ops by name, with the reason.
pub const LEFT_OUT: &[(&str, &str)] = &[
    (
        "AssignVariableXlaConcatND",
        "it writes a variable that lies in parts on several devices; of replicas each has its own",
    ),
    ("ReadVariableXlaSplitND", "it reads a variable in parts for several devices; of replicas each has its own"),
    (
        "StochasticCastToInt",
        "TensorFlow's kernel draws as many numbers as its vectors are long and XLA draws others, so that there is no one answer",
    ),
    ("SymbolicGradient", "TensorFlow writes the gradient of the function when the graph runs; no file has it"),
    ("XlaIf", "TensorFlow's own kernel asks for an attribute that the op does not have: `If` is supported"),
    ("XlaRecv", "it takes a tensor from the host in the middle of a call"),
    (
        "XlaRemoveDynamicDimensionSize",
        "it gives what is behind the elements of an array of a size that varies, and nothing is there",
    ),
    ("XlaSend", "it hands a tensor to the host in the middle of a call"),
    ("XlaSpmdFullToShardShape", "XLA's partitioner cuts an array there, and parts are cut by whoever calls the code"),
    ("XlaSpmdShardToFullShape", "XLA's partitioner joins parts there, and parts are joined by whoever calls the code"),
    ("_Arg", "an argument of a function; feeds and calls are what gives it a value"),
    ("_ArrayToList", "TensorFlow's executor makes it; no file has it"),
    ("_ListToArray", "TensorFlow's executor makes it; no file has it"),
    ("_Retval", "a result of a function; fetches and calls are what takes it"),
    ("_UnaryOpsComposition", "TensorFlow's optimizer makes it; no file has it"),
    ("_XlaAotOnlyVarHandleOp", "tfcompile makes it; files have `VarHandleOp`"),
];

#[cfg(test)]
mod tests {
    use super::LEFT_OUT;

    #[test]
    fn what_is_left_out_has_no_row() {
        assert!(LEFT_OUT.windows(2).all(|w| w[0].0 < w[1].0));
        let with: Vec<&str> = LEFT_OUT.iter().map(|o| o.0).filter(|op| crate::ops::find(op).is_some()).collect();
        assert!(with.is_empty(), "{with:?}");
    }
}
