//! Text of diagnostics, in the style of rustc.
use super::Diagnostic;

/// The text of an error diagnostic, several lines without a final newline.
pub fn render(d: &Diagnostic) -> String {
    as_sort("error", d)
}

/// The text of a warning, several lines without a final newline.
pub fn render_warning(d: &Diagnostic) -> String {
    as_sort("warning", d)
}

fn as_sort(sort: &str, d: &Diagnostic) -> String {
    let mut out = format!("{sort}[{}]: {}", d.code.id(), d.message);
    let place = &d.place;
    let mut at = Vec::new();
    if let Some(function) = &place.function {
        at.push(format!("function `{function}`"));
    }
    if let Some(node) = &place.node {
        at.push(match &place.op {
            Some(op) => format!("node `{node}` ({op})"),
            None => format!("node `{node}`"),
        });
    }
    let file = match (&place.file, place.line) {
        (Some(file), Some((line, column))) => Some(format!("{file}:{line}:{column}")),
        (Some(file), None) => Some(file.clone()),
        (None, Some((line, column))) => Some(format!("{line}:{column}")),
        (None, None) => None,
    };
    let at = at.join(", ");
    match (file, at.is_empty()) {
        (Some(file), true) => out += &format!("\n  --> {file}"),
        (Some(file), false) => out += &format!("\n  --> {file}: {at}"),
        (None, false) => out += &format!("\n  --> {at}"),
        (None, true) => {}
    }
    for note in &d.notes {
        out += &format!("\n   | {note}");
    }
    if let Some(help) = &d.help {
        out += &format!("\n   = help: {help}");
    }
    out
}
