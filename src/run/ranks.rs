//! Several ranks as threads of this process. They run the same code with a communicator that detects when all of them wait in vain.
#![expect(unsafe_code, reason = "functions that compiled code calls; layouts are those of the generated header")]
use super::model::Model;
use crate::compile::Built;
use crate::diag::{Code, Error, Result};
use crate::kernel::ModelInterface;
use crate::target::Target;
use crate::tensor::Tensor;
use crate::util::meetings::{MeetingError, Meetings};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::slice;
use std::sync::Arc;

/// The C struct `tfaot_exchange`.
#[repr(C)]
pub struct AbiExchange {
    number: u32,
    count: u32,
    ranks: *const i32,
    bytes: usize,
}

/// A collective function of a communicator.
type Move = unsafe extern "C" fn(*mut c_void, *const AbiExchange, *const c_void, *mut c_void) -> c_int;

/// The C struct `tfaot_communicator`.
#[repr(C)]
pub struct Communicator {
    this: *mut c_void,
    rank: i32,
    size: i32,
    all_gather: Move,
    all_to_all: Move,
    broadcast: Move,
    permute: Move,
    fail: unsafe extern "C" fn(*mut c_void),
}

/// A rank's contribution to a collective.
struct Sent {
    kind: Kind,
    number: u32,
    block: usize,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gather,
    ToAll,
    Broadcast,
    Permute,
}

/// State of the communicator of one rank.
struct Rank<'a> {
    meetings: &'a Meetings<Arc<Sent>>,
    rank: u32,
    apart: Cell<Option<&'static str>>,
}

impl Rank<'_> {
    /// The contributions of all ranks of a group, if all have reached the same exchange.
    fn met(&self, group: &[u32], own: &Arc<Sent>) -> Option<Vec<Arc<Sent>>> {
        let told = match self.meetings.exchange(self.rank, group, own.clone()) {
            Ok(all) => {
                let same = |s: &Arc<Sent>| s.kind == own.kind && s.number == own.number && s.block == own.block;
                if all.iter().all(same) {
                    return Some(all);
                }
                self.meetings.fail();
                "ranks are at different places of the module"
            }
            Err(MeetingError::Failed) => "another rank failed",
            Err(MeetingError::Waiting) => {
                "all ranks that are left wait for others, which are somewhere else in the module"
            }
        };
        self.apart.set(Some(told));
        None
    }

    fn moves(&self, kind: Kind, x: &AbiExchange, from: *const c_void, to: *mut c_void) -> Option<()> {
        // SAFETY: the tables of the object have `count` ranks behind the pointer.
        let ranks = unsafe { slice::from_raw_parts(x.ranks, x.count as usize) };
        let blocks = if kind == Kind::ToAll { ranks.len() } else { 1 };
        // SAFETY: the code hands over so many blocks to read.
        let bytes = unsafe { slice::from_raw_parts(from.cast::<u8>(), x.bytes * blocks) }.to_vec();
        let own = Arc::new(Sent { kind, number: x.number, block: x.bytes, bytes });
        let put = |i: usize, block: &[u8]| {
            // SAFETY: the result has room for as many blocks as there are to come, apart from what is read.
            unsafe { std::ptr::copy_nonoverlapping(block.as_ptr(), to.cast::<u8>().add(i * x.bytes), x.bytes) };
        };
        if kind == Kind::Permute {
            return self.permute(ranks, &own, &put);
        }
        let group: Vec<u32> = ranks.iter().map(|&r| r as u32).collect();
        let me = group.iter().position(|&r| r == self.rank)?;
        let all = self.met(&group, &own)?;
        match kind {
            Kind::Broadcast => put(0, &all.first()?.bytes),
            Kind::Gather => all.iter().enumerate().for_each(|(i, sent)| put(i, &sent.bytes)),
            Kind::ToAll | Kind::Permute => {
                all.iter().enumerate().for_each(|(i, sent)| put(i, &sent.bytes[me * x.bytes..(me + 1) * x.bytes]));
            }
        }
        Some(())
    }

    /// Performs pairwise exchanges for the block sent and the block received, in the same order on all ranks to avoid deadlock.
    fn permute(&self, ranks: &[i32], own: &Arc<Sent>, put: &impl Fn(usize, &[u8])) -> Option<()> {
        let &[target, source] = ranks else { return None };
        let (target, source) = (u32::try_from(target).ok(), u32::try_from(source).ok());
        let mut pairs: Vec<[u32; 2]> = target.map(|to| [self.rank, to]).into_iter().collect();
        pairs.extend(source.map(|from| [from, self.rank]));
        pairs.sort_unstable();
        pairs.dedup();
        for [from, to] in pairs {
            let first = if from == to { own.clone() } else { self.met(&[from, to], own)?.first()?.clone() };
            if to == self.rank {
                put(0, &first.bytes);
            }
        }
        Some(())
    }
}

