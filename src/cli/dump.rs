//! Dumps requested by `XLA_FLAGS`: parses the flags and writes the files.
use super::args::XlaArgs;
use super::out;
use crate::diag::{Code, Error, Result, io_error};
use crate::dump::{Dump, DumpFlags, Dumps, parse};
use crate::hlo::Module;
use crate::kernel::Program;
use crate::package::files;
use crate::target::Target;
use crate::util::pieces::Pieces;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Number of the next module, in the order of compilation within this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Flags of the environment, overridden by those of the command line. Warns of unknown flags.
///
/// Errors: `Code::BadOption` for invalid values, `Code::Io` for a file of flags that can't be read.
pub fn dump_flags(args: &XlaArgs) -> Result<DumpFlags> {
    let mut flags = DumpFlags::default();
    let environment = std::env::var("XLA_FLAGS").unwrap_or_default();
    for text in [environment.as_str(), args.xla_flags.as_deref().unwrap_or("")] {
        // Like XLA, the variable may contain the name of a file with flags.
        let named = !text.trim().is_empty() && !text.trim_start().starts_with("--");
        let text = if named { read(text.trim())? } else { text.to_string() };
        let (more, warnings) = parse(&text, flags)?;
        flags = more;
        for warning in warnings {
            out::note(format_args!("warning: {warning}"));
        }
    }
    Ok(flags)
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(path).map_err(|e| io_error("read", Path::new(path), &e))
}

/// Starts a dump of `module`, if the flags select it.
pub fn start<'a>(flags: &'a DumpFlags, module: &Module) -> Option<Dump<'a>> {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Dump::new(flags, module, number, micros())
}

/// Adds the results of a compilation: the module, the buffers of the first program, the code of all.
pub fn add_results(
    dump: &mut Option<Dump>,
    module: &Module,
    each: &[(Program, Target)],
    object: &Pieces,
) -> Result<()> {
    dump.as_mut().map_or(Ok(()), |dump| dump.add_results(module, each, object))
}

/// Dump options for verbs that compile several modules; `None` if the flags select no dumps.
pub fn shared_dumps(flags: &DumpFlags) -> Option<Dumps> {
    flags.is_on().then(|| Dumps { flags: flags.clone(), micros: micros() })
}

/// Current time in microseconds since 1970.
fn micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros());
    u64::try_from(since).unwrap_or(u64::MAX)
}

/// Writes the collected files.
///
/// Errors: `Code::Io`; `Code::BadOption` for binary files if the flags select standard output.
pub fn write(flags: &DumpFlags, dump: Option<Dump>) -> Result<()> {
    dump.map_or(Ok(()), |dump| write_files(flags, dump.files))
}

/// Writes the files of dumps. Errors: those of [`write()`].
pub fn write_files(flags: &DumpFlags, dumped: Vec<(String, Vec<u8>)>) -> Result<()> {
    if dumped.is_empty() {
        return Ok(());
    }
    if !flags.to_stdout() {
        return files::write_all(Path::new(&flags.to), &dumped).map(drop);
    }
    for (name, content) in dumped {
        match String::from_utf8(content) {
            Ok(text) => out::line(format_args!("*** Begin {name} ***\n{text}\n*** End {name} ***"))?,
            // Machine code is skipped on standard output, as every compilation writes it to a file.
            Err(_) if name.ends_with(".o") => {}
            Err(_) => {
                let told = format!("`{name}` is no text, and --xla_dump_to names no folder");
                return Err(Error::user(Code::BadOption, told));
            }
        }
    }
    Ok(())
}
