//! Memory between inaccessible pages: compiled code that reads or writes outside of its arrays faults at the access, and the array is
//! identified. [`report_faults`] turns the signal into a message; without it the signal ends the process.
#![expect(unsafe_code, reason = "maps memory, and handles the signal of a forbidden access")]
use std::io::{Error, ErrorKind, Result};
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The side of an array that adjoins a guard page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardSide {
    /// The array ends at the last byte before a guard page, as far as its alignment allows.
    End,
    /// The array begins at the first byte behind a guard page.
    Begin,
}

/// Memory of one array with a guard page before and behind it, initially zero.
pub struct GuardedBuffer {
    /// Start of the mapping, both guard pages included.
    pages: *mut u8,
    pages_bytes: usize,
    page_bytes: usize,
    at: *mut u8,
    bytes: usize,
    /// The buffer's index in [`SLOTS`], if a slot was free.
    slot: Option<usize>,
    /// The buffer's name in messages; the handler reads its bytes.
    _label: Box<str>,
}

impl GuardedBuffer {
    /// Allocates `bytes` bytes aligned to `align`, a power of two of at most a page; `label` is the array's name in messages.
    ///
    /// # Errors
    /// Error of the operating system if the memory can't be allocated.
    pub fn new(bytes: usize, align: usize, edge: GuardSide, label: String) -> Result<GuardedBuffer> {
        let page_bytes = page_bytes();
        let too_large = || Error::new(ErrorKind::OutOfMemory, "more than the address space");
        let held = bytes.max(1).checked_next_multiple_of(align).ok_or_else(too_large)?;
        let inner = held.checked_next_multiple_of(page_bytes).ok_or_else(too_large)?;
        let pages_bytes = inner.checked_add(2 * page_bytes).ok_or_else(too_large)?;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory at an address of the system's choice; nothing that is mapped changes.
        let pages = unsafe { libc::mmap(std::ptr::null_mut(), pages_bytes, access, kind, -1, 0) };
        if pages == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        let pages = pages.cast::<u8>();
        let from_first = match edge {
            GuardSide::Begin => 0,
            GuardSide::End => inner - bytes.next_multiple_of(align),
        };
        let at = pages.wrapping_add(page_bytes + from_first);
        let label = label.into_boxed_str();
        let slot = Slot::take(pages as usize, pages_bytes, at as usize, bytes, &label);
        let made = GuardedBuffer { pages, pages_bytes, page_bytes, at, bytes, slot, _label: label };
        made.protect(0, page_bytes, libc::PROT_NONE)?;
        made.protect(page_bytes + inner, page_bytes, libc::PROT_NONE)?;
        Ok(made)
    }

    /// Makes the buffer read-only.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn read_only(&self) -> Result<()> {
        self.protect(self.page_bytes, self.pages_bytes - 2 * self.page_bytes, libc::PROT_READ)
    }

    fn protect(&self, from: usize, bytes: usize, access: i32) -> Result<()> {
        // SAFETY: whole pages of our own mapping, into which no reference is held while `new` and `read_only` run, but for
        // shared ones, which may read on.
        let code = unsafe { libc::mprotect(self.pages.wrapping_add(from).cast(), bytes, access) };
        if code == 0 { Ok(()) } else { Err(Error::last_os_error()) }
    }

    /// The address of the buffer's first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.at
    }

    /// The buffer's content.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `bytes` bytes from `at` on are mapped and readable as long as `self` lives.
        unsafe { std::slice::from_raw_parts(self.at, self.bytes) }
    }

    /// The buffer's content, mutable; not to be called after [`GuardedBuffer::read_only`].
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.bytes) }
    }

    /// Sets all bytes between the guard pages to `value`, including the padding around the array.
    pub fn fill(&mut self, value: u8) {
        let (from, inner) = (self.pages.wrapping_add(self.page_bytes), self.pages_bytes - 2 * self.page_bytes);
        // SAFETY: those pages are ours, and writable until `read_only`, behind which nobody fills.
        unsafe { std::ptr::write_bytes(from, value, inner) }
    }

    /// Copies `content`, which has the same length, into the buffer.
    pub fn copy_from(&mut self, content: &[u8]) {
        assert_eq!(content.len(), self.bytes, "the content has the array's size");
        // SAFETY: as many bytes from `at` on are ours and writable, and `content` is not among them.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), self.at, self.bytes) }
    }

    /// Whether the padding around the array still has the `value` of [`GuardedBuffer::fill`].
    pub fn is_padding_intact(&self, value: u8) -> bool {
        let from = self.page_bytes;
        let before = self.at as usize - self.pages as usize - from;
        let behind = self.pages_bytes - 2 * self.page_bytes - before - self.bytes;
        let untouched = |at: *const u8, bytes: usize| {
            // SAFETY: the bytes before and behind the array up to the forbidden pages, which are ours and readable.
            unsafe { std::slice::from_raw_parts(at, bytes) }.iter().all(|&b| b == value)
        };
        untouched(self.pages.wrapping_add(from), before) && untouched(self.at.wrapping_add(self.bytes), behind)
    }
}

