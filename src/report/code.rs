//! A compiled cluster as report data: its module, kernels, machine code, buffers and times.
use super::memory::BufferLifetimes;
use super::model::{BufferReport, CodeReport, KernelReport, SourceLocationReport};
use crate::codegen::{self, Assembly};
use crate::hlo::{Module, text};
use crate::kernel::{self, Program};
use crate::target::Target;
use std::collections::HashMap;

/// Measured times of a compiled function.
#[derive(Clone, Debug, Default)]
pub struct KernelTimes {
    /// By kernel: the minimum over calls of its time in one call, in milliseconds.
    pub ms: Vec<f64>,
    /// By kernel: the roofline time in milliseconds; empty if the machine was not measured.
    pub roofline: Vec<f64>,
    /// Number of measured calls.
    pub runs: u64,
}

/// Describes a compiled cluster or function for the report: kernels, buffers, assembly, times.
pub fn describe_code(
    module: &Module,
    program: &Program,
    target: &Target,
    assembly: &Assembly,
    times: Option<&KernelTimes>,
) -> CodeReport {
    let style = text::Style { large_constants: false, metadata: true };
    let loops = kernel_texts(program);
    let functions = functions(&assembly.text);
    let lives = BufferLifetimes::new(program);
    let size = |b: &kernel::Buffer| b.elements.saturating_mul(b.dtype.bytes() as u64);
    let kernels = program.kernels.iter().map(|(id, k)| {
        let at = id.0 as usize;
        let buffers = k.buffers();
        let asm = functions.get(assembly.functions[id].as_str()).copied().unwrap_or_default();
        let (asm, asm_lines) = codegen::own_lines(asm);
        KernelReport {
            label: k.label.clone(),
            insts: k.insts.clone(),
            bytes: buffers.iter().fold(0, |sum, &b| size(&program.buffers[b]).saturating_add(sum)),
            buffers: buffers.into_iter().map(|b| b.0).collect(),
            flops: k.flops,
            text: loops.get(at).cloned().unwrap_or_default(),
            asm,
            asm_lines,
            ms: times.and_then(|t| t.ms.get(at).copied()),
            roofline_ms: times.and_then(|t| t.roofline.get(at).copied()),
        }
    });
    let buffers = program.buffers.values().zip(&lives.of).map(|(b, life)| {
        let (place, at) = match b.place {
            kernel::BufferLocation::Arg(n) => (SourceLocationReport::Argument, n as u64),
            kernel::BufferLocation::Result(n) => (SourceLocationReport::Result, n as u64),
            kernel::BufferLocation::Weights(at) => (SourceLocationReport::Weights, at),
            kernel::BufferLocation::State(at) => (SourceLocationReport::State, at),
            kernel::BufferLocation::Workspace(at) => (SourceLocationReport::Workspace, at),
            kernel::BufferLocation::Stack => (SourceLocationReport::Stack, 0),
        };
        let shape = format!("{}[{}]", b.dtype, b.elements);
        BufferReport { shape, bytes: size(b), place, at, first: life.map(|l| l.0), last: life.map(|l| l.1) }
    });
    CodeReport {
        target: format!("{} {}", target.triple, target.cpu),
        hlo: text::print_with(module, style),
        kernels: kernels.collect(),
        buffers: buffers.collect(),
        launches: lives.launches,
        weights_bytes: program.weights_bytes,
        workspace_bytes: program.workspace_bytes,
        quantized: program.quantized.as_ref().clone(),
        flops: program.flops,
        runs: times.map_or(0, |t| t.runs),
    }
}

/// The loops of each kernel, extracted from the text of the program.
fn kernel_texts(program: &Program) -> Vec<String> {
    let whole = kernel::print_program(program);
    let mut texts: Vec<String> = Vec::new();
    let mut open = false;
    for line in whole.lines() {
        if line.starts_with("kernel ") {
            texts.push(String::new());
            open = true;
        } else if !line.starts_with("  ") {
            open = false;
        }
        if let Some(text) = texts.last_mut().filter(|_| open) {
            text.push_str(line);
            text.push('\n');
        }
    }
    texts
}

/// The functions in assembly text by symbol, from the label to the directive that states the size.
fn functions(assembly: &str) -> HashMap<&str, &str> {
    let mut found = HashMap::new();
    let mut open: Option<(&str, usize)> = None;
    let mut at = 0;
    for line in assembly.split_inclusive('\n') {
        let text = line.trim_end();
        let end = text.starts_with(".Lfunc_end") || text.starts_with("Lfunc_end") || text.starts_with("\t.size");
        if let Some((name, from)) = open.filter(|_| end) {
            found.insert(name, &assembly[from..at]);
            open = None;
        }
        // A comment may follow the label: behind `#` on x86, `//` on AArch64.
        let bare = text.split('#').next().and_then(|t| t.split("//").next()).unwrap_or("");
        let label = bare.trim_end().strip_suffix(':');
        if let Some(name) = label.filter(|l| open.is_none() && !l.starts_with('.') && !l.contains(char::is_whitespace))
        {
            open = Some((name.trim_start_matches('_'), at));
        }
        at += line.len();
    }
    found
}
