//! The C99 header of a model that has variables, several functions, sizes that vary or its weights in a file.
use super::header::{ABI, WORKSPACE_ALIGN, c_type, in_comment, intro, kept, pointers, supported, type_note};
use super::{names, ranks};
use crate::kernel::{Entry, Face, Variable, WeightsFile};
use crate::target::Target;
use crate::tensor::{Size, Sizes};
use std::collections::HashSet;

/// What the headers of such models declare beside [`ABI`], once a translation unit. The layout is fixed by `abi_version` 2.
const ABI_2: &str = r#"#ifndef TFAOT_ABI_2
#define TFAOT_ABI_2

/* A size that varies from call to call. */
typedef struct tfaot_size_info {
  const char *name;
  int64_t least, most;
  uint32_t is_result, reserved; /* 1: the call says it; 0: the caller does */
} tfaot_size_info;

/* A variable: memory of the state, from byte `offset` on. */
typedef struct tfaot_variable_info {
  tfaot_tensor_info tensor;
  size_t offset;
} tfaot_variable_info;

/* A function. */
typedef struct tfaot_entry_info {
  const char *name; /* the signature's */
  uint32_t arg_count, result_count, size_count;
  uint32_t changes_state; /* 0: it only reads the state, and calls at the same time may share it */
  const tfaot_tensor_info *args, *results;
  const tfaot_size_info *sizes;
  const int32_t *axes; /* the number of the size of each axis of args, then results, -1: it is fixed; NULL: all are */
  size_t workspace_bytes, workspace_align;
  int64_t flops; /* of one call */
  /* args and results are arrays of pointers, in the order of the structs; sizes is an array, NULL without any */
  int (*run)(const void *args, const void *results, int64_t *sizes, void *state, void *workspace,
      const tfaot_executor *executor);
} tfaot_entry_info;

typedef struct tfaot_module_info {
  uint32_t abi_version; /* 2 */
  uint32_t entry_count, variable_count, reserved;
  const char *name, *source, *target;
  const tfaot_entry_info *entries;
  const tfaot_variable_info *variables;
  size_t state_bytes, state_align; /* aligned so, vectors are; the alignment of its types is enough */
  void (*init)(void *state); /* NULL without variables */
} tfaot_module_info;

#endif /* TFAOT_ABI_2 */
"#;

/// What headers of models declare beside those whose weights are in a file. The layout is fixed by `abi_version` 3.
pub(super) const ABI_3: &str = r#"#ifndef TFAOT_ABI_3
#define TFAOT_ABI_3

#define TFAOT_E_WEIGHTS 4 /* the weights are not those of this object; nothing was written */

/* A model whose weights the caller hands over. `init` of the module and `run` of its entries are NULL: those here take weights. */
typedef struct tfaot_weights_info {
  uint32_t abi_version; /* 3 */
  uint32_t reserved;
  const tfaot_module_info *module;
  size_t weights_bytes, weights_align; /* aligned so, vectors are; the alignment of its types is enough */
  int (*check)(const void *weights, size_t bytes);
  /* one for each entry */
  int (*const *runs)(const void *args, const void *results, int64_t *sizes, void *state, const void *weights,
      void *workspace, const tfaot_executor *executor);
  int (*init)(void *state, const void *weights); /* NULL without variables */
} tfaot_weights_info;

#endif /* TFAOT_ABI_3 */

"#;

/// What headers of models whose sizes vary declare beside those.
pub(super) const SIZE_CODES: &str = r#"#ifndef TFAOT_E_SIZE
#define TFAOT_E_SIZE 2  /* a size is outside of its bounds; nothing was written */
#define TFAOT_E_BOUND 3 /* a size that the call says would be beyond its bound; results are not whole */
#endif

"#;

/// What headers of models that check their values declare beside those.
pub(super) const CHECK_CODES: &str = r#"#ifndef TFAOT_E_CHECK
#define TFAOT_E_CHECK 7 /* a value is not as a node takes it; results hold anything, and NAME_failed_check of the sizes says which node */
#endif

"#;

