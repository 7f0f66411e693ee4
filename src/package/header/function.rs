//! Declarations of one function in the C header: the structs of arguments, results and sizes, and the prototype.
use super::{escape_comment, pointers, workspace};
use crate::kernel::{EntryPoint, ModelInterface};
use crate::package::{names, ranks};
use crate::tensor::{Size, Sizes};

/// The declarations of one function: its structs, the size of its workspace, and the prototype.
pub(super) fn declarations(face: &ModelInterface, entry: &EntryPoint) -> String {
    let EntryPoint { prefix, program, sizes, .. } = entry;
    let args_types = sizes.type_texts(&program.args, &sizes.args);
    let results_types = sizes.type_texts(&program.results, &sizes.results);
    let args = pointers(&program.args, &args_types, &format!("{prefix}_args"), "const ", "arguments");
    let results = pointers(&program.results, &results_types, &format!("{prefix}_results"), "", "results");
    let sizes = if sizes.is_empty() { String::new() } else { sizes_struct(prefix, sizes) };
    let title = match face.entries.len() {
        1 => String::new(),
        _ => format!("/* The signature {}. */\n", escape_comment(&entry.name)),
    };
    let workspace = workspace(&prefix.to_uppercase(), program.workspace_bytes);
    let (effect, prototype) = (effect(entry), prototype(face, entry));
    format!(
        "{title}{args}{results}{sizes}\
         /* What a call needs beside its stack; calls at the same time need a workspace each. */\n\
         {workspace}{effect}{prototype}\n"
    )
}

/// A comment on the variables that a function changes; empty if there are none.
fn effect(entry: &EntryPoint) -> String {
    let state = &entry.program.state;
    let changed: Vec<&str> = state.iter().filter(|v| v.changed).map(|v| v.info.field.as_str()).collect();
    match changed.len() {
        0 => String::new(),
        n if n == state.len() => "/* It changes every variable. */\n".to_string(),
        n if n <= 8 => format!("/* It changes {}. */\n", changed.join(", ")),
        n => format!("/* It changes {} and {} more. */\n", changed[..6].join(", "), n - 6),
    }
}

/// The prototype of a function.
fn prototype(face: &ModelInterface, entry: &EntryPoint) -> String {
    let EntryPoint { prefix, function, program, sizes, .. } = entry;
    let sizes = if sizes.is_empty() { String::new() } else { format!("{prefix}_sizes *sizes, ") };
    let state = match (face.state.is_empty(), program.changes_state()) {
        (true, _) => String::new(),
        (false, changes) => format!("{}{}_state *state, ", if changes { "" } else { "const " }, face.name),
    };
    let weights = if face.file.is_some() { "const void *weights, " } else { "" };
    let communicator = ranks::communicator_parameter(face);
    format!(
        "int {function}(const {prefix}_args *args, const {prefix}_results *results, {sizes}{state}{weights}void *workspace,\n    \
         const tfaot_executor *executor{communicator});\n"
    )
}

/// The struct of a function's sizes, and the inline function that names a failed check.
fn sizes_struct(prefix: &str, sizes: &Sizes) -> String {
    let range = |size: &Size| match (size.is_result, size.least, size.most) {
        _ if size.is_check => "out, 1 where this check fails".to_string(),
        (false, least, most) => format!("in, {least} to {most}"),
        (true, _, most) => format!("out, at most {most}"),
    };
    let members: Vec<String> =
        names::size_member_names(sizes).iter().map(|field| format!("int64_t {field};")).collect();
    let width = members.iter().map(String::len).max().unwrap_or(0).min(60);
    let mut out = format!("typedef struct {prefix}_sizes {{\n");
    for (member, size) in members.iter().zip(&sizes.all) {
        out += &format!("  {member:width$} /* {} */\n", range(size));
    }
    out += &format!("}} {prefix}_sizes;\n");
    out + &failed_check(prefix, sizes)
}

/// The inline function that names the failed run-time check of a call; empty if there are no checks.
fn failed_check(prefix: &str, sizes: &Sizes) -> String {
    let fields = names::size_member_names(sizes);
    let checks = sizes.all.iter().zip(&fields).filter(|(size, _)| size.is_check);
    let lines: String = checks
        .map(|(size, field)| {
            let text = size
                .name
                .chars()
                .map(|c| if c == ' ' || c.is_ascii_graphic() && !"\\?\"".contains(c) { c } else { '_' });
            format!("  if (sizes->{field}) return \"{}\";\n", text.collect::<String>())
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "/* After TFAOT_E_CHECK: the node whose check failed, and what is wrong; NULL if none did. */\n\
         static inline const char *{prefix}_failed_check(const {prefix}_sizes *sizes) {{\n{lines}  return NULL;\n}}\n"
    )
}
