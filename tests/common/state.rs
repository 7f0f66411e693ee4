//! Modules of HLO whose last parameters are variables.
use tfaot::compile;
use tfaot::hlo::{Literal, text, verify};
use tfaot::interp;
use tfaot::kernel::VariableSlot;
use tfaot::lower::{Lowered, StateVariable};
use tfaot::tensor::Tensor;

/// The module with the parameters from number `args` on as variables; those of `changed` get the last results.
pub fn lowered(hlo: &str, args: usize, changed: &[bool]) -> Lowered {
    let module = text::parse(hlo).expect("sound HLO text");
    verify::verify(&module).expect("sound HLO");
    let mut lowered = compile::wrap_module(module).expect("arrays in and out");
    let variables = lowered.args.split_off(args);
    assert_eq!(variables.len(), changed.len(), "a flag for each variable");
    let kept = lowered.results.len() - changed.iter().filter(|c| **c).count();
    lowered.results.truncate(kept);
    let variable = |(i, (mut info, &changed)): (usize, (tfaot::tensor::TensorInfo, &bool))| {
        (info.name, info.field) = (format!("v/{i}"), format!("v{i}"));
        StateVariable { info, initial: None, changed }
    };
    lowered.state = variables.into_iter().zip(changed).enumerate().map(variable).collect();
    lowered
}

/// What a call gives by the interpreter: the results, and the variables behind it.
pub fn interpreted(lowered: &Lowered, args: &[Tensor], state: &[Tensor]) -> (Vec<Tensor>, Vec<Tensor>) {
    let literals: Vec<Literal> = args.iter().chain(state).cloned().map(Literal::Array).collect();
    let root = interp::evaluate(&lowered.module, lowered.module.entry, &literals).expect("the interpreter runs it");
    let mut leaves = root.leaves().into_iter().cloned();
    let results = leaves.by_ref().take(lowered.results.len()).collect();
    let next =
        |(v, old): (&StateVariable, &Tensor)| if v.changed { leaves.next().expect("a value") } else { old.clone() };
    (results, lowered.state.iter().zip(state).map(next).collect())
}

/// The values of variables as they lie in the state.
pub fn packed(variables: &[VariableSlot], values: &[Tensor]) -> Vec<u8> {
    let mut bytes = vec![0; tfaot::kernel::state::size_in_bytes(variables) as usize];
    for (v, value) in variables.iter().zip(values) {
        bytes[v.offset as usize..][..value.bytes.len()].copy_from_slice(&value.bytes);
    }
    bytes
}

/// The values that lie in a state.
pub fn unpacked(variables: &[VariableSlot], state: &[u8]) -> Vec<Tensor> {
    let one = |v: &VariableSlot| {
        let bytes = state[v.offset as usize..v.end_offset() as usize].to_vec();
        Tensor::new(v.info.dtype, v.info.dims.clone(), bytes)
    };
    variables.iter().map(one).collect()
}