/// The text of `NAME.h`: the code is for each of `targets`, which have one triple.
pub fn header(face: &Face, targets: &[&Target]) -> String {
    let name = &face.name;
    let upper = name.to_uppercase();
    let (intro, supported) = (intro(&face.source, &face.reduced, targets), supported(targets));
    let state = if face.state.is_empty() { String::new() } else { state(face) };
    let (codes, dense) = match face.has_sizes() {
        true => (SIZE_CODES, " in the sizes of the call"),
        false => ("", ""),
    };
    let is_checked = face.entries.iter().any(|e| e.sizes.all.iter().any(|s| s.is_check));
    let codes = &if is_checked { format!("{codes}{CHECK_CODES}") } else { codes.to_string() };
    let (abi_3, weights, info) = match &face.file {
        Some(file) => (ABI_3, weights(name, file), "weights"),
        None => ("", String::new(), "module"),
    };
    let info = if face.ranks.is_some() { "ranks" } else { info };
    let (calls, kept) = (ranks::declarations(face), kept(face));
    let count = ranks::count(face);
    let entries: String = face.entries.iter().map(|entry| function(face, entry)).collect();
    let most = match face.entries.len() {
        1 => String::new(),
        _ => format!(
            "/* Enough for each function. */\n#define {upper}_WORKSPACE_BYTES {}\n#define {upper}_WORKSPACE_ALIGN {WORKSPACE_ALIGN}\n\n",
            face.workspace_bytes()
        ),
    };
    format!(
        r#"{intro}#ifndef TFAOT_MODEL_{upper}_H
#define TFAOT_MODEL_{upper}_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

{ABI}
{ABI_2}
{abi_3}{codes}{calls}{count}{weights}{state}/* Arrays are dense and row-major{dense}. Arguments and results need the alignment of their type, no more, and results
 * may not overlap arguments{}.
 * A function returns 0, or a TFAOT_E code; nothing is written to the results{} when it is not 0{kept}.
 * The results do not depend on the executor; NULL runs all on this thread. */

{entries}{most}/* {supported} */
int {name}_supported(void);

/* The same facts as in this file, for programs that call any model. */
const tfaot_{info}_info *{name}_info(void);

#ifdef __cplusplus
}}
#endif

#endif /* TFAOT_MODEL_{upper}_H */
"#,
        if face.state.is_empty() { "" } else { " or the state" },
        if face.state.is_empty() { "" } else { " or the state" },
    )
}

/// The file of the weights, and what looks at it.
fn weights(name: &str, file: &WeightsFile) -> String {
    let upper = name.to_uppercase();
    format!(
        "/* The weights: all bytes of {name}.weights, mapped or read. Calls at the same time may share them. Where the file begins at\n \
         * a multiple of {upper}_WEIGHTS_ALIGN bytes its vectors are aligned; the alignment of its types is enough. */\n\
         #define {upper}_WEIGHTS_BYTES {}\n#define {upper}_WEIGHTS_ALIGN {WORKSPACE_ALIGN}\n\n\
         /* 0 if these bytes are weights of this object, else TFAOT_E_WEIGHTS. Functions look at the file's header again, which tells\n \
         * other weights, but not at its end. */\n\
         int {name}_weights_check(const void *weights, size_t bytes);\n\n",
        file.bytes()
    )
}

/// The struct of the variables, and what fills it.
fn state(face: &Face) -> String {
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
    let (gives, weights, code) = match face.file.is_some() {
        true => ("int", ", const void *weights", " 0, or TFAOT_E_WEIGHTS."),
        false => ("void", "", ""),
    };
    out + &format!(
        "}} {name}_state;\n\n/* Gives every variable the value that the model starts with.{code} */\n{gives} {name}_init({name}_state *state{weights});\n\n"
    )
}

/// The members of the struct with their comments: variables, and bytes where the next one begins later.
fn members(face: &Face) -> Vec<(String, String)> {
    let taken: HashSet<&str> = face.state.iter().map(|v| v.info.field.as_str()).collect();
    let mut fresh = (0..).map(|i| format!("padding{i}")).filter(|name| !taken.contains(name.as_str()));
    let mut padding = |bytes: u64| {
        let name = fresh.next().unwrap_or_default();
        (format!("uint8_t {name}[{bytes}];"), String::new())
    };
    let mut members = Vec::new();
    let mut end = 0;
    for v in &face.state {
        // C has no arrays without elements
        if v.info.bytes() == 0 {
            continue;
        }
        if v.offset > end {
            members.push(padding(v.offset - end));
        }
        members.push(member(v));
        end = v.end();
    }
    if face.state_bytes() > end {
        members.push(padding(face.state_bytes() - end));
    }
    members
}

