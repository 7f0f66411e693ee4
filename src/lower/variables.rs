//! Variables that nothing gives a value.
use crate::diag::{Code, Diagnostic};
use crate::ops;

/// The diagnostics with all that are about variables without a value as one, where the first was.
pub fn grouped(all: Vec<Diagnostic>) -> Vec<Diagnostic> {
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
            out.push(Diagnostic { place, ..ops::valueless(&names) });
        }
    }
    out
}
