//! The C++17 header of a model: a class over the C interface, compatible with tfcompile's.
//!
//! The names and their meaning are those of headers that tfcompile generates (TensorFlow's `compiler/aot/codegen.cc` and
//! `compiler/tf2xla/xla_compiled_cpu_function.h`); a program written for these needs only another `#include`.
use super::header::c_type;
use crate::diag::{Code, Error, Result};
use crate::kernel::{EntryPoint, ModelInterface};
use crate::tensor::{DType, TensorInfo};

/// The text of the class common to all models; `{…}` are placeholders.
const CLASS: &str = include_str!("cpp/class.hpp.in");

/// Text fragments for the class of a model with variables.
const STATE_DOC: &str = "// Variables lie in the state: the caller's, which objects may share, or one of the object's own that begins as the model does.\n";
const STATE_TOTAL: &str = "    if (state == nullptr) total += Rounded(sizeof({MODEL}_state));\n";
const STATE_MAKE: &str = "    if (state == nullptr) {
      state = reinterpret_cast<{MODEL}_state *>(at);
      at += Rounded(sizeof({MODEL}_state));
      (void){MODEL}_init(state{WEIGHTS_LAST});
    }
    state_ = state;
    for (std::size_t i = 0; i < kNumVariables; ++i) vars_[i] = Member(i);
";
const STATE_ACCESS: &str = "  {MODEL}_state &state() { return *state_; }
  const {MODEL}_state &state() const { return *state_; }
";

/// Comment on how variables are counted: tfcompile counts them among the arguments, and the changed ones among the results.
const VARIABLES_DOC: &str =
    "  // Behind the arguments are the variables, behind the results those that a call changes.\n";
/// Copies of variables in the caller's memory into the state before a call, and back after it.
const VARIABLES_IN: &str = "    for (std::size_t i = 0; i < kNumVariables; ++i) {
      if (vars_[i] != Member(i)) std::memcpy(Member(i), vars_[i], Variable(i).tensor.bytes);
    }
";
const VARIABLES_OUT: &str = "    for (std::size_t i = kNumFetches; code == 0 && i < kNumResults; ++i) {
      const std::size_t changed = Changed(i - kNumFetches);
      if (vars_[changed] != Member(changed)) std::memcpy(vars_[changed], Member(changed), Variable(changed).tensor.bytes);
    }
";
const VARIABLE_NAMES: &str = "  static int LookupVariableIndex(const std::string &name) {
    for (std::size_t i = 0; i < kNumVariables; ++i) {
      if (name == Variable(i).tensor.field) return static_cast<int>(i);
    }
    return -1;
  }
  static const char *GetVariableName(std::size_t i) { return i < kNumVariables ? Variable(i).tensor.field : nullptr; }
";
const NO_VARIABLE_NAMES: &str = "  static int LookupVariableIndex(const std::string &) { return -1; }
  static const char *GetVariableName(std::size_t) { return nullptr; }
";
const STATE_MEMBER: &str = "  {MODEL}_state *state_ = nullptr;
  void *vars_[kNumVariables] = {};
  void *Member(std::size_t i) { return reinterpret_cast<unsigned char *>(state_) + Variable(i).offset; }
  static const tfaot_variable_info &Variable(std::size_t i) { return {MODEL}_info()->variables[i]; }
  static constexpr std::size_t Changed(std::size_t i) {
    constexpr std::size_t changed[] = {{CHANGED}};
    return changed[i];
  }
";

/// Text fragments for the class of a function with varying sizes, whose memory is allocated for the bounds.
const SIZES_DOC: &str = "// Set the sizes that the caller says before Run; arrays are dense in them, and have room for the bounds. `arg0(i, j)` and its kin\n// are for the bounds.\n";
const SIZES_ACCESS: &str = "  {PREFIX}_sizes &sizes() { return sizes_; }
  const {PREFIX}_sizes &sizes() const { return sizes_; }
";

