//! Events: promises that are kept or broken once, with functions to call then.
use crate::boundary::{give, object, take, text};
use crate::c_api::base::{
    EventAwaitArgs, EventCreateArgs, EventDestroyArgs, EventErrorArgs, EventIsReadyArgs, EventOnReadyArgs, EventSetArgs,
};
use crate::failure::{Code, Failure};
use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A function to call when an event is ready, with an error or null, which the function destroys.
type Callback = unsafe extern "C" fn(*mut Failure, *mut c_void);

/// `PJRT_Event`.
#[derive(Clone)]
pub struct Event(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    is_ready: Condvar,
}

struct State {
    outcome: Option<Result<(), Failure>>,
    callbacks: Vec<(Callback, Argument)>,
}

/// The caller's own argument of a callback.
struct Argument(*mut c_void);

// SAFETY: callers promise that callbacks may run on any thread.
unsafe impl Send for Argument {}

impl Event {
    /// An event that is not ready.
    pub fn new() -> Event {
        Event::with(None)
    }

    /// An event that is ready.
    pub fn ready() -> Event {
        Event::with(Some(Ok(())))
    }

    fn with(outcome: Option<Result<(), Failure>>) -> Event {
        let state = Mutex::new(State { outcome, callbacks: Vec::new() });
        Event(Arc::new(Shared { state, is_ready: Condvar::new() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the event ready; a second time is without effect.
    pub fn set(&self, outcome: Result<(), Failure>) {
        let callbacks = {
            let mut state = self.state();
            if state.outcome.is_some() {
                return;
            }
            state.outcome = Some(outcome.clone());
            std::mem::take(&mut state.callbacks)
        };
        self.0.is_ready.notify_all();
        callbacks.into_iter().for_each(|(callback, argument)| run(callback, &argument, &outcome));
    }

    fn wait(&self) -> Result<(), Failure> {
        let mut state = self.state();
        loop {
            match &state.outcome {
                Some(outcome) => return outcome.clone(),
                None => state = self.0.is_ready.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

fn run(callback: Callback, argument: &Argument, outcome: &Result<(), Failure>) {
    let error = outcome.as_ref().err().map_or(std::ptr::null_mut(), |failure| failure.clone().into_raw());
    // SAFETY: the caller passed the function with this argument.
    unsafe { callback(error, argument.0) }
}

/// `PJRT_Event_Destroy`.
pub fn destroy(args: &mut EventDestroyArgs) -> Result<(), Failure> {
    take(args.event);
    Ok(())
}

/// `PJRT_Event_IsReady`.
pub fn is_ready(args: &mut EventIsReadyArgs) -> Result<(), Failure> {
    args.is_ready = object(args.event)?.state().outcome.is_some();
    Ok(())
}

/// `PJRT_Event_Error`.
pub fn error(args: &mut EventErrorArgs) -> Result<(), Failure> {
    let not_yet = Failure::new(Code::FailedPrecondition, "the event is not ready");
    object(args.event)?.state().outcome.clone().unwrap_or(Err(not_yet))
}

/// `PJRT_Event_Await`.
pub fn wait(args: &mut EventAwaitArgs) -> Result<(), Failure> {
    object(args.event)?.wait()
}

/// `PJRT_Event_OnReady`.
pub fn on_ready(args: &mut EventOnReadyArgs) -> Result<(), Failure> {
    let callback = args.callback.ok_or_else(|| Failure::new(Code::InvalidArgument, "the callback is null"))?;
    let argument = Argument(args.user_arg);
    let outcome = {
        let mut state = object(args.event)?.state();
        match state.outcome.clone() {
            Some(outcome) => outcome,
            None => {
                state.callbacks.push((callback, argument));
                return Ok(());
            }
        }
    };
    run(callback, &argument, &outcome);
    Ok(())
}

/// `PJRT_Event_Create`.
pub fn create(args: &mut EventCreateArgs) -> Result<(), Failure> {
    args.event = give(Event::new());
    Ok(())
}

/// `PJRT_Event_Set`.
pub fn set(args: &mut EventSetArgs) -> Result<(), Failure> {
    let outcome = match args.error_code {
        0 => Ok(()),
        code => Err(Failure::of_caller(code, text(args.error_message, args.error_message_size))),
    };
    object(args.event)?.set(outcome);
    Ok(())
}
