//! `tfaot targets`: the machines that code can be made for.
use super::args::TargetsArgs;
use super::{Verdict, out};
use crate::diag::Result;
use crate::target::{CPUS, HOST_TRIPLE, Target};
use serde_json::json;

/// The triples that are tested; others of the same architectures work alike.
const TRIPLES: &[&str] = &["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// Prints triples and processors.
pub fn run(args: &TargetsArgs) -> Result<Verdict> {
    let host = Target::resolve(None, None, None)?;
    let cpus: Vec<&str> = CPUS.iter().map(|c| c.0).collect();
    if args.json {
        out::json(&json!({"host": HOST_TRIPLE, "host_cpu": host.cpu, "targets": TRIPLES, "x86_64_cpus": cpus}))?;
    } else {
        out::line(format_args!("this machine: {HOST_TRIPLE} ({})", host.cpu))?;
        out::line(format_args!("targets: {}", TRIPLES.join(", ")))?;
        out::line(format_args!("processors of x86_64: {}", cpus.join(", ")))?;
    }
    Ok(Verdict::Yes)
}
