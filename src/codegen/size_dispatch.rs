//! Functions whose sizes vary: a driver that runs one of several programs of fixed sizes.
//!
//! The driver holds the sizes against their bounds, takes the first program that they fit into, and hands it arrays of its sizes. An
//! array of the caller's is dense in the actual sizes; where these are the program's it is handed on as it is, else it is copied to or
//! from an array in the workspace, whose elements beyond the actual sizes are anything. So a call takes the time of its program and of
//! those copies, which for an outermost axis are one `memcpy`.
use crate::kernel::{EntryPoint, ModelInterface, PaddedOffsets, Program};
use crate::tensor::{Size, Sizes, TensorInfo};
use std::fmt::Write;

/// Status of a call with a size out of bounds: `TFAOT_E_SIZE`.
pub const E_SIZE: u32 = 2;
/// Status of a call in which a data-dependent size exceeds its bound: `TFAOT_E_BOUND`.
pub const E_BOUND: u32 = 3;
/// Status of a call in which a run-time check fails: `TFAOT_E_CHECK`.
pub const E_CHECK: u32 = 7;

/// The LLVM parameter list of a public function.
pub fn c_parameters(entry: &EntryPoint, face: &ModelInterface) -> String {
    format!(
        "ptr %args, ptr %results, {}{}ptr %workspace, ptr %exec{}",
        pointer_parameter(!entry.sizes.is_empty(), "sizes"),
        memory_parameters(face),
        trailing_parameters(face)
    )
}

/// The LLVM parameters after the executor.
pub fn trailing_parameters(face: &ModelInterface) -> &'static str {
    if face.ranks.is_some() { ", ptr %ranks" } else { "" }
}

/// The LLVM parameters for the state and the weights file.
pub fn memory_parameters(face: &ModelInterface) -> String {
    pointer_parameter(!face.state.is_empty(), "state") + &pointer_parameter(face.file.is_some(), "weights")
}

fn pointer_parameter(is_there: bool, name: &str) -> String {
    if is_there { format!("ptr %{name}, ") } else { String::new() }
}

/// The symbol of a function's size dispatch if there are several targets.
pub fn dispatch_symbol(programs: &[Program]) -> String {
    format!("{}_sized", programs.first().map_or("", |p| &p.name))
}

/// Emits the size dispatch of `entry` as `run`; `programs` are those of one target, which have drivers of their own.
pub fn emit(
    out: &mut String,
    entry: &EntryPoint,
    face: &ModelInterface,
    programs: &[Program],
    visibility: &str,
    run: &str,
    group: usize,
) {
    let sizes = &entry.sizes;
    let given = sizes.caller_size_count();
    let mut driver =
        Driver { out: String::new(), sizes, memory: memory_parameters(face), tail: trailing_parameters(face), next: 0 };
    driver.allocas(entry.program.args.len(), entry.program.results.len());
    driver.check();
    for (i, program) in programs.iter().enumerate() {
        let fits = entry.rungs.get(i).filter(|_| i + 1 < programs.len());
        driver.out += &format!("pick{i}:\n");
        let held: Vec<String> = fits
            .into_iter()
            .flatten()
            .take(given)
            .enumerate()
            .map(|(s, most)| driver.test("sle", &size(s), *most))
            .collect();
        let all = driver.conjunction(&held);
        match fits {
            Some(_) => driver.line(&format!("br i1 {all}, label %rung{i}, label %pick{}", i + 1)),
            None => driver.line(&format!("br label %rung{i}")),
        }
        driver.out += &format!("rung{i}:\n");
        driver.rung(program);
    }
    let parameters = c_parameters(entry, face);
    let _ = write!(out, "define {visibility}i32 @{run}({parameters}) #{group} {{\nentry:\n{}}}\n", driver.out);
}

/// The LLVM value that holds a size.
fn size(number: usize) -> String {
    format!("%size{number}")
}

/// A loop around the copy of a contiguous run of bytes.
#[derive(Debug, PartialEq, Eq)]
struct Level {
    /// Number of iterations: a number or a register.
    extent: String,
    /// Distance in bytes in the dense array.
    dense: String,
    /// Distance in bytes in the padded array.
    padded: u64,
}

struct Driver<'a> {
    out: String,
    sizes: &'a Sizes,
    /// The arguments of programs between results and workspace.
    memory: String,
    /// The arguments of programs behind the executor.
    tail: &'static str,
    next: usize,
}

