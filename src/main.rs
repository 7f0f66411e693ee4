//! The binary: everything is in [`tfaot::cli`].
use std::process::ExitCode;

fn main() -> ExitCode {
    tfaot::cli::main()
}