/// Performs one collective for the C callbacks below.
///
/// # Safety
/// The arguments must be those with which compiled code calls its communicator.
unsafe fn move_blocks(
    kind: Kind,
    this: *mut c_void,
    x: *const AbiExchange,
    from: *const c_void,
    to: *mut c_void,
) -> c_int {
    // SAFETY: `this` is the rank that `call_ranks` made for this thread, and the code hands over one of its tables.
    let (rank, x) = unsafe { (&*this.cast::<Rank<'_>>(), &*x) };
    c_int::from(rank.moves(kind, x, from, to).is_none())
}

unsafe extern "C" fn all_gather(t: *mut c_void, x: *const AbiExchange, from: *const c_void, to: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { move_blocks(Kind::Gather, t, x, from, to) }
}

unsafe extern "C" fn all_to_all(t: *mut c_void, x: *const AbiExchange, from: *const c_void, to: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { move_blocks(Kind::ToAll, t, x, from, to) }
}

unsafe extern "C" fn broadcast(t: *mut c_void, x: *const AbiExchange, from: *const c_void, to: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { move_blocks(Kind::Broadcast, t, x, from, to) }
}

unsafe extern "C" fn permute(t: *mut c_void, x: *const AbiExchange, from: *const c_void, to: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { move_blocks(Kind::Permute, t, x, from, to) }
}

unsafe extern "C" fn fail(this: *mut c_void) {
    // SAFETY: as above.
    unsafe { &*this.cast::<Rank<'_>>() }.meetings.fail();
}

/// Calls `one` for each of `count` ranks, by its number and with its communicator, on a thread of this process each. Returns what the ranks
/// return.
///
/// # Errors
/// `Code::RankFailed` if ranks wait in vain, and those of `one`.
pub fn on_ranks<T: Send>(count: usize, one: impl Fn(usize, &Communicator) -> Result<T> + Sync) -> Result<Vec<T>> {
    let meetings = &Meetings::new(count);
    let size = i32::try_from(count).map_err(|_| Error::internal("ranks", "too many"))?;
    let one = &one;
    let on_rank = move |number: i32| {
        let rank = Rank { meetings, rank: number as u32, apart: Cell::new(None) };
        let communicator = Communicator {
            this: std::ptr::from_ref(&rank).cast_mut().cast(),
            rank: number,
            size,
            all_gather,
            all_to_all,
            broadcast,
            permute,
            fail,
        };
        let result = one(number as usize, &communicator);
        if result.is_err() {
            meetings.fail();
        }
        meetings.end();
        match rank.apart.get() {
            Some(told) => Err(Error::user(Code::RankFailed, format!("rank {number}: {told}"))),
            None => result,
        }
    };
    let results: Vec<Result<T>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..size).map(|i| scope.spawn(move || on_rank(i))).collect();
        let ended = |t: std::thread::ScopedJoinHandle<'_, _>| {
            t.join().unwrap_or_else(|_| Err(Error::internal("ranks", "a rank's thread ended")))
        };
        threads.into_iter().map(ended).collect()
    });
    results.into_iter().collect()
}

/// A model shared by threads: it has no pool, and nothing in it changes.
struct Shared<'a>(&'a Model);

// SAFETY: compiled code keeps no state of its own, and what is read of the model is facts and addresses of functions.
unsafe impl Sync for Shared<'_> {}

/// Runs a model on several ranks, one for each element of `args`, as threads of this process. Returns the results of each rank. Calls are
/// made as by [`Model::call_guarded`].
///
/// # Errors
/// `Code::RankFailed` if ranks wait in vain, and those of [`Model::call_guarded`].
pub fn call_ranks(built: &Built, target: &Target, args: &[Vec<Tensor>]) -> Result<Vec<Vec<Tensor>>> {
    let face = ModelInterface::of_program(&built.program);
    let model = Model::link(&face, &built.object, target, 1)?;
    let shared = &Shared(&model);
    on_ranks(args.len(), |number, communicator| {
        let Shared(model) = *shared;
        model.initial_state().and_then(|mut state| model.call_as_rank(&args[number], &mut state, communicator))
    })
}
