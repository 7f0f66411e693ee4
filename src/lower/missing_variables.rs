//! Diagnostics of variables without a value.
use crate::diag::{Code, Diagnostic};
use crate::ops;

/// Merges the diagnostics of variables without a value into one, at the position of the first.
pub fn merge_missing_variables(all: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let about = |d: &Diagnostic| d.code == Code::VariableWithoutValue;
    let mut names: Vec<String> = all.iter().filter(|d| about(d)).filter_map(|d| d.place.node.clone()).collect();
    names.dedup();
    if names.is_empty() {
        return all;
    }
    let mut out: Vec<Diagnostic> = Vec::with_capacity(all.len());
    for d in all {
        if !about(&d) {
            out.push(d);
        } else if !out.iter().any(about) {
            let place = d.place;
            out.push(Diagnostic { place, ..ops::missing_value_error(&names) });
        }
    }
    out
}
