//! A model as LLVM's text: kernels, the driver `NAME_run`, the metadata `NAME_info`, the feature test.
use super::Launches;
use super::container;
use super::function::Function;
use super::lines::Lines;
use super::supported::supported;
use super::{hwcaps, info, math, ranks, sized, start, weights_file};
use crate::diag::{Error, Result};
use crate::kernel::{
    BufId, Bundle, Call, Called, Callee, Exchange, Face, HEADER_BYTES, KernelId, Place, Program, Step,
};
use crate::target::{Arch, Format, Target};
use crate::util::id_vec::IdVec;
use std::collections::HashMap;
use std::fmt::Write;

/// Returned by `NAME_run` where the machine lacks a feature: `TFAOT_E_CPU`.
pub const E_CPU: u32 = 1;
/// Returned by `NAME_run` where a function of the user says that it failed: `TFAOT_E_CALL`.
pub const E_CALL: u32 = 5;

/// Bytes of text that are worth a module of their own, half a second's work of LLVM at most.
const PART_BYTES: usize = 512 << 10;

/// The text of a model. Nothing but drivers name the functions of kernels, and those name nothing of the rest, so that LLVM may take
/// them module by module.
pub struct Source {
    /// The kind of machine.
    triple: String,
    /// All but kernels.
    shell: String,
    /// Each function with its symbol: its definition from the parameters on.
    kernels: Vec<(String, String)>,
    /// The groups of attributes, which each module has.
    attributes: String,
    arch: Arch,
    /// Whether several objects can be joined.
    joins: bool,
}

impl Source {
    /// One module of all.
    pub fn whole(&self) -> String {
        let kernels: String = self.kernels.iter().map(|(symbol, text)| defined("internal", symbol, text)).collect();
        self.module(&[&kernels, &self.shell])
    }