impl Driver<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "  {text}");
    }

    /// Emits an instruction and returns its register.
    fn value(&mut self, instruction: &str) -> String {
        self.next += 1;
        let register = format!("%x{}", self.next);
        let _ = writeln!(self.out, "  {register} = {instruction}");
        register
    }

    fn test(&mut self, how: &str, value: &str, bound: u64) -> String {
        self.value(&format!("icmp {how} i64 {value}, {bound}"))
    }

    /// Emits the conjunction of conditions.
    fn conjunction(&mut self, conditions: &[String]) -> String {
        let mut held = "true".to_string();
        for c in conditions {
            held = if held == "true" { c.clone() } else { self.value(&format!("and i1 {held}, {c}")) };
        }
        held
    }

    /// Emits `a * b` of numbers and registers.
    fn product(&mut self, a: &str, b: &str) -> String {
        match (a.parse::<u64>(), b.parse::<u64>()) {
            (Ok(a), Ok(b)) => a.saturating_mul(b).to_string(),
            (Ok(1), _) => b.to_string(),
            (_, Ok(1)) => a.to_string(),
            _ => self.value(&format!("mul i64 {a}, {b}")),
        }
    }

    fn offset(&mut self, from: &str, bytes: &str) -> String {
        self.value(&format!("getelementptr i8, ptr {from}, i64 {bytes}"))
    }

    /// Emits the arrays of pointers that programs are called with, and of the sizes.
    fn allocas(&mut self, args: usize, results: usize) {
        let (given, all) = (self.sizes.caller_size_count(), self.sizes.all.len());
        self.line(&format!("%own_args = alloca [{} x ptr]", (args + given).max(1)));
        self.line(&format!("%own_results = alloca [{} x ptr]", (results + all - given).max(1)));
        self.line(&format!("%numbers = alloca [{} x i32]", all.max(1)));
    }

    /// Emits the reading of the sizes that the caller gives, and the refusal of those out of bounds.
    fn check(&mut self) {
        let given: Vec<Size> = self.sizes.all[..self.sizes.caller_size_count()].to_vec();
        let mut held = Vec::new();
        for (s, one) in given.iter().enumerate() {
            let at = self.offset("%sizes", &(8 * s).to_string());
            self.line(&format!("{} = load i64, ptr {at}, align 8", size(s)));
            held.push(self.test("sge", &size(s), one.least));
            held.push(self.test("sle", &size(s), one.most));
        }
        let all = self.conjunction(&held);
        self.line(&format!("br i1 {all}, label %numbered, label %refuse"));
        self.out += "refuse:\n";
        self.line(&format!("ret i32 {E_SIZE}"));
        self.out += "numbered:\n";
        for s in 0..given.len() {
            let number = self.value(&format!("trunc i64 {} to i32", size(s)));
            let at = self.offset("%numbers", &(4 * s).to_string());
            self.line(&format!("store i32 {number}, ptr {at}"));
        }
        self.line("br label %pick0");
    }

    /// Emits the call of the program for one size bucket.
    fn rung(&mut self, program: &Program) {
        let (sizes, padded) = (self.sizes, PaddedOffsets::of_program(self.sizes, program));
        let given = sizes.caller_size_count();
        for (i, (axes, at)) in sizes.args.iter().zip(&padded.args).enumerate() {
            let theirs = self.pointer("%args", i);
            let mut own = theirs.clone();
            if let Some(at) = at {
                let info = &program.args[i];
                let room = self.offset("%workspace", &at.to_string());
                let same = self.are_whole(axes, &info.dims);
                let done = self.unless(&same);
                self.copy(axes, info, &theirs, &room, true);
                self.join(&done);
                own = self.value(&format!("select i1 {same}, ptr {theirs}, ptr {room}"));
            }
            self.put("%own_args", i, &own);
        }
        for s in 0..given {
            let number = self.offset("%numbers", &(4 * s).to_string());
            self.put("%own_args", sizes.args.len() + s, &number);
        }
        // Where a size is found its array is in the workspace always: the caller's has room for the bound, but nothing is written
        // beyond the size.
        let mut copies = Vec::new();
        for (i, (axes, at)) in sizes.results.iter().zip(&padded.results).enumerate() {
            let theirs = self.pointer("%results", i);
            let mut own = theirs.clone();
            if let Some(at) = at {
                let room = self.offset("%workspace", &at.to_string());
                let is_found = axes.iter().flatten().any(|&s| s >= given);
                let same = if is_found { "false".to_string() } else { self.are_whole(axes, &program.results[i].dims) };
                own = self.value(&format!("select i1 {same}, ptr {theirs}, ptr {room}"));
                copies.push((i, theirs, room, same));
            }
            self.put("%own_results", i, &own);
        }
        for s in given..sizes.all.len() {
            let number = self.offset("%numbers", &(4 * s).to_string());
            self.put("%own_results", sizes.results.len() + s - given, &number);
        }
        self.call(program);
        self.checked();
        let found = self.data_sizes_of_call(program);
        for (i, theirs, room, same) in copies {
            let done = self.unless(&same);
            self.copy_sized(&sizes.results[i], &program.results[i], &theirs, &room, false, &found);
            self.join(&done);
        }
        for (s, value) in found.iter().enumerate().skip(given) {
            let at = self.offset("%sizes", &(8 * s).to_string());
            self.line(&format!("store i64 {value}, ptr {at}, align 8"));
        }
        self.line("ret i32 0");
    }

    /// The caller's pointer number `i`.
    fn pointer(&mut self, list: &str, i: usize) -> String {
        let at = self.value(&format!("getelementptr ptr, ptr {list}, i64 {i}"));
        self.value(&format!("load ptr, ptr {at}"))
    }

    fn put(&mut self, list: &str, i: usize, pointer: &str) {
        let at = self.value(&format!("getelementptr ptr, ptr {list}, i64 {i}"));
        self.line(&format!("store ptr {pointer}, ptr {at}"));
    }

    /// Emits the call of the program's own driver, whose failure is passed on.
    fn call(&mut self, program: &Program) {
        let (memory, tail) = (self.memory.clone(), self.tail);
        let code = self.value(&format!(
            "call i32 @{}_run(ptr %own_args, ptr %own_results, {memory}ptr %workspace, ptr %exec{tail})",
            program.name
        ));
        let fine = self.value(&format!("icmp eq i32 {code}, 0"));
        let n = self.label();
        let _ = write!(
            self.out,
            "  br i1 {fine}, label %done{n}, label %failed{n}\nfailed{n}:\n  ret i32 {code}\ndone{n}:\n"
        );
    }

    /// Ends a call in which a check fails, after storing the values of the checks in the caller's sizes.
    fn checked(&mut self) {
        let checks: Vec<usize> = (0..self.sizes.all.len()).filter(|&s| self.sizes.all[s].is_check).collect();
        let mut held = Vec::new();
        for s in checks {
            let at = self.offset("%numbers", &(4 * s).to_string());
            let number = self.value(&format!("load i32, ptr {at}"));
            let value = self.value(&format!("zext i32 {number} to i64"));
            held.push(self.test("eq", &value, 0));
            let to = self.offset("%sizes", &(8 * s).to_string());
            self.line(&format!("store i64 {value}, ptr {to}, align 8"));
        }
        if !held.is_empty() {
            let (all, n) = (self.conjunction(&held), self.label());
            let _ = write!(
                self.out,
                "  br i1 {all}, label %checked{n}, label %wrong{n}\nwrong{n}:\n  ret i32 {E_CHECK}\nchecked{n}:\n"
            );
        }
    }

    /// Emits the values of all sizes after the call; one beyond its bound ends the call.
    fn data_sizes_of_call(&mut self, program: &Program) -> Vec<String> {
        let given = self.sizes.caller_size_count();
        let mut values: Vec<String> = (0..given).map(size).collect();
        let mut held = Vec::new();
        for s in given..self.sizes.all.len() {
            let at = self.offset("%numbers", &(4 * s).to_string());
            let number = self.value(&format!("load i32, ptr {at}"));
            let value = self.value(&format!("sext i32 {number} to i64"));
            held.push(self.test("sge", &value, 0));
            held.push(self.test("sle", &value, room_for(self.sizes, program, s)));
            values.push(value);
        }
        if !held.is_empty() {
            let (all, n) = (self.conjunction(&held), self.label());
            let _ = write!(
                self.out,
                "  br i1 {all}, label %held{n}, label %beyond{n}\nbeyond{n}:\n  ret i32 {E_BOUND}\nheld{n}:\n"
            );
        }
        values
    }

    fn label(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    /// Emits a test whether the actual sizes of an array are those of the program.
    fn are_whole(&mut self, axes: &[Option<usize>], dims: &[u64]) -> String {
        let pairs: Vec<(usize, u64)> = axes.iter().zip(dims).filter_map(|(axis, &n)| Some(((*axis)?, n))).collect();
        let same: Vec<String> = pairs.into_iter().map(|(s, n)| self.test("eq", &size(s), n)).collect();
        self.conjunction(&same)
    }

    /// Starts code that is skipped if a condition holds; returns the label after it.
    fn unless(&mut self, condition: &str) -> String {
        let n = self.label();
        let _ = write!(self.out, "  br i1 {condition}, label %after{n}, label %copy{n}\ncopy{n}:\n");
        format!("after{n}")
    }

    fn join(&mut self, label: &str) {
        let _ = write!(self.out, "  br label %{label}\n{label}:\n");
    }

    /// Emits the copy of the actual elements of an array whose sizes the caller gave.
    fn copy(&mut self, axes: &[Option<usize>], info: &TensorInfo, dense: &str, padded: &str, is_in: bool) {
        let values: Vec<String> = (0..self.sizes.all.len()).map(size).collect();
        self.copy_sized(axes, info, dense, padded, is_in, &values);
    }

    /// Emits the copy of the actual elements between the dense array and the padded one, which is of `info`.
    fn copy_sized(
        &mut self,
        axes: &[Option<usize>],
        info: &TensorInfo,
        dense: &str,
        padded: &str,
        is_in: bool,
        values: &[String],
    ) {
        let (run, levels) = self.levels(axes, info, values);
        let (mut from, mut open) = ([dense.to_string(), padded.to_string()], Vec::new());
        for level in levels.iter().rev() {
            let n = self.label();
            let _ = write!(
                self.out,
                "  br label %before{n}\nbefore{n}:\n  br label %head{n}\nhead{n}:\n  %i{n} = phi i64 [ 0, %before{n} ], [ %j{n}, %next{n} ]\n  %more{n} = icmp slt i64 %i{n}, {}\n  br i1 %more{n}, label %body{n}, label %end{n}\nbody{n}:\n",
                level.extent
            );
            for (at, step) in from.iter_mut().zip([level.dense.clone(), level.padded.to_string()]) {
                let bytes = self.value(&format!("mul i64 %i{n}, {step}"));
                *at = self.offset(at, &bytes);
            }
            open.push(n);
        }
        let (to, from) = if is_in { (&from[1], &from[0]) } else { (&from[0], &from[1]) };
        self.line(&format!("call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {from}, i64 {run}, i1 false)"));
        for n in open.into_iter().rev() {
            let _ = write!(
                self.out,
                "  br label %next{n}\nnext{n}:\n  %j{n} = add i64 %i{n}, 1\n  br label %head{n}\nend{n}:\n"
            );
        }
    }

    /// The contiguous run of bytes in both arrays and the loops around it, innermost first: everything inside the last varying axis is
    /// one run, and fixed axes are merged with the next one outside.
    fn levels(&mut self, axes: &[Option<usize>], info: &TensorInfo, values: &[String]) -> (String, Vec<Level>) {
        let last = axes.iter().rposition(Option::is_some).unwrap_or(0);
        let inner: u64 = info.dims[last + 1..].iter().product::<u64>() * info.dtype.bytes() as u64;
        let extent = |axis: usize| axes[axis].map_or_else(|| info.dims[axis].to_string(), |s| values[s].clone());
        let run = self.product(&extent(last), &inner.to_string());
        let (mut dense, mut padded) = (run.clone(), info.dims[last] * inner);
        let mut levels: Vec<(Level, u64)> = Vec::new();
        for axis in (0..last).rev() {
            let fixed = levels.last().is_some_and(|(level, _)| level.extent.parse::<u64>().is_ok());
            match levels.last_mut() {
                Some((level, whole)) if fixed => {
                    level.extent = self.product(&extent(axis), &level.extent);
                    *whole *= info.dims[axis];
                }
                _ => levels.push((Level { extent: extent(axis), dense: dense.clone(), padded }, info.dims[axis])),
            }
            if let Some((level, whole)) = levels.last() {
                dense = self.product(&level.dense, &level.extent);
                padded = level.padded * whole;
            }
        }
        (run, levels.into_iter().map(|(level, _)| level).collect())
    }
}

/// Upper bound of a data-dependent size in a program: its own bound, and the room in arrays.
fn room_for(sizes: &Sizes, program: &Program, number: usize) -> u64 {
    let arrays = sizes.results.iter().zip(&program.results);
    let dims = arrays.flat_map(|(axes, info)| axes.iter().zip(&info.dims));
    let of_arrays = dims.filter(|(axis, _)| **axis == Some(number)).map(|(_, &n)| n);
    of_arrays.chain([sizes.all[number].most]).min().unwrap_or(0)
}
