//! A few threads that live as long as a session and share loops.
#![expect(unsafe_code, reason = "lends a closure of the caller's stack to threads that outlive the call")]
use crate::diag::{Error, Result};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// The body of a loop: runs the range from its first to before its second argument.
type Body<'a> = dyn Fn(i64, i64) + Sync + 'a;

/// The loop that all threads share.
#[derive(Clone, Copy)]
struct Job {
    body: *const Body<'static>,
    n: i64,
    chunk: i64,
}

// SAFETY: the body is Sync, and `Pool::run` keeps it alive until no worker holds the job.
unsafe impl Send for Job {}

#[derive(Default)]
struct State {
    job: Option<Job>,
    stop: bool,
}

/// A number in a line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Turn(AtomicI64);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    /// The number of the current job; workers spin on it for a while before they sleep.
    epoch: AtomicU64,
    /// For each thread, the next index of its part that nobody has taken. Each begins with its own part, so that it finds in its
    /// cache what it wrote in the loop before, and then helps the others.
    next: Vec<Turn>,
    /// Workers that have not finished the current job.
    busy: AtomicUsize,
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
        let next = (0..threads.max(1)).map(|_| Turn::default()).collect();
        let shared = Arc::new(Shared { next, ..Shared::default() });
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
        let threads = self.threads() as i64;
        if threads == 1 || n < 2 {
            return if n > 0 {
                body(0, n)
            };
        }
        // SAFETY: only the lifetime changes; the loop below waits until no worker uses the body.
        let body = unsafe { std::mem::transmute::<&Body<'_>, &'static Body<'static>>(body) };
        let job = Job { body, n, chunk: (n / (threads * 4)).max(1) };
        for (thread, next) in self.shared.next.iter().enumerate() {
            next.0.store(job.first_of(thread, threads), Ordering::Relaxed);
        }
        self.shared.busy.store(self.workers.len(), Ordering::Relaxed);
        self.announce(|state| state.job = Some(job));
        take_part(&self.shared, job, 0);
        let mut spins = 0;
        while self.shared.busy.load(Ordering::Acquire) > 0 {
            spins += 1;
            if spins < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    fn announce(&self, change: impl FnOnce(&mut State)) {
        let mut state = lock(&self.shared);
        change(&mut state);
        // under the lock, or a worker that has looked but does not sleep yet would miss the signal
        self.shared.epoch.fetch_add(1, Ordering::Release);
        drop(state);
        self.shared.wake.notify_all();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.announce(|state| state.stop = true);
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    shared.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Job {
    /// Where the part of a thread begins.
    fn first_of(&self, thread: usize, threads: i64) -> i64 {
        (i128::from(self.n) * thread as i128 / i128::from(threads)) as i64
    }
}

fn take_part(shared: &Shared, job: Job, thread: usize) {
    let threads = shared.next.len();
    for whose in (thread..threads).chain(0..thread) {
        let end = job.first_of(whose + 1, threads as i64);
        loop {
            let begin = shared.next[whose].0.fetch_add(job.chunk, Ordering::Relaxed);
            if begin >= end {
                break;
            }
            // SAFETY: the caller of `run` waits for this worker, so the body is alive.
            unsafe { (*job.body)(begin, (begin + job.chunk).min(end)) };
        }
    }
}

fn work(shared: &Shared, thread: usize) {
    let mut seen = 0;
    loop {
        let mut spins = 0;
        while shared.epoch.load(Ordering::Acquire) == seen && spins < SPINS {
            std::hint::spin_loop();
            spins += 1;
        }
        let mut state = lock(shared);
        while shared.epoch.load(Ordering::Acquire) == seen {
            state = shared.wake.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        seen = shared.epoch.load(Ordering::Acquire);
        let (job, stop) = (state.job, state.stop);
        drop(state);
        if stop {
            return;
        }
        if let Some(job) = job {
            take_part(shared, job, thread);
            shared.busy.fetch_sub(1, Ordering::Release);
        }
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
