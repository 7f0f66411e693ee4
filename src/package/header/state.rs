//! Declarations of the memory that a model needs beside the workspace: the struct of variables, and the weights file.
use super::{WORKSPACE_ALIGN, c_type, escape_comment, type_note};
use crate::kernel::{ModelInterface, VariableSlot};
use std::collections::HashSet;

/// The size of the weights file and the prototype of its check; empty if the weights are in the object.
pub(super) fn weights_declarations(face: &ModelInterface) -> String {
    let Some(file) = &face.file else { return String::new() };
    let name = &face.name;
    let upper = name.to_uppercase();
    format!(
        "/* The weights: all bytes of {name}.weights, mapped or read. Calls at the same time may share them. Where the file begins at\n \
         * a multiple of {upper}_WEIGHTS_ALIGN bytes its vectors are aligned; the alignment of its types is enough. */\n\
         #define {upper}_WEIGHTS_BYTES {}\n#define {upper}_WEIGHTS_ALIGN {WORKSPACE_ALIGN}\n\n\
         /* 0 if these bytes are weights of this object, else TFAOT_E_WEIGHTS. Functions look at the file's header again, which tells\n \
         * other weights, but not at its end. */\n\
         int {name}_weights_check(const void *weights, size_t bytes);\n\n",
        file.file_bytes()
    )
}

/// The struct of the variables and the prototype of `NAME_init`; empty for a model without variables.
pub(super) fn state_declarations(face: &ModelInterface) -> String {
    if face.state.is_empty() {
        return String::new();
    }
    let name = &face.name;
    let members = members(face);
    let width = members.iter().map(|m| m.0.len()).max().unwrap_or(0).min(60);
    let mut out = format!(
        "/* The variables: one block, no pointers. Copy it, write it to a file, keep several. Aligned to {WORKSPACE_ALIGN} bytes its vectors are;\n \
         * the alignment of its types is enough. Functions that take it as const may run at once; one that changes it runs alone. */\n\
         typedef struct {name}_state {{\n"
    );
    for (member, comment) in &members {
        out +=
            if comment.is_empty() { format!("  {member}\n") } else { format!("  {member:width$} /* {comment} */\n") }
                .as_str();
    }
    let (weights, code) = match face.file.is_some() {
        true => (", const void *weights", "0, or TFAOT_E_WEIGHTS"),
        false => ("", "0"),
    };
    out + &format!(
        "}} {name}_state;\n\n/* Gives every variable its initial value, and returns {code}. */\nint {name}_init({name}_state *state{weights});\n\n"
    )
}

/// The members of the struct of variables with their comments: the variables, and padding between them.
fn members(face: &ModelInterface) -> Vec<(String, String)> {
    let taken: HashSet<&str> = face.state.iter().map(|v| v.info.field.as_str()).collect();
    let mut fresh = (0..).map(|i| format!("padding{i}")).filter(|name| !taken.contains(name.as_str()));
    let mut padding = |bytes: u64| {
        let name = fresh.next().unwrap_or_default();
        (format!("uint8_t {name}[{bytes}];"), String::new())
    };
    let mut members = Vec::new();
    let mut end = 0;
    for v in &face.state {
        // C has no arrays of length zero
        if v.info.bytes() == 0 {
            continue;
        }
        if v.offset > end {
            members.push(padding(v.offset - end));
        }
        members.push(member(v));
        end = v.end_offset();
    }
    if face.state_bytes() > end {
        members.push(padding(face.state_bytes() - end));
    }
    members
}

/// The struct member of a variable and its comment.
fn member(v: &VariableSlot) -> (String, String) {
    let info = &v.info;
    let parts = info.bytes() / c_bytes(info.dtype.real_part().bytes() as u64);
    let count = if info.dims.is_empty() && parts == 1 { String::new() } else { format!("[{parts}]") };
    let comment = format!("{}  {}{}", info.type_text(), escape_comment(&info.name), type_note(info.dtype));
    (format!("{} {}{count};", c_type(info.dtype), info.field), comment)
}

/// Size of an element in C in bytes; types narrower than a byte take one.
fn c_bytes(bytes: u64) -> u64 {
    bytes.max(1)
}
