//! What becomes of a process that is told to end: nothing unfinished stays.
use crate::package::unfinished;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// What a shell adds to the number of a signal.
const BY_SIGNAL: i32 = 128;

/// From here on, Ctrl-C and `kill` remove what is unfinished and end the process with status 130 and 143.
///
/// Where the system refuses, they end it as they do by themselves.
pub fn watch() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    // Without such a thread, the process ends with its work: the signals are lost, and the work is not.
    let _ = std::thread::Builder::new().name("signals".into()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let _held = unfinished::remove_all();
            // not `std::process::exit`, which would take LLVM apart under the threads that use it
            signal_hook::low_level::exit(BY_SIGNAL + signal);
        }
    });
}