/// The method for the model's self-test, which allocates its own memory.
const SELF_TEST: &str = "  // Compares what the model gives on this machine with answers that the object has; an empty text, or what is wrong.
  static std::string SelfTest({WEIGHTS_ONLY}) {
    const std::unique_ptr<unsigned char, Free> memory(
        static_cast<unsigned char *>(::operator new({MODEL}_selftest_bytes(), std::align_val_t{kAlign})));
    return Message({MODEL}_selftest({WEIGHTS_FIRST}memory.get()));
  }
";

/// The comment on the class of a model whose weights are in a file.
const WEIGHTS_DOC: &str = "// The weights are the caller's, all bytes of {MODEL}.weights, and stay where they are as long as the object is used.\n";

/// A qualified class name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassName {
    /// The namespaces, outermost first.
    pub namespaces: Vec<String>,
    /// The name of the class itself.
    pub class: String,
}

impl ClassName {
    /// Parses `ns::Class` by tfcompile's rules: components are identifiers, and a leading `::` is allowed.
    ///
    /// # Errors
    /// `Code::BadOption`.
    pub fn parse(text: &str) -> Result<ClassName> {
        let text = text.strip_prefix("::").unwrap_or(text);
        let mut parts: Vec<String> = text.split("::").map(str::to_string).collect();
        if let Some(bad) = parts.iter().find(|p| !super::names::is_identifier(p)) {
            return Err(Error::user(Code::BadOption, format!("`{bad}` in the class `{text}` is not an identifier")));
        }
        let class = parts.pop().unwrap_or_default();
        Ok(ClassName { namespaces: parts, class })
    }

