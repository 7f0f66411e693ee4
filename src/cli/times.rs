//! The times of calls as a distribution, and beside an earlier one.
use crate::diag::{Code, Diagnostic, Error, Result, io_error};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// What calls took, in milliseconds of one call. A percentile is the least time that so many of the calls did not exceed.
#[derive(Clone, Debug)]
pub struct Times {
    pub min_ms: f64,
    pub median_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
    /// Calls that were measured.
    pub runs: u64,
    /// Calls between two looks at the clock: where it is more than one, each time is their mean.
    pub together: u32,
    /// Calls before those.
    pub warmup_runs: u64,
}

impl Times {
    /// Of `times`, at least one, of `together` calls each.
    pub fn of(mut times: Vec<Duration>, together: u32, warmup_runs: u64) -> Times {
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

/// An earlier output of `bench --json`.
pub struct Earlier {
    min_ms: f64,
    median_ms: f64,
    /// Absent in outputs of versions that did not measure it.
    p90_ms: Option<f64>,
    document: Value,
}

/// Reads an earlier output. Errors: `Code::Io`; `Code::BadEncoding` where it is none.
pub fn load(path: &Path) -> Result<Earlier> {
    let text = std::fs::read_to_string(path).map_err(|e| io_error("read", path, &e))?;
    let document: Value = serde_json::from_str(&text).unwrap_or_default();
    let number = |key: &str| document.get(key).and_then(Value::as_f64);
    match (number("min_ms"), number("median_ms")) {
        (Some(min_ms), Some(median_ms)) => Ok(Earlier { min_ms, median_ms, p90_ms: number("p90_ms"), document }),
        _ => Err(Error::from(
            Diagnostic::new(Code::BadEncoding, format!("`{}` is no output of `bench --json`", path.display()))
                .help("write one with `tfaot bench GRAPH --json > OLD.json`"),
        )),
    }
}

/// How times differ from earlier ones.
pub struct Change {
    was: [f64; 2],
    now: [f64; 2],
    /// Whether the medians differ by less than the calls of either measurement among themselves: half of the time between the
    /// fastest and the slowest but a tenth.
    within_spread: bool,
    /// What was otherwise, such as the number of threads.
    otherwise: Vec<String>,
}

impl Earlier {
    /// Compares with `new`, which was measured under `circumstances`, an object of keys of `bench --json`.
    pub fn against(&self, new: &Times, circumstances: &Value) -> Change {
        let spread = |min: f64, p90: f64| (p90 - min) / 2.0;
        let noise = spread(new.min_ms, new.p90_ms).max(self.p90_ms.map_or(0.0, |p90| spread(self.min_ms, p90)));
        let differs = |(key, value): (&String, &Value)| {
            let old = self.document.get(key)?;
            (old != value).then(|| format!("{key} was {old} and is {value}"))
        };
        Change {
            was: [self.min_ms, self.median_ms],
            now: [new.min_ms, new.median_ms],
            within_spread: (new.median_ms - self.median_ms).abs() <= noise,
            otherwise: circumstances.as_object().into_iter().flatten().filter_map(differs).collect(),
        }
    }
}

impl Change {
    /// The object `change` of the JSON document.
    pub fn json(&self) -> Value {
        json!({
            "min": self.now[0] / self.was[0],
            "median": self.now[1] / self.was[1],
            "within_spread": self.within_spread,
            "otherwise": self.otherwise,
        })
    }

    /// The same for people, with `digits` digits of a millisecond.
    pub fn lines(&self, digits: usize) -> Vec<String> {
        let one = |what: &str, i: usize| {
            let (was, now) = (self.was[i], self.now[i]);
            format!("{what} {now:.digits$} ms, was {was:.digits$} ms: {:.3} times as long", now / was)
        };
        let noise = if self.within_spread { "; that is within the spread of the calls" } else { "" };
        let mut lines = vec![one("min", 0), one("median", 1) + noise];
        lines.extend(self.otherwise.iter().map(|o| format!("these can't be compared: {o}")));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(microseconds: impl Iterator<Item = u64>) -> Times {
        Times::of(microseconds.map(Duration::from_micros).collect(), 1, 0)
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

    #[test]
    fn a_change_within_the_spread_is_said_to_be_so() {
        let document = json!({"min_ms": 0.9, "median_ms": 1.0, "p90_ms": 1.1, "threads": 2});
        let earlier = Earlier { min_ms: 0.9, median_ms: 1.0, p90_ms: Some(1.1), document };
        let change = |median: u64| earlier.against(&times([median; 9].into_iter()), &json!({"threads": 1}));
        assert!(change(1050).within_spread && !change(1200).within_spread);
        assert_eq!(change(1200).otherwise, ["threads was 2 and is 1"]);
    }
}