    /// The modules of an object that is put together of several: first that of what callers see. How many there are follows from the
    /// text alone, so that every machine makes the same object.
    pub fn parts(&self) -> Vec<String> {
        let bytes = self.kernels.iter().map(|(_, text)| text.len()).sum::<usize>();
        if !self.joins || bytes < 2 * PART_BYTES {
            return vec![self.whole()];
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

    /// A module with the functions that it calls.
    fn module(&self, texts: &[&str]) -> String {
        let mut out = format!("target triple = \"{}\"\n\n{}", self.triple, texts.concat());
        out += &math::helpers(&out, self.arch);
        out += &hwcaps::helper(&out, self.arch);
        out + &self.attributes
    }
}

/// The definition of a kernel's function.
fn defined(linkage: &str, symbol: &str, text: &str) -> String {
    format!("define {linkage} void @{symbol}{text}")
}

/// The text of a model; constants stay zeros that take no place in the object, to be put behind it. Also the functions of the first
/// program.
///
/// For several targets a function calls the first that the machine supports; only then programs have no symbols that callers see.
/// Instructions say of which line of their kernel they are where `lines` takes that.
pub fn emit(bundle: &Bundle, launches: Launches, mut lines: Option<Lines>) -> Result<(Source, Functions)> {
    let Bundle { face, variants, .. } = bundle;
    let (_, target) = variants.first().ok_or_else(|| Error::internal("codegen", "no target"))?;
    let (mut out, mut kernels, mut attributes) = (String::new(), Vec::new(), String::new());
    let told: Vec<String> = variants.iter().map(|v| described(&v.1)).collect();
    info::emit(&mut out, face, &told.join(" | "), target.arch());
    match &face.file {
        Some(file) => weights_file::emit(&mut out, &face.name, file, target.arch()),
        None => out += &container::global(&weights_symbol(&face.name), face.weights_bytes, target)?,
    }
    for callee in face.prototypes() {
        let result = if callee.has_status() { "i32" } else { "void" };
        let arrays = "ptr, ".repeat(callee.args.len() + callee.results.len());
        let _ = writeln!(out, "declare {result} @{}({arrays}ptr)", callee.name);
    }
    let mut first = None;
    for (i, (programs, target)) in variants.iter().enumerate() {
        let is_only = variants.len() == 1;
        let is_seen = is_only && face.ranks.is_none();
        let linkage = Linkage { visibility: if is_seen { "" } else { "internal " }, is_only, attributes: 2 * i };
        let own = Own { programs, target, linkage };
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
        start::emit(&mut out, bundle);
    }
    out += &lines.map_or(String::new(), Lines::nodes);
    let (arch, joins) = (target.arch(), container::joins(target));
    let source = Source { triple: target.triple.clone(), shell: out, kernels, attributes, arch, joins };
    Ok((source, first.unwrap_or_default()))
}

/// The functions that callers see, which ask one variant after the other.
fn pick(out: &mut String, face: &Face, variants: &[(Vec<Program>, Target)]) {
    let mut supported = String::new();
    let ask = |i: usize, programs: &[Program]| {
        let (own, next) = (supported_symbol(programs), i + 1);
        format!(
            "  %s{i} = call i32 @{own}()\n  %b{i} = icmp ne i32 %s{i}, 0\n  br i1 %b{i}, label %yes{i}, label %ask{next}\nyes{i}:\n"
        )
    };
    for (e, entry) in face.entries.iter().enumerate() {
        let parameters = sized::parameters(entry, face);
        let mut run = String::new();
        for (i, (programs, _)) in variants.iter().enumerate() {
            let own = match &programs[face.programs(e)] {
                [only] if entry.sizes.is_empty() => run_symbol(only),
                several => sized::symbol(several),
            };
            let (ask, next) = (ask(i, programs), i + 1);
            let _ = write!(run, "{ask}  %r{i} = tail call i32 @{own}({parameters})\n  ret i32 %r{i}\nask{next}:\n");
        }
        let function = ranks::driven(entry, face);
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

/// The symbol of what says whether the machine supports one of several variants.
fn supported_symbol(programs: &[Program]) -> String {
    format!("{}_supported", programs.first().map_or("", |p| &p.name))
}

/// The symbol of a program's driver where callers do not see it.
fn run_symbol(program: &Program) -> String {
    format!("{}_run", program.name)
}

/// What differs between the only program of an object and one of several.
#[derive(Clone, Copy)]
struct Linkage {
    /// `internal ` where a function of another name is what callers see.
    visibility: &'static str,
    /// Whether it has the name that callers see, or that without the suffix of a rank.
    is_only: bool,
    /// The number of the first of the two attribute groups.
    attributes: usize,
}

/// The functions of a program's kernels.
#[derive(Default)]
pub struct Functions {
    /// The symbol of each kernel's function: its own, or that of an earlier one of the same form.
    pub symbols: IdVec<KernelId, String>,
    /// The buffers whose addresses each kernel finds in the closure.
    slots: IdVec<KernelId, Vec<BufId>>,
}

impl Functions {
    /// Adds one function for all kernels that differ in nothing but where their memory is, those among them that are `known` of
    /// other programs of the target.
    fn emit(
        kernels: &mut Vec<(String, String)>,
        program: &Program,
        target: &Target,
        group: usize,
        known: &mut HashMap<String, String>,
        lines: &mut Option<Lines>,
    ) -> Result<Functions> {
        let mut functions = Functions::default();
        for (id, kernel) in program.kernels.iter() {
            let emitted = Function::emit(program, kernel, group, lines.is_some(), target)?;
            functions.slots.push(emitted.slots);
            if let Some(first) = known.get(&emitted.text) {
                functions.symbols.push(first.clone());
                continue;
            }
            let symbol = format!("{}_k{}", program.name, id.0);
            let own = lines.as_mut().map(|lines| lines.function(&emitted.text));
            kernels.push((symbol.clone(), own.unwrap_or_else(|| emitted.text.clone())));
            known.insert(emitted.text, symbol.clone());
            functions.symbols.push(symbol);
        }
        Ok(functions)
    }
}

/// The programs of a target.
#[derive(Clone, Copy)]
struct Own<'a> {
    programs: &'a [Program],
    target: &'a Target,
    linkage: Linkage,
}

/// The functions of each program's kernels.
fn functions(kernels: &mut Vec<(String, String)>, own: Own, lines: &mut Option<Lines>) -> Result<Vec<Functions>> {
    let mut known = HashMap::new();
    let one = |program| Functions::emit(kernels, program, own.target, own.linkage.attributes, &mut known, lines);
    own.programs.iter().map(one).collect()
}

/// The feature test and the drivers of a target.
fn drivers(out: &mut String, face: &Face, own: Own, functions: &[Functions], launches: Launches) {
    let Own { programs, target, linkage } = own;
    let (is_only, plain) = (linkage.is_only, linkage.attributes + 1);
    let supported_name = if is_only { format!("{}_supported", face.name) } else { supported_symbol(programs) };
    let supported_visibility = if is_only { "" } else { "internal " };
    supported(out, &supported_name, &target.asks(), (supported_visibility, plain));
    for (e, entry) in face.entries.iter().enumerate() {
        let is_sized = !entry.sizes.is_empty();
        let visibility = if is_sized { "internal " } else { linkage.visibility };
        for i in face.programs(e) {
            let program = &programs[i];
            let driver = Driver {
                program,
                functions: &functions[i],
                run: if is_only && !is_sized { ranks::driven(entry, face) } else { run_symbol(program) },
                supported: &supported_name,
                face,
                shared: crate::kernel::shared(program),
                launches,
                linkage: Linkage { visibility, ..linkage },
                out: String::new(),
                functions_out: String::new(),
                is_part: false,
                next: 0,
            };
            driver.finish(out, target);
        }
        if is_sized {
            let own = &programs[face.programs(e)];
            let run = if is_only { ranks::driven(entry, face) } else { sized::symbol(own) };
            sized::emit(out, (entry, face), own, (linkage.visibility, &run, plain));
        }
    }
}

/// The attributes of a target's kernels, in group `first`, and of its other functions, in the next.
fn groups(target: &Target, first: usize) -> String {
    // Windows walks the stack by tables alone
    let unwound = if target.format() == Format::Coff { " uwtable" } else { "" };
    let plain = first + 1;
    format!(
        "attributes #{first} = {{ nounwind{unwound} \"target-cpu\"=\"{}\" \"tune-cpu\"=\"{}\" \"target-features\"=\"{}\" \"prefer-vector-width\"=\"{}\" \"no-trapping-math\"=\"true\" \"no-builtins\" }}\nattributes #{plain} = {{ nounwind{unwound} \"no-builtins\" }}\n",
        target.code_cpu(),
        target.tune_cpu(),
        target.code_features(),
        target.vector_bits
    )
}

/// A target in a line, as `NAME_info()->target` has it.
fn described(target: &Target) -> String {
    format!("{} {} {}", target.triple, target.cpu, target.features)
}

/// The symbol of the constants.
pub fn weights_symbol(name: &str) -> String {
    format!("{name}_weights")
}

/// `tfaot_executor` of the headers.
const EXECUTOR: &str = "{ ptr, i32, ptr }";

struct Driver<'a> {
    program: &'a Program,
    functions: &'a Functions,
    /// The symbol of the function.
    run: String,
    /// That of what says whether the machine supports it.
    supported: &'a str,
    /// That of the constants.
    face: &'a Face,
    /// Which kernels are offered to other threads.
    shared: IdVec<KernelId, bool>,
    launches: Launches,
    linkage: Linkage,
    /// The driver's text.
    out: String,
    /// Functions beside it.
    functions_out: String,
    /// Whether steps are written that another thread may run, which has no executor.
    is_part: bool,
    next: usize,
}

impl Driver<'_> {
    fn finish(mut self, out: &mut String, target: &Target) {
        let name = self.program.name.clone();
        let Linkage { visibility, attributes, is_only: _ } = self.linkage;
        let (run, supported) = (&self.run.clone(), self.supported);
        let plain = attributes + 1;
        self.steps(&self.program.steps);
        let words = self.words();
        let (memory, tail) = (sized::memory(self.face), sized::tail(self.face));
        *out += &self.functions_out;
        let weights = self.face.file.is_some().then(|| weights_file::test(&self.face.name));
        let (able, weights) = weights.map_or(("go", String::new()), |test| ("able", format!("able:\n{test}")));
        let test = if target.asks().is_empty() {
            format!("  br label %{able}\n{weights}")
        } else {
            format!(
                "  %ok = call i32 @{supported}()\n  %can = icmp ne i32 %ok, 0\n  br i1 %can, label %{able}, label %refuse\nrefuse:\n  ret i32 {E_CPU}\n{weights}"
            )
        };
        let fewest = match self.launches {
            Launches::Direct => 1,
            Launches::Observed => 0,
        };
        let _ = write!(
            out,
            "define internal void @{name}_launch(ptr %exec, ptr %task, ptr %closure, i64 %n) #{plain} {{\nentry:\n  %none = icmp eq ptr %exec, null\n  %single = icmp sle i64 %n, {fewest}\n  %here = or i1 %none, %single\n  br i1 %here, label %direct, label %shared\ndirect:\n  call void %task(ptr %closure, i64 0, i64 %n)\n  ret void\nshared:\n  %self = load ptr, ptr %exec\n  %at = getelementptr {EXECUTOR}, ptr %exec, i64 0, i32 2\n  %for = load ptr, ptr %at\n  call void %for(ptr %self, i64 %n, ptr %task, ptr %closure)\n  ret void\n}}\n\
             define {visibility}i32 @{run}(ptr %args, ptr %results, {memory}ptr %workspace, ptr %exec{tail}) #{plain} {{\nentry:\n  %closure = alloca [{words} x ptr]\n{test}go:\n{}  ret i32 0\n}}\n",
            self.out
        );
        for decl in DECLARATIONS {
            let _ = writeln!(out, "{decl}");
        }
    }

    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    fn steps(&mut self, all: &[Step]) {
        for step in all {
            match step {
                Step::Launch(kernel) => self.launch(*kernel),
                Step::Call(call) => match &call.to {
                    Called::Function(callee) => self.call_user(call, callee),
                    Called::Ranks(exchange) => self.exchange(call, exchange),
                },
                Step::While { cond, pred, body } => {
                    let n = self.fresh();
                    let _ = writeln!(self.out, "  br label %head{n}\nhead{n}:");
                    self.steps(cond);
                    let flag = self.load(*pred, "i8");
                    let _ = writeln!(
                        self.out,
                        "  %more{n} = icmp ne i8 {flag}, 0\n  br i1 %more{n}, label %body{n}, label %done{n}\nbody{n}:"
                    );
                    self.steps(body);
                    let _ = writeln!(self.out, "  br label %head{n}\ndone{n}:");
                }
                Step::Branch { selector, branches } => {
                    let n = self.fresh();
                    let pred = self.program.buffers[*selector].dtype == crate::tensor::DType::Pred;
                    let ty = if pred { "i8" } else { "i32" };
                    let value = self.load(*selector, ty);
                    let last = branches.len().saturating_sub(1);
                    // A `pred` takes branch 0 when it is true.
                    let cases: Vec<String> =
                        (0..last).map(|i| format!("{ty} {}, label %case{n}.{i}", if pred { 1 } else { i })).collect();
                    let _ = writeln!(self.out, "  switch {ty} {value}, label %case{n}.{last} [ {} ]", cases.join(" "));
                    for (i, branch) in branches.iter().enumerate() {
                        let _ = writeln!(self.out, "case{n}.{i}:");
                        self.steps(branch);
                        let _ = writeln!(self.out, "  br label %join{n}");
                    }
                    let _ = writeln!(self.out, "join{n}:");
                }
                Step::Together(parts) => match self.launches {
                    Launches::Direct => self.together(parts),
                    // so that the executor sees every kernel
                    Launches::Observed => parts.iter().for_each(|part| self.steps(part)),
                },
            }
        }
    }

    /// One function of all parts, by their numbers, which finds the arguments of the call in the closure.
    fn together(&mut self, parts: &[Vec<Step>]) {
        let n = self.fresh();
        let name = self.program.name.clone();
        let (out, is_part) = (std::mem::take(&mut self.out), std::mem::replace(&mut self.is_part, true));
        for (i, part) in parts.iter().enumerate() {
            let _ = writeln!(self.out, "part{n}.{i}:");
            self.steps(part);
            let _ = writeln!(self.out, "  br label %next{n}");
        }
        let body = std::mem::replace(&mut self.out, out);
        self.is_part = is_part;
        let cases: Vec<String> = (1..parts.len()).map(|i| format!("i64 {i}, label %part{n}.{i}")).collect();
        let words = self.words();
        let mut state = String::new();
        for (word, name) in self.call().into_iter().enumerate().skip(3) {
            let _ = writeln!(
                state,
                "  %call{word} = getelementptr ptr, ptr %call, i64 {word}\n  {name} = load ptr, ptr %call{word}"
            );
        }
        let _ = write!(
            self.functions_out,
            "define internal void @{name}_t{n}(ptr %call, i64 %begin, i64 %end) #{} {{\nentry:\n  %closure = alloca [{words} x ptr]\n  %args = load ptr, ptr %call\n  %call1 = getelementptr ptr, ptr %call, i64 1\n  %results = load ptr, ptr %call1\n  %call2 = getelementptr ptr, ptr %call, i64 2\n  %workspace = load ptr, ptr %call2\n{state}  br label %head{n}\nhead{n}:\n  %i{n} = phi i64 [ %begin, %entry ], [ %j{n}, %next{n} ]\n  %more{n} = icmp slt i64 %i{n}, %end\n  br i1 %more{n}, label %pick{n}, label %done{n}\npick{n}:\n  switch i64 %i{n}, label %part{n}.0 [ {} ]\n{body}next{n}:\n  %j{n} = add i64 %i{n}, 1\n  br label %head{n}\ndone{n}:\n  ret void\n}}\n",
            self.linkage.attributes + 1,
            cases.join(" ")
        );
        for (word, value) in self.call().into_iter().enumerate() {
            let at = self.fresh();
            let _ = writeln!(
                self.out,
                "  %c{at} = getelementptr ptr, ptr %closure, i64 {word}\n  store ptr {value}, ptr %c{at}"
            );
        }
        let exec = if self.is_part { "null" } else { "%exec" };
        let _ = writeln!(
            self.out,
            "  call void @{name}_launch(ptr {exec}, ptr @{name}_t{n}, ptr %closure, i64 {})",
            parts.len()
        );
    }

    /// The pointers that the parts of a call find in their closure.
    fn call(&self) -> Vec<&'static str> {
        let mut all = vec!["%args", "%results", "%workspace"];
        all.extend(Some("%state").filter(|_| !self.face.state.is_empty()));
        all.extend(Some("%weights").filter(|_| self.face.file.is_some()));
        all
    }

