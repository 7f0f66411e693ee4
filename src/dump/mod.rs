//! XLA's debug dumps: modules, buffer assignments and machine code under XLA's file names. `graphs` has TensorFlow's graph dumps.
//!
//! [`DumpFlags`] are parsed from the text of `XLA_FLAGS`; a [`Dump`] collects the files of one compilation in memory. The compiling
//! code adds to it before, between and after the passes, and writes the files to disk: this module touches neither files nor clocks.
//!
//! Source of the names: XLA's service/dump.cc and debug_options_flags.cc.
mod buffers;
mod dot;
mod flags;
pub mod graphs;
mod names;

pub use flags::{DumpFlags, parse};

use crate::codegen::{self, TextForm};
use crate::diag::{Error, Result};
use crate::hlo::{Module, proto, text};
use crate::kernel::Program;
use crate::optimize::PIPELINE;
use crate::target::Target;
use crate::util::pieces::Pieces;
use dot::DrawnPart;
use names::DumpNames;

/// The pipeline's name in file names.
const PIPELINE_NAME: &str = "optimize";
/// The name that stands for a pass at the beginning of the pipeline.
const START: &str = "pipeline-start";
const END: &str = "pipeline-end";

/// Options for the dumps of one process.
#[derive(Clone, Debug)]
pub struct Dumps {
    /// The flags that select the dumps.
    pub flags: DumpFlags,
    /// The time stamp for file names in microseconds since 1970, used if the flags request one.
    pub micros: u64,
}

/// The dump files of one compilation.
#[derive(Debug)]
pub struct Dump<'a> {
    flags: &'a DumpFlags,
    names: DumpNames,
    passes: usize,
    /// Names and contents, in the order in which XLA writes them.
    pub files: Vec<(String, Vec<u8>)>,
}

