//! A function that was compiled to an object, in this process, called on memory of the caller.
#![expect(unsafe_code, reason = "calls compiled code on memory that the caller answers for")]
use super::abi::{self, RunFn};
use super::image::{ExternalCode, Image};
use super::model::check_return_code;
use super::pool::ThreadPool;
use super::ranks::Communicator;
use crate::diag::{Error, Result};
use crate::util::pieces::Pieces;

/// A compiled function without variables and open sizes, loaded without a linker and without files.
#[derive(Debug)]
pub struct Executable {
    run: RunFn,
    workspace_bytes: usize,
    ranks: u32,
    image: Image,
}

impl Executable {
    /// Whether this process can load objects without a linker.
    pub const SUPPORTED: bool = Image::SUPPORTED;

    /// Loads the object of a model called `name`; `external` has the functions of the user that it calls.
    ///
    /// # Errors
    /// Internal, where the object is damaged, has several functions, variables or sizes, or calls what is nowhere.
    pub fn load(object: &Pieces, name: &str, external: &dyn Fn(&str) -> Option<ExternalCode>) -> Result<Executable> {
        let image = Image::load(&[&object.to_bytes()], external)?;
        let symbol = format!("{name}_info");
        let info =
            image.symbol(&symbol).ok_or_else(|| Error::internal("load", format!("the object has no `{symbol}`")))?;
        // SAFETY: the object is tfaot's, whose metadata are behind this function.
        let (run, workspace_bytes, ranks) = unsafe { abi::only_function(info)? };
        Ok(Executable { run, workspace_bytes, ranks, image })
    }

    /// Bytes of the workspace of a call, which is aligned to 64 bytes.
    pub fn workspace_bytes(&self) -> usize {
        self.workspace_bytes
    }

    /// Number of ranks that run the function together; 0 if it exchanges nothing with others.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Bytes of code and constants in memory.
    pub fn bytes(&self) -> usize {
        self.image.bytes()
    }

    /// Calls the function, on the threads of `pool` if there is one, as a rank if there is a communicator, which [`on_ranks`] gives.
    ///
    /// [`on_ranks`]: super::ranks::on_ranks
    ///
    /// # Safety
    /// `args` and `results` point to dense arrays of the types that the function was compiled for, aligned as their elements,
    /// `workspace` to as many bytes as [`Executable::workspace_bytes`], aligned to 64; nothing else writes to them during the call.
    ///
    /// # Errors
    /// `Code::BadOption` where the code is for other processors; `Code::BadInputs` where a check fails; an internal error for other
    /// codes, of a user's function that failed too.
    pub unsafe fn call(
        &self,
        args: &[*const u8],
        results: &[*mut u8],
        workspace: *mut u8,
        pool: Option<&ThreadPool>,
        communicator: Option<&Communicator>,
    ) -> Result<()> {
        let executor = pool.map(ThreadPool::executor);
        let executor = executor.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let null: *mut std::ffi::c_void = std::ptr::null_mut();
        // SAFETY: the caller answers for the memory; a function without sizes, state and weights does not look at theirs.
        let code = unsafe {
            (self.run)(
                args.as_ptr().cast(),
                results.as_ptr().cast(),
                null.cast(),
                null,
                null,
                workspace.cast(),
                executor,
                communicator.map_or(std::ptr::null(), std::ptr::from_ref),
            )
        };
        check_return_code(code, || "a check failed".to_string())
    }
}
