//! The C99 header of a model: the documentation of its interface.
use super::{calls, module_header};
use crate::kernel::Face;
use crate::target::{Reduced, Target};
use crate::tensor::{DType, TensorInfo};

/// The alignment of the workspace in bytes: a cache line, and the widest vector.
pub const WORKSPACE_ALIGN: u64 = 64;

/// What all generated headers declare, once a translation unit. The layout is fixed by `abi_version` 1.
pub(super) const ABI: &str = r#"#ifndef TFAOT_ABI_1
#define TFAOT_ABI_1

#define TFAOT_E_CPU 1 /* this machine lacks instructions that the code was compiled for */

/* Runs task(closure, begin, end) on pieces that cover [0, n), and returns when all are done. */
typedef struct tfaot_executor {
  void *self;
  int32_t num_threads;
  void (*parallel_for)(void *self, int64_t n, void (*task)(void *closure, int64_t begin, int64_t end), void *closure);
} tfaot_executor;

typedef struct tfaot_tensor_info {
  const char *name;  /* TensorFlow's name: "input:0" */
  const char *field; /* its member in the args or results struct */
  int32_t dtype;     /* TensorFlow's DataType number: DT_FLOAT is 1 */
  int32_t rank;
  const int64_t *dims;
  size_t bytes;
} tfaot_tensor_info;

typedef struct tfaot_model_info {
  uint32_t abi_version; /* 1 */
  uint32_t arg_count, result_count, variable_count;
  const char *name, *source, *target;
  const tfaot_tensor_info *args, *results, *variables;
  size_t workspace_bytes, workspace_align;
  int64_t flops; /* of one call */
  /* args and results are arrays of pointers, in the order of the structs */
  int (*run)(const void *args, const void *results, void *workspace, const tfaot_executor *executor);
} tfaot_model_info;

#endif /* TFAOT_ABI_1 */
"#;

/// The C99 header of a compiled model; the code is for each of `targets`, which have one triple.
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
pub fn header(face: &Face, targets: &[&Target]) -> String {
    let program = match &face.entries[..] {
        [only] if !face.is_module() => &only.program,
        _ => return module_header::header(face, targets),
    };
    let name = &face.name;
    let upper = name.to_uppercase();
    let (intro, supported) = (intro(&face.source, &face.reduced, targets), supported(targets));
    let spelled = |infos: &[TensorInfo]| infos.iter().map(TensorInfo::spelled).collect::<Vec<_>>();
    let args = pointers(&program.args, &spelled(&program.args), &format!("{name}_args"), "const ", "arguments");
    let results = pointers(&program.results, &spelled(&program.results), &format!("{name}_results"), "", "results");
    let workspace = program.workspace_bytes;
    let (calls, kept) = (calls::declarations(face), kept(face));
    format!(
        r#"{intro}#ifndef TFAOT_MODEL_{upper}_H
#define TFAOT_MODEL_{upper}_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

{ABI}
{calls}/* Arrays are dense and row-major. Arguments and results need the alignment of their type, no more, and results
 * may not overlap arguments. */
{args}
{results}
/* What a call needs beside its stack; calls at the same time need a workspace each. */
#define {upper}_WORKSPACE_BYTES {workspace}
#define {upper}_WORKSPACE_ALIGN {WORKSPACE_ALIGN}

/* 0, or a TFAOT_E code; nothing is written to the results when it is not 0{kept}.
 * The results do not depend on the executor; NULL runs all on this thread. */
int {name}_run(const {name}_args *args, const {name}_results *results, void *workspace,
    const tfaot_executor *executor);

/* {supported} */
int {name}_supported(void);

/* The same facts as in this file, for programs that call any model. */
const tfaot_model_info *{name}_info(void);

#ifdef __cplusplus
}}
#endif

#endif /* TFAOT_MODEL_{upper}_H */
"#
    )
}

/// What ends the rule that a call which fails writes nothing.
pub(super) fn kept(face: &Face) -> &'static str {
    match (face.calls.is_empty(), face.ranks) {
        (true, None) => "",
        (false, None) => " or TFAOT_E_CALL",
        (true, Some(_)) => " or TFAOT_E_RANKS",
        (false, Some(_)) => ", TFAOT_E_CALL or TFAOT_E_RANKS",
    }
}

/// What the code was made of, and for what.
pub(super) fn intro(source: &str, reduced: &Reduced, targets: &[&Target]) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let source = in_comment(source);
    let triple = in_comment(targets.first().map_or("", |t| &t.triple));
    let cpu = targets.iter().map(|t| in_comment(&t.cpu)).collect::<Vec<_>>().join(", ");
    let precision = match reduced.precision.is_reduced() {
        true => format!("/* Rounded on request: {reduced}. */\n"),
        false => String::new(),
    };
    format!("/* Generated by tfaot {version} from {source} for {triple} ({cpu}); do not edit. */\n{precision}")
}

/// What `NAME_supported` says.
pub(super) fn supported(targets: &[&Target]) -> &'static str {
    match targets.iter().all(|target| target.can_be_asked()) {
        true => "1 if this machine has the instructions that the code was compiled for, else 0.",
        false => {
            "Always 1: programs on this system can't ask for instructions. Call the code on processors that have them."
        }
    }
}

