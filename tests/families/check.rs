//! Seeds to modules, modules to machine code, and what machine code says against what the interpreter says.
use super::common::state::{packed, unpacked};
use super::common::{random::Random, tolerance::departure_beyond};
use super::emulated;
use super::native::{Caller, Library};
use super::portable;
use super::source::{self, Machine};
use super::states::{Stateful, with_variables};
use super::text::{Case, Fill, Rule, filled};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use tfaot::codegen::{self, Launches};
use tfaot::hlo::{Literal, Module, text, verify};
use tfaot::kernel::Program;
use tfaot::lower::Lowered;
use tfaot::run::guard_pages::GuardSide;
use tfaot::target::{HOST_TRIPLE, Target};
use tfaot::tensor::Tensor;
use tfaot::{compile, interp, reduce};

/// Modules of one library.
const BATCH: u64 = 50;
/// Failures that are made small; the others are only named.
const REDUCED: usize = 3;
/// Statements that kernels of another architecture may take where they are run plainly.
const MOST: u64 = 300_000;

/// How many modules a family gets, and the first of them: `TFAOT_RANDOM=2000`, `TFAOT_SEED=17`.
pub fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

/// The processors whose code is tried: the oldest, AVX2, and this machine's own, the same by C, and AArch64 where it can be emulated,
/// which take turns; with `TFAOT_CPU=x86-64-v4,neoverse-v1` those, or with `TFAOT_C=gcc` what C's compilers make, each with every module.
fn machines() -> (Vec<Machine>, Share) {
    if std::env::var_os("TFAOT_C").is_some() {
        return (Machine::of_source(), Share::Every);
    }
    let (targets, share) = targets();
    let mut all: Vec<Machine> = targets.into_iter().map(Machine::of_target).collect();
    if share == Share::Turns {
        all.extend(Machine::of_source());
    }
    (all, share)
}

/// The processors whose code LLVM makes.
fn targets() -> (Vec<Target>, Share) {
    let named = |cpu: &str| Target::resolve(Some(HOST_TRIPLE), Some(cpu), None);
    if let Ok(cpus) = std::env::var("TFAOT_CPU") {
        let emulated = |cpu: &str| Target::resolve(Some(emulated::TRIPLE), Some(cpu), None);
        let of = |cpu: &str| named(cpu).or_else(|_| emulated(cpu)).expect("a known processor");
        return (cpus.split(',').map(of).collect(), Share::Every);
    }
    let own = Target::resolve(None, None, None).expect("this machine is known");
    let names: &[&str] = if own.triple.starts_with("x86_64") { &["x86-64", "x86-64-v3"] } else { &[] };
    let named = names.iter().map(|cpu| named(cpu).expect("a known processor"));
    let mut all: Vec<Target> = named.filter(|t| t.level < own.level).collect();
    all.push(own);
    if emulated::is_here() {
        all.push(Target::resolve(Some(emulated::TRIPLE), None, None).expect("a known target"));
    }
    (all, Share::Turns)
}

/// Which modules a processor gets.
#[derive(Clone, Copy, PartialEq)]
enum Share {
    /// All of them.
    Every,
    /// One in so many as there are processors.
    Turns,
}

/// A module with what the interpreter says of it.
pub struct Known {
    pub seed: u64,
    case: Case,
    lowered: Lowered,
    args: Vec<Tensor>,
    /// What variables are before the call.
    values: Vec<Tensor>,
    /// The results, and what variables are behind the call.
    want: Vec<Tensor>,
}

/// A module as one processor's code.
struct Job<'a> {
    known: &'a Known,
    program: Program,
}

