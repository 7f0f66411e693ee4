//! The command line, with one file per verb.
//!
//! Results go to standard output, everything else to standard error. Exit status 0: done; 1: the input is at fault, and a
//! diagnostic says how; 2: wrong usage; 129, 130 and 143: interrupted (SIGHUP, SIGINT, SIGTERM), and nothing unfinished
//! is left. A panic is turned into an internal-error diagnostic and status 1.
mod args;
mod recorded_options;
mod bench;
mod bug;
mod cache;
mod check;
mod cluster;
mod cluster_files;
mod cluster_text;
mod clustering;
mod compile;
mod config;
mod dump;
mod explain;
mod graph;
mod graph_dump;
mod guard;
mod hlo;
mod hlo_ranks;
mod inspect;
mod interrupt;
mod modules;
mod ops;
mod out;
mod progress;
mod quantize;
mod reduce;
mod report;
mod report_models;
mod rewrite;
mod run;
mod shapes;
mod shell;
mod sizes;
mod targets;
mod tfcompile;
mod tune;
mod verify;
mod weights;

use crate::diag::Result;
use args::{Cli, Verb};
use clap::Parser;
use std::process::ExitCode;

/// The outcome of a verb that ran to completion, as an exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// Exit status 0: success.
    Yes,
    /// Exit status 1: the verb's test failed, and the output says why.
    No,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(args::expand_xla_flags(std::env::args_os())) {
        Ok(cli) => cli,
        Err(usage) => {
            out::usage(&usage);
            return ExitCode::from(usage.exit_code().clamp(0, 2) as u8);
        }
    };
    out::error_format(cli.error_format);
    interrupt::install_handlers();
    match guard::run(move || dispatch(cli.verb)) {
        Ok(ExitStatus::Yes) => ExitCode::SUCCESS,
        Ok(ExitStatus::No) => ExitCode::from(1),
        Err(error) => {
            out::error(error);
            ExitCode::from(1)
        }
    }
}

fn dispatch(verb: Verb) -> Result<ExitStatus> {
    match verb {
        Verb::Compile(args) => compile::run(&args),
        Verb::Weights(args) => weights::run(&args),
        Verb::Tfcompile(args) => tfcompile::run(&args),
        Verb::Run(args) => run::run(&args),
        Verb::Verify(args) => verify::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Inspect(args) => inspect::run(&args),
        Verb::Cluster(args) => cluster::run(&args),
        Verb::Rewrite(args) => rewrite::run(&args),
        Verb::Quantize(args) => quantize::run(&args),
        Verb::Bug(args) => bug::run(&args),
        Verb::Reduce(args) => reduce::run(&args),
        Verb::Report(args) => report::run(&args),
        Verb::Bench(args) => bench::run(&args),
        Verb::Targets(args) => targets::run(&args),
        Verb::Hlo(verb) => hlo::run(verb),
        Verb::Ops(args) => ops::run(&args),
        Verb::Explain(args) => explain::run(&args),
        Verb::Completions(args) => shell::completions(&args),
        Verb::Man(args) => shell::manual(&args),
    }
}
