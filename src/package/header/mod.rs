//! The C99 header of a model, which documents its interface.
mod function;
mod state;

use super::{calls, ranks};
use crate::kernel::ModelInterface;
use crate::target::{RoundingCounts, Target};
use crate::tensor::{DType, TensorInfo};

/// Alignment of the workspace in bytes: that of a cache line and of the widest vector.
pub const WORKSPACE_ALIGN: u64 = 64;

/// Declarations common to all generated headers, effective once per translation unit.
const ABI: &str = include_str!("abi.h");

/// The C99 header of a compiled model, whose code supports each of `targets`; all have the same triple.
///
/// ```
/// use tfaot::{ModelFile, Request, Target, header};
///
/// let target = Target::resolve(Some("aarch64-unknown-linux-gnu"), None, None)?;
/// let model = ModelFile::open("testdata/graphs/attention/graph.pb");
/// let face = model.compile(&Request::default(), &target)?.bundle.face;
/// assert!(header(&face, &[&target]).contains("_run("));
/// # Ok::<(), tfaot::Error>(())
/// ```
pub fn header(face: &ModelInterface, targets: &[&Target]) -> String {
    let name = &face.name;
    let upper = name.to_uppercase();
    let (intro, supported) = (intro(&face.source, &face.reduced, targets), supported(targets));
    let (calls, ranks) = (calls::declarations(face), ranks::declarations(face));
    let (weights, state, self_test) =
        (state::weights_declarations(face), state::state_declarations(face), self_test(face));
    let functions: String = face.entries.iter().map(|entry| function::declarations(face, entry)).collect();
    let dense = if face.has_variable_sizes() { " in the sizes of the call" } else { "" };
    let (or_state, written_by) = (if face.state.is_empty() { "" } else { " or the state" }, codes_that_write(face));
    let workspace = match face.entries.len() {
        1 => String::new(),
        _ => format!("/* Enough for each function. */\n{}\n", workspace(&upper, face.workspace_bytes())),
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
{ranks}{calls}{weights}{state}/* Arrays are dense and row-major{dense}. Arguments and results need the alignment of their type, no more, and results
 * may not overlap arguments{or_state}.
 * A function returns 0, or a TFAOT_E code; nothing is written to the results{or_state} when it is not 0{written_by}.
 * The results do not depend on the executor; NULL runs all on this thread. */

{functions}{workspace}/* {supported} */
int {name}_supported(void);

/* The facts of this file, for programs that call any model. */
const tfaot_model_info *{name}_info(void);
{self_test}
#ifdef __cplusplus
}}
#endif

#endif /* TFAOT_MODEL_{upper}_H */
"#
    )
}

/// The declarations of the self-test; empty for a model without one.
fn self_test(face: &ModelInterface) -> String {
    let Some(bytes) = face.test_workspace_bytes() else { return String::new() };
    let (name, upper) = (&face.name, face.name.to_uppercase());
    let weights = if face.file.is_some() { "const void *weights, " } else { "" };
    format!(
        "\n/* Calls the model on arguments that the object has, and compares what it gives with the answers of the model's author: 0 where they\n \
         * agree, TFAOT_E_SELFTEST where they do not, the code of a call that fails. It runs on this thread. */\n\
         #define {upper}_SELFTEST_BYTES {bytes} /* of its workspace, aligned to {WORKSPACE_ALIGN} */\n\
         int {name}_selftest({weights}void *workspace);\nsize_t {name}_selftest_bytes(void);\n"
    )
}

/// The macros for the workspace of a model or function; `upper` is their prefix.
fn workspace(upper: &str, bytes: u64) -> String {
    format!("#define {upper}_WORKSPACE_BYTES {bytes}\n#define {upper}_WORKSPACE_ALIGN {WORKSPACE_ALIGN}\n")
}

/// The error codes with which results may have been written, as the end of a sentence; empty if there are none.
fn codes_that_write(face: &ModelInterface) -> String {
    let is_checked = face.entries.iter().any(|e| e.sizes.all.iter().any(|s| s.is_check));
    let codes = [
        (face.has_variable_sizes(), "TFAOT_E_BOUND"),
        (!face.calls.is_empty(), "TFAOT_E_CALL"),
        (face.ranks.is_some(), "TFAOT_E_RANKS"),
        (is_checked, "TFAOT_E_CHECK"),
    ];
    let codes: Vec<&str> = codes.into_iter().filter_map(|(is_there, code)| is_there.then_some(code)).collect();
    match &codes[..] {
        [] => String::new(),
        [only] => format!(" or {only}"),
        [rest @ .., last] => format!(", {} or {last}", rest.join(", ")),
    }
}