/// Tries a family's modules and fails with those that go wrong, the first of them made small.
pub fn family(name: &str, make: fn(&mut Random) -> Case) {
    let (first, count) = match asked("TFAOT_SEED") {
        Some(seed) => (seed, 1),
        None => (0, asked("TFAOT_RANDOM").unwrap_or(4)),
    };
    if let Some(folder) = std::env::var_os("TFAOT_MODULES") {
        return write(
            Path::new(&folder),
            name,
            (first..first + count).map(|seed| (seed, make(&mut Random::new(seed)))),
        );
    }
    portable::family(name, make, first, count);
    if portable::is_alone() {
        return;
    }
    let (machines, share) = machines();
    let mut wrong = Vec::new();
    for start in (first..first + count).step_by(BATCH as usize) {
        let mut all = Vec::new();
        for seed in start..(start + BATCH).min(first + count) {
            match guarded(|| known(seed, make(&mut Random::new(seed)))) {
                Ok(known) => all.push(known),
                Err(why) => wrong.push((seed, why, &machines[0])),
            }
        }
        for (i, machine) in machines.iter().enumerate() {
            // Few modules reach few machines: which ones differs from family to family.
            let turn = |k: &Known| (k.seed + name.len() as u64) % machines.len() as u64;
            let is_own = |k: &&Known| share == Share::Every || turn(k) == i as u64;
            let own: Vec<&Known> = all.iter().filter(is_own).collect();
            wrong.extend(batch(name, &own, machine).into_iter().map(|(seed, why)| (seed, why, machine)));
        }
    }
    if wrong.is_empty() {
        return;
    }
    let mut said = format!("{name}: {} of {count} modules go wrong\n", wrong.len());
    for (i, (seed, why, machine)) in wrong.iter().enumerate() {
        said += &format!("seed {seed}, {}: {why}\n", machine.name());
        if i < REDUCED {
            said += &smaller(name, *seed, &make(&mut Random::new(*seed)), machine);
        }
    }
    panic!("{said}");
}

/// Writes the modules for other programs to compile, as `FAMILY_SEED.hlo`.
fn write(folder: &Path, family: &str, cases: impl Iterator<Item = (u64, Case)>) {
    for (seed, case) in cases {
        std::fs::write(folder.join(format!("{family}_{seed}.hlo")), case.hlo).expect("a writable folder");
    }
}

/// A panic as a reason.
pub fn guarded<T>(of: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(of)).unwrap_or_else(|_| Err("a panic".to_string()))
}

/// Compiles the modules into one library and calls each; those that go wrong with the reason.
fn batch(family: &str, all: &[&Known], machine: &Machine) -> Vec<(u64, String)> {
    let judged = results(family, all, machine);
    judged.into_iter().filter_map(|(seed, result)| result.err().map(|why| (seed, why))).collect()
}

/// Compiles the modules into one library and calls each: the results that are as the interpreter's, or the reason why there are none.
pub fn results(family: &str, all: &[&Known], machine: &Machine) -> Vec<(u64, Result<Vec<Tensor>, String>)> {
    let target = &machine.target;
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (mut judged, mut jobs, mut objects) = (Vec::new(), Vec::new(), Vec::new());
    for &known in all {
        match guarded(|| compiled(known, machine)) {
            Ok((job, object)) => {
                let path = folder.path().join(format!("{}.o", known.seed));
                std::fs::write(&path, object).expect("a writable folder");
                objects.push(path);
                jobs.push(job);
            }
            Err(why) => judged.push((known.seed, Err(why))),
        }
    }
    if target.triple != HOST_TRIPLE {
        // the emulated program knows no state
        let (stateful, plain): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(|job| !job.program.state.is_empty());
        judged
            .extend(stateful.iter().map(|job| (job.known.seed, plainly(&job.program, job.known).map(|()| Vec::new()))));
        if plain.is_empty() {
            return judged;
        }
        let all: Vec<(&Program, &[Tensor])> = plain.iter().map(|job| (&job.program, &job.known.args[..])).collect();
        let got = emulated::run(folder.path(), &objects, &all);
        judged.extend(plain.iter().zip(got).map(|(job, got)| {
            let Known { seed, want, case, .. } = job.known;
            (*seed, got.and_then(|got| compared(&got, want, &case.rules).map(|()| got)))
        }));
        return judged;
    }
    if jobs.is_empty() {
        return judged;
    }
    let library = Library::open(folder.path(), &objects, target).expect("a linker");
    for job in jobs {
        // Who looks for a crash finds the module here.
        let last = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("family-{family}.hlo"));
        let Known { seed, case, .. } = job.known;
        std::fs::write(last, format!("// seed {seed}, {}\n{}", machine.name(), case.hlo)).expect("a folder");
        let what = format!("{family}, seed {seed}, {}", machine.name());
        judged.push((*seed, called(&job, &library, &what)));
    }
    judged
}

