//! The driver `NAME_run` of a program: its steps as calls of the kernels' functions, at once or through the caller's executor.
use super::Launches;
use super::module::{E_CALL, E_CPU, KernelFunctions, Linkage, weights_symbol};
use super::{info, ranks, size_dispatch, weights_file};
use crate::kernel::{
    self, BufId, BufferLocation, Call, CallTarget, Callee, Exchange, HEADER_BYTES, HOST_CALL_SYMBOL, HostFunction,
    KernelId, ModelInterface, Program, Step,
};
use crate::target::Target;
use crate::util::id_vec::IdVec;
use std::fmt::Write;

/// LLVM type of `tfaot_executor` in the C header.
const EXECUTOR: &str = "{ ptr, i32, ptr }";

/// Upper limit of consecutive steps in one function: LLVM's register allocation takes time quadratic in the calls of a function.
const MOST_STEPS: usize = 2048;

/// A driver being emitted: the function that runs the steps of a call.
pub(super) struct DriverEmitter<'a> {
    program: &'a Program,
    functions: &'a KernelFunctions,
    /// The symbol of the function.
    run: String,
    /// Symbol of the function that tests whether the machine supports the code.
    supported: &'a str,
    /// The model's C interface: names, functions, state, and the weights file if the object has no constants.
    face: &'a ModelInterface,
    /// Whether each kernel offers its chunks to other threads.
    shared: IdVec<KernelId, bool>,
    launches: Launches,
    linkage: Linkage,
    /// The driver's text.
    out: String,
    /// Further functions that the driver calls.
    functions_out: String,
    /// Whether the steps being emitted may run on another thread, which has no executor.
    is_part: bool,
    /// The most arrays of a call of a function of the process.
    most_host_arrays: usize,
    next: usize,
}

