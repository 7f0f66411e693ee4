//! Variables that nothing gives a value.
use crate::diag::{Code, Diagnostic};

/// Names that are listed; the others are counted.
const LISTED: usize = 3;

/// What is said of the variable `name`, which has no value.
pub fn valueless(name: &str) -> Diagnostic {
    told(&[name.to_string()])
}

fn told(names: &[String]) -> Diagnostic {
    let listed: Vec<String> = names.iter().take(LISTED).map(|n| format!("`{n}`")).collect();
    let message = match (&listed[..], names.len().saturating_sub(LISTED)) {
        ([one], _) => format!("the variable {one} has no value"),
        (some, 0) => format!("the variables {} have no value", some.join(", ")),
        (some, more) => format!("the variables {} and {more} more have no value", some.join(", ")),
    };
    Diagnostic::new(Code::VariableWithoutValue, message).help(
        "save the model with its variables: `model.export(folder)` in Keras, `tf.saved_model.save`, or a frozen graph",
    )
}

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
            out.push(Diagnostic { place, ..told(&names) });
        }
    }
    out
}