/// What the interpreter says of a case.
pub fn known(seed: u64, mut case: Case) -> Result<Known, String> {
    let module = text::parse(&case.hlo).map_err(|e| format!("the text: {e}\n{}", case.hlo))?;
    verify::verify(&module).map_err(|e| format!("the module: {e}\n{}", case.hlo))?;
    let lowered = compile::wrap_module(module).map_err(|e| e.to_string())?;
    let mut random = Random::new(seed ^ 0x5eed);
    let fill = |i: usize| case.fills.get(i).copied().unwrap_or(Fill::Plain);
    let infos = lowered.args.iter().enumerate();
    let args: Vec<Tensor> = infos.map(|(i, a)| filled(&mut random, a.dtype, &a.dims, fill(i))).collect();
    let literals: Vec<Literal> = args.iter().cloned().map(Literal::Array).collect();
    let want = interp::evaluate(&lowered.module, lowered.module.entry, &literals);
    let want = want.map_err(|e| format!("the interpreter: {e}"))?;
    let want: Vec<Tensor> = want.leaves().into_iter().cloned().collect();
    let mut known = Known { seed, case: case.clone(), lowered, args, values: Vec::new(), want };
    if case.stateful {
        let Stateful { lowered, args, values, results, changed } = with_variables(known.lowered, known.args, seed);
        let rule = |i: usize| case.rules.get(i).copied().unwrap_or(Rule::Close(0.0));
        let results = results.iter().map(|&j| (known.want[j].clone(), rule(j)));
        let stays = |value: &Tensor| (value.clone(), Rule::Bits);
        let after = |(value, new): (&Tensor, &Option<usize>)| {
            new.map_or_else(|| stays(value), |j| (known.want[j].clone(), rule(j)))
        };
        let all: Vec<(Tensor, Rule)> = results.chain(values.iter().zip(&changed).map(after)).collect();
        let want;
        (want, case.rules) = all.into_iter().unzip();
        known = Known { seed, case, lowered, args, values, want };
    }
    if seed % 8 == 3 {
        foreign(&known)?;
    }
    Ok(known)
}

/// The loops and the object of a module.
fn compiled<'a>(known: &'a Known, machine: &Machine) -> Result<(Job<'a>, Vec<u8>), String> {
    let target = &machine.target;
    let name = format!("m{}", known.seed);
    let (_, program) =
        compile::plan(known.lowered.clone(), &name, "m", machine.request()).map_err(|e| e.to_string())?;
    if let Some(compiler) = &machine.compiler {
        let object = source::object(&program, target, compiler)?;
        return Ok((Job { known, program }, object));
    }
    let object = codegen::compile(&program, target, Launches::Direct).map_err(|e| e.to_string())?;
    Ok((Job { known, program }, object.content.to_bytes().to_vec()))
}

/// The loops for AArch64, run plainly.
fn foreign(known: &Known) -> Result<(), String> {
    let target = Target::resolve(Some("aarch64-unknown-linux-gnu"), None, None).expect("a known target");
    let (_, program) = compile::plan(known.lowered.clone(), "m", "m", &target).map_err(|e| format!("aarch64: {e}"))?;
    plainly(&program, known).map_err(|why| format!("aarch64: {why}"))
}

/// Loops, run plainly where they are not too long.
fn plainly(program: &Program, known: &Known) -> Result<(), String> {
    let mut state = packed(&program.state, &known.values);
    match tfaot::kernel::evaluate_with_state(program, &known.args, &mut state, MOST) {
        Ok(mut got) => {
            got.extend(unpacked(&program.state, &state));
            compared(&got, &known.want, &known.case.rules)
        }
        Err(e) if e.to_string().contains("statements") => Ok(()),
        Err(e) => Err(e.to_string()),
    }
}

/// Calls a model alone, its arrays ending at forbidden pages, and with executors, its arrays beginning behind such pages: the
/// bits must be the same.
fn called(job: &Job, library: &Library, what: &str) -> Result<Vec<Tensor>, String> {
    let Known { seed, case, args, values, want, .. } = job.known;
    let alone = library.call(&job.program, (args, values), Caller::Alone, GuardSide::End, what)?;
    compared(&alone, want, &case.rules)?;
    // seeds go to targets in turn, so that pairs of rounds and not of seeds take turns here
    let other = if (seed / 4).is_multiple_of(2) { Caller::Threads } else { Caller::Backwards };
    let shared = library.call(&job.program, (args, values), other, GuardSide::Begin, what)?;
    for (i, (a, b)) in alone.iter().zip(&shared).enumerate() {
        if a.bytes != b.bytes {
            return Err(format!("result {i} has other bits with an executor ({other:?})"));
        }
    }
    Ok(alone)
}

