//! A processor with AMX and AVX-VNNI that runs objects here: this one's where it has all that they need, or what `tests/objects/tiles.c` plays.
use crate::common::{path, program, said};
use object::{Object, ObjectSection, ObjectSymbol};
use std::process::Command;
use tfaot::kernel::{ModelInterface, Program};
use tfaot::package::{header, pool};
use tfaot::target::Target;
use tfaot::tensor::Tensor;

/// The object with other instructions where model `name` asks the processor and the system.
fn asking(object: &[u8], name: &str) -> Vec<u8> {
    let file = object::File::parse(object).expect("an object");
    let name = format!("{name}_supported");
    let symbol = file.symbols().find(|s| s.name() == Ok(&name)).expect("it is there");
    let section = file.section_by_index(symbol.section_index().expect("it is here")).expect("a section");
    let from = (section.file_range().expect("it has bytes").0 + symbol.address()) as usize;
    let mut out = object.to_vec();
    let code = &mut out[from..from + symbol.size() as usize];
    let mut counts = [0; 3];
    for at in 0..code.len() - 1 {
        match code[at..] {
            [0x0f, 0xa2, ..] => (code[at + 1], counts[0]) = (0x0b, counts[0] + 1),
            [0x0f, 0x01, 0xd0, ..] => (code[at + 1], counts[1]) = (0xb9, counts[1] + 1),
            [0x0f, 0x05, ..] => (code[at + 1], counts[2]) = (0xff, counts[2] + 1),
            _ => {}
        }
    }
    assert!(counts[0] > 2 && counts[1] == 1 && counts[2] <= 1, "{counts:?}");
    out
}

/// What runs such objects here.
pub struct Machine {
    compiler: &'static str,
    /// Whether this processor has the instructions that `tests/objects/tiles.c` plays.
    has_all: bool,
}

/// An object with the names that a program calls it by.
pub struct Called<'o> {
    pub object: &'o [u8],
    /// The model that asks for the instructions that are played.
    pub asked: &'o str,
    /// A target of the object.
    pub target: &'o Target,
    /// The program that the object is called as.
    pub program: &'o Program,
}

impl Machine {
    /// This machine, if the processor has all of `needed`, in Linux's names; it has no need to have `played`.
    pub fn here(needed: &[&str], played: &[&str]) -> Option<Machine> {
        let told = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let has = |flag: &&str| told.split_whitespace().any(|f| f == *flag);
        if let Some(missing) = needed.iter().find(|flag| !has(flag) || !cfg!(target_arch = "x86_64")) {
            eprintln!("SKIPPED: this processor has no {missing}");
            return None;
        }
        Some(Machine { compiler: program(&["gcc", "clang-22"])?, has_all: played.iter().all(has) })
    }

    /// The results of a call by one thread and by three, which must be the same, on the processor with `state`; `None` if it refuses the call.
    pub fn run(&self, called: &Called<'_>, args: &[Tensor], state: &str) -> Option<Vec<Vec<u8>>> {
        let [alone, together] = [false, true].map(|threads| self.call(called, args, state, threads));
        assert!(alone == together, "three threads have other results");
        alone
    }

    fn call(&self, called: &Called<'_>, args: &[Tensor], state: &str, threads: bool) -> Option<Vec<Vec<u8>>> {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let folder = folder.path();
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).expect("written");
        let is_real = self.has_all && state == "all";
        write("m.o", &if is_real { called.object.to_vec() } else { asking(called.object, called.asked) });
        let interface = ModelInterface::of_program(called.program);
        write("m.h", header::header(&interface, &[called.target]).as_bytes());
        write("tfaot_pool.h", pool::HEADER.as_bytes());
        for (i, arg) in args.iter().enumerate() {
            write(&format!("in.{i}"), &arg.bytes);
        }
        let mut build = Command::new(self.compiler);
        build.args(["-std=gnu11", "-O2", "-pthread", "-DHEADER=\"m.h\"", "-DINFO=m_info", "-I"]).arg(folder);
        build.args(threads.then_some("-DPOOL=\"tfaot_pool.h\""));
        build.args(["tests/objects/driver.c", "tests/objects/tiles.c"].map(path)).arg(folder.join("m.o"));
        let output = build.args(["-lm", "-o"]).arg(folder.join("driver")).output().expect("the compiler runs");
        assert!(output.status.success(), "{}", said(&output));
        let output = Command::new(folder.join("driver")).arg(folder).env("TILES", state).output().expect("it runs");
        if said(&output).contains("the call failed") {
            return None;
        }
        assert!(output.status.success(), "{}: {}", output.status, said(&output));
        let read = |i| std::fs::read(folder.join(format!("out.{i}"))).expect("the driver wrote it");
        Some((0..called.program.results.len()).map(read).collect())
    }
}
