//! `tfaot bench --compare`: comparison of times with those in an earlier output.
use crate::diag::{Code, Diagnostic, Error, Result, io_error};
use crate::measure::Times;
use serde_json::{Value, json};
use std::path::Path;

/// Times and circumstances in an earlier output of `bench --json`.
pub struct EarlierTimes {
    min_ms: f64,
    median_ms: f64,
    /// Absent in outputs of versions that did not measure it.
    p90_ms: Option<f64>,
    document: Value,
}

/// Reads an earlier output. Errors: `Code::Io`; `Code::BadEncoding` for other files.
pub fn load(path: &Path) -> Result<EarlierTimes> {
    let text = std::fs::read_to_string(path).map_err(|e| io_error("read", path, &e))?;
    let document: Value = serde_json::from_str(&text).unwrap_or_default();
    let number = |key: &str| document.get(key).and_then(Value::as_f64);
    match (number("min_ms"), number("median_ms")) {
        (Some(min_ms), Some(median_ms)) => Ok(EarlierTimes { min_ms, median_ms, p90_ms: number("p90_ms"), document }),
        _ => Err(Error::from(
            Diagnostic::new(Code::BadEncoding, format!("`{}` is no output of `bench --json`", path.display()))
                .help("write one with `tfaot bench GRAPH --json > OLD.json`"),
        )),
    }
}

/// Change of the times since an earlier measurement.
pub struct TimeChange {
    was: [f64; 2],
    now: [f64; 2],
    /// Whether the medians differ by less than the spread of the calls in either measurement: half of the time between the fastest
    /// call and the 90th percentile.
    within_spread: bool,
    /// Circumstances that differ, such as the number of threads.
    otherwise: Vec<String>,
}

impl EarlierTimes {
    /// Compares with `new`, measured under `circumstances`, an object with keys of `bench --json`.
    pub fn compare_with(&self, new: &Times, circumstances: &Value) -> TimeChange {
        let spread = |min: f64, p90: f64| (p90 - min) / 2.0;
        let noise = spread(new.min_ms, new.p90_ms).max(self.p90_ms.map_or(0.0, |p90| spread(self.min_ms, p90)));
        let differs = |(key, value): (&String, &Value)| {
            let old = self.document.get(key)?;
            (old != value).then(|| format!("{key} was {old} and is {value}"))
        };
        TimeChange {
            was: [self.min_ms, self.median_ms],
            now: [new.min_ms, new.median_ms],
            within_spread: (new.median_ms - self.median_ms).abs() <= noise,
            otherwise: circumstances.as_object().into_iter().flatten().filter_map(differs).collect(),
        }
    }
}

impl TimeChange {
    /// The JSON object `change`.
    pub fn json(&self) -> Value {
        json!({
            "min": self.now[0] / self.was[0],
            "median": self.now[1] / self.was[1],
            "within_spread": self.within_spread,
            "otherwise": self.otherwise,
        })
    }

    /// The change as text, with `digits` decimals of a millisecond.
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
    use std::time::Duration;

    fn times(microseconds: impl Iterator<Item = u64>) -> Times {
        Times::new(microseconds.map(Duration::from_micros).collect(), 1, 0)
    }

    #[test]
    fn a_change_within_the_spread_is_said_to_be_so() {
        let document = json!({"min_ms": 0.9, "median_ms": 1.0, "p90_ms": 1.1, "threads": 2});
        let earlier = EarlierTimes { min_ms: 0.9, median_ms: 1.0, p90_ms: Some(1.1), document };
        let change = |median: u64| earlier.compare_with(&times([median; 9].into_iter()), &json!({"threads": 1}));
        assert!(change(1050).within_spread && !change(1200).within_spread);
        assert_eq!(change(1200).otherwise, ["threads was 2 and is 1"]);
    }
}
