//! The C++17 header of a model: a class with the names that tfcompile gives, over the C interface.
//!
//! The names and their meaning are those of tfcompile's generated headers (TensorFlow's `compiler/aot/codegen.cc` and
//! `compiler/tf2xla/xla_compiled_cpu_function.h`): a program written for them needs another `#include` and nothing else.
use super::header::c_type;
use crate::diag::{Code, Error, Result};
use crate::kernel::Program;
use crate::tensor::{DType, TensorInfo};

/// The part of the class that is the same for every model; `{…}` are its names.
const CLASS: &str = include_str!("cpp/class.hpp.in");

/// A class with the namespaces around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassName {
    /// Outermost first.
    pub namespaces: Vec<String>,
    /// The class itself.
    pub class: String,
}

impl ClassName {
    /// From `ns::Class`, with tfcompile's rules: parts are identifiers, an empty one may come first.
    ///
    /// Errors: `Code::BadOption`.
    pub fn parse(text: &str) -> Result<ClassName> {
        let text = text.strip_prefix("::").unwrap_or(text);
        let mut parts: Vec<String> = text.split("::").map(str::to_string).collect();
        if let Some(bad) = parts.iter().find(|p| !super::names::is_identifier(p)) {
            return Err(Error::user(Code::BadOption, format!("`{bad}` in the class `{text}` is not an identifier")));
        }
        let class = parts.pop().unwrap_or_default();
        Ok(ClassName { namespaces: parts, class })
    }

    /// The class of a model: `mobilenet_v2` is `MobilenetV2`.
    pub fn of_model(name: &str) -> ClassName {
        let capital = |part: &str| {
            let mut letters = part.chars();
            letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
        };
        let class: String = name.split('_').map(capital).collect();
        let class = if super::names::is_identifier(&class) { class } else { format!("Model{class}") };
        ClassName { namespaces: Vec::new(), class }
    }
}

/// The text of `NAME.hpp`.
pub fn header(program: &Program, class: &ClassName) -> String {
    let mut members = String::new();
    for (i, info) in program.args.iter().enumerate() {
        for suffix in suffixes(i, &info.field, program.args.len()) {
            let data = format!("args_[{i}]");
            members += &format!(
                "  void set_arg{suffix}_data(const void *data) {{ {data} = const_cast<void *>(data); }}\n{}",
                accessors("arg", &suffix, &data, info)
            );
        }
    }
    for (i, info) in program.results.iter().enumerate() {
        for suffix in suffixes(i, &info.field, program.results.len()) {
            members += &accessors("result", &suffix, &format!("results_[{i}]"), info);
        }
    }
    let open: String = class.namespaces.iter().map(|n| format!("namespace {n} {{\n")).collect();
    let close: String = class.namespaces.iter().rev().map(|n| format!("}}  // namespace {n}\n")).collect();
    let guard = [&class.namespaces[..], std::slice::from_ref(&class.class)].concat().join("_").to_uppercase();
    CLASS
        .replace("{VERSION}", env!("CARGO_PKG_VERSION"))
        .replace("{GUARD}", &guard)
        .replace("{NAMES_OPEN}", &open)
        .replace("{NAMES_CLOSE}", &close)
        .replace("{CLASS}", &class.class)
        .replace("{MODEL}", &program.name)
        .replace("{UPPER}", &program.name.to_uppercase())
        .replace("{ARGS}", &program.args.len().to_string())
        .replace("{RESULTS}", &program.results.len().to_string())
        .replace("{ARG_POINTERS}", &pointers(program, "args", "const ", &program.args))
        .replace("{RESULT_POINTERS}", &pointers(program, "results", "", &program.results))
        .replace("{MEMBERS}", &members)
}

/// One file with the C header's text and the class, which needs no other file.
pub fn whole_header(program: &Program, c_header: &str, class: &ClassName) -> String {
    header(program, class).replace(&format!("#include \"{}.h\"\n", program.name), c_header)
}

/// `0`, and `_NAME` unless that is another's number.
fn suffixes(i: usize, field: &str, count: usize) -> Vec<String> {
    let taken = (0..count).any(|n| format!("_{field}") == n.to_string());
    [Some(i.to_string()), (!taken).then(|| format!("_{field}"))].into_iter().flatten().collect()
}

/// What reads and writes one array: its data, its elements, its sizes.
fn accessors(what: &str, suffix: &str, data: &str, info: &TensorInfo) -> String {
    let (t, name) = (cpp_type(info.dtype), format!("{what}{suffix}"));
    // As in tfcompile's headers a scalar and an array of one element have no indices.
    let dims: &[u64] = if info.dims == [1] { &[] } else { &info.dims };
    let indices: Vec<String> = (0..dims.len()).map(|i| format!("std::size_t dim{i}")).collect();
    let mut at = "0".to_string();
    for (i, n) in dims.iter().enumerate() {
        at = if i == 0 { "dim0".to_string() } else { format!("({at}) * {n} + dim{i}") };
    }
    let (indices, bytes) = (indices.join(", "), info.bytes());
    let count = bytes / info.dtype.bytes().max(1) as u64;
    format!(
        "  {t} *{name}_data() {{ return static_cast<{t} *>({data}); }}
  const {t} *{name}_data() const {{ return static_cast<const {t} *>({data}); }}
  {t} &{name}({indices}) {{ return {name}_data()[{at}]; }}
  const {t} &{name}({indices}) const {{ return {name}_data()[{at}]; }}
  static constexpr std::int64_t {name}_size() {{ return {bytes}; }}
  static constexpr std::int64_t {name}_count() {{ return {count}; }}\n"
    )
}

/// The definition of the pointer that `NAME_run` takes: to the C struct with the members of an array of untyped pointers, or
/// to nothing where the struct has no members.
fn pointers(program: &Program, what: &str, qualifier: &str, infos: &[TensorInfo]) -> String {
    let name = format!("{}_{what}", program.name);
    if infos.is_empty() {
        return format!("const {name} *const {what} = nullptr;");
    }
    let one =
        |(i, info): (usize, &TensorInfo)| format!("static_cast<{qualifier}{} *>({what}_[{i}])", c_type(info.dtype));
    let members: Vec<String> = infos.iter().enumerate().map(one).collect();
    format!("const {name} {what}_struct = {{{}}}, *const {what} = &{what}_struct;", members.join(", "))
}

fn cpp_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Pred => "bool",
        DType::C64 => "std::complex<float>",
        DType::C128 => "std::complex<double>",
        other => match c_type(other) {
            "uint8_t" => "std::uint8_t",
            "int8_t" => "std::int8_t",
            "int16_t" => "std::int16_t",
            "int32_t" => "std::int32_t",
            "int64_t" => "std::int64_t",
            "uint16_t" => "std::uint16_t",
            "uint32_t" => "std::uint32_t",
            "uint64_t" => "std::uint64_t",
            other => other,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::ClassName;

    #[test]
    fn classes_are_named_as_tfcompile_names_them() {
        let parsed = ClassName::parse("::a::b::Net").expect("a class");
        assert_eq!((parsed.namespaces.join("."), &*parsed.class), ("a.b".to_string(), "Net"));
        for bad in ["", "a::", "a::::b", "a b", "2x", "class"] {
            assert!(ClassName::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(ClassName::of_model("mobilenet_v2").class, "MobilenetV2");
        assert_eq!(ClassName::of_model("_2d").class, "Model2d");
    }
}
