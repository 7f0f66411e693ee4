//! A progress line on the terminal during long operations: the current step and the elapsed time.
//!
//! The line appears after two seconds if standard error is a terminal with cursor control, and is erased when the work is done.
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time after which the line appears.
const PATIENCE: Duration = Duration::from_secs(2);
const EVERY: Duration = Duration::from_millis(250);

/// The current step, and whether its line is on the terminal.
struct Line {
    text: String,
    shown: bool,
}

/// Whether progress lines are disabled.
static NEVER: AtomicBool = AtomicBool::new(false);
static LINE: Mutex<Line> = Mutex::new(Line { text: String::new(), shown: false });

fn locked() -> std::sync::MutexGuard<'static, Line> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A progress line that is erased when this is dropped.
pub struct Progress {
    done: Option<Sender<()>>,
    shower: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts with the step `what`. No line is shown if standard error is not a terminal, or if `quiet`.
    pub fn begin(what: &str, quiet: bool) -> Progress {
        set_step(what);
        let watched = std::io::stderr().is_terminal() && std::env::var_os("TERM").is_some_and(|t| t != "dumb");
        if quiet || NEVER.load(Ordering::Relaxed) || !watched {
            return Progress { done: None, shower: None };
        }
        let (done, told) = channel::<()>();
        let start = Instant::now();
        let show = move || {
            let mut wait = PATIENCE;
            while told.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                wait = EVERY;
                let mut line = locked();
                line.shown = true;
                let text = format!("\r{}, {} s\x1b[K", line.text, start.elapsed().as_secs());
                let _ = std::io::stderr().write_all(text.as_bytes());
            }
        };
        // if the thread can't be started, there is no line
        let shower = std::thread::Builder::new().name("progress".into()).spawn(show).ok();
        Progress { done: Some(done), shower }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.done.take());
        if let Some(shower) = self.shower.take() {
            let _ = shower.join();
        }
        clear();
    }
}

/// Disables progress lines, because a program reads standard error.
pub fn disable() {
    NEVER.store(true, Ordering::Relaxed);
}

/// Sets the current step.
pub fn set_step(what: impl std::fmt::Display) {
    locked().text = what.to_string();
}

/// Erases the line before other output.
pub fn clear() {
    let mut line = locked();
    if std::mem::take(&mut line.shown) {
        let _ = std::io::stderr().write_all(b"\r\x1b[K");
    }
}