impl Drop for GuardedBuffer {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            SLOTS[slot].pages.store(0, SeqCst);
        }
        // SAFETY: the mapping is ours, whole, and nobody uses it any more.
        unsafe { libc::munmap(self.pages.cast(), self.pages_bytes) };
    }
}

fn page_bytes() -> usize {
    // SAFETY: asks the system for a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// A guarded array as the signal handler sees it. The handler can't take locks, so the fields are atomic words in a fixed table.
struct Slot {
    /// Address of the first page; 0 if the slot is free.
    pages: AtomicUsize,
    pages_bytes: AtomicUsize,
    at: AtomicUsize,
    bytes: AtomicUsize,
    label: AtomicUsize,
    label_bytes: AtomicUsize,
}

/// Table of guarded arrays. Further arrays are guarded as well, but messages do not name them.
static SLOTS: [Slot; 4096] = [const { Slot::free() }; 4096];

impl Slot {
    const fn free() -> Slot {
        Slot {
            pages: AtomicUsize::new(0),
            pages_bytes: AtomicUsize::new(0),
            at: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            label: AtomicUsize::new(0),
            label_bytes: AtomicUsize::new(0),
        }
    }

    fn take(pages: usize, pages_bytes: usize, at: usize, bytes: usize, label: &str) -> Option<usize> {
        let free = |s: &Slot| s.pages.compare_exchange(0, pages, SeqCst, SeqCst).is_ok();
        let found = SLOTS.iter().position(free)?;
        let slot = &SLOTS[found];
        slot.pages_bytes.store(pages_bytes, SeqCst);
        slot.at.store(at, SeqCst);
        slot.bytes.store(bytes, SeqCst);
        slot.label.store(label.as_ptr() as usize, SeqCst);
        slot.label_bytes.store(label.len(), SeqCst);
        Some(found)
    }

    fn has(&self, address: usize) -> bool {
        let pages = self.pages.load(SeqCst);
        pages != 0 && (pages..pages + self.pages_bytes.load(SeqCst)).contains(&address)
    }
}

/// The prefix of messages, and the previous handlers of both signals.
struct Handler {
    prefix: String,
    before: [libc::sigaction; 2],
}

/// Signals for an access to a guard page: the first on Linux, the second elsewhere.
const SIGNALS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];

static HANDLER: OnceLock<Handler> = OnceLock::new();