    /// Words of a closure.
    fn words(&self) -> usize {
        // those of parts hold the pointers of the call
        self.call().len().max(1 + self.functions.slots.values().map(Vec::len).max().unwrap_or(0))
    }

    fn launch(&mut self, id: KernelId) {
        let kernel = &self.program.kernels[id];
        let n = match kernel.limit {
            Some((buf, at)) => self.limit(buf, at),
            None => kernel.count().to_string(),
        };
        if self.launches == Launches::Observed {
            let _ = writeln!(self.out, "  store i64 {}, ptr %closure", id.0);
        }
        for (i, &buf) in self.functions.slots[id].iter().enumerate() {
            let (at, word) = (self.address(buf), self.fresh());
            let _ = writeln!(
                self.out,
                "  %c{word} = getelementptr ptr, ptr %closure, i64 {}\n  store ptr {at}, ptr %c{word}",
                i + 1
            );
        }
        let name = &self.program.name;
        let function = format!("@{}", self.functions.symbols[id]);
        let shared = self.shared[id] || self.launches == Launches::Observed;
        let _ = match shared && !self.is_part {
            true => writeln!(self.out, "  call void @{name}_launch(ptr %exec, ptr {function}, ptr %closure, i64 {n})"),
            false => writeln!(self.out, "  call void {function}(ptr %closure, i64 0, i64 {n})"),
        };
    }

