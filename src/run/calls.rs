//! Call files: sequences of calls of a model's functions over one state, one JSON object per line:
//! `{"signature":"train","inputs":"in0.npz","expect":"out0.npz","outputs":"got0.npz"}`. Paths are relative to the file.
use super::arguments;
use crate::compile::Functions;
use crate::diag::{Code, Diagnostic, Error, Result, io_error};
use crate::lower::Lowered;
use crate::tensor::Tensor;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// One call in a call file.
#[derive(Clone, Debug)]
pub struct FileCall {
    /// The signature of the function; may be omitted if the model has one function.
    pub signature: Option<String>,
    /// The npz file of the arguments; without one they are random.
    pub inputs: Option<PathBuf>,
    /// The npz file of the expected results.
    pub expect: Option<PathBuf>,
    /// The npz file to which the results are written.
    pub outputs: Option<PathBuf>,
}

/// Reads a call file.
///
/// # Errors
/// `Code::Io`; `Code::BadInputs` with the line number.
pub fn read(path: &Path) -> Result<Vec<FileCall>> {
    let text = std::fs::read_to_string(path).map_err(|e| io_error("read", path, &e))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let calls = lines.map(|(i, line)| {
        call(line, folder).map_err(|why| {
            let told = Diagnostic::new(Code::BadInputs, format!("line {}: {why}", i + 1));
            let told =
                told.help("for example {\"signature\":\"train\",\"inputs\":\"in0.npz\",\"expect\":\"out0.npz\"}");
            Error::from(told).in_file(path)
        })
    });
    calls.collect()
}

fn call(line: &str, folder: &Path) -> std::result::Result<FileCall, String> {
    let mut object: Map<String, Value> = serde_json::from_str(line).map_err(|e| e.to_string())?;
    let mut take = |key: &str| match object.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("`{key}` is {other} and no string")),
    };
    let signature = take("signature")?;
    let mut path = |key| take(key).map(|text| text.map(|text| folder.join(text)));
    let (inputs, expect, outputs) = (path("inputs")?, path("expect")?, path("outputs")?);
    match object.keys().next() {
        Some(key) => Err(format!("there is no key `{key}`: signature, inputs, expect and outputs are known")),
        None => Ok(FileCall { signature, inputs, expect, outputs }),
    }
}

/// Finds the function of a signature, which may be omitted if the model has one function.
///
/// # Errors
/// `Code::BadOption`.
pub fn find_function(functions: &Functions, signature: Option<&str>) -> Result<usize> {
    let known: Vec<String> = functions.all.iter().map(|(name, _)| format!("`{name}`")).collect();
    match (signature, functions.all.len()) {
        (None, 1) => Ok(0),
        (None, _) => {
            let told = Diagnostic::new(Code::BadOption, "a call must say which of several functions it is of");
            Err(told.help(format!("`signature` is one of {}", known.join(", "))).into())
        }
        (Some(wanted), _) => functions.all.iter().position(|(name, _)| name == wanted).ok_or_else(|| {
            let told = Diagnostic::new(Code::BadOption, format!("no function `{wanted}` is compiled"));
            told.help(format!("there is {}", known.join(", "))).into()
        }),
    }
}

/// Reads or generates the arguments of a call; `sizes` are values by name for sizes that no array has.
///
/// # Errors
/// Errors of [`arguments::for_function`].
pub fn read_arguments(call: &FileCall, lowered: &Lowered, sizes: &[(String, u64)]) -> Result<Vec<Tensor>> {
    arguments::for_function(call.inputs.as_deref(), lowered, sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_is_wrong_with_them() {
        let folder = Path::new("a");
        let read = |line| call(line, folder);
        let sound = read(r#"{"signature":"s","inputs":"x.npz","expect":null}"#).expect("it is sound");
        assert_eq!((sound.signature.as_deref(), sound.inputs, sound.expect), (Some("s"), Some("a/x.npz".into()), None));
        for (line, told) in [
            (r#"{"input":"x.npz"}"#, "there is no key `input`"),
            (r#"{"inputs":3}"#, "`inputs` is 3"),
            ("[]", "invalid type"),
            ("{", "EOF"),
        ] {
            let said = read(line).expect_err(line);
            assert!(said.contains(told), "{said}");
        }
    }
}
