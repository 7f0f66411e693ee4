//! Interface to LLVM, the only one: takes LLVM IR as text, gives an object or assembly.
use super::stack::FrameSizes;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::target::{Arch, Target};
use crate::util::parallel;
use inkwell::OptimizationLevel;
use inkwell::attributes::AttributeLoc;
use inkwell::context::Context;
use inkwell::llvm_sys::LLVMDiagnosticSeverity;
use inkwell::llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription, LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::ir_reader::LLVMParseIRInContext2;
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;
use inkwell::llvm_sys::support::LLVMParseCommandLineOptions;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    FileType, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine, TargetMachineOptions, TargetTriple,
};

use std::ffi::{CStr, c_int, c_void};

/// LLVM passes that make SSA values of registers and remove common address computations; none reorders the kernels' loops.
const PASSES: &str = "function(sroa,early-cse<memssa>,simplifycfg),globaldce";

/// Whether this build supports a triple: release binaries contain only some of LLVM's targets.
pub fn supports_triple(triple: &str) -> bool {
    back_end(triple).is_some()
}

/// Makes LLVM compile faster, by code that takes a few percent longer to run, in the whole process and for good: loop strength reduction, a
/// quarter of the time that LLVM takes, is left out. LLVM has options of its passes for processes alone.
#[expect(unsafe_code, reason = "calls LLVM's parser of options")]
pub fn prefer_fast_compilation() {
    static SET: std::sync::Once = std::sync::Once::new();
    SET.call_once(|| {
        let options = [c"tfaot".as_ptr(), c"-disable-lsr".as_ptr()];
        // SAFETY: the options are strings, as many as is said, and LLVM copies them; it ends the process at options that it does not know,
        // and knows this one.
        unsafe { LLVMParseCommandLineOptions(options.len() as c_int, options.as_ptr(), std::ptr::null()) };
    });
}

fn back_end(triple: &str) -> Option<LlvmTarget> {
    static START: std::sync::Once = std::sync::Once::new();
    START.call_once(|| {
        let all = InitializationConfig::default();
        LlvmTarget::initialize_x86(&all);
        LlvmTarget::initialize_aarch64(&all);
        LlvmTarget::initialize_riscv(&all);
        LlvmTarget::initialize_webassembly(&all);
        LlvmTarget::initialize_arm(&all);
    });
    LlvmTarget::from_triple(&TargetTriple::create(triple)).ok()
}

/// Creates LLVM's target machine for the oldest processor: kernels have attributes for more features, while code without them, such as the
/// feature test, runs on every machine.
fn machine(target: &Target) -> Result<TargetMachine> {
    let triple = TargetTriple::create(&target.triple);
    let unknown = |message: String| Error::user(Code::UnknownTarget, message);
    let found = back_end(&target.triple).ok_or_else(|| {
        let told = format!("this build of tfaot makes no code for `{}`", target.triple);
        Diagnostic::new(Code::UnknownTarget, told).help("one that `cargo install` builds makes code for all targets")
    })?;
    let oldest = target.level.baseline();
    let options = TargetMachineOptions::new()
        .set_cpu(oldest.baseline_cpu())
        .set_features(oldest.features())
        .set_level(OptimizationLevel::Default)
        .set_reloc_mode(relocations(target));
    let options = if target.arch() == Arch::Riscv64 { options.set_abi(RISCV_ABI) } else { options };
    found
        .create_target_machine_from_options(&triple, options)
        .ok_or_else(|| unknown(format!("LLVM makes no code for `{}`", target.triple)))
}

/// RISC-V ABI with floats passed in registers, as in Linux distributions (RISC-V psABI, "LP64D").
const RISCV_ABI: &str = "lp64d";

/// LLVM's relocation model: position-independent, but static for targets without a loader, so that address tables are constants and stay in
/// a microcontroller's flash memory.
fn relocations(target: &Target) -> RelocMode {
    match target.arch() {
        Arch::X86_64 | Arch::Aarch64 | Arch::Riscv64 => RelocMode::PIC,
        Arch::Wasm32 | Arch::Thumb => RelocMode::Static,
    }
}

fn with_module<T>(
    text: &str,
    target: &Target,
    passes: &str,
    then: impl FnOnce(&inkwell::module::Module, &TargetMachine) -> Result<T>,
) -> Result<T> {
    let machine = machine(target)?;
    let context = Context::create();
    // before the text, whose parser takes sizes and alignments of addresses from it
    let layout = machine.get_target_data().get_data_layout();
    let bytes = format!("target datalayout = {:?}\n{text}\0", layout.as_str().to_string_lossy()).into_bytes();
    let module = parse(&context, &bytes)?;
    module.verify().map_err(|e| Error::internal("llvm verify", e.to_string()))?;
    module
        .run_passes(passes, &machine, PassBuilderOptions::create())
        .map_err(|e| Error::internal("llvm passes", e.to_string()))?;
    then(&module, &machine)
}

/// Parses LLVM text, which ends with a zero.
///
/// Inkwell's own function is made for a parser that frees the text, which LLVM's is no longer from version 22 on, and leaks it.
#[expect(unsafe_code, reason = "calls LLVM's parser")]
fn parse<'c>(context: &'c Context, text: &[u8]) -> Result<inkwell::module::Module<'c>> {
    let buffer = MemoryBuffer::create_from_memory_range_copy(text, "model");
    let (mut module, mut message) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the context and the text live until the parser has ended, which then has made a module, or a message that is ours to free.
    unsafe {
        if LLVMParseIRInContext2(context.raw(), buffer.as_mut_ptr(), &raw mut module, &raw mut message) == 0 {
            return Ok(inkwell::module::Module::new(module));
        }
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        Err(Error::internal("llvm parse", text))
    }
}

