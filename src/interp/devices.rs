//! Evaluation of a module for several devices, with a thread for each.
use super::MAX_STEPS;
use super::opcodes::machine_with_every_opcode;
use super::rank::Rank;
use crate::diag::{Code, Error, Result};
use crate::hlo::groups::Devices;
use crate::hlo::{Literal, Module};
use crate::util::meetings::Meetings;

/// Stack size of a device's thread in bytes, enough for the nesting of calls that the interpreter allows.
const STACK: usize = 8 << 20;

/// Result of the entry computation on each device; `args` are indexed by rank.
///
/// # Errors
/// `Code::SeveralDevices` for a wrong number of devices, `Code::RankFailed` if devices wait for each other forever; otherwise
/// the error of the first device that fails.
pub fn evaluate_ranks(module: &Module, args: &[Vec<Literal>]) -> Result<Vec<Literal>> {
    let devices = Devices::new(module.devices())?;
    if args.len() != devices.count() as usize {
        let told =
            format!("arguments for {} devices, and module `{}` is for {}", args.len(), module.name, devices.count());
        return Err(Error::user(Code::SeveralDevices, told));
    }
    let meetings = &Meetings::new(args.len());
    let one = |rank: u32, args: &[Literal]| {
        let one = machine_with_every_opcode(module, u64::MAX, MAX_STEPS).with_rank(Rank { meetings, devices, rank });
        let result = one.check_args(module.entry, args).and_then(|()| one.call(module.entry, args));
        if result.is_err() {
            meetings.fail();
        }
        meetings.end();
        result
    };
    let results = std::thread::scope(|scope| {
        let start =
            |(rank, args)| std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || one(rank, args));
        let threads: Vec<_> = (0..).zip(args.iter().map(Vec::as_slice)).map(start).collect();
        let no_thread = |e: std::io::Error| {
            meetings.fail();
            Err(Error::user(Code::TooLarge, format!("a thread could not be started: {e}")))
        };
        let ended = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err(Error::internal("interpreter", "a device's thread ended")))
        };
        threads.into_iter().map(|thread| thread.map_or_else(no_thread, ended)).collect::<Vec<_>>()
    });
    first_cause(results)
}

/// All results, or the first failure that is not a consequence of another device's failure.
fn first_cause<T>(results: Vec<Result<T>>) -> Result<Vec<T>> {
    let (mut all, mut cause) = (Vec::with_capacity(results.len()), None);
    for result in results {
        match result {
            Ok(value) => all.push(value),
            Err(e) if cause.is_none() || cause.as_ref().is_some_and(|c| follows(c) && !follows(&e)) => cause = Some(e),
            Err(_) => {}
        }
    }
    cause.map_or(Ok(all), Err)
}

fn follows(e: &Error) -> bool {
    matches!(e, Error::User(all) if all.iter().all(|d| d.code == Code::RankFailed))
}