fn compared(got: &[Tensor], want: &[Tensor], rules: &[Rule]) -> Result<(), String> {
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let why = match rules.get(i).copied().unwrap_or(Rule::Close(0.0)) {
            Rule::Bits => difference(g, w, |a, b| a.to_bits() == b.to_bits()),
            Rule::Value => difference(g, w, |a, b| a == b),
            Rule::Close(slack) => departure_beyond(g, w, slack),
        };
        if let Some(why) = why {
            return Err(format!("result {i}, {}: {why}", w.dtype.name()));
        }
    }
    Ok(())
}

/// The first element whose bits differ and whose value is neither `same` nor NaN in both.
fn difference(got: &Tensor, want: &Tensor, same: fn(f64, f64) -> bool) -> Option<String> {
    if got.dtype != want.dtype || got.dims != want.dims {
        return Some(format!("{}{:?} instead of {}{:?}", got.dtype, got.dims, want.dtype, want.dims));
    }
    let part = want.dtype.real_part();
    let pairs = got.bytes.chunks(part.bytes()).zip(want.bytes.chunks(part.bytes())).enumerate();
    let value = |bytes: &[u8]| Tensor::new(part, vec![], bytes.to_vec()).get_f64(0).unwrap_or(0.0);
    pairs.filter(|(_, (g, w))| g != w).find_map(|(i, (a, b))| {
        let (g, w) = (value(a), value(b));
        let alike = part.is_float() && (same(g, w) || g.is_nan() && w.is_nan());
        (!alike).then(|| format!("element {i}: {g:e} ({a:x?}) instead of {w:e} ({b:x?})"))
    })
}

/// The smallest module that still goes wrong, with the seed that shows it.
fn smaller(family: &str, seed: u64, case: &Case, machine: &Machine) -> String {
    let Ok(module) = text::parse(&case.hlo) else { return case.hlo.clone() };
    let mut still = |bytes: &[u8]| {
        let hlo = String::from_utf8_lossy(bytes).into_owned();
        let Some(fills) = fills(&hlo, case) else { return Ok(false) };
        // Which result is left is not known: the loosest rule holds for each.
        let rules = vec![loosest(&case.rules); 64];
        let sound = text::parse(&hlo).is_ok_and(|m| verify::verify(&m).is_ok() && compile::wrap_module(m).is_ok());
        let goes_wrong = || match guarded(|| known(seed, Case { hlo, fills, rules, stateful: case.stateful })) {
            Ok(known) => !batch(family, &[&known], machine).is_empty(),
            Err(_) => true,
        };
        Ok(sound && goes_wrong())
    };
    match reduce::reduce_module(module, 300, &mut still) {
        Ok((module, _)) => reduce::print_module(&module),
        Err(e) => format!("{e}\n{}", case.hlo),
    }
}

fn loosest(rules: &[Rule]) -> Rule {
    rules.iter().copied().fold(Rule::Bits, |a, b| match (a, b) {
        (Rule::Bits, other) | (other, Rule::Bits) => other,
        (Rule::Value, other) | (other, Rule::Value) => other,
        (Rule::Close(a), Rule::Close(b)) => Rule::Close(a.max(b)),
    })
}

/// What the parameters of a reduced module are filled with: those of the case by name, new ones by quarters.
fn fills(hlo: &str, case: &Case) -> Option<Vec<Fill>> {
    let module = text::parse(hlo).ok()?;
    let whole = text::parse(&case.hlo).ok()?;
    let names = |m: &Module| -> Vec<String> { m.entry().params.iter().map(|&p| m.entry()[p].name.clone()).collect() };
    let old = names(&whole);
    let fill = |name: &String| old.iter().position(|o| o == name).and_then(|i| case.fills.get(i).copied());
    Some(names(&module).iter().map(|n| fill(n).unwrap_or(Fill::Quarters)).collect())
}