/// The comment at the beginning of a header: the source file, the targets, and the precision.
fn intro(source: &str, reduced: &RoundingCounts, targets: &[&Target]) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let source = escape_comment(source);
    let triple = escape_comment(targets.first().map_or("", |t| &t.triple));
    let cpu = targets.iter().map(|t| escape_comment(&t.cpu)).collect::<Vec<_>>().join(", ");
    let mut precision = match reduced.precision.is_reduced() {
        true => format!("/* Rounded on request: {reduced}. */\n"),
        false => String::new(),
    };
    if reduced.precision.math.is_portable() {
        let math = reduced.precision.math.name();
        precision += &format!("/* Compiled with --math {math}: results have the same bits on every machine. */\n");
    }
    format!("/* Generated by tfaot {version} from {source} for {triple} ({cpu}); do not edit. */\n{precision}")
}

/// The comment on `NAME_supported`.
fn supported(targets: &[&Target]) -> &'static str {
    match targets.iter().all(|target| target.can_check_machine()) {
        true => "1 if this machine has the instructions that the code was compiled for, else 0.",
        false => {
            "Always 1: programs on this system can't ask for instructions. Call the code on processors that have them."
        }
    }
}

/// The struct of pointers to arguments or results. Without members it stays incomplete, because C has no empty structs, and callers
/// pass NULL. `types` are the tensors' types as text for comments.
fn pointers(infos: &[TensorInfo], types: &[String], name: &str, qualifier: &str, what: &str) -> String {
    if infos.is_empty() {
        return format!("typedef struct {name} {name}; /* there are no {what}: pass NULL */\n");
    }
    let members: Vec<String> = infos.iter().map(|i| format!("{qualifier}{} *{};", c_type(i.dtype), i.field)).collect();
    let width = members.iter().map(String::len).max().unwrap_or(0).min(60);
    let mut out = format!("typedef struct {name} {{\n");
    for ((member, info), shown) in members.iter().zip(infos).zip(types) {
        let note = type_note(info.dtype);
        out += &format!("  {member:width$} /* {}  {}{note} */\n", escape_comment(shown), escape_comment(&info.name));
    }
    out + &format!("}} {name};\n")
}

/// The C type of one element, or of its real and imaginary part.
pub(super) fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Pred | DType::U1 | DType::U2 | DType::U4 | DType::U8 => "uint8_t",
        DType::S1 | DType::S2 | DType::S4 | DType::S8 => "int8_t",
        DType::S16 => "int16_t",
        DType::S32 => "int32_t",
        DType::S64 => "int64_t",
        DType::U16 | DType::F16 | DType::BF16 => "uint16_t",
        DType::U32 => "uint32_t",
        DType::U64 => "uint64_t",
        DType::F32 | DType::C64 => "float",
        DType::F64 | DType::C128 => "double",
        DType::F8E5M2
        | DType::F8E4M3FN
        | DType::F8E4M3B11FNUZ
        | DType::F8E5M2FNUZ
        | DType::F8E4M3FNUZ
        | DType::F8E4M3
        | DType::F8E3M4
        | DType::F8E8M0FNU
        | DType::F4E2M1FN => "uint8_t",
    }
}

/// Notes on the storage of elements that the C type does not express, as the end of a comment.
pub(super) fn type_note(dtype: DType) -> &'static str {
    match dtype {
        DType::Pred => ", 0 or 1",
        t if t.is_complex() => ", real and imaginary part by turns",
        t if t.is_float() && t.bits() < 32 => ", as bits",
        t if t.bits() < 8 => ", a byte each",
        _ => "",
    }
}

