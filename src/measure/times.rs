//! Timing of repeated calls of a session.
use crate::diag::Result;
use crate::run::Session;
use std::time::{Duration, Instant};

/// Duration below which several calls are timed together, since reading the clock takes some 25 ns.
const SHORTEST: Duration = Duration::from_micros(4);

/// Duration of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Number of calls to measure; without it, as many as fit into the seconds.
    pub runs: Option<u64>,
    /// Seconds to measure, at most an hour.
    pub seconds: f64,
    /// Number of calls before the measurement; without it three, or fewer if they take a quarter of the time.
    pub warmup: Option<u64>,
}

impl Effort {
    /// Time to measure for.
    pub fn budget(&self) -> Duration {
        Duration::from_secs_f64(self.seconds.clamp(0.0, 3600.0))
    }

    /// Whether `rounds` measurements since `start` suffice, when `models` models share the clock and each has a budget of its own.
    pub fn is_done(&self, rounds: u64, start: Instant, models: u32) -> bool {
        let budget = self.budget() * models;
        match self.runs {
            Some(runs) => rounds >= runs,
            None => (rounds >= 5 && start.elapsed() > budget) || start.elapsed() > budget * 10,
        }
    }
}

/// Distribution of the times of calls, in milliseconds per call. A percentile is the smallest time that this share of the calls did not
/// exceed.
#[derive(Clone, Debug)]
pub struct Times {
    /// The shortest time.
    pub min_ms: f64,
    /// The median.
    pub median_ms: f64,
    /// The 90th percentile.
    pub p90_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The longest time.
    pub max_ms: f64,
    /// Number of measured calls.
    pub runs: u64,
    /// Number of calls between two readings of the clock; if more than one, each time is their mean.
    pub together: u32,
    /// Number of calls before the measurement.
    pub warmup_runs: u64,
}

impl Times {
    /// The distribution of `times`, of which there is at least one, each of `together` calls.
    pub fn new(mut times: Vec<Duration>, together: u32, warmup_runs: u64) -> Times {
        times.sort();
        let last = times.len().saturating_sub(1);
        let at = |index: usize| times.get(index).map_or(0.0, |t| t.as_nanos() as f64 / 1e6 / f64::from(together));
        let percentile = |percent: usize| at((times.len() * percent).div_ceil(100).saturating_sub(1));
        Times {
            min_ms: at(0),
            median_ms: at(times.len() / 2),
            p90_ms: percentile(90),
            p99_ms: percentile(99),
            max_ms: at(last),
            runs: times.len() as u64 * u64::from(together),
            together,
            warmup_runs,
        }
    }
}

/// Times the calls of a session, several together if they are short.
pub struct Timer {
    together: u32,
    warmup_runs: u64,
}

impl Timer {
    /// Warms up, and determines the number of calls to time together; it is one if the effort states a number of runs.
    ///
    /// # Errors
    /// Errors of [`Session::call`].
    pub fn warm_up(session: &mut Session, effort: &Effort) -> Result<Timer> {
        let mut timer = Timer { together: 1, warmup_runs: 0 };
        let start = Instant::now();
        while timer.warmup_runs < effort.warmup.unwrap_or(3) {
            timer.time(session)?;
            timer.warmup_runs += 1;
            if effort.warmup.is_none() && start.elapsed() > effort.budget() / 4 {
                break;
            }
        }
        while effort.runs.is_none() && timer.together < 1 << 16 && timer.time(session)? < SHORTEST {
            timer.warmup_runs += u64::from(timer.together);
            timer.together *= 2;
        }
        Ok(timer)
    }

    /// Makes the calls that are timed together, and returns their total time.
    ///
    /// # Errors
    /// Errors of [`Session::call`].
    pub fn time(&self, session: &mut Session) -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..self.together {
            session.call()?;
        }
        Ok(start.elapsed())
    }

    /// Distribution of times that this timer measured.
    pub fn distribution(&self, times: Vec<Duration>) -> Times {
        Times::new(times, self.together, self.warmup_runs)
    }
}

/// Measures calls of a session after a warm-up: at least one, by default at least five.
///
/// # Errors
/// Errors of [`Session::call`].
pub fn time_calls(session: &mut Session, effort: &Effort) -> Result<Times> {
    let timer = Timer::warm_up(session, effort)?;
    let start = Instant::now();
    let mut times = Vec::new();
    loop {
        times.push(timer.time(session)?);
        if effort.is_done(times.len() as u64, start, 1) {
            return Ok(timer.distribution(times));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(microseconds: impl Iterator<Item = u64>) -> Times {
        Times::new(microseconds.map(Duration::from_micros).collect(), 1, 0)
    }

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let all = times((1..=100).rev());
        assert_eq!([all.min_ms, all.p90_ms, all.p99_ms, all.max_ms], [0.001, 0.09, 0.099, 0.1]);
        let one = times([7].into_iter());
        assert_eq!([one.min_ms, one.median_ms, one.p90_ms, one.p99_ms, one.max_ms], [0.007; 5]);
        let five = times(1..=5);
        assert_eq!([five.median_ms, five.p90_ms], [0.003, 0.005]);
    }
}