/// LLVM's diagnostics for one module.
#[derive(Default)]
struct Report {
    /// The frame size of each function that has a frame.
    frames: FrameSizes,
    errors: Vec<String>,
}

/// Runs `write` and collects LLVM's diagnostics, among them one with the frame size of each function.
#[expect(unsafe_code, reason = "inkwell has no public function for it")]
fn watched<T>(module: &inkwell::module::Module, write: impl FnOnce() -> T) -> (T, Report) {
    let mut report = Report::default();
    let context = module.get_context();
    let attribute = context.create_string_attribute("warn-stack-size", "0");
    let functions = module.get_functions().filter(|function| function.count_basic_blocks() > 0);
    functions.for_each(|function| function.add_attribute(AttributeLoc::Function, attribute));
    // SAFETY: the handler is taken away before the report ends, and nothing else uses the report while LLVM works on this thread.
    let made = unsafe {
        LLVMContextSetDiagnosticHandler(context.raw(), Some(on_diagnostic), (&raw mut report).cast());
        let made = write();
        LLVMContextSetDiagnosticHandler(context.raw(), None, std::ptr::null_mut());
        made
    };
    (made, report)
}

/// LLVM's diagnostic callback.
#[expect(unsafe_code, reason = "called by LLVM")]
extern "C" fn on_diagnostic(info: LLVMDiagnosticInfoRef, report: *mut c_void) {
    // SAFETY: LLVM passes the report that `watched` gave it, on the thread that called LLVM.
    let (report, severity) = unsafe { (&mut *report.cast::<Report>(), LLVMGetDiagInfoSeverity(info)) };
    let is_error = matches!(severity, LLVMDiagnosticSeverity::LLVMDSError);
    if !is_error && !matches!(severity, LLVMDiagnosticSeverity::LLVMDSWarning) {
        return;
    }
    // SAFETY: the text is ours, to be given back.
    let text = unsafe {
        let message = LLVMGetDiagInfoDescription(info);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        text
    };
    if is_error {
        report.errors.push(text);
    } else if let Some((name, bytes)) = frame(&text) {
        report.frames.insert(name.to_string(), bytes);
    }
}

/// Parses the function and the frame size of a warning such as `stack frame size (24) exceeds limit (0) in function 'f'`.
fn frame(text: &str) -> Option<(&str, u64)> {
    let (bytes, rest) = text.split_once("stack frame size (")?.1.split_once(')')?;
    let (_, name) = rest.split_once("in function '")?;
    Some((name.strip_suffix('\'')?, bytes.parse().ok()?))
}

/// Compiles LLVM text to a relocatable object.
pub fn compile_object(text: &str, target: &Target) -> Result<Vec<u8>> {
    object_with_frames(text, target).map(|(object, _)| object)
}

/// Compiles LLVM text to a relocatable object; also returns the frame sizes of its functions.
fn object_with_frames(text: &str, target: &Target) -> Result<(Vec<u8>, FrameSizes)> {
    with_module(text, target, PASSES, |module, machine| {
        let (written, report) = watched(module, || machine.write_to_memory_buffer(module, FileType::Object));
        let buffer = written.map_err(|e| Error::internal("llvm emit", e.to_string()))?;
        match report.errors.first() {
            Some(error) => Err(Error::internal("llvm emit", error.clone())),
            None => Ok((buffer.as_slice().to_vec(), report.frames)),
        }
    })
}

/// Compiles each LLVM text to a relocatable object, on as many threads as there are processors; also returns the frame sizes of all
/// functions.
pub fn compile_objects(texts: &[String], target: &Target) -> Result<(Vec<Vec<u8>>, FrameSizes)> {
    let (mut objects, mut frames) = (Vec::new(), FrameSizes::new());
    for made in parallel::map(texts, |text| object_with_frames(text, target)) {
        let (object, own) = made?;
        objects.push(object);
        frames.extend(own);
    }
    Ok((objects, frames))
}

/// LLVM's name of this machine's processor.
pub fn host_cpu() -> String {
    TargetMachine::get_host_cpu_name().to_string()
}

/// The version of the linked LLVM: major, minor, patch.
pub fn version() -> (u32, u32, u32) {
    inkwell::support::get_llvm_version()
}

/// Compiles LLVM text to assembly.
pub fn emit_assembly(text: &str, target: &Target) -> Result<String> {
    with_module(text, target, PASSES, |module, machine| {
        let written = machine.write_to_memory_buffer(module, FileType::Assembly);
        let buffer = written.map_err(|e| Error::internal("llvm emit", e.to_string()))?;
        Ok(String::from_utf8_lossy(buffer.as_slice()).trim_end_matches('\0').to_string())
    })
}

/// Runs the standard passes on LLVM text, and returns the optimized text.
pub fn optimize(text: &str, target: &Target) -> Result<String> {
    run_passes(text, target, PASSES)
}

/// Runs `passes`, in the syntax of LLVM's `opt`, and returns the resulting LLVM text.
pub fn run_passes(text: &str, target: &Target, passes: &str) -> Result<String> {
    with_module(text, target, passes, |module, _| Ok(module.print_to_string().to_string()))
}
