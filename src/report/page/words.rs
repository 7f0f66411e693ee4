//! Formatting of numbers and sentences on the page.
use super::escaped;

/// HTML of a text in which backticks enclose code.
pub(super) fn text_to_html(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts.map(|(i, p)| if i % 2 == 1 { format!("<code>{}</code>", escaped(p)) } else { escaped(p) }).collect()
}

/// The last two components of a node's name.
pub(super) fn short_node_name(name: &str) -> &str {
    let parts: Vec<usize> = name.match_indices('/').map(|(at, _)| at + 1).collect();
    parts.len().checked_sub(2).and_then(|i| name.get(parts[i]..)).unwrap_or(name)
}

/// A count with its noun, such as `3 nodes`.
pub(super) fn format_count(n: u64, what: &str) -> String {
    format!("{} {what}{}", format_thousands(n), if n == 1 { "" } else { "s" })
}

/// A number formatted by `told`, or a dash for 0.
pub(super) fn count_or_dash(n: u64, told: fn(u64) -> String) -> String {
    if n == 0 { "–".to_string() } else { told(n) }
}

/// A number with thousands separators, such as `12,345`.
pub(super) fn format_thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A fraction as a percentage, never rounded to 0 or 100.
pub(super) fn format_percent(part: f64) -> String {
    // A part is never shown as everything, nor something as nothing.
    let value = (100.0 * part).clamp(if part > 0.0 { 0.1 } else { 0.0 }, if part < 1.0 { 99.9 } else { 100.0 });
    format!("{value:.1} %")
}

/// A number of operations with a unit, such as `1.25 GFLOP`.
pub(super) fn format_flops(n: u64) -> String {
    scaled(n, 1000.0, &["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"])
}

/// A time in milliseconds, or in microseconds if it is short.
pub(super) fn format_time(ms: f64) -> String {
    if ms >= 0.1 { format!("{ms:.3} ms") } else { format!("{:.2} µs", ms * 1000.0) }
}

/// A number of bytes with a unit, such as `12.5 MiB`.
pub(super) fn format_bytes(n: u64) -> String {
    scaled(n, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// A number with three digits and a unit.
fn scaled(n: u64, step: f64, units: &[&str]) -> String {
    let (mut value, mut at) = (n as f64, 0);
    while value >= 999.5 && at + 1 < units.len() {
        value /= step;
        at += 1;
    }
    let digits = if at == 0 || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {}", units[at])
}
