//! A model as LLVM's text: kernels, the driver `NAME_run`, the metadata `NAME_info`, the feature test.
use super::Launches;
use super::container;
use super::cpu_check::emit_supported;
use super::driver::DriverEmitter;
use super::function::FunctionEmitter;
use super::lines::LineTable;
use super::{hwcaps, info, math, portable, ranks, self_test, size_dispatch, start, weights_file};
use crate::diag::{Error, Result};
use crate::kernel::{BufId, Bundle, HOST_CALL_SYMBOL, KernelId, ModelInterface, Program};
use crate::target::{Arch, ObjectFormat, Target};
use crate::util::id_vec::IdVec;
use std::collections::HashMap;
use std::fmt::Write;

/// Returned by `NAME_run` where the machine lacks a feature: `TFAOT_E_CPU`.
pub const E_CPU: u32 = 1;
/// Returned by `NAME_run` where a function of the user says that it failed: `TFAOT_E_CALL`.
pub const E_CALL: u32 = 5;

/// Size in bytes of text from which it is split into modules: half a second's work of LLVM at most.
const PART_BYTES: usize = 512 << 10;

/// The LLVM text of a model. Only drivers name the functions of kernels, and kernels name nothing of the rest, so that LLVM can compile
/// them module by module.
pub struct ModelIr {
    /// LLVM's target triple.
    triple: String,
    /// The LLVM text of everything except kernels.
    shell: String,
    /// Each function with its symbol: its definition from the parameters on.
    kernels: Vec<(String, String)>,
    /// The attribute groups, which every module repeats.
    attributes: String,
    arch: Arch,
    /// Whether objects of the target can be linked into one here.
    joins: bool,
}

impl ModelIr {
    /// The whole text as one module.
    pub fn single_module(&self) -> String {
        let kernels: String = self.kernels.iter().map(|(symbol, text)| defined("internal", symbol, text)).collect();
        self.module(&[&kernels, &self.shell])
    }

    /// The modules of an object that is linked from several, first the one with what callers see. Their number follows from the text
    /// alone, so that every machine makes the same object.
    pub fn split_modules(&self) -> Vec<String> {
        let bytes = self.kernels.iter().map(|(_, text)| text.len()).sum::<usize>();
        if !self.joins || bytes < 2 * PART_BYTES {
            return vec![self.single_module()];
        }
        let declared = |(symbol, _): &(String, String)| format!("declare hidden void @{symbol}(ptr, i64, i64)\n");
        let declared: String = self.kernels.iter().map(declared).collect();
        let mut parts = vec![self.module(&[&declared, &self.shell])];
        let mut part = String::new();
        for (symbol, text) in &self.kernels {
            part += &defined("hidden", symbol, text);
            if part.len() >= PART_BYTES {
                parts.push(self.module(&[&std::mem::take(&mut part)]));
            }
        }
        if !part.is_empty() {
            parts.push(self.module(&[&part]));
        }
        parts
    }

    /// The text of a module: `texts` with declarations of the functions that they call.
    fn module(&self, texts: &[&str]) -> String {
        let mut out = format!("target triple = \"{}\"\n\n{}", self.triple, texts.concat());
        out += &math::helper_definitions(&out, self.arch);
        out += &portable::fma_functions(&out);
        out += &hwcaps::helper_functions(&out, self.arch);
        out + &self.attributes
    }
}

/// The LLVM definition of a kernel's function.
fn defined(linkage: &str, symbol: &str, text: &str) -> String {
    format!("define {linkage} void @{symbol}{text}")
}

/// Emits the text of a model, and the functions of the first program; constants are zeros without space in the object, to be filled in
/// later.
///
/// For several targets a function calls the first one that the machine supports; only then programs have no symbols that callers see.
/// Instructions carry the lines of their kernel if `lines` is given.
pub fn emit(bundle: &Bundle, launches: Launches, mut lines: Option<LineTable>) -> Result<(ModelIr, KernelFunctions)> {
    let Bundle { face, variants, .. } = bundle;
    let (_, target) = variants.first().ok_or_else(|| Error::internal("codegen", "no target"))?;
    let (mut out, mut kernels, mut attributes) = (String::new(), Vec::new(), String::new());
    let told: Vec<String> = variants.iter().map(|v| described(&v.1)).collect();
    info::emit(&mut out, face, &told.join(" | "), target.arch());
    match &face.file {
        Some(file) => weights_file::emit(&mut out, &face.name, file),
        None => out += &container::weights_global(&weights_symbol(&face.name), face.weights_bytes, target)?,
    }
    for callee in face.prototypes() {
        let result = if callee.has_status() { "i32" } else { "void" };
        let arrays = "ptr, ".repeat(callee.args.len() + callee.results.len());
        let _ = writeln!(out, "declare {result} @{}({arrays}ptr)", callee.name);
    }
    if face.calls_host {
        let _ = writeln!(out, "declare i32 @{HOST_CALL_SYMBOL}(i64, ptr)");
    }
    let mut first = None;
    for (i, (programs, target)) in variants.iter().enumerate() {
        let is_only = variants.len() == 1;
        let is_seen = is_only && face.ranks.is_none();
        let linkage = Linkage { visibility: if is_seen { "" } else { "internal " }, is_only, attributes: 2 * i };
        let own = TargetPrograms { programs, target, linkage };
        let functions = functions(&mut kernels, own, &mut lines)?;
        drivers(&mut out, face, own, &functions, launches);
        attributes += &groups(target, linkage.attributes);
        first = first.or(functions.into_iter().next());
    }
    if variants.len() > 1 {
        pick(&mut out, face, variants);
    }
    ranks::emit(&mut out, face);
    if !face.state.is_empty() {
        start::emit_init(&mut out, bundle);
    }
    self_test::emit(&mut out, face);
    out += &lines.map_or(String::new(), LineTable::metadata);
    let (arch, joins) = (target.arch(), container::can_link(target));
    let source = ModelIr { triple: target.triple.clone(), shell: out, kernels, attributes, arch, joins };
    Ok((source, first.unwrap_or_default()))
}

