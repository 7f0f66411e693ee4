//! The plugin itself: what programs ask before there is a client.
use crate::c_api::base::{PluginAttributesArgs, PluginInitializeArgs};
use crate::failure::Failure;
use crate::named_values::{NamedValues, Value};
use std::sync::OnceLock;
use tfaot::codegen::prefer_fast_compilation;

/// The version of StableHLO that programs are handed in, which tfaot reads, and older ones.
const STABLEHLO: &[i64] = &[1, 13, 0];
const STABLEHLO_LEAST: &[i64] = &[0, 9, 0];

/// `PJRT_Plugin_Initialize`: programs wait for their code, so that LLVM is to compile fast.
pub fn initialize(_: &mut PluginInitializeArgs) -> Result<(), Failure> {
    prefer_fast_compilation();
    Ok(())
}

/// `PJRT_Plugin_Attributes`.
pub fn attributes(args: &mut PluginAttributesArgs) -> Result<(), Failure> {
    static ATTRIBUTES: OnceLock<NamedValues> = OnceLock::new();
    let all = [
        ("xla_version", Value::Int(2)),
        ("stablehlo_current_version", Value::Ints(STABLEHLO)),
        ("stablehlo_minimum_version", Value::Ints(STABLEHLO_LEAST)),
    ];
    ATTRIBUTES.get_or_init(|| NamedValues::new(&all)).lend(&mut args.attributes, &mut args.num_attributes);
    Ok(())
}