/// Installs a handler that turns an access to a guard page into a message on standard error with `prefix`, and exit status 1. All other
/// faults are handled as before. Only the first call has an effect.
pub fn report_faults(prefix: &str) {
    HANDLER.get_or_init(|| {
        let before = SIGNALS.map(|signal| {
            let mut old = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: asks for the present action; zeros are a sound `sigaction`.
            unsafe {
                libc::sigaction(signal, std::ptr::null(), old.as_mut_ptr());
                old.assume_init()
            }
        });
        Handler { prefix: prefix.to_string(), before }
    });
    for signal in SIGNALS {
        // SAFETY: zeros are a sound `sigaction`; the handler has the three parameters that SA_SIGINFO promises, does nothing but
        // what signals allow, and runs on the stack that Rust's threads have for signals.
        unsafe {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let Some(handler) = HANDLER.get() else { return };
    // SAFETY: the system hands a sound structure to handlers with SA_SIGINFO, and these signals have an address.
    let address = unsafe { (*info).si_addr() } as usize;
    let Some(slot) = SLOTS.iter().find(|s| s.has(address)) else {
        let [first, second] = &handler.before;
        let old = if signal == SIGNALS[0] { first } else { second };
        // SAFETY: puts back what was there; the instruction faults again behind this and is handled by that.
        unsafe { libc::sigaction(signal, old, std::ptr::null_mut()) };
        return;
    };
    let (at, bytes) = (slot.at.load(SeqCst), slot.bytes.load(SeqCst));
    // SAFETY: a slot that is taken has the address and the length of the label of an array that lives.
    let label =
        unsafe { std::slice::from_raw_parts(slot.label.load(SeqCst) as *const u8, slot.label_bytes.load(SeqCst)) };
    let mut line = Line { bytes: [0; 1024], len: 0 };
    line.add(handler.prefix.as_bytes());
    match address {
        a if a < at => {
            line.add(b"compiled code touched memory ");
            line.number(at - a);
            line.add(b" bytes before ");
        }
        a if a < at + bytes => {
            line.add(b"compiled code wrote to byte ");
            line.number(a - at);
            line.add(b" of ");
        }
        a => {
            line.add(b"compiled code touched memory ");
            line.number(a - at - bytes);
            line.add(b" bytes behind the end of ");
        }
    }
    line.add(label);
    line.add(b", which has ");
    line.number(bytes);
    line.add(b" bytes\n   = help: this is a bug in tfaot; please report it with the graph\n");
    // SAFETY: both calls are allowed in handlers; the bytes are ours.
    unsafe {
        libc::write(2, line.bytes.as_ptr().cast(), line.len);
        libc::_exit(1);
    }
}

/// A message built without allocation, truncated if it is too long.
struct Line {
    bytes: [u8; 1024],
    len: usize,
}

impl Line {
    fn add(&mut self, text: &[u8]) {
        for (to, from) in self.bytes[self.len..].iter_mut().zip(text) {
            *to = *from;
            self.len += 1;
        }
    }
    fn number(&mut self, value: usize) {
        let (mut digits, mut rest, mut from) = ([b'0'; 20], value, 20);
        while rest > 0 || from == 20 {
            from -= 1;
            digits[from] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.add(&digits[from..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_lie_at_their_edges() {
        for bytes in [0, 1, 3, 64, 4095, 4096, 4097, 10_000] {
            for (edge, align) in [(GuardSide::Begin, 64), (GuardSide::End, 1), (GuardSide::End, 64)] {
                let mut array = GuardedBuffer::new(bytes, align, edge, "an array".into()).expect("memory");
                let (page, at) = (page_bytes(), array.as_ptr() as usize);
                match edge {
                    GuardSide::Begin => assert_eq!(at % page, 0),
                    GuardSide::End => assert_eq!((at + bytes.next_multiple_of(align)) % page, 0),
                }
                assert_eq!(at % align, 0);
                array.fill(0xff);
                array.copy_from(&vec![7; bytes]);
                assert!(array.is_padding_intact(0xff) && array.bytes().iter().all(|&b| b == 7));
                array.read_only().expect("protected");
                assert_eq!(array.bytes().len(), bytes);
            }
        }
    }

    #[test]
    fn numbers_are_decimal() {
        for n in [0, 7, 10, 4096, usize::MAX] {
            let mut line = Line { bytes: [0; 1024], len: 0 };
            line.number(n);
            assert_eq!(std::str::from_utf8(&line.bytes[..line.len]), Ok(n.to_string().as_str()));
        }
    }
}