    /// Calls a function of the user; where it says that it failed the call of the program ends.
    fn call_user(&mut self, call: &Call, to: &Callee) {
        let all: Vec<String> = call.buffers().collect::<Vec<_>>().into_iter().map(|b| self.address(b)).collect();
        let arrays: String = all.iter().map(|at| format!("ptr {at}, ")).collect();
        let number = self.face.calls.iter().position(|callee| callee == to).unwrap_or(0);
        let (name, told) = (&to.name, info::call_symbol(&self.face.name, number));
        if !to.has_status() {
            let _ = writeln!(self.out, "  call void @{name}({arrays}ptr @{told})");
            return;
        }
        let n = self.fresh();
        let _ = write!(
            self.out,
            "  %s{n} = call i32 @{name}({arrays}ptr @{told})\n  %f{n} = icmp eq i32 %s{n}, 0\n  br i1 %f{n}, label %fine{n}, label %failed{n}\nfailed{n}:\n  ret i32 {E_CALL}\nfine{n}:\n"
        );
    }

    /// Asks other ranks; where one of them fails the call of the program ends.
    fn exchange(&mut self, call: &Call, to: &Exchange) {
        let args: Vec<String> = call.args.iter().map(|&b| self.address(b)).collect();
        let results: Vec<String> = call.results.iter().map(|&b| self.address(b)).collect();
        let (n, result) = (self.fresh(), results.first().map_or("null", String::as_str));
        let (text, tables) = ranks::exchange(to, (&self.program.name, n), &args, result);
        self.out += &text;
        self.functions_out += &tables;
    }

