//! Signal handling: removes temporary files when the process is told to end.
use crate::package::temporary_files;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Offset that shells add to a signal number in an exit status.
const BY_SIGNAL: i32 = 128;

/// Installs a handler by which SIGHUP, SIGINT and SIGTERM remove temporary files and end the process with status 129, 130 or 143.
/// A signal that the process was started to ignore (`nohup`, background jobs of a shell) stays ignored.
///
/// If the handler can't be installed, the signals keep their default action.
pub fn install_handlers() {
    let ignored = ignored();
    let watched: Vec<i32> = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|s| (ignored >> (s - 1)) & 1 == 0).collect();
    if watched.is_empty() {
        return;
    }
    let Ok(mut signals) = Signals::new(watched) else { return };
    // If the thread can't be started, the signals end the process at once, without the removal.
    let _ = std::thread::Builder::new().name("signals".into()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let _held = temporary_files::remove_all();
            // not `std::process::exit`, which would destroy LLVM's globals while other threads use them
            signal_hook::low_level::exit(BY_SIGNAL + signal);
        }
    });
}

/// Mask of ignored signals, with signal 1 as the lowest bit; 0 if the system does not report it.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
