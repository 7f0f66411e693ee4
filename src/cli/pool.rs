//! A few threads that live as long as a session and share loops.
#![expect(unsafe_code, reason = "lends a closure of the caller's stack to threads that outlive the call")]
use crate::diag::{Error, Result};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The body of a loop: runs the range from its first to before its second argument.
type Body<'a> = dyn Fn(i64, i64) + Sync + 'a;

/// The loop that all threads share, in units of which a part has less than 2^32; none asks workers to end.
#[derive(Clone, Copy)]
struct Job {
    body: Option<*const Body<'static>>,
    n: i64,
    /// Indices of a unit.
    unit: i64,
    units: u64,
}

/// The current job, in one line with its number: who sees a new number has the job too.
#[repr(align(64))]
struct Order {
    /// Its number; workers spin on it for a while before they sleep.
    epoch: AtomicU64,
    job: UnsafeCell<Job>,
}

// SAFETY: the job is written by the one caller while no worker reads it: all have said that they are done with the one before,
// and read again once `epoch` was released. Its body is Sync, and `Pool::run` keeps it alive until all are done.
unsafe impl Sync for Order {}
// SAFETY: as above.
unsafe impl Send for Order {}

/// A number in a line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Line(AtomicU64);

struct Shared {
    order: Order,
    /// For each thread, the number of a job in the upper half and in the lower how much of its part of that job is taken. Each
    /// begins with its own part, so that it finds in its cache what it wrote in the loop before, and then helps the others.
    taken: Vec<Line>,
    /// For each worker, the job it was last done with.
    done: Vec<Line>,
    /// Workers that sleep or are about to.
    asleep: AtomicUsize,
    bed: Mutex<()>,
    wake: Condvar,
}

/// How often a thread looks before it sleeps or yields: some 20 µs.
const SPINS: u32 = 2000;

