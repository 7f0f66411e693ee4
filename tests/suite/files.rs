//! Tests that are files: a module of HLO, a line of `=`, and what must come of it. A file that is added is a test that is
//! added; `TFAOT_BLESS=1` writes anew what stands below the line.
//!
//! | folder | what a stage makes of the module |
//! |---|---|
//! | `tests/passes/PASS/` | the module after that pass, run once |
//! | `tests/plans/` | the plan and its kernels, for the processor of the first line: `// target TRIPLE CPU` |
//! | `tests/llvm/` | LLVM's text of those kernels, likewise |
//! | `tests/rules/` | what the verifier says: `taken`, or why it is refused; names begin with the number of the rule |
//! | `tests/kernel_rules/` | the same of programs of kernels, which are written as `common/read_kernels.rs` reads them |
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tfaot::codegen::{self, TextForm};
use tfaot::hlo::{text, verify};
use tfaot::kernel::Program;
use tfaot::target::{CodeRequest, Target};
use tfaot::{compile, kernel, optimize};

/// Between a module and what comes of it.
const LINE: &str = "\n====\n";
/// What a file of a module that no rule refuses says.
const TAKEN: &str = "taken\n";

/// The files below a folder, `.hlo` or `.kernel`, sorted.
fn files(folder: &str) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![crate::common::path(folder)]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())).flatten() {
            let path = entry.path();
            match path.extension() {
                _ if path.is_dir() => open.push(path),
                Some(end) if end == "hlo" || end == "kernel" => found.push(path),
                _ => panic!("{} is no test: its name ends with neither .hlo nor .kernel", path.display()),
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "{folder} holds no test");
    found
}

/// Holds every file of `folder` against what `make` gives for its path and its module, or writes that into it.
fn check(folder: &str, make: impl Fn(&Path, &str) -> Result<String, String>) {
    let bless = std::env::var("TFAOT_BLESS").is_ok_and(|v| v == "1");
    let mut wrong = Vec::new();
    for path in files(folder) {
        let whole = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let (module, want) = whole.split_once(LINE).unwrap_or((whole.trim_end(), ""));
        match make(&path, module) {
            Err(why) => wrong.push(format!("{}: {why}", path.display())),
            Ok(got) if bless && got != want => {
                std::fs::write(&path, format!("{module}{LINE}{got}")).expect("a writable folder");
            }
            Ok(got) => wrong.extend(departure(&got, want).map(|why| format!("{}: {why}", path.display()))),
        }
    }
    assert!(wrong.is_empty(), "TFAOT_BLESS=1 writes what is meant to change\n{}", wrong.join("\n"));
}

/// The first line that differs.
fn departure(got: &str, want: &str) -> Option<String> {
    let lines = got.lines().map(Some).chain([None]).zip(want.lines().map(Some).chain([None]));
    let (n, (g, w)) = lines.enumerate().find(|(_, (g, w))| g != w)?;
    let shown = |line: Option<&str>| line.map_or("nothing".to_string(), |l| format!("`{l}`"));
    Some(format!("line {} below the ====: {} instead of {}", n + 1, shown(g), shown(w)))
}

