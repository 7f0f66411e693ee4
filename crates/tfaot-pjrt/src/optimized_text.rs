//! The optimized module as text that XLA's converter to HLO takes.
//!
//! jaxlib makes HLO of it, from which JAX learns how results are divided among devices. The converter knows operations of the dialect CHLO as
//! custom calls alone: `mhlo.erf` for `chlo.erf`, with the operation's attributes in a dictionary.
use std::fmt::Write;

/// The text with custom calls in the place of CHLO's operations.
pub fn with_custom_calls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match custom_call(line) {
            Some(own) => out.push_str(&own),
            None => out.push_str(line),
        }
    }
    out
}

/// A line with an operation of CHLO, as printed: `%1 = "chlo.erf"(%0) <{a = 1}> : (...) -> ...`; `None` for other lines.
fn custom_call(line: &str) -> Option<String> {
    let (results, rest) = line.split_once(" = \"chlo.")?;
    let (name, rest) = rest.split_once('"')?;
    let (operands, rest) = rest.split_once(')')?;
    let (attributes, types) = rest.split_once(": (")?;
    let attributes = attributes.trim().trim_start_matches("<{").trim_end_matches("}>").trim();
    let (target, more) = match name {
        "top_k" => ("topk", if attributes.is_empty() { "largest = true" } else { ", largest = true" }),
        name => (name, ""),
    };
    let mut out = String::new();
    write!(
        out,
        "{results} = \"stablehlo.custom_call\"{operands}) <{{call_target_name = \"mhlo.{target}\"}}> \
         {{mhlo.attributes = {{{attributes}{more}}}, mhlo.version = 1 : i64}} : ({types}"
    )
    .ok()?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_chlo_become_custom_calls() {
        let text = "  %0 = \"stablehlo.add\"(%a, %a) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n  %1 = \"chlo.erf\"(%0) : (tensor<f32>) -> tensor<f32>\n";
        let made = with_custom_calls(text);
        let (first, second) = made.split_once('\n').expect("two lines");
        assert_eq!(Some(first), text.lines().next());
        assert!(
            second.starts_with("  %1 = \"stablehlo.custom_call\"(%0) <{call_target_name = \"mhlo.erf\"}>"),
            "{second}"
        );
        assert!(
            second.ends_with("{mhlo.attributes = {}, mhlo.version = 1 : i64} : (tensor<f32>) -> tensor<f32>\n"),
            "{second}"
        );
        let largest =
            "%v, %i = \"chlo.top_k\"(%0) <{k = 2 : i64}> : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)\n";
        assert!(
            with_custom_calls(largest).contains("{mhlo.attributes = {k = 2 : i64, largest = true}, mhlo.version"),
            "top_k"
        );
    }
}
