//! The context of a call, of which handlers ask data, states and memory.
use super::registry;
use super::structs::INSTANTIATE;
use crate::failure::{Code, Failure};
use crate::storage::Block;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

/// Data of the caller for handlers, by number of the type.
pub type UserData = (i64, *mut c_void);

/// State that the handler of one call site keeps from its instantiation on.
#[derive(Default)]
pub struct Instance(Mutex<Option<(i64, *mut c_void)>>);

// SAFETY: handlers promise that what they keep may be used and freed on any thread.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

impl Drop for Instance {
    fn drop(&mut self) {
        let kept = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((id, data)) = kept
            && let Some(deleter) = registry::deleter(id)
        {
            // SAFETY: the type's owner passed the function for data of this type, and nobody else has it.
            unsafe { deleter(data) }
        }
    }
}

/// `XLA_FFI_ExecutionContext`.
pub struct ExecutionContext<'a> {
    /// Data of the caller.
    pub user_data: &'a [UserData],
    /// The state of the call site.
    pub instance: &'a Instance,
    /// The device that the program runs on.
    pub device: c_int,
    /// A number of this execution of the program.
    pub run: i64,
    /// Memory that handlers have allocated, until they free it or the call ends.
    pub memory: Mutex<Vec<Block>>,
}

impl ExecutionContext<'_> {
    /// Data of the caller of a type.
    ///
    /// # Errors
    /// `Code::NotFound`.
    pub fn user_data(&self, id: i64) -> Result<*mut c_void, Failure> {
        let found = self.user_data.iter().find(|(own, _)| *own == id).map(|(_, data)| *data);
        found.ok_or_else(|| Failure::new(Code::NotFound, format!("the call has no user data of type {id}")))
    }

    /// Keeps data for the call site.
    ///
    /// # Errors
    /// `Code::Unimplemented` for other stages than the instantiation; `Code::FailedPrecondition` where it keeps something already.
    pub fn set_state(&self, stage: c_int, id: i64, data: *mut c_void) -> Result<(), Failure> {
        require_instantiation(stage)?;
        let mut kept = self.instance.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_some() {
            return Err(Failure::new(Code::FailedPrecondition, "the call has a state already"));
        }
        *kept = Some((id, data));
        Ok(())
    }

    /// Data that the call site keeps.
    ///
    /// # Errors
    /// `Code::Unimplemented` for other stages than the instantiation; `Code::NotFound` where there is none of this type.
    pub fn state(&self, stage: c_int, id: i64) -> Result<*mut c_void, Failure> {
        require_instantiation(stage)?;
        match *self.instance.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some((own, data)) if own == id => Ok(data),
            _ => Err(Failure::new(Code::NotFound, format!("the call has no state of type {id}"))),
        }
    }
}

fn require_instantiation(stage: c_int) -> Result<(), Failure> {
    if stage == INSTANTIATE {
        return Ok(());
    }
    Err(Failure::new(Code::Unimplemented, "tfaot keeps the states of calls from their instantiation alone"))
}
