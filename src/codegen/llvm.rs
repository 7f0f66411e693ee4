//! The one place that speaks to LLVM: text in, object or assembly out.
use crate::diag::{Code, Error, Result};
use crate::target::Target;
use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine, TargetTriple,
};

/// Registers become SSA values and equal addresses are computed once; nothing that reorders our loops.
const PASSES: &str = "function(sroa,early-cse<memssa>,simplifycfg),globaldce";

/// Functions of models say themselves which instructions they may have; what says nothing runs on the oldest processor, such as
/// what asks for those instructions.
fn machine(target: &Target) -> Result<TargetMachine> {
    static START: std::sync::Once = std::sync::Once::new();
    START.call_once(|| {
        LlvmTarget::initialize_x86(&InitializationConfig::default());
        LlvmTarget::initialize_aarch64(&InitializationConfig::default());
    });
    let triple = TargetTriple::create(&target.triple);
    let unknown = |message: String| Error::user(Code::UnknownTarget, message);
    let found = LlvmTarget::from_triple(&triple).map_err(|e| unknown(format!("`{}`: {e}", target.triple)))?;
    found
        .create_target_machine(
            &triple,
            target.oldest_cpu(),
            "",
            OptimizationLevel::Default,
            RelocMode::PIC,
            CodeModel::Default,
        )
        .ok_or_else(|| unknown(format!("LLVM makes no code for `{}`", target.triple)))
}

fn with_module<T>(
    text: &str,
    target: &Target,
    passes: &str,
    then: impl FnOnce(&inkwell::module::Module, &TargetMachine) -> Result<T>,
) -> Result<T> {
    let machine = machine(target)?;
    let context = Context::create();
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    let buffer = MemoryBuffer::create_from_memory_range_copy(&bytes, "model");
    let module = context.create_module_from_ir(buffer).map_err(|e| Error::internal("llvm parse", e.to_string()))?;
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    module.verify().map_err(|e| Error::internal("llvm verify", e.to_string()))?;
    module
        .run_passes(passes, &machine, PassBuilderOptions::create())
        .map_err(|e| Error::internal("llvm passes", e.to_string()))?;
    then(&module, &machine)
}

/// The relocatable object of LLVM text.
pub fn object(text: &str, target: &Target) -> Result<Vec<u8>> {
    with_module(text, target, PASSES, |module, machine| {
        let written = machine.write_to_memory_buffer(module, FileType::Object);
        let buffer = written.map_err(|e| Error::internal("llvm emit", e.to_string()))?;
        Ok(buffer.as_slice().to_vec())
    })
}

/// LLVM's name of this machine's processor.
pub fn host_cpu() -> String {
    TargetMachine::get_host_cpu_name().to_string()
}

/// The version of LLVM that is linked: three numbers.
pub fn version() -> (u32, u32, u32) {
    inkwell::support::get_llvm_version()
}

/// The assembly of LLVM text.
pub fn assembly(text: &str, target: &Target) -> Result<String> {
    with_module(text, target, PASSES, |module, machine| {
        let written = machine.write_to_memory_buffer(module, FileType::Assembly);
        let buffer = written.map_err(|e| Error::internal("llvm emit", e.to_string()))?;
        Ok(String::from_utf8_lossy(buffer.as_slice()).trim_end_matches('\0').to_string())
    })
}

/// LLVM text after the passes of every object.
pub fn optimized(text: &str, target: &Target) -> Result<String> {
    after(text, target, PASSES)
}

/// LLVM text after `passes`, in the words of LLVM's `opt`.
pub fn after(text: &str, target: &Target, passes: &str) -> Result<String> {
    with_module(text, target, passes, |module, _| Ok(module.print_to_string().to_string()))
}