/// Emits the functions that callers see, which dispatch to the first supported variant.
fn pick(out: &mut String, face: &ModelInterface, variants: &[(Vec<Program>, Target)]) {
    let mut supported = String::new();
    let ask = |i: usize, programs: &[Program]| {
        let (own, next) = (supported_symbol(programs), i + 1);
        format!(
            "  %s{i} = call i32 @{own}()\n  %b{i} = icmp ne i32 %s{i}, 0\n  br i1 %b{i}, label %yes{i}, label %ask{next}\nyes{i}:\n"
        )
    };
    for (e, entry) in face.entries.iter().enumerate() {
        let parameters = size_dispatch::c_parameters(entry, face);
        let mut run = String::new();
        for (i, (programs, _)) in variants.iter().enumerate() {
            let own = match &programs[face.program_indices(e)] {
                [only] if entry.sizes.is_empty() => run_symbol(only),
                several => size_dispatch::dispatch_symbol(several),
            };
            let (ask, next) = (ask(i, programs), i + 1);
            let _ = write!(run, "{ask}  %r{i} = tail call i32 @{own}({parameters})\n  ret i32 %r{i}\nask{next}:\n");
        }
        let function = ranks::inner_function_name(entry, face);
        let linkage = if face.ranks.is_some() { "internal " } else { "" };
        let _ =
            writeln!(out, "define {linkage}i32 @{function}({parameters}) #1 {{\nentry:\n{run}  ret i32 {E_CPU}\n}}");
    }
    for (i, (programs, _)) in variants.iter().enumerate() {
        let _ = write!(supported, "{}  ret i32 1\nask{}:\n", ask(i, programs), i + 1);
    }
    let name = &face.name;
    let _ = writeln!(out, "define i32 @{name}_supported() #1 {{\nentry:\n{supported}  ret i32 0\n}}");
}

/// The symbol of the function that says whether the machine supports one of several variants.
fn supported_symbol(programs: &[Program]) -> String {
    format!("{}_supported", programs.first().map_or("", |p| &p.name))
}

/// The symbol of a program's driver if callers do not see it.
fn run_symbol(program: &Program) -> String {
    format!("{}_run", program.name)
}

/// The differences in linkage between the only program of an object and one of several.
#[derive(Clone, Copy)]
pub(super) struct Linkage {
    /// `internal ` if callers see a function of another name.
    pub(super) visibility: &'static str,
    /// Whether the driver has the name that callers see, or that without the suffix of a rank.
    pub(super) is_only: bool,
    /// The number of the first of the two attribute groups.
    pub(super) attributes: usize,
}

/// The functions of a program's kernels.
#[derive(Default)]
pub struct KernelFunctions {
    /// The symbol of each kernel's function: its own, or that of an earlier one of the same form.
    pub symbols: IdVec<KernelId, String>,
    /// The buffers whose addresses each kernel finds in the closure.
    pub(super) slots: IdVec<KernelId, Vec<BufId>>,
}

impl KernelFunctions {
    /// Emits one function for all kernels that differ only in their buffers' addresses, including those `known` from other programs of
    /// the target.
    fn emit(
        kernels: &mut Vec<(String, String)>,
        program: &Program,
        target: &Target,
        group: usize,
        known: &mut HashMap<String, String>,
        lines: &mut Option<LineTable>,
    ) -> Result<KernelFunctions> {
        let mut functions = KernelFunctions::default();
        for (id, kernel) in program.kernels.iter() {
            let emitted = FunctionEmitter::emit(program, kernel, group, lines.is_some(), target)?;
            functions.slots.push(emitted.slots);
            if let Some(first) = known.get(&emitted.text) {
                functions.symbols.push(first.clone());
                continue;
            }
            let symbol = format!("{}_k{}", program.name, id.0);
            let own = lines.as_mut().map(|lines| lines.resolve_marks(&emitted.text));
            kernels.push((symbol.clone(), own.unwrap_or_else(|| emitted.text.clone())));
            known.insert(emitted.text, symbol.clone());
            functions.symbols.push(symbol);
        }
        Ok(functions)
    }
}