fn folder_of(path: &Path) -> String {
    path.parent().and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

#[test]
fn passes() {
    check("tests/passes", |path, source| {
        let mut module = text::parse(source).map_err(|e| e.to_string())?;
        verify::verify(&module).map_err(|e| e.to_string())?;
        optimize::run_passes(&mut module, &[&folder_of(path)], |_, _, _, _| {}).map_err(|e| e.to_string())?;
        verify::verify(&module).map_err(|e| format!("after the pass: {e}"))?;
        Ok(text::print(&module))
    });
}

#[test]
fn every_pass_has_a_file_that_it_changes() {
    let mut changed = BTreeMap::new();
    for path in files("tests/passes") {
        let whole = std::fs::read_to_string(&path).expect("it was listed");
        let (before, after) = whole.split_once(LINE).unwrap_or_default();
        let printed = text::parse(before).map(|m| text::print(&m)).unwrap_or_default();
        *changed.entry(folder_of(&path)).or_insert(false) |= printed != after;
    }
    for pass in optimize::PIPELINE.iter().chain(optimize::EXPANSIONS) {
        assert!(changed.get(pass.name).is_some_and(|c| *c), "no file in tests/passes/{} shows what it does", pass.name);
    }
}

/// The kernels of a module for the processor that its first line names.
fn program(source: &str) -> Result<(Program, Target), String> {
    planned(source, None)
}

/// The same, by the plan in that text.
fn planned(source: &str, plans: Option<String>) -> Result<(Program, Target), String> {
    let first = source.lines().next().unwrap_or_default();
    let words: Vec<&str> = first.split_whitespace().collect();
    let ["//", "target", triple, cpu] = words[..] else {
        return Err(format!("the first line is `// target TRIPLE CPU`, not `{first}`"));
    };
    let target = Target::resolve(Some(triple), Some(cpu), None).map_err(|e| e.to_string())?;
    let request = CodeRequest { plans, ..CodeRequest::from(&target) };
    let module = text::parse(source).map_err(|e| e.to_string())?;
    verify::verify(&module).map_err(|e| e.to_string())?;
    let lowered = compile::wrap_module(module).map_err(|e| e.to_string())?;
    let (_, program) = compile::plan(lowered, "m", "m", request).map_err(|e| e.to_string())?;
    Ok((program, target))
}

#[test]
fn plans() {
    check("tests/plans", |_, source| {
        let (program, _) = program(source)?;
        let kernels = kernel::print_program(&program);
        let (again, _) = planned(source, Some(program.plan.clone()))?;
        match again.plan == program.plan && kernel::print_program(&again) == kernels {
            true => Ok(format!("{}\n{kernels}", program.plan)),
            false => Err(format!("read back, the plan is another one:\n{}", again.plan)),
        }
    });
}

/// The text of the file test of that name, above its line.
fn source_of(test: &str) -> String {
    let whole = std::fs::read_to_string(crate::common::path(&format!("tests/plans/{test}.hlo"))).expect("a file test");
    whole.split(LINE).next().unwrap_or_default().to_string()
}

#[test]
fn a_plan_by_hand_is_followed() {
    let source = source_of("many_channels_take_winograds_method");
    let (searched, _) = program(&source).expect("a program");
    let by_hand = "plan m\n# weights that are transformed before any call\nknown e y\n";
    let (program, _) = planned(&source, Some(by_hand.to_string())).expect("a program");
    assert!(searched.plan.contains("weights transformed"), "{}", searched.plan);
    assert!(program.plan.contains("weights known"), "{}", program.plan);
    assert!(program.weights_bytes >= 4 * 36 * 32 * 32, "{}", program.weights_bytes);
    assert_eq!(planned(&source, Some(program.plan.clone())).map(|(again, _)| again.plan), Ok(program.plan));
}

#[test]
fn a_plan_of_another_module_is_refused() {
    let source = source_of("many_channels_take_winograds_method");
    let (of_searched, _) = program(&source).expect("a program");
    let cases = [
        ("", "there is no plan of `m`"),
        ("plan a\nplan b\n", "there is no plan of `m`"),
        ("plan m\nhalves some\n", "line 2: `halves` is followed by none, once or twice"),
        ("plan m\nknown e z\n", "line 2: `known e z` is no choice for this graph"),
        ("plan m\nknown e x\n", "line 2: `known e x` is no choice for this graph"),
        ("plan m\nroom e y much\n", "line 2: `room e y much` is no choice for this graph"),
        ("plan m\norder y w x\n", "line 2: `order y w x` is no choice for this graph"),
        ("plan m\norder x x w y\n", "line 2: `order x x w y` is no choice for this graph"),
        ("plan m\napart e y\n", "line 2: `apart e y` is no choice for this graph"),
    ];
    let lines = of_searched.plan.replace("products", "product");
    let short = of_searched.plan.trim_end().rsplit_once('\n').expect("several lines").0.to_string();
    let texts = [(lines.as_str(), "the plan has `y: winograd"), (short.as_str(), "the plan ends before `y: winograd")];
    for (text, why) in cases.into_iter().chain(texts) {
        let said = planned(&source, Some(text.to_string())).map(|(p, _)| p.plan).expect_err(text);
        assert!(said.contains("TFA0007") && said.contains(why), "{text:?}: {said}");
    }
}

#[test]
fn llvm() {
    check("tests/llvm", |_, source| {
        let (program, target) = program(source)?;
        codegen::print(&program, &target, TextForm::LlvmIr).map_err(|e| e.to_string())
    });
}

/// What the verifier says of a module. What text can't even name (a gap in parameters, a computation before itself) breaks
/// rules 1 and 2, which the parser holds of texts and the verifier of messages and of what passes make.
fn verdict(source: &str) -> String {
    let error = text::parse(source).and_then(|module| verify::verify(&module)).err();
    error.map_or(TAKEN.to_string(), |e| format!("{}\n", e.to_string().trim_end()))
}

/// What the verifier says of a program of kernels.
fn verdict_of_kernels(source: &str) -> Result<String, String> {
    let error = kernel::verify(&crate::common::read_kernels::program(source)?).err();
    Ok(error.map_or(TAKEN.to_string(), |e| format!("{}\n", e.to_string().trim_end())))
}

/// What is `said` of a file; an error where its name has another verdict, or another rule refuses it than the first of its numbers.
fn as_named(path: &Path, said: String, rule: impl Fn(u32) -> String) -> Result<String, String> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let refused = name.contains("refuse");
    if refused != (said != TAKEN) {
        return Err(format!("a name with `refuse` says that it is refused; the verifier says: {said}"));
    }
    let number: u32 = name.split('_').next().and_then(|n| n.parse().ok()).ok_or("its name begins with no number")?;
    match !refused || said.contains(&rule(number)) {
        true => Ok(said),
        false => Err(format!("another rule than {number} refuses it: {said}")),
    }
}