/// `text` made safe for C comments: plain ASCII without comment marks, trigraphs and newlines.
pub(super) fn escape_comment(text: &str) -> String {
    let plain: String =
        text.chars().map(|c| if c.is_ascii_graphic() && !"\\?".contains(c) { c } else { '_' }).collect();
    let mut out = String::new();
    for c in plain.chars().take(200) {
        if matches!((out.chars().last(), c), (Some('*'), '/') | (Some('/'), '*')) {
            out.push(' ');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Callee, Program, VariableSlot};
    use crate::package::cpp;

    fn info(name: &str, dtype: DType, dims: &[u64]) -> TensorInfo {
        TensorInfo { name: format!("{name}:0"), called: None, field: name.to_string(), dtype, dims: dims.to_vec() }
    }

    fn face(name: &str, infos: &[TensorInfo]) -> ModelInterface {
        let (args, results) = (infos.to_vec(), infos.to_vec());
        ModelInterface::of_program(&Program {
            name: name.into(),
            source: "a\\*/b".into(),
            args,
            results,
            ..Program::default()
        })
    }

    /// Compiles files by all compilers that are there, with all warnings.
    fn compiled(files: &[(&str, &str)]) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).expect("written");
        }
        for command in [
            "g++ -std=c++17 -pedantic -Wall -Wextra -Werror -c m.cpp",
            "clang++-22 -std=c++17 -pedantic -Wall -Wextra -Werror -c m.cpp",
            "gcc -std=c99 -pedantic -Wall -Wextra -Werror -c m.c",
            "g++ -x c++ -std=c++17 -pedantic -Wall -Wextra -Werror -c m.c",
            "clang-22 -std=c99 -Weverything -Werror -pedantic -Wno-padded -Wno-c++-compat -c m.c",
        ] {
            let mut words = command.split(' ');
            let mut run = std::process::Command::new(words.next().unwrap_or("cc"));
            if let Ok(output) = run.args(words).current_dir(dir.path()).output() {
                assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
            }
        }
    }

    /// Passes where there is no C compiler, and so does the next.
    #[test]
    fn compilers_are_silent() {
        let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64"), None).expect("a processor");
        let all = [info("x", DType::F32, &[1, 2]), info("class_", DType::C64, &[])];
        for count in [0, 2] {
            let face = face("m", &all[..count]);
            compiled(&[
                ("m.h", &header(&face, &[&target])),
                ("m.c", "#include \"m.h\"\n#include \"m.h\"\nint main(void) { return m_run(0, 0, 0, 0); }\n"),
                ("m.hpp", &cpp::header(&face, &cpp::ClassName::of_model("m"))),
                ("m.cpp", "#include \"m.hpp\"\nint main() { return M().Run(); }\n"),
            ]);
        }
    }

    #[test]
    fn headers_of_every_kind_stand_in_one_translation_unit() {
        let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64"), None).expect("a processor");
        let x = [info("x", DType::F32, &[2])];
        let plain = face("plain", &x);
        let mut whole = face("whole", &x);
        whole.state = vec![VariableSlot { info: x[0].clone(), offset: 0, changed: true }];
        whole.ranks = Some(2);
        whole.calls = vec![Callee {
            name: "f".into(),
            api_version: 4,
            opaque: Vec::new(),
            args: x.to_vec(),
            results: Vec::new(),
        }];
        let source = "#include \"plain.h\"\n#include \"whole.h\"\n#include \"plain.h\"\n\
            int main(void) {\n  const tfaot_model_info *both[2];\n  both[0] = plain_info();\n  both[1] = whole_info();\n  \
            return both[0]->functions->run(0, 0, 0, 0, 0, 0, 0, 0) + both[1]->functions->run(0, 0, 0, 0, 0, 0, 0, 0);\n}\n";
        compiled(&[
            ("plain.h", &header(&plain, &[&target])),
            ("whole.h", &header(&whole, &[&target])),
            ("m.c", source),
            ("m.cpp", source),
        ]);
    }

    #[test]
    fn codes_are_those_that_are_returned() {
        use crate::codegen::{E_BOUND, E_CALL, E_CHECK, E_CPU, E_RANKS, E_SELFTEST, E_SIZE, E_WEIGHTS};
        let codes = [
            ("CPU", E_CPU),
            ("SIZE", E_SIZE),
            ("BOUND", E_BOUND),
            ("WEIGHTS", E_WEIGHTS),
            ("CALL", E_CALL),
            ("RANKS", E_RANKS),
            ("CHECK", E_CHECK),
            ("SELFTEST", E_SELFTEST),
        ];
        for (name, code) in codes {
            let line = |line: &str| {
                line.split_whitespace().take(3).eq(["#define", &format!("TFAOT_E_{name}"), &code.to_string()])
            };
            assert!(ABI.lines().any(line), "{name}");
        }
    }

    #[test]
    fn the_version_is_the_one_that_objects_have() {
        assert!(ABI.contains(&format!("#define TFAOT_ABI_VERSION {}\n", crate::codegen::ABI_VERSION)));
        assert!(ABI.contains(&format!("#elif TFAOT_ABI_VERSION != {}\n", crate::codegen::ABI_VERSION)));
    }

    #[test]
    fn comments_end_where_they_should() {
        assert_eq!(escape_comment("a*/b/*c\n??/é"), "a* /b/ *c___/_");
    }
}
