//! Parsing of flags that set sizes of a call.
use crate::diag::{Code, Diagnostic, Result};

/// Parses `--size` flags: `NAME=N`, or `N` for every size, which gives an empty name.
///
/// Errors: `Code::BadOption`.
pub fn parse(flags: &[String]) -> Result<Vec<(String, u64)>> {
    let one = |text: &String| {
        let (name, size) = text.rsplit_once('=').unwrap_or(("", text));
        let size: Option<u64> = size.parse().ok();
        size.map(|n| (name.to_string(), n)).ok_or_else(|| {
            let told = Diagnostic::new(Code::BadOption, format!("`--size {text}` is not of the form NAME=N or N"));
            told.help("for example --size n=5").into()
        })
    };
    flags.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_have_a_name_or_none() {
        let parsed = |flag: &str| parse(&[flag.to_string()]).ok();
        assert_eq!(parsed("n=3"), Some(vec![("n".to_string(), 3)]));
        assert_eq!(parsed("3"), Some(vec![(String::new(), 3)]));
        assert_eq!((parsed("n="), parsed("n=-1"), parsed("x")), (None, None, None));
    }
}