fn member(v: &Variable) -> (String, String) {
    let info = &v.info;
    let parts = info.bytes() / c_bytes(info.dtype.real_part().bytes() as u64);
    let count = if info.dims.is_empty() && parts == 1 { String::new() } else { format!("[{parts}]") };
    let comment = format!("{}  {}{}", info.spelled(), in_comment(&info.name), type_note(info.dtype));
    (format!("{} {}{count};", c_type(info.dtype), info.field), comment)
}

/// Bytes of an element as C stores it.
fn c_bytes(bytes: u64) -> u64 {
    bytes.max(1)
}

/// One function with its types and sizes.
fn function(face: &Face, entry: &Entry) -> String {
    let Entry { prefix, function, program, sizes, .. } = entry;
    let upper = prefix.to_uppercase();
    let (takes, gives) = (sizes.spelled(&program.args, &sizes.args), sizes.spelled(&program.results, &sizes.results));
    let args = pointers(&program.args, &takes, &format!("{prefix}_args"), "const ", "arguments");
    let results = pointers(&program.results, &gives, &format!("{prefix}_results"), "", "results");
    let sized = if sizes.is_empty() { String::new() } else { sizes_struct(prefix, sizes) };
    let parameter = if sizes.is_empty() { String::new() } else { format!("{prefix}_sizes *sizes, ") };
    let state = match (face.state.is_empty(), program.changes_state()) {
        (true, _) => String::new(),
        (false, changes) => format!("{}{}_state *state, ", if changes { "" } else { "const " }, face.name),
    };
    let state = if face.file.is_some() { state + "const void *weights, " } else { state };
    let title = match face.entries.len() {
        1 => String::new(),
        _ => format!("/* The signature {}. */\n", in_comment(&entry.name)),
    };
    let changed: Vec<&str> = program.state.iter().filter(|v| v.changed).map(|v| v.info.field.as_str()).collect();
    let changed = match changed.len() {
        0 => String::new(),
        _ if changed.len() == program.state.len() => "/* It changes every variable. */\n".to_string(),
        n if n <= 8 => format!("/* It changes {}. */\n", changed.join(", ")),
        n => format!("/* It changes {} and {} more. */\n", changed[..6].join(", "), n - 6),
    };
    format!(
        "{title}{args}{results}{sized}\
         /* What a call needs beside its stack; calls at the same time need a workspace each. */\n\
         #define {upper}_WORKSPACE_BYTES {}\n#define {upper}_WORKSPACE_ALIGN {WORKSPACE_ALIGN}\n\
         {changed}int {function}(const {prefix}_args *args, const {prefix}_results *results, {parameter}{state}void *workspace,\n    \
         const tfaot_executor *executor{});\n\n",
        program.workspace_bytes,
        ranks::parameter(face)
    )
}

/// The struct of the sizes of a function.
fn sizes_struct(prefix: &str, sizes: &Sizes) -> String {
    let told = |size: &Size| match (size.is_result, size.least, size.most) {
        _ if size.is_check => "out, 1 where this check fails".to_string(),
        (false, least, most) => format!("in, {least} to {most}"),
        (true, _, most) => format!("out, at most {most}"),
    };
    let members: Vec<String> = names::of_sizes(sizes).iter().map(|field| format!("int64_t {field};")).collect();
    let width = members.iter().map(String::len).max().unwrap_or(0).min(60);
    let mut out = format!("typedef struct {prefix}_sizes {{\n");
    for (member, size) in members.iter().zip(&sizes.all) {
        out += &format!("  {member:width$} /* {} */\n", told(size));
    }
    out += &format!("}} {prefix}_sizes;\n");
    out + &failed_check(prefix, sizes)
}

/// The function that names what a call found wrong; none where nothing is checked.
fn failed_check(prefix: &str, sizes: &Sizes) -> String {
    let fields = names::of_sizes(sizes);
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
