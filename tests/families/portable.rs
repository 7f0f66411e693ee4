//! Portable arithmetic: every processor, and C without and with optimisation, must give the same bits.
use super::check::{Known, guarded, known, results};
use super::common::random::Random;
use super::source::Machine;
use super::{emulated, text::Case};
use std::collections::BTreeMap;
use tfaot::target::{HOST_TRIPLE, MathType, Target};
use tfaot::tensor::Tensor;

/// Of so many modules of a family one is tried where other arithmetic is tried too, as each is compiled for seven machines.
const OF_MODULES: u64 = 40;
/// Modules of one library.
const BATCH: u64 = 50;

/// Whether other arithmetic is left out: `TFAOT_PORTABLE=1`.
pub fn is_alone() -> bool {
    std::env::var_os("TFAOT_PORTABLE").is_some()
}

/// Compares the bits of a family's modules on all processors, with fused multiply-adds and without in turns.
pub fn family(name: &str, make: fn(&mut Random) -> Case, first: u64, count: u64) {
    let count = if is_alone() { count } else { count.div_ceil(OF_MODULES) };
    let mut wrong = String::new();
    for start in (first..first + count).step_by(BATCH as usize) {
        let seeds = start..(start + BATCH).min(first + count);
        let all = seeds.filter_map(|seed| guarded(|| known(seed, make(&mut Random::new(seed)))).ok());
        let (fused, unfused): (Vec<Known>, Vec<Known>) =
            all.partition(|k| (k.seed + name.len() as u64).is_multiple_of(2));
        wrong += &differences(name, &fused, MathType::Portable);
        wrong += &differences(name, &unfused, MathType::PortableUnfused);
    }
    assert!(wrong.is_empty(), "{name}:\n{wrong}");
}

/// A line for each module that goes wrong on a machine, or has other bits there than on the first.
fn differences(name: &str, all: &[Known], math: MathType) -> String {
    let all: Vec<&Known> = all.iter().collect();
    let (mut said, mut of_first) = (String::new(), BTreeMap::<u64, (Vec<Tensor>, String)>::new());
    for machine in machines(math) {
        for (seed, result) in results(name, &all, &machine) {
            let why = match (result, of_first.get(&seed)) {
                (Err(why), _) => why,
                (Ok(got), None) if !got.is_empty() => {
                    of_first.insert(seed, (got, machine.name()));
                    continue;
                }
                (Ok(got), Some((want, other))) if !got.is_empty() => match first_difference(&got, want) {
                    Some(told) => format!("{told} on {other}"),
                    None => continue,
                },
                // state is not kept under the emulator
                (Ok(_), _) => continue,
            };
            said += &format!("seed {seed}, {}: {why}\n", machine.name());
        }
    }
    said
}

fn first_difference(got: &[Tensor], want: &[Tensor]) -> Option<String> {
    got.iter().zip(want).enumerate().find_map(|(i, (g, w))| {
        let size = g.dtype.bytes();
        let at = g.bytes.chunks(size).zip(w.bytes.chunks(size)).position(|(g, w)| g != w)?;
        let bytes = |t: &Tensor| format!("{:x?}", &t.bytes[at * size..(at + 1) * size]);
        Some(format!("result {i}, element {at} is {}, and {}", bytes(g), bytes(w)))
    })
}

/// The instruction sets that this machine runs, AArch64 where it can be emulated, and C by a compiler that is there.
fn machines(math: MathType) -> Vec<Machine> {
    let named = |triple, cpu| Target::resolve(Some(triple), cpu, None).expect("a known processor");
    let own = Target::resolve(None, None, None).expect("this machine is known");
    let names: &[&str] = if own.triple.starts_with("x86_64") { &["x86-64-v2", "x86-64-v3"] } else { &[] };
    let mut targets = vec![own.clone()];
    targets.extend(names.iter().map(|cpu| named(HOST_TRIPLE, Some(*cpu))).filter(|t| t.level < own.level));
    if emulated::is_here() {
        targets.push(named(emulated::TRIPLE, None));
    }
    let mut all: Vec<Machine> = targets.into_iter().map(Machine::of_target).collect();
    for machine in Machine::of_source() {
        let compiler = machine.compiler.clone().unwrap_or_default();
        let with = |flags: &str| Machine {
            compiler: Some(format!("{compiler} {flags}")),
            ..Machine::of_target(machine.target.clone())
        };
        // without instructions for multiply-adds too
        all.extend([with("-O0"), with("-O2 -march=x86-64"), with("-O3")]);
    }
    all.into_iter().map(|machine| Machine { math, ..machine }).collect()
}
