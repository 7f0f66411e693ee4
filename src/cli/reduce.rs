//! `tfaot reduce`: reduces a failing graph or module, using a command of the user as the test.
use super::args::ReduceArgs;
use super::{ExitStatus, out};
use crate::diag::{Code, Diagnostic, Error, Result, io_error};
use crate::dump::graphs::proto_text;
use crate::hlo::{self, SourceContent};
use crate::import::proto::tensorflow::GraphDef;
use crate::import::raw::RawGraph;
use crate::import::{self, FileFormat};
use crate::package::{files, temporary_files};
use crate::reduce::{self, ReductionStats};
use bytes::Bytes;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Interval at which a running command is polled.
const TICK: Duration = Duration::from_millis(5);

/// Reduces the file and writes the result.
pub fn run(args: &ReduceArgs) -> Result<ExitStatus> {
    let (format, bytes) = import::load_bytes(&args.file, args.format.as_deref())?;
    let shown = args.file.display().to_string();
    let (small, told) = match format {
        FileFormat::GraphDef => {
            let graph = RawGraph::parse(&bytes).map_err(|e| e.in_file(&shown))?;
            let (small, told) = with_trials(args, &spelled(graph.write(), args)?, |verdict| {
                let mut verdict = |candidate: &[u8]| verdict(&spelled(candidate.to_vec(), args)?);
                reduce::reduce_graph(graph.clone(), args.max_runs, &mut verdict)
            })?;
            (spelled(small.write(), args)?, told)
        }
        FileFormat::Module => {
            let module =
                hlo::read(&bytes).and_then(SourceContent::require_known_sizes).map_err(|e| e.in_file(&shown))?.module;
            let (small, told) = with_trials(args, reduce::print_module(&module).as_bytes(), |verdict| {
                reduce::reduce_module(module.clone(), args.max_runs, verdict)
            })?;
            (reduce::print_module(&small).into_bytes(), told)
        }
        FileFormat::MetaGraph
        | FileFormat::SavedModel
        | FileFormat::TfJs
        | FileFormat::GraphDefText
        | FileFormat::MetaGraphText
        | FileFormat::SavedModelText => {
            let told = format!("a file of the format `{}` is not reduced", format.name());
            return Err(Diagnostic::new(Code::UnknownFormat, told).help("reduce takes GraphDefs and HLO text").into());
        }
    };
    let folder = args.out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = args.out.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let size = small.len();
    files::write_all(folder, &[(name, small)])?;
    let ReductionStats { trials, kept, cut_short } = told;
    let before = bytes.len();
    out::line(format_args!(
        "{}: {size} bytes of {before}, {kept} changes kept in {trials} runs{}",
        args.out.display(),
        if cut_short { "; --max-runs was spent" } else { "" }
    ))?;
    Ok(ExitStatus::Yes)
}

/// The bytes of a GraphDef in the format of the output's name: text for `.pbtxt`.
fn spelled(bytes: Vec<u8>, args: &ReduceArgs) -> Result<Vec<u8>> {
    match args.out.extension().is_some_and(|end| end == "pbtxt") {
        true => Ok(proto_text::print::<GraphDef>(&Bytes::from(bytes))?.into_bytes()),
        false => Ok(bytes),
    }
}

/// Runs the command on the original file, and calls `reduce` with a test for whether the command ends in the same way.
fn with_trials<T>(
    args: &ReduceArgs,
    whole: &[u8],
    reduce: impl FnOnce(&mut reduce::FailureTest) -> Result<T>,
) -> Result<T> {
    let wanted = match (args.status, outcome(args, whole)?) {
        (Some(wanted), Outcome::Status(status)) if wanted != status => {
            let told = format!("the command ends with status {status} on the whole file, not with {wanted}");
            return Err(Error::user(Code::BadOption, told));
        }
        (_, Outcome::TooLong) => {
            let told = format!("the command takes more than {} s on the whole file", args.timeout);
            return Err(Diagnostic::new(Code::BadOption, told).help("--timeout allows more").into());
        }
        (_, Outcome::Status(status)) => status,
    };
    if !args.quiet {
        out::note(format_args!("note: a change is kept where the command ends with status {wanted}"));
    }
    reduce(&mut |candidate| Ok(outcome(args, candidate)? == Outcome::Status(wanted)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The exit status, or 128 plus the number of the signal that ended the command.
    Status(i32),
    /// The command exceeded the time limit and was killed.
    TooLong,
}

/// Runs the command on a candidate, whose path replaces `{}`, and returns how it ended.
fn outcome(args: &ReduceArgs, candidate: &[u8]) -> Result<Outcome> {
    let end = args.out.extension().map_or(String::new(), |end| format!(".{}", end.to_string_lossy()));
    let unwritten = |e: std::io::Error| io_error("written", Path::new("a candidate"), &e);
    let folder = temporary_files::TemporaryFolder::new().map_err(unwritten)?;
    let path = folder.path().join(format!("candidate{end}"));
    std::fs::File::create(&path).and_then(|mut file| file.write_all(candidate)).map_err(unwritten)?;
    let spelled = path.display().to_string();
    let words: Vec<String> = args.command.iter().map(|word| word.replace("{}", &spelled)).collect();
    let Some((program, rest)) = words.split_first() else {
        return Err(Error::user(Code::BadOption, "there is no command behind `--`"));
    };
    let child =
        Command::new(program).args(rest).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let child = child.map_err(|e| io_error("started", Path::new(program), &e))?;
    wait(child, Duration::from_secs(args.timeout)).map_err(|e| io_error("waited for", Path::new(program), &e))
}

fn wait(mut child: Child, most: Duration) -> std::io::Result<Outcome> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            #[cfg(unix)]
            let signal = std::os::unix::process::ExitStatusExt::signal(&status);
            #[cfg(not(unix))]
            let signal: Option<i32> = None;
            return Ok(Outcome::Status(status.code().unwrap_or(128 + signal.unwrap_or(0))));
        }
        if start.elapsed() > most {
            child.kill()?;
            child.wait()?;
            return Ok(Outcome::TooLong);
        }
        std::thread::sleep(TICK);
    }
}