/// A pool of `threads`, of which the caller is one.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts `threads - 1` workers.
    pub fn new(threads: usize) -> Result<Pool> {
        let lines = |n: usize| (0..n).map(|_| Line::default()).collect();
        let none = Job { body: None, n: 0, unit: 1, units: 0 };
        let shared = Arc::new(Shared {
            order: Order { epoch: AtomicU64::new(0), job: UnsafeCell::new(none) },
            taken: lines(threads.max(1)),
            done: lines(threads.saturating_sub(1)),
            asleep: AtomicUsize::new(0),
            bed: Mutex::new(()),
            wake: Condvar::new(),
        });
        let mut pool = Pool { shared, workers: Vec::new() };
        for i in 1..threads {
            let shared = Arc::clone(&pool.shared);
            let worker = std::thread::Builder::new().name(format!("pool-{i}")).spawn(move || work(&shared, i));
            pool.workers.push(worker.map_err(|e| Error::internal("pool", format!("no thread could be started: {e}")))?);
        }
        Ok(pool)
    }

    /// The number of threads, the caller's among them.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `body` on ranges that cover `0..n`, and returns when all are done. One caller at a time.
    pub fn run(&self, n: i64, body: &Body<'_>) {
        if self.workers.is_empty() || n < 2 {
            return if n > 0 {
                body(0, n)
            };
        }
        // SAFETY: only the lifetime changes; the loop below waits until no worker uses the body.
        let body = unsafe { std::mem::transmute::<&Body<'_>, &'static Body<'static>>(body) };
        let unit = (n >> 31) + 1;
        let job = Job { body: Some(body), n, unit, units: (n as u64).div_ceil(unit as u64) };
        let epoch = self.announce(job);
        take_part(&self.shared, &job, epoch, 0);
        for done in &self.shared.done {
            let mut spins = 0;
            while done.0.load(Ordering::Acquire) != epoch {
                spins += 1;
                if spins < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
            }
        }
    }

    /// The least time to hand a loop to all threads and have them back, awake as they are within a call. It tells whether their
    /// cores share a cache: on virtual machines that changes from one second to the next, and small kernels' times with it.
    pub fn handover(&self) -> Duration {
        const TOGETHER: u32 = 100;
        let timed = |_| {
            let start = Instant::now();
            for _ in 0..TOGETHER {
                self.run(self.threads() as i64, &|_, _| {});
            }
            start.elapsed() / TOGETHER
        };
        (0..20).map(timed).min().unwrap_or_default()
    }

    /// Gives all workers a job; its number.
    fn announce(&self, job: Job) -> u64 {
        let order = &self.shared.order;
        // SAFETY: every worker is done with the job before, and looks at this one after the store below.
        unsafe { *order.job.get() = job };
        let epoch = order.epoch.load(Ordering::Relaxed) + 1;
        // a worker counts itself among those asleep before it looks at the number for the last time, so that either sees the other
        order.epoch.store(epoch, Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::SeqCst) > 0 {
            drop(lock(&self.shared));
            self.shared.wake.notify_all();
        }
        epoch
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.announce(Job { body: None, n: 0, unit: 1, units: 0 });
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, ()> {
    shared.bed.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Job {
    /// Where the part of a thread begins, in units.
    fn first_of(&self, thread: usize, threads: usize) -> u64 {
        (u128::from(self.units) * thread as u128 / threads as u128) as u64
    }

    fn run(&self, first: u64, count: u64) {
        let at = |unit: u64| (unit as i64).saturating_mul(self.unit).min(self.n);
        if let Some(body) = self.body {
            // SAFETY: the caller of `run` waits for this worker, so the body is alive.
            unsafe { (*body)(at(first), at(first + count)) };
        }
    }
}

/// How many of the units of a part are taken next. Three quarters of one's own at first, since kernels go on with what they
/// have of the chunk before, then half of what is left, so that threads that are done early find something.
fn piece(part: u64, taken: u64, own: bool) -> u64 {
    let left = part - taken;
    if own && taken == 0 { left - left / 4 } else { left.div_ceil(2) }
}

fn take_part(shared: &Shared, job: &Job, epoch: u64, thread: usize) {
    let threads = shared.taken.len();
    let number = epoch << 32;
    for whose in (thread..threads).chain(0..thread) {
        let first = job.first_of(whose, threads);
        let part = job.first_of(whose + 1, threads) - first;
        let line = &shared.taken[whose].0;
        if part == 0 && whose == thread {
            // so that numbers may begin again
            line.store(number, Ordering::Relaxed);
        }
        let mut was = line.load(Ordering::Relaxed);
        loop {
            // nobody has been here since the job before
            let taken = if was & !0xffff_ffff == number { was & 0xffff_ffff } else { 0 };
            if taken >= part {
                break;
            }
            let count = piece(part, taken, whose == thread);
            match line.compare_exchange_weak(was, number | (taken + count), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    job.run(first + taken, count);
                    was = line.load(Ordering::Relaxed);
                }
                Err(now) => was = now,
            }
        }
    }
}

fn work(shared: &Shared, thread: usize) {
    let epoch = &shared.order.epoch;
    let mut seen = 0;
    loop {
        let mut spins = 0;
        while epoch.load(Ordering::Acquire) == seen && spins < SPINS {
            std::hint::spin_loop();
            spins += 1;
        }
        if epoch.load(Ordering::Acquire) == seen {
            let mut bed = lock(shared);
            shared.asleep.fetch_add(1, Ordering::SeqCst);
            while epoch.load(Ordering::SeqCst) == seen {
                bed = shared.wake.wait(bed).unwrap_or_else(|poisoned| poisoned.into_inner());
            }
            shared.asleep.fetch_sub(1, Ordering::SeqCst);
            drop(bed);
        }
        seen += 1;
        // SAFETY: the caller writes the next job only when this worker is done with this one.
        let job = unsafe { *shared.order.job.get() };
        if job.body.is_none() {
            return;
        }
        take_part(shared, &job, seen, thread);
        shared.done[thread - 1].0.store(seen, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_visited_once() {
        let pool = Pool::new(4).expect("threads");
        for n in [0i64, 1, 3, 1000] {
            for _ in 0..50 {
                let counts: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
                pool.run(n, &|a, b| {
                    for i in a..b {
                        counts[i as usize].fetch_add(1, Ordering::Relaxed);
                    }
                });
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
            }
        }
    }
}