    /// The number of chunks that a call says.
    fn limit(&mut self, buf: BufId, at: u64) -> String {
        let (from, n) = (self.address(buf), self.fresh());
        let _ = writeln!(
            self.out,
            "  %l{n} = getelementptr i8, ptr {from}, i64 {}\n  %v{n} = load i32, ptr %l{n}, align 4\n  %n{n} = sext i32 %v{n} to i64",
            4 * at
        );
        format!("%n{n}")
    }

    /// The address of a buffer.
    fn address(&mut self, buf: BufId) -> String {
        let n = self.fresh();
        let weights = weights_symbol(&self.face.name);
        let _ = match self.program.buffers[buf].place {
            Place::Workspace(at) => writeln!(self.out, "  %p{n} = getelementptr i8, ptr %workspace, i64 {at}"),
            Place::Weights(at) if self.face.file.is_some() => {
                let at = at + HEADER_BYTES;
                writeln!(self.out, "  %p{n} = getelementptr i8, ptr %weights, i64 {at}")
            }
            Place::Weights(at) => writeln!(self.out, "  %p{n} = getelementptr i8, ptr @{weights}, i64 {at}"),
            Place::State(at) => writeln!(self.out, "  %p{n} = getelementptr i8, ptr %state, i64 {at}"),
            // a kernel has it itself, and the verifier has seen that no step reads one
            Place::Stack => writeln!(self.out, "  %p{n} = getelementptr i8, ptr null, i64 0"),
            Place::Arg(i) => {
                writeln!(self.out, "  %q{n} = getelementptr ptr, ptr %args, i64 {i}\n  %p{n} = load ptr, ptr %q{n}")
            }
            Place::Result(i) => {
                writeln!(self.out, "  %q{n} = getelementptr ptr, ptr %results, i64 {i}\n  %p{n} = load ptr, ptr %q{n}")
            }
        };
        format!("%p{n}")
    }

    fn load(&mut self, buf: BufId, ty: &str) -> String {
        let (at, n) = (self.address(buf), self.fresh());
        let _ = writeln!(self.out, "  %v{n} = load {ty}, ptr {at}, align 1");
        format!("%v{n}")
    }
}

/// Intrinsics need no declaration in LLVM's text but for the ones with odd signatures, which the parser knows by itself.
const DECLARATIONS: &[&str] = &[];
