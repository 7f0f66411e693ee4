//! Signal handling: a process that is told to end removes its unfinished files.
use crate::package::temporary_files;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The offset that a shell adds to the number of a signal in an exit status.
const BY_SIGNAL: i32 = 128;

/// From here on, the end of the terminal, Ctrl-C and `kill` remove what is unfinished and end the process with status 129, 130
/// and 143. A signal that the process was started to ignore (`nohup`, a shell's background jobs) stays ignored.
///
/// Where the system refuses, they end it as they do by themselves.
pub fn watch() {
    let ignored = ignored();
    let watched: Vec<i32> = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|s| (ignored >> (s - 1)) & 1 == 0).collect();
    if watched.is_empty() {
        return;
    }
    let Ok(mut signals) = Signals::new(watched) else { return };
    // Without such a thread, the process ends with its work: the signals are lost, and the work is not.
    let _ = std::thread::Builder::new().name("signals".into()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let _held = temporary_files::remove_all();
            // not `std::process::exit`, which would take LLVM apart under the threads that use it
            signal_hook::low_level::exit(BY_SIGNAL + signal);
        }
    });
}

/// The signals that are ignored, signal 1 as the lowest bit; none where the system has no such file.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
