//! Execution of a verb with a large stack, turning panics into diagnostics.
use crate::diag::{Error, Result};
use std::sync::{Arc, Mutex};

/// Size of the worker thread's stack, which recursive passes need; memory is committed only as it is used.
const STACK_BYTES: usize = 256 << 20;

/// Runs `work` on a separate thread; a panic becomes [`Error::Internal`].
pub fn run<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let seen = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&seen);
    std::panic::set_hook(Box::new(move |info| {
        let mut first = sink.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if first.is_empty() {
            *first = describe(info);
        }
    }));
    let worker = std::thread::Builder::new().name("verb".into()).stack_size(STACK_BYTES).spawn(work);
    let worker = worker.map_err(|e| Error::internal("start", format!("no thread could be started: {e}")))?;
    worker.join().unwrap_or_else(|_| {
        let seen = seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Err(Error::internal("panic", seen.clone()))
    })
}

fn describe(info: &std::panic::PanicHookInfo) -> String {
    let payload = info.payload();
    let message = payload.downcast_ref::<&str>().copied();
    let message = message.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("of unknown kind");
    match info.location() {
        Some(at) => format!("{message} (in {}:{})", at.file(), at.line()),
        None => message.to_string(),
    }
}