impl<'a> DriverEmitter<'a> {
    /// Starts the driver of `program` as function `run`, which calls function `supported` first.
    pub(super) fn new(
        program: &'a Program,
        functions: &'a KernelFunctions,
        face: &'a ModelInterface,
        run: String,
        supported: &'a str,
        linkage: Linkage,
        launches: Launches,
    ) -> DriverEmitter<'a> {
        DriverEmitter {
            program,
            functions,
            run,
            supported,
            face,
            shared: kernel::parallel_kernels(program),
            launches,
            linkage,
            out: String::new(),
            functions_out: String::new(),
            is_part: false,
            most_host_arrays: kernel::most_host_arrays([program]).unwrap_or(0),
            next: 0,
        }
    }

    /// Emits the whole driver.
    pub(super) fn finish(mut self, out: &mut String, target: &Target) {
        let name = self.program.name.clone();
        let Linkage { visibility, attributes, is_only: _ } = self.linkage;
        let (run, supported) = (&self.run.clone(), self.supported);
        let plain = attributes + 1;
        self.steps(&self.program.steps);
        let words = self.words();
        let (memory, tail) =
            (size_dispatch::memory_parameters(self.face), size_dispatch::trailing_parameters(self.face));
        *out += &self.functions_out;
        let weights = self.face.file.is_some().then(|| weights_file::emit_header_test(&self.face.name));
        let (able, weights) = weights.map_or(("go", String::new()), |test| ("able", format!("able:\n{test}")));
        let test = if target.machine_checks().is_empty() {
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
    }

    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    fn steps(&mut self, all: &[Step]) {
        match all.len() {
            0..=MOST_STEPS => self.written_here(all),
            _ => all.chunks(MOST_STEPS).for_each(|steps| self.called(steps)),
        }
    }

    /// Emits steps as a function of their own, and its call; if a step fails, the function returns its code.
    fn called(&mut self, steps: &[Step]) {
        let (n, name) = (self.fresh(), &self.program.name);
        let out = std::mem::take(&mut self.out);
        self.written_here(steps);
        let body = std::mem::replace(&mut self.out, out);
        let tail = if self.is_part { "" } else { size_dispatch::trailing_parameters(self.face) };
        let parameters =
            format!("ptr %args, ptr %results, {}ptr %workspace, ptr", size_dispatch::memory_parameters(self.face));
        let exec = if self.is_part { "null" } else { "%exec" };
        let _ = write!(
            self.functions_out,
            "define internal i32 @{name}_s{n}({parameters} %exec{tail}) noinline #{} {{\nentry:\n  %closure = alloca [{} x ptr]\n{body}  ret i32 0\n}}\n",
            self.linkage.attributes + 1,
            self.words()
        );
        let _ = writeln!(self.out, "  %s{n} = call i32 @{name}_s{n}({parameters} {exec}{tail})");
        // steps that run beside others call nothing that fails
        if !self.is_part {
            let _ = write!(
                self.out,
                "  %f{n} = icmp eq i32 %s{n}, 0\n  br i1 %f{n}, label %fine{n}, label %failed{n}\nfailed{n}:\n  ret i32 %s{n}\nfine{n}:\n"
            );
        }
    }

    /// Emits steps one after the other.
    fn written_here(&mut self, all: &[Step]) {
        for step in all {
            match step {
                Step::Launch(kernel) => self.launch(*kernel),
                Step::Call(call) => match &call.to {
                    CallTarget::Function(callee) => self.call_user(call, callee),
                    CallTarget::Host(function) => self.call_host(call, function),
                    CallTarget::Ranks(exchange) => self.exchange(call, exchange),
                },
                Step::While { cond, pred, body, .. } => {
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
                    let is_pred = self.program.buffers[*selector].dtype == crate::tensor::DType::Pred;
                    let ty = if is_pred { "i8" } else { "i32" };
                    let mut number = self.load(*selector, ty);
                    if is_pred {
                        // a `pred` takes branch 0 when it is true
                        let _ = writeln!(self.out, "  %not{n} = xor i8 {number}, 1");
                        number = format!("%not{n}");
                    }
                    self.choose(n, ty, &number, branches, 0);
                    let _ = writeln!(self.out, "  br label %join{n}\njoin{n}:");
                }
                Step::Together(parts) => match self.launches {
                    Launches::Direct => self.emit_parallel_steps(parts),
                    // so that the executor sees every kernel
                    Launches::Observed => parts.iter().for_each(|part| self.steps(part)),
                },
            }
        }
    }

    /// Emits the steps of one of `branches` by its number, of which the first has the number `first`: numbers above the last take the last,
    /// and so do negative ones. Each half of the branches is one side of a condition.
    fn choose(&mut self, n: usize, ty: &str, number: &str, branches: &[Vec<Step>], first: usize) {
        match branches {
            [] => return,
            [steps] => return self.steps(steps),
            _ => {}
        }
        let (low, high) = branches.split_at(branches.len() / 2);
        let middle = first + low.len();
        let _ = writeln!(
            self.out,
            "  %below{n}.{middle} = icmp ult {ty} {number}, {middle}\n  br i1 %below{n}.{middle}, label %low{n}.{middle}, label %high{n}.{middle}\nlow{n}.{middle}:"
        );
        self.choose(n, ty, number, low, first);
        let _ = writeln!(self.out, "  br label %both{n}.{middle}\nhigh{n}.{middle}:");
        self.choose(n, ty, number, high, middle);
        let _ = writeln!(self.out, "  br label %both{n}.{middle}\nboth{n}.{middle}:");
    }

    /// Emits one function that runs a part by its number, and finds the arguments of the call in the closure.
    fn emit_parallel_steps(&mut self, parts: &[Vec<Step>]) {
        let n = self.fresh();
        let name = self.program.name.clone();
        let (out, is_part) = (std::mem::take(&mut self.out), std::mem::replace(&mut self.is_part, true));
        self.choose(n, "i64", &format!("%i{n}"), parts, 0);
        let body = std::mem::replace(&mut self.out, out);
        self.is_part = is_part;
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
            "define internal void @{name}_t{n}(ptr %call, i64 %begin, i64 %end) #{} {{\nentry:\n  %closure = alloca [{words} x ptr]\n  %args = load ptr, ptr %call\n  %call1 = getelementptr ptr, ptr %call, i64 1\n  %results = load ptr, ptr %call1\n  %call2 = getelementptr ptr, ptr %call, i64 2\n  %workspace = load ptr, ptr %call2\n{state}  br label %head{n}\nhead{n}:\n  %i{n} = phi i64 [ %begin, %entry ], [ %j{n}, %next{n} ]\n  %more{n} = icmp slt i64 %i{n}, %end\n  br i1 %more{n}, label %pick{n}, label %done{n}\npick{n}:\n{body}  br label %next{n}\nnext{n}:\n  %j{n} = add i64 %i{n}, 1\n  br label %head{n}\ndone{n}:\n  ret void\n}}\n",
            self.linkage.attributes + 1
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
        // those of parts hold the pointers of the call, those of host calls the arrays
        self.call()
            .len()
            .max(self.most_host_arrays)
            .max(1 + self.functions.slots.values().map(Vec::len).max().unwrap_or(0))
    }

    fn launch(&mut self, id: KernelId) {
        let kernel = &self.program.kernels[id];
        let n = match kernel.limit {
            Some((buf, at)) => self.limit(buf, at),
            None => kernel.chunk_count().to_string(),
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

    /// Emits a call of a user's function; if it reports a failure the program's call ends.
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

    /// Emits a call of a function of the process, which finds its arrays in the closure; if it reports a failure the program's call ends.
    fn call_host(&mut self, call: &Call, to: &HostFunction) {
        let all: Vec<BufId> = call.buffers().collect();
        for (word, buf) in all.into_iter().enumerate() {
            let (at, n) = (self.address(buf), self.fresh());
            let _ = writeln!(
                self.out,
                "  %c{n} = getelementptr ptr, ptr %closure, i64 {word}\n  store ptr {at}, ptr %c{n}"
            );
        }
        let n = self.fresh();
        let _ = write!(
            self.out,
            "  %s{n} = call i32 @{HOST_CALL_SYMBOL}(i64 {}, ptr %closure)\n  %f{n} = icmp eq i32 %s{n}, 0\n  br i1 %f{n}, label %fine{n}, label %failed{n}\nfailed{n}:\n  ret i32 {E_CALL}\nfine{n}:\n",
            to.number
        );
    }

    /// Emits an exchange with other ranks; if one of them fails the program's call ends.
    fn exchange(&mut self, call: &Call, to: &Exchange) {
        let args: Vec<String> = call.args.iter().map(|&b| self.address(b)).collect();
        let results: Vec<String> = call.results.iter().map(|&b| self.address(b)).collect();
        let (n, result) = (self.fresh(), results.first().map_or("null", String::as_str));
        let (text, tables) = ranks::emit_exchange(to, &self.program.name, n, &args, result);
        self.out += &text;
        self.functions_out += &tables;
    }

    /// Emits the load of the number of chunks that a call needs.
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
            BufferLocation::Workspace(at) => writeln!(self.out, "  %p{n} = getelementptr i8, ptr %workspace, i64 {at}"),
            BufferLocation::Weights(at) if self.face.file.is_some() => {
                let at = at + HEADER_BYTES;
                writeln!(self.out, "  %p{n} = getelementptr i8, ptr %weights, i64 {at}")
            }
            BufferLocation::Weights(at) => writeln!(self.out, "  %p{n} = getelementptr i8, ptr @{weights}, i64 {at}"),
            BufferLocation::State(at) => writeln!(self.out, "  %p{n} = getelementptr i8, ptr %state, i64 {at}"),
            // a kernel has it itself, and the verifier has seen that no step reads one
            BufferLocation::Stack => writeln!(self.out, "  %p{n} = getelementptr i8, ptr null, i64 0"),
            BufferLocation::Arg(i) => {
                writeln!(self.out, "  %q{n} = getelementptr ptr, ptr %args, i64 {i}\n  %p{n} = load ptr, ptr %q{n}")
            }
            BufferLocation::Result(i) => {
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