    /// The class name for a model: `mobilenet_v2` becomes `MobilenetV2`.
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

/// The text of `NAME.hpp`: one class, or one per function with the signature's name as a suffix.
pub fn header(face: &ModelInterface, class: &ClassName) -> String {
    match &face.entries[..] {
        [only] => entry_class(face, 0, only, class),
        several => {
            let own = |entry: &EntryPoint| {
                let signature = ClassName::of_model(&entry.function[face.name.len()..]).class;
                ClassName { class: format!("{}{signature}", class.class), ..class.clone() }
            };
            several.iter().enumerate().map(|(i, entry)| entry_class(face, i, entry, &own(entry))).collect()
        }
    }
}

/// The text of the class for the function with index `number`.
fn entry_class(face: &ModelInterface, number: usize, entry: &EntryPoint, class: &ClassName) -> String {
    let program = &entry.program;
    let open: String = class.namespaces.iter().map(|n| format!("namespace {n} {{\n")).collect();
    let close: String = class.namespaces.iter().rev().map(|n| format!("}}  // namespace {n}\n")).collect();
    let guard = [&class.namespaces[..], std::slice::from_ref(&class.class)].concat().join("_").to_uppercase();
    let mut parts = vec![
        ("{VERSION}", env!("CARGO_PKG_VERSION").to_string()),
        ("{GUARD}", guard),
        ("{NAMES_OPEN}", open),
        ("{NAMES_CLOSE}", close),
        ("{CLASS}", class.class.clone()),
    ];
    parts.extend(state_parts(face, entry));
    parts.extend(size_parts(entry));
    parts.push(("{SELF_TEST}", if face.self_test.is_some() { SELF_TEST } else { "" }.to_string()));
    parts.extend(weights_parts(face));
    // the fragments inserted so far contain these placeholders
    parts.extend([
        ("{PREFIX}", entry.prefix.clone()),
        ("{INFO}", format!("(&{{MODEL}}_info()->functions[{number}])")),
        ("{FUNCTION}", entry.function.clone()),
        ("{MODEL}", face.name.clone()),
        ("{UPPER}", entry.prefix.to_uppercase()),
        ("{ARGS}", program.args.len().to_string()),
        ("{RESULTS}", program.results.len().to_string()),
        ("{ARG_POINTERS}", pointers(entry, "args", "const ", &program.args)),
        ("{RESULT_POINTERS}", pointers(entry, "results", "", &program.results)),
        ("{MEMBERS}", members(face, entry)),
    ]);
    parts.into_iter().fold(CLASS.to_string(), |text, (placeholder, part)| text.replace(placeholder, &part))
}

/// The accessors of arguments, results and variables.
fn members(face: &ModelInterface, entry: &EntryPoint) -> String {
    let program = &entry.program;
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
    for (i, variable) in face.state.iter().enumerate() {
        members += &variable_members(i, &variable.info, changes(entry, i));
    }
    members
}

/// Placeholders and fragments that depend on whether the model has variables.
fn state_parts(face: &ModelInterface, entry: &EntryPoint) -> Vec<(&'static str, String)> {
    let if_state = |text: &str| if face.state.is_empty() { String::new() } else { text.to_string() };
    let changed: Vec<usize> = (0..face.state.len()).filter(|&i| changes(entry, i)).collect();
    let arg_bytes = ("i < kNumFeeds ? {INFO}->args[i].bytes", "Variable(i - kNumFeeds).tensor.bytes");
    let result_bytes =
        ("i < kNumFetches ? {INFO}->results[i].bytes", "Variable(Changed(i - kNumFetches)).tensor.bytes");
    vec![
        ("{STATE_DOC}", if_state(STATE_DOC)),
        ("{STATE_PARAMETER}", if_state("{MODEL}_state *state = nullptr, ")),
        ("{STATE_MAKE}", if_state(STATE_MAKE)),
        ("{STATE_TOTAL}", if_state(STATE_TOTAL)),
        ("{STATE_ACCESS}", if_state(STATE_ACCESS)),
        ("{STATE_MEMBER}", if_state(STATE_MEMBER)),
        ("{STATE_ARGUMENT}", if_state("state_, ")),
        ("{STATE_NOTE}", if face.state.is_empty() { "; objects share nothing".to_string() } else { String::new() }),
        ("{VARIABLES_DOC}", if_state(VARIABLES_DOC)),
        ("{VARIABLES_IN}", if_state(VARIABLES_IN)),
        ("{VARIABLES_OUT}", if_state(VARIABLES_OUT)),
        ("{VARIABLE_NAMES}", if face.state.is_empty() { NO_VARIABLE_NAMES } else { VARIABLE_NAMES }.to_string()),
        ("{CHANGED}", listed(&changed)),
        ("{VARIABLES}", face.state.len().to_string()),
        ("{ALL_ARGS}", (entry.program.args.len() + face.state.len()).to_string()),
        ("{ALL_RESULTS}", (entry.program.results.len() + changed.len()).to_string()),
        ("{ARG_BYTES}", behind(face, arg_bytes.0, arg_bytes.1)),
        ("{RESULT_BYTES}", behind(face, result_bytes.0, result_bytes.1)),
        ("{ARG_DATA}", behind(face, "i < kNumFeeds ? args_[i]", "vars_[i - kNumFeeds]")),
        ("{RESULT_DATA}", behind(face, "i < kNumFetches ? results_[i]", "vars_[Changed(i - kNumFetches)]")),
    ]
}

/// Placeholders and fragments that depend on whether sizes vary.
fn size_parts(entry: &EntryPoint) -> Vec<(&'static str, String)> {
    let if_sized = |text: &str| if entry.sizes.is_empty() { String::new() } else { text.to_string() };
    let is_checked = entry.sizes.all.iter().any(|s| s.is_check);
    vec![
        ("{SIZES_DOC}", if_sized(SIZES_DOC)),
        ("{SIZES_ACCESS}", if_sized(SIZES_ACCESS)),
        ("{SIZES_MEMBER}", sizes_member(entry)),
        ("{SIZES_ARGUMENT}", if_sized("&sizes_, ")),
        ("{CHECK_ERROR}", if is_checked { CHECK_ERROR } else { "" }.to_string()),
    ]
}

/// Placeholders and fragments that depend on whether the weights are in a file.
fn weights_parts(face: &ModelInterface) -> Vec<(&'static str, String)> {
    let if_file = |text: &str| if face.file.is_some() { text.to_string() } else { String::new() };
    vec![
        ("{WEIGHTS_DOC}", if_file(WEIGHTS_DOC)),
        ("{WEIGHTS_PARAMETER}", if_file("const void *weights, ")),
        ("{WEIGHTS_KEEP}", if_file("    weights_ = weights;\n")),
        ("{WEIGHTS_ARGUMENT}", if_file("weights_, ")),
        ("{WEIGHTS_LAST}", if_file(", weights")),
        ("{WEIGHTS_ONLY}", if_file("const void *weights")),
        ("{WEIGHTS_FIRST}", if_file("weights, ")),
        ("{WEIGHTS_MEMBER}", if_file("  const void *weights_ = nullptr;\n")),
    ]
}

/// Whether a call of a function changes variable `i`.
fn changes(entry: &EntryPoint, i: usize) -> bool {
    entry.program.state.get(i).is_some_and(|variable| variable.changed)
}

/// The indices of the variables that a call changes, as initializers of an array with at least one element.
fn listed(changed: &[usize]) -> String {
    let numbers: Vec<String> = changed.iter().map(usize::to_string).collect();
    if numbers.is_empty() { "0".to_string() } else { numbers.join(", ") }
}

/// The expression `own`, `test ? value`, extended by `of_variables` for a failed test; only `value` for models without variables.
fn behind(face: &ModelInterface, own: &str, of_variables: &str) -> String {
    if face.state.is_empty() {
        own.split_once("? ").map_or(own, |(_, value)| value).to_string()
    } else {
        format!("({own} : {of_variables})")
    }
}

/// The accessors of variable `i`.
fn variable_members(i: usize, info: &TensorInfo, is_changed: bool) -> String {
    let (t, data, suffix) = (cpp_type(info.dtype), format!("vars_[{i}]"), format!("_{}", info.field));
    let constant = if is_changed { "" } else { "const " };
    let own = if is_changed { "data".to_string() } else { format!("const_cast<{t} *>(data)") };
    format!(
        "  void set_var{suffix}_data({constant}{t} *data) {{ {data} = {own}; }}\n{}",
        accessors("var", &suffix, &data, info)
    )
}

/// A self-contained header: the C header's text and the class.
pub fn whole_header(face: &ModelInterface, c_header: &str, class: &ClassName) -> String {
    header(face, class).replace(&format!("#include \"{}.h\"\n", face.name), c_header)
}

/// The message of a failed run-time check, which names the node.
const CHECK_ERROR: &str = "    if (code == TFAOT_E_CHECK) error_ = {PREFIX}_failed_check(&sizes_);\n";

/// The member with the sizes of the next call, initialized to their bounds.
fn sizes_member(entry: &EntryPoint) -> String {
    if entry.sizes.is_empty() {
        return String::new();
    }
    let values: Vec<String> =
        entry.sizes.all.iter().map(|s| if s.is_result { 0 } else { s.most }.to_string()).collect();
    format!("  {}_sizes sizes_ = {{{}}};\n", entry.prefix, values.join(", "))
}

/// The suffixes of an array's accessors: its index, and `_NAME` unless that is another one's index.
fn suffixes(i: usize, field: &str, count: usize) -> Vec<String> {
    let taken = (0..count).any(|n| format!("_{field}") == n.to_string());
    [Some(i.to_string()), (!taken).then(|| format!("_{field}"))].into_iter().flatten().collect()
}

/// The accessors of one array: data, elements and shape.
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

/// The definition of the pointer to a C struct of pointers that `NAME_run` takes: it points to an array of untyped pointers, or is null
/// if the struct has no members.
fn pointers(entry: &EntryPoint, what: &str, qualifier: &str, infos: &[TensorInfo]) -> String {
    let name = format!("{}_{what}", entry.prefix);
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
