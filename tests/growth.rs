//! The time to compile grows with the graph, not with its square: each shape of `tools/make_large_graph` is compiled as far as loops at
//! two sizes, and what four times as many ops take more is bounded. The time is that of the processor for this thread, so that other
//! work on the machine hardly counts, and the least of a few measurements, as what is left of it (caches and memory are shared) only
//! makes a measurement longer.
mod common;

use bytes::Bytes;
use common::{path, program};
use std::process::Command;
use tfaot::compile;
use tfaot::import::{self, FileFormat};
use tfaot::prepare::{Request, prepare};
use tfaot::target::Target;

/// Ops of the smaller graph.
const FEW: usize = 500;
/// Ops of the smaller random graph: with fewer, the number of orders that are tried for its kernels still grows with the graph.
const FEW_OF_RANDOM: usize = 1000;
/// How many times as many the larger one has.
const TIMES: usize = 4;
/// Bound of the time for the larger graph, in times of the smaller one. Linear time is 4 and quadratic time 16.
const MOST: f64 = 7.5;

/// How often the two sizes are measured before the bound is said to be passed.
const MEASUREMENTS: usize = 4;

/// Seconds that this thread has run; those of the clock where the system does not say it.
fn seconds() -> f64 {
    let ran = std::fs::read_to_string("/proc/thread-self/schedstat");
    let ran = ran.ok().and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let clock = || std::time::SystemTime::UNIX_EPOCH.elapsed().expect("a clock").as_nanos() as f64;
    ran.unwrap_or_else(clock) / 1e9
}

/// Seconds from a graph to its loops.
fn time(python: &str, shape: &str, ops: usize) -> f64 {
    let made = Command::new(python).arg(path("tools/make_large_graph")).args([shape, &ops.to_string()]).output();
    let text = Bytes::from(made.expect("it runs").stdout);
    let start = seconds();
    let graph = import::parse(&text, Some(FileFormat::GraphDefText), "".as_ref()).expect("a graph");
    let prepared = prepare(graph, &Request::default()).expect("feeds and fetches");
    let lowered = compile::lower_prepared(&prepared).expect("ops that are there");
    let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v3"), None).expect("a processor");
    compile::plan(lowered, "m", "", &target).expect("kernels");
    seconds() - start
}

fn grows_linearly(shape: &str, few_ops: usize) {
    let Some(python) = program(&["python3"]) else { return };
    let (mut few, mut many) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..MEASUREMENTS {
        few = few.min(time(python, shape, few_ops));
        many = many.min(time(python, shape, few_ops * TIMES));
        println!("{shape}: {few:.2} s for {few_ops} ops, {:.1} times as long for {TIMES} times as many", many / few);
        if many / few < MOST {
            return;
        }
    }
    panic!("{shape}: {few:.2} s for {few_ops} ops, {many:.2} s for {TIMES} times as many");
}

#[test]
fn a_chain() {
    grows_linearly("chain", FEW);
}

#[test]
fn a_random_graph() {
    grows_linearly("dag", FEW_OF_RANDOM);
}

#[test]
fn a_chain_of_products() {
    grows_linearly("matmul_chain", FEW);
}

#[test]
fn a_chain_of_several_kinds() {
    grows_linearly("kinds", FEW);
}

#[test]
fn many_arguments_and_results() {
    grows_linearly("arguments", FEW);
}

#[test]
fn conditionals() {
    grows_linearly("branches", FEW);
}

#[test]
fn nested_functions() {
    grows_linearly("functions", FEW);
}
