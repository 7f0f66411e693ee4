//! A line on the terminal while something takes long: what is done, and for how long.
//!
//! It is shown after two seconds, where standard error is a terminal that can move its cursor, and is gone when the work is done.
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time that work must take before a line is shown.
const PATIENCE: Duration = Duration::from_secs(2);
const EVERY: Duration = Duration::from_millis(250);

/// The work that is shown, and whether its line stands on the terminal.
struct Line {
    text: String,
    shown: bool,
}

/// Whether nothing is ever shown.
static NEVER: AtomicBool = AtomicBool::new(false);
static LINE: Mutex<Line> = Mutex::new(Line { text: String::new(), shown: false });

fn locked() -> std::sync::MutexGuard<'static, Line> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows a line until it is dropped.
pub struct Progress {
    done: Option<Sender<()>>,
    shower: Option<JoinHandle<()>>,
}

impl Progress {
    /// Begins with `what`; nothing is ever shown where nobody watches, or where `quiet` was asked for.
    pub fn begin(what: &str, quiet: bool) -> Progress {
        step(what);
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
        // without a thread there is no line
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

/// From here on nothing is shown: what is written to standard error is read by a program.
pub fn never() {
    NEVER.store(true, Ordering::Relaxed);
}

/// Says what is done now.
pub fn step(what: impl std::fmt::Display) {
    locked().text = what.to_string();
}

/// Takes the line away, for what is printed in its place.
pub fn clear() {
    let mut line = locked();
    if std::mem::take(&mut line.shown) {
        let _ = std::io::stderr().write_all(b"\r\x1b[K");
    }
}