/// The struct of pointers; with no member it is left incomplete, for C has no empty structs, and NULL is what to pass.
///
/// `spelled` are their types as the comments have them.
pub(super) fn pointers(infos: &[TensorInfo], spelled: &[String], name: &str, qualifier: &str, what: &str) -> String {
    if infos.is_empty() {
        return format!("typedef struct {name} {name}; /* there are no {what}: pass NULL */\n");
    }
    let members: Vec<String> = infos.iter().map(|i| format!("{qualifier}{} *{};", c_type(i.dtype), i.field)).collect();
    let width = members.iter().map(String::len).max().unwrap_or(0).min(60);
    let mut out = format!("typedef struct {name} {{\n");
    for ((member, info), spelled) in members.iter().zip(infos).zip(spelled) {
        let note = type_note(info.dtype);
        out += &format!("  {member:width$} /* {}  {}{note} */\n", in_comment(spelled), in_comment(&info.name));
    }
    out + &format!("}} {name};\n")
}

/// The C type that stores one element, or its parts.
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

pub(super) fn type_note(dtype: DType) -> &'static str {
    match dtype {
        DType::Pred => ", 0 or 1",
        t if t.is_complex() => ", real and imaginary part by turns",
        t if t.is_float() && t.bits() < 32 => ", as bits",
        t if t.bits() < 8 => ", a byte each",
        _ => "",
    }
}

/// `text` so that no compiler minds it in a comment: plain ASCII, no comment marks, trigraphs or line ends.
pub(super) fn in_comment(text: &str) -> String {
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
    use crate::kernel::Program;
    use crate::package::cpp;

    /// Needs a C compiler; passes where there is none.
    #[test]
    fn compilers_are_silent() {
        let info = |name: &str, dtype, dims: &[u64]| TensorInfo {
            name: format!("{name}:0"),
            called: None,
            field: name.to_string(),
            dtype,
            dims: dims.to_vec(),
        };
        let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64"), None).expect("a processor");
        for count in [0, 2] {
            let all = [info("x", DType::F32, &[1, 2]), info("class_", DType::C64, &[])];
            let infos = all[..count].to_vec();
            let program = Program {
                name: "m".into(),
                source: "a\\*/b".into(),
                args: infos.clone(),
                results: infos,
                ..Program::default()
            };
            let face = Face::of(&program);
            let dir = tempfile::tempdir().expect("a temporary folder");
            std::fs::write(dir.path().join("m.h"), header(&face, &[&target])).expect("written");
            let source = "#include \"m.h\"\n#include \"m.h\"\nint main(void) { return m_run(0, 0, 0, 0); }\n";
            std::fs::write(dir.path().join("m.c"), source).expect("written");
            let class = cpp::header(&face, &cpp::ClassName::of_model("m"));
            std::fs::write(dir.path().join("m.hpp"), class).expect("written");
            std::fs::write(dir.path().join("m.cpp"), "#include \"m.hpp\"\nint main() { return M().Run(); }\n")
                .expect("written");
            for command in [
                "g++ -std=c++17 -pedantic -Wall -Wextra -Werror -c m.cpp",
                "clang++-22 -std=c++17 -pedantic -Wall -Wextra -Werror -c m.cpp",
                "gcc -std=c99 -pedantic -Wall -Wextra -Werror -c m.c",
                "g++ -x c++ -std=c++17 -pedantic -Wall -Wextra -Werror -c m.c",
                "clang-22 -std=c99 -Weverything -Werror -pedantic -Wno-padded -Wno-c++-compat -c m.c",
            ] {
                let mut words = command.split(' ');
                let mut run = std::process::Command::new(words.next().unwrap_or("cc"));
                if let Ok(said) = run.args(words).current_dir(dir.path()).output() {
                    assert!(said.status.success(), "{command}: {}", String::from_utf8_lossy(&said.stderr));
                }
            }
        }
    }

    #[test]
    fn codes_are_those_that_are_returned() {
        assert!(ABI.contains(&format!("#define TFAOT_E_CPU {} ", crate::codegen::E_CPU)));
        for (name, code) in [("SIZE", crate::codegen::E_SIZE), ("BOUND", crate::codegen::E_BOUND)] {
            assert!(module_header::SIZE_CODES.contains(&format!("#define TFAOT_E_{name} {code} ")));
        }
        assert!(module_header::CHECK_CODES.contains(&format!("#define TFAOT_E_CHECK {} ", crate::codegen::E_CHECK)));
        assert!(module_header::ABI_3.contains(&format!("#define TFAOT_E_WEIGHTS {} ", crate::codegen::E_WEIGHTS)));
        assert!(calls::ABI.contains(&format!("#define TFAOT_E_CALL {} ", crate::codegen::E_CALL)));
    }

    #[test]
    fn comments_end_where_they_should() {
        assert_eq!(in_comment("a*/b/*c\n??/é"), "a* /b/ *c___/_");
    }
}
