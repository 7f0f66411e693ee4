//! The HTML page of a report: a summary as plain HTML, the data in compressed form, and the script that draws the rest.
//!
//! Nothing is fetched; the content security policy in the page's head forbids it. The only script and style that may run are named by
//! their hashes, so that nothing from a graph could be executed even if it were not escaped.
mod answer;
mod overview;
mod words;

use super::Report;
use crate::diag::{Error, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::io::Write;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");

/// The parts of the script in order; each may use those before it.
const SCRIPTS: &[&str] = &[
    include_str!("model.js"),
    include_str!("theme.js"),
    include_str!("painter.js"),
    include_str!("layout.js"),
    include_str!("scene.js"),
    include_str!("graph.js"),
    include_str!("search.js"),
    include_str!("inspector.js"),
    include_str!("code.js"),
    include_str!("memory.js"),
    include_str!("export.js"),
    include_str!("main.js"),
];

/// The report as one HTML page.
///
/// # Errors
/// Internal ones, where the data can't be packed.
pub fn render(mut report: Report) -> Result<String> {
    let script = script();
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data: blob:; base-uri 'none'; form-action 'none'",
        hash(&script),
        hash(STYLE)
    );
    let answer = answer::render(&report);
    let all = std::mem::take(&mut report.code);
    let mut data = packed("graph", &json(&report)?)?;
    for (i, code) in all.iter().enumerate() {
        data += &packed(&format!("code-{i}"), &json(code)?)?;
    }
    let title = escaped(&report.source);
    Ok(filled(
        TEMPLATE,
        &[
            ("title", &title),
            ("tool", &escaped(&report.tool)),
            ("policy", &policy),
            ("style", STYLE),
            ("answer", &answer),
            ("data", &data),
            ("script", &script),
        ],
    ))
}

/// The parts of the script wrapped in one function, so that only what `main.js` exports is global.
fn script() -> String {
    format!("(() => {{\n\"use strict\";\n{}}})();\n", SCRIPTS.concat())
}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| Error::internal("report", e.to_string()))
}

/// A block of compressed data in base64, which no browser executes.
fn packed(id: &str, bytes: &[u8]) -> Result<String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    let packed = packed.map_err(|e| Error::internal("report", e.to_string()))?;
    Ok(format!("<script type=\"application/gzip\" id=\"{id}\">{}</script>\n", STANDARD.encode(packed)))
}

fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// `template` with each `{{name}}` replaced; the inserted values are not scanned again.
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(values.iter().map(|v| v.1.len()).sum::<usize>() + template.len());
    let mut parts = template.split("{{");
    out += parts.next().unwrap_or("");
    for part in parts {
        let (name, rest) = part.split_once("}}").unwrap_or(("", part));
        out += values.iter().find(|v| v.0 == name).map_or("", |v| v.1);
        out += rest;
    }
    out
}

/// Escapes `text` for HTML, between tags and in quoted attributes.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // Control characters have no form in HTML, and those that change the direction of text could hide what follows.
            c if c.is_control() && c != '\n' => out.push('\u{fffd}'),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
