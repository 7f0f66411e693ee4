//! `tfaot completions` and `tfaot man`: shell completions and manual pages.
use super::args::{Cli, CompletionsArgs, ManArgs};
use super::{ExitStatus, out};
use crate::diag::{Code, Error, Result, io_error};
use clap::CommandFactory;
use std::path::Path;

/// Prints the completion script for a shell.
pub fn completions(args: &CompletionsArgs) -> Result<ExitStatus> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tfaot", &mut script);
    out::text(&String::from_utf8_lossy(&script))?;
    Ok(ExitStatus::Yes)
}

/// Prints the manual page of `tfaot`, or writes a page for each verb.
pub fn manual(args: &ManArgs) -> Result<ExitStatus> {
    let unwritten = |e: std::io::Error| Error::user(Code::Io, format!("the manual could not be written: {e}"));
    match &args.out {
        Some(dir) => {
            std::fs::create_dir_all(dir).map_err(|e| io_error("made", dir, &e))?;
            clap_mangen::generate_to(Cli::command(), Path::new(dir)).map_err(unwritten)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(unwritten)?;
            out::text(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(ExitStatus::Yes)
}