impl<'a> Dump<'a> {
    /// A dump of the module with index `number` in this process; `micros` is the time stamp for names. `None` if the flags select no dumps, or
    /// other modules.
    pub fn new(flags: &'a DumpFlags, module: &Module, number: u64, micros: u64) -> Option<Dump<'a>> {
        let wanted = flags.module_re.as_ref().is_none_or(|re| re.is_match(&module.name));
        let within = flags.max_modules.is_none_or(|most| number < most);
        if !flags.is_on() || !wanted || !within {
            return None;
        }
        let names = DumpNames::new(&module.name, number, flags.include_timestamp.then_some(micros));
        Some(Dump { flags, names, passes: 0, files: Vec::new() })
    }
    /// Dumps the module before optimization, and the options.
    ///
    /// # Errors
    /// Errors of [`proto::encode`].
    pub fn before_optimization(&mut self, module: &Module) -> Result<()> {
        self.module(module, "before_optimizations")?;
        let options = self.flags.debug_options();
        self.push_plain("debug_options", options.into_bytes());
        if let Some(first) = PIPELINE.first() {
            self.pass(module, START, first.name)?;
        }
        Ok(())
    }
    /// Dumps the module after a pass that changed it.
    ///
    /// # Errors
    /// Errors of [`proto::encode`].
    pub fn after_pass(&mut self, module: &Module, pass: &str) -> Result<()> {
        let place = PIPELINE.iter().position(|p| p.name == pass);
        let next = place.and_then(|i| PIPELINE.get(i + 1)).map_or(END, |p| p.name);
        self.pass(module, pass, next)
    }
    fn pass(&mut self, module: &Module, after: &str, before: &str) -> Result<()> {
        let Some(re) = &self.flags.pass_re else { return Ok(()) };
        let pipeline = self.flags.pipeline_re.as_ref().is_none_or(|re| re.is_match(PIPELINE_NAME));
        if !pipeline || !(re.is_match(after) || re.is_match(before)) {
            return Ok(());
        }
        let step = self.passes;
        self.passes += 1;
        self.module(module, &format!("{step:04}.{PIPELINE_NAME}.after_{after}.before_{before}"))
    }
    /// Dumps the module after optimization, when no code is generated.
    ///
    /// # Errors
    /// Errors of [`proto::encode`].
    pub fn after_optimization(&mut self, module: &Module) -> Result<()> {
        self.module(module, "after_optimizations")
    }
    /// Dumps the module as compiled, its buffers, the LLVM IR before and after LLVM's passes, and the object.
    ///
    /// Errors: those of [`proto::encode`].
    fn after(&mut self, module: &Module, program: &Program, llvm_ir: [String; 2], object: Vec<u8>) -> Result<()> {
        self.module(module, "cpu_after_optimizations")?;
        if self.flags.writes_text() {
            let (plan, usage) = (buffers::assignment(program), buffers::usage(program));
            self.push("cpu_after_optimizations-buffer-assignment.txt", plan.into_bytes());
            self.push("cpu_after_optimizations-memory-usage-report.txt", usage.into_bytes());
        }
        let [before, after] = llvm_ir;
        self.push_plain("__compute_module.ir-no-opt.ll", before.into_bytes());
        self.push_plain("__compute_module.ir-with-opt.ll", after.into_bytes());
        self.push_plain("obj-file.__compute_module.o", object);
        Ok(())
    }
    /// Dumps the results of a compilation: the module, the buffers of the first program, the code of all.
    ///
    /// # Errors
    /// Errors of [`proto::encode`] and of printing LLVM IR.
    pub fn add_results(&mut self, module: &Module, each: &[(Program, Target)], object: &Pieces) -> Result<()> {
        let Some((first, _)) = each.first() else { return Ok(()) };
        let print = |text| {
            let texts = each.iter().map(|(program, target)| codegen::print(program, target, text));
            texts.collect::<Result<Vec<_>>>().map(|all| all.join("\n"))
        };
        let llvm_ir = [print(TextForm::LlvmIr)?, print(TextForm::LlvmIrOptimized)?];
        self.after(module, first, llvm_ir, object.to_bytes().to_vec())
    }
    /// Dumps the module in every selected format.
    fn module(&mut self, module: &Module, stem: &str) -> Result<()> {
        if self.flags.writes_text() {
            let style =
                text::Style { large_constants: self.flags.large_constants, metadata: !self.flags.disable_metadata };
            self.push(&format!("{stem}.txt"), text::print_with(module, style).into_bytes());
        }
        if self.flags.as_proto {
            let bytes = proto::encode_laid_out(module)?;
            match self.flags.compress_protos {
                true => self.push(&format!("{stem}.hlo.pb.gz"), compressed(&bytes)?),
                false => self.push(&format!("{stem}.hlo.pb"), bytes),
            }
        }
        if self.flags.as_dot {
            self.push(&format!("{stem}.dot"), dot::graphviz_text(module, DrawnPart::Whole).into_bytes());
        }
        if self.flags.as_html {
            self.push(&format!("{stem}.html"), dot::html_page(module, DrawnPart::Whole).into_bytes());
            if stem.contains("after_optimizations") {
                self.push(&format!("{stem}.top_level.html"), dot::html_page(module, DrawnPart::Entry).into_bytes());
            }
        }
        Ok(())
    }
    fn push(&mut self, suffix: &str, content: Vec<u8>) {
        self.files.push((self.names.file_name(suffix), content));
    }
    /// Adds a file whose name never has the time stamp.
    fn push_plain(&mut self, suffix: &str, content: Vec<u8>) {
        self.files.push((self.names.file_name_without_time(suffix), content));
    }
}

/// Gzip-compressed bytes, a function of the input.
fn compressed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let written = std::io::Write::write_all(&mut out, bytes).and_then(|()| out.finish());
    written.map_err(|e| Error::internal("compress a dump", e.to_string()))
}

#[cfg(test)]
mod tests;
