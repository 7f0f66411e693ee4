//! Declarations, in generated headers, of functions that a model calls and its user defines.
use super::header::{c_type, escape_comment, type_note};
use crate::kernel::{Callee, ModelInterface};
use crate::tensor::TensorInfo;

/// The declaration of `tfaot_call`, once per translation unit.
const CALL: &str = r#"#ifndef TFAOT_CALL
#define TFAOT_CALL

/* The last argument of a function that a model calls: facts about the arrays of this call. */
typedef struct tfaot_call {
  int32_t api_version; /* XLA's number: 1 original, 2 status returning, 3 the same, unified, 4 typed */
  uint32_t arg_count, result_count;
  const tfaot_tensor_info *args, *results;
  const char *opaque; /* backend_config; a 0 is behind it */
  size_t opaque_bytes;
} tfaot_call;

#endif /* TFAOT_CALL */

"#;

/// `tfaot_call` and the prototypes of the functions that a model calls; empty if there are none.
pub(super) fn declarations(face: &ModelInterface) -> String {
    let all = face.prototypes();
    if all.is_empty() {
        return String::new();
    }
    let mut out = CALL.to_string();
    out += "/* The model calls these functions, which whoever links it defines. Arrays are dense and row-major, aligned as their types\n \
            * are; results lie apart from all else. A function that returns something says by 0 that it did what it should: anything\n \
            * else ends the call of the model with TFAOT_E_CALL. It runs on the thread of that call. */\n";
    all.into_iter().for_each(|callee| out += &prototype(face, callee));
    out + "\n"
}

/// The prototype of one such function; its comment lists the shapes of every call.
fn prototype(face: &ModelInterface, callee: &Callee) -> String {
    let shapes = |all: &[TensorInfo]| all.iter().map(TensorInfo::type_text).collect::<Vec<_>>().join(", ");
    let mut told: Vec<String> = Vec::new();
    for one in face.calls.iter().filter(|one| one.matches_prototype(callee)) {
        let shapes = format!("({}) -> ({})", shapes(&one.args), shapes(&one.results));
        if !told.contains(&shapes) {
            told.push(shapes);
        }
    }
    let more = if told.len() > MOST_SHAPES { ", ..." } else { "" };
    told.truncate(MOST_SHAPES);
    let comment = format!("/* {}{more} */\n", told.join(", "));
    let one = |qualifier: &str, info: &TensorInfo| {
        let note = type_note(info.dtype).trim_start_matches(", ");
        let note = if note.is_empty() { String::new() } else { format!(" /* {note} */") };
        format!("{qualifier}{} *{}{note}, ", c_type(info.dtype), info.field)
    };
    let arrays: String = callee
        .args
        .iter()
        .map(|info| one("const ", info))
        .chain(callee.results.iter().map(|info| one("", info)))
        .collect();
    let result = if callee.has_status() { "int" } else { "void" };
    format!("{comment}{result} {}({arrays}const tfaot_call *call);\n", escape_comment(&callee.name))
}

/// Maximum number of shapes in the comment on a prototype.
const MOST_SHAPES: usize = 4;