/// The programs of one target, with their attribute groups.
#[derive(Clone, Copy)]
struct TargetPrograms<'a> {
    programs: &'a [Program],
    target: &'a Target,
    linkage: Linkage,
}

/// Emits the functions of the kernels of each program.
fn functions(
    kernels: &mut Vec<(String, String)>,
    own: TargetPrograms,
    lines: &mut Option<LineTable>,
) -> Result<Vec<KernelFunctions>> {
    let mut known = HashMap::new();
    let one = |program| KernelFunctions::emit(kernels, program, own.target, own.linkage.attributes, &mut known, lines);
    own.programs.iter().map(one).collect()
}

/// Emits the feature test and the drivers of a target.
fn drivers(
    out: &mut String,
    face: &ModelInterface,
    own: TargetPrograms,
    functions: &[KernelFunctions],
    launches: Launches,
) {
    let TargetPrograms { programs, target, linkage } = own;
    let (is_only, plain) = (linkage.is_only, linkage.attributes + 1);
    let supported_name = if is_only { format!("{}_supported", face.name) } else { supported_symbol(programs) };
    let supported_visibility = if is_only { "" } else { "internal " };
    emit_supported(out, &supported_name, &target.machine_checks(), supported_visibility, plain);
    for (e, entry) in face.entries.iter().enumerate() {
        let is_sized = !entry.sizes.is_empty();
        let visibility = if is_sized { "internal " } else { linkage.visibility };
        for i in face.program_indices(e) {
            let program = &programs[i];
            let run = if is_only && !is_sized { ranks::inner_function_name(entry, face) } else { run_symbol(program) };
            let own = Linkage { visibility, ..linkage };
            let driver = DriverEmitter::new(program, &functions[i], face, run, &supported_name, own, launches);
            driver.finish(out, target);
        }
        if is_sized {
            let own = &programs[face.program_indices(e)];
            let run =
                if is_only { ranks::inner_function_name(entry, face) } else { size_dispatch::dispatch_symbol(own) };
            size_dispatch::emit(out, entry, face, own, linkage.visibility, &run, plain);
        }
    }
}

/// The LLVM attribute groups of a target: `first` for its kernels, and the next for its other functions.
fn groups(target: &Target, first: usize) -> String {
    // Windows walks the stack by tables alone
    let unwound = if target.format() == ObjectFormat::Coff { " uwtable" } else { "" };
    let plain = first + 1;
    format!(
        "attributes #{first} = {{ nounwind{unwound} \"target-cpu\"=\"{}\" \"tune-cpu\"=\"{}\" \"target-features\"=\"{}\" \"prefer-vector-width\"=\"{}\" \"no-trapping-math\"=\"true\" \"no-builtins\" }}\nattributes #{plain} = {{ nounwind{unwound} \"no-builtins\" }}\n",
        target.code_cpu(),
        target.tune_cpu(),
        target.code_features(),
        target.vector_bits
    )
}

/// A line that describes a target, as in `NAME_info()->target`.
fn described(target: &Target) -> String {
    format!("{} {} {}", target.triple, target.cpu, target.features)
}

/// The symbol of a model's constants.
pub fn weights_symbol(name: &str) -> String {
    format!("{name}_weights")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model of three kernels with so many bytes of text each.
    fn source(bytes: usize) -> ModelIr {
        let kernel =
            |i: u32| (format!("k{i}"), format!("(ptr %c, i64 %a, i64 %b) #0 {{\n{}ret void\n}}\n", " ".repeat(bytes)));
        ModelIr {
            triple: "x86_64-unknown-linux-gnu".to_string(),
            shell: "define void @run() #1 {\n  ret void\n}\n".to_string(),
            kernels: (0..3).map(kernel).collect(),
            attributes: "attributes #0 = { nounwind }\nattributes #1 = { nounwind }\n".to_string(),
            arch: Arch::X86_64,
            joins: true,
        }
    }

    #[test]
    fn little_text_is_one_module() {
        let source = source(16);
        assert_eq!(source.split_modules(), [source.single_module()]);
    }

    #[test]
    fn every_kernel_of_much_text_is_in_one_part_and_known_to_the_first() {
        let parts = source(PART_BYTES).split_modules();
        assert_eq!(parts.len(), 4);
        for i in 0..3 {
            let is_in = |part: &String, what: &str| part.contains(&format!("{what} hidden void @k{i}("));
            assert!(is_in(&parts[0], "declare"));
            assert_eq!(parts.iter().filter(|part| is_in(part, "define")).count(), 1);
        }
    }

    #[test]
    fn objects_that_can_not_be_joined_are_one() {
        assert_eq!(ModelIr { joins: false, ..source(PART_BYTES) }.split_modules().len(), 1);
    }
}
