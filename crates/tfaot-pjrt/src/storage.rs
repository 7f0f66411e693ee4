//! Memory of arrays and of calls.
use crate::event::Event;
use crate::failure::{Code, Failure};
use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The alignment in bytes of all memory that the plugin allocates: that of the widest vector.
pub const ALIGN: usize = 64;

static IN_USE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

/// Bytes of memory that arrays and calls have now.
pub fn bytes_in_use() -> i64 {
    IN_USE.load(Ordering::Relaxed)
}

/// The most bytes that they had at once.
pub fn peak_bytes_in_use() -> i64 {
    PEAK.load(Ordering::Relaxed)
}

/// Memory of its own, aligned, not initialized.
pub struct Block {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the block owns its memory.
unsafe impl Send for Block {}
// SAFETY: shared blocks are only read, or written by one call that has them alone.
unsafe impl Sync for Block {}

impl Block {
    /// Allocates `bytes`, at least one.
    ///
    /// # Errors
    /// `Code::ResourceExhausted`.
    pub fn new(bytes: usize) -> Result<Block, Failure> {
        let full = || Failure::new(Code::ResourceExhausted, format!("there is no memory for {bytes} bytes"));
        let layout = Layout::from_size_align(bytes.max(1), ALIGN).map_err(|_| full())?;
        // SAFETY: the layout has at least one byte.
        let at = NonNull::new(unsafe { alloc(layout) }).ok_or_else(full)?;
        let now = IN_USE.fetch_add(layout.size() as i64, Ordering::Relaxed) + layout.size() as i64;
        PEAK.fetch_max(now, Ordering::Relaxed);
        Ok(Block { at, bytes })
    }

    /// The first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.at.as_ptr()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let size = self.bytes.max(1);
        IN_USE.fetch_sub(size as i64, Ordering::Relaxed);
        // SAFETY: the memory was allocated with this layout, which was valid then.
        unsafe { dealloc(self.at.as_ptr(), Layout::from_size_align_unchecked(size, ALIGN)) }
    }
}

/// Memory of an array: the plugin's, or somebody else's that is only read.
pub enum Storage {
    /// Memory of its own.
    Own(Block),
    /// Memory of the host, which may go when the event is ready.
    Host { at: *const u8, done: Event },
    /// Memory of another library, which is told when it is no longer used.
    View { at: *const u8, on_drop: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>, argument: *mut c_void },
}

// SAFETY: memory of others is only read, and they keep it until they are told.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Storage {
    /// The first byte.
    pub fn as_ptr(&self) -> *const u8 {
        match self {
            Storage::Own(block) => block.as_ptr(),
            Storage::Host { at, .. } | Storage::View { at, .. } => *at,
        }
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        match self {
            Storage::Own(_) => {}
            Storage::Host { done, .. } => done.set(Ok(())),
            Storage::View { at, on_drop, argument } => {
                if let Some(on_drop) = on_drop {
                    // SAFETY: the owner passed the function with this argument, to be called once.
                    unsafe { on_drop(at.cast_mut().cast(), *argument) }
                }
            }
        }
    }
}

/// Memory that calls worked in, kept for the next ones.
#[derive(Default)]
pub struct Workspaces(Mutex<Vec<Block>>);

/// The most workspaces that are kept, and the most bytes of each.
const KEPT: usize = 4;
const KEPT_BYTES: usize = 64 << 20;

impl Workspaces {
    /// A workspace of at least `bytes`.
    ///
    /// # Errors
    /// `Code::ResourceExhausted`.
    pub fn take(&self, bytes: usize) -> Result<Block, Failure> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(i) = kept.iter().position(|block| block.bytes >= bytes) {
            return Ok(kept.swap_remove(i));
        }
        drop(kept);
        Block::new(bytes)
    }

    /// Gives a workspace back.
    pub fn give(&self, block: Block) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if block.bytes <= KEPT_BYTES {
            if kept.len() == KEPT {
                // the smallest serves the fewest calls
                let smallest = kept.iter().enumerate().min_by_key(|(_, b)| b.bytes).map(|(i, _)| i);
                smallest.into_iter().for_each(|i| drop(kept.swap_remove(i)));
            }
            kept.push(block);
        }
    }
}