/// Holds that each of the rules has a file in `folder` that it refuses and one that it takes.
fn have_files(folder: &str, numbers: &[u32]) {
    assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>());
    assert!(numbers.len() >= 12, "the list of rules at the top of the verifier was not found");
    let name = |p: &PathBuf| p.file_stem().map(|n| n.to_string_lossy().into_owned());
    let names: Vec<String> = files(folder).iter().filter_map(name).collect();
    for number in numbers {
        let of = |refused: bool| {
            names.iter().any(|n| n.starts_with(&format!("{number:02}_")) && n.contains("refuse") == refused)
        };
        assert!(of(true) && of(false), "{folder}: rule {number} needs a file that it refuses and one that it takes");
    }
}

#[test]
fn rules() {
    // the verifier of modules tells no numbers
    check("tests/rules", |path, source| as_named(path, verdict(source), |_| String::new()));
}

#[test]
fn kernel_rules() {
    check("tests/kernel_rules", |path, source| {
        as_named(path, verdict_of_kernels(source)?, |number| format!("k{number}: "))
    });
}

#[test]
fn every_rule_refuses_one_file_and_takes_one() {
    let numbered = |file: &str, head: &str, end: &str| -> Vec<u32> {
        let source = std::fs::read_to_string(crate::common::path(file)).expect("the verifier");
        source.lines().filter_map(|l| l.strip_prefix(head)?.split_once(end)?.0.parse().ok()).collect()
    };
    have_files("tests/rules", &numbered("src/hlo/verify/mod.rs", "//! ", ". "));
    have_files("tests/kernel_rules", &numbered("src/kernel/verify/mod.rs", "//! | k", " | "));
}
