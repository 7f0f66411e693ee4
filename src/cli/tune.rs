//! `tfaot compile --tune FILE`: measures scheduling choices on this machine, and writes them to a file for later compilations. The file
//! contains no times.
use super::args::CompileArgs;
use super::{graph, out, progress};
use crate::diag::{Code, Diagnostic, Error, Result, io_error};
use crate::lower::Lowered;
use crate::measure::tune::{TuningResult, tune};
use crate::package::files;
use crate::target::{CodeRequest, HOST_TRIPLE, Target, Tuning};
use std::io::Write;
use std::path::Path;

/// Measures the model, adds the faster choices to `file`, and returns the request with them. Other rows of the file are kept.
///
/// Errors: `Code::BadOption` for several targets, or one other than this machine; `Code::Io`; those of compiling.
pub fn run(lowered: &Lowered, requests: &[CodeRequest], file: &Path, args: &CompileArgs) -> Result<Vec<CodeRequest>> {
    let request = only_this_machine(requests)?;
    if request.precision.math.is_portable() {
        return Err(graph::fixed_loops_error(request.precision.math).into());
    }
    let tuning = if file.exists() { graph::read_tuning(file)? } else { Tuning::default() };
    let progress = |i, count| progress::set_step(format_args!("measuring choice {i} of {count}"));
    let tuned = tune(lowered, request, tuning, progress)?;
    if !args.graph.quiet {
        note(&tuned);
    }
    write(file, &tuned.tuning)?;
    Ok(vec![CodeRequest { tuning: tuned.tuning, ..request.clone() }])
}

fn note(tuned: &TuningResult) {
    out::note(format_args!(
        "note: of {} products {} take other loops than the model of costs chose, of {} convolutions {} another method: {:.3} ms a call with its choices, {:.3} ms with the measured ones, {:.3} times as long",
        tuned.products,
        tuned.changed_products,
        tuned.convolutions,
        tuned.changed_convolutions,
        tuned.untuned_ms,
        tuned.tuned_ms,
        tuned.untuned_ms / tuned.tuned_ms,
    ));
}

/// The only request, which must be for this machine.
fn only_this_machine(requests: &[CodeRequest]) -> Result<&CodeRequest> {
    let [request] = requests else {
        return Err(Error::user(Code::BadOption, "one --cpu, please: --tune measures on this machine"));
    };
    let (target, host) = (&request.target, Target::resolve(None, None, None)?);
    let arch = |t: &str| t.split('-').next().unwrap_or("").to_string();
    if arch(&target.triple) != arch(HOST_TRIPLE) || target.level > host.level {
        let told =
            format!("--tune measures on this machine, which can't run code for {} {}", target.triple, target.cpu);
        return Err(Diagnostic::new(Code::BadOption, told)
            .help("tune on such a machine and use the file here, with --tuning FILE")
            .into());
    }
    Ok(request)
}

fn write(path: &Path, tuning: &Tuning) -> Result<()> {
    let mut temp = files::temporary_file_beside(path)?;
    temp.write_all(tuning.to_string().as_bytes()).map_err(|e| io_error("written", path, &e))?;
    files::rename_to_final(temp, path)
}
