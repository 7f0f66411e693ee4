//! Depfiles: the sources of generated files as a rule for make, which Ninja and CMake read as well.
use std::path::{Path, PathBuf};

/// The rule by which `targets` depend on `sources`, with a newline at its end.
pub fn depfile(targets: &[PathBuf], sources: &[PathBuf]) -> String {
    let list = |paths: &[PathBuf]| paths.iter().map(|p| escaped(p)).collect::<Vec<_>>();
    format!("{}: \\\n  {}\n", list(targets).join(" "), list(sources).join(" \\\n  "))
}

/// A path escaped for a rule.
fn escaped(path: &Path) -> String {
    let mut out = String::new();
    for c in path.display().to_string().chars() {
        match c {
            ' ' | '#' | '\\' => out.extend(['\\', c]),
            '$' => out += "$$",
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_make_are_escaped() {
        let text = depfile(&["o/net.o".into(), "o/net.h".into()], &["my net/$a#.pb".into(), "b".into()]);
        assert_eq!(text, "o/net.o o/net.h: \\\n  my\\ net/$$a\\#.pb \\\n  b\n");
    }
}
