//! The cost of portable arithmetic: calls beside those of the fastest arithmetic, in turns.
use super::effort;
use crate::cli::args::BenchArgs;
use crate::codegen::Launches;
use crate::compile::{self, Functions};
use crate::diag::Result;
use crate::measure::Timer;
use crate::run::{Model, Session};
use crate::target::{CodeRequest, MathType, Precision};
use crate::tensor::Tensor;
use std::time::{Duration, Instant};

/// Least time of a call with portable arithmetic over that of a call of the same function with `--math f32`. Medians of calls in turns are no
/// measure on a machine that others use: its scheduler may interrupt one of the two always.
pub fn portable_overhead(
    session: &mut Session,
    functions: Functions,
    code: &CodeRequest,
    values: &[Tensor],
    args: &BenchArgs,
) -> Result<f64> {
    let precision = Precision { math: MathType::F32, ..code.precision };
    let fastest = CodeRequest { precision, ..code.clone() };
    let requests = std::slice::from_ref(&fastest);
    let built = compile::build_functions(functions, "other", "other", requests, Launches::Direct, &mut [])?;
    let model = Model::load_compiled(&built, args.file.source().file(), &code.target, args.threads.into())?;
    let mut other = Session::new(model, values)?;
    let effort = effort(args);
    let timers = [Timer::warm_up(session, &effort)?, Timer::warm_up(&mut other, &effort)?];
    let mut times: [Vec<Duration>; 2] = [Vec::new(), Vec::new()];
    let start = Instant::now();
    while times[0].is_empty() || !effort.is_done(times[0].len() as u64, start, 2) {
        times[0].push(timers[0].time(session)?);
        times[1].push(timers[1].time(&mut other)?);
    }
    let [portable, fastest] = times;
    Ok(timers[0].distribution(portable).min_ms / timers[1].distribution(fastest).min_ms)
}
