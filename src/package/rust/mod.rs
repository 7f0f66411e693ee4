//! `NAME.rs`: a safe Rust module over the C interface of a model.
use super::header::WORKSPACE_ALIGN;
use crate::codegen::{E_BOUND, E_CHECK, E_SELFTEST, E_SIZE};
use crate::diag::{Code, Error, Result};
use crate::kernel::{EntryPoint, ModelInterface};
use crate::tensor::{DType, Size, Sizes, TensorInfo};

/// The text of the module; `{…}` in capitals are placeholders.
const MODULE: &str = include_str!("module.rs.in");

/// Words that can't be names, not even as raw identifiers.
const RESERVED: &[&str] = &["self", "Self", "super", "crate", "_"];
/// Words that can be names only as raw identifiers.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// The text of `NAME.rs`.
///
/// # Errors
/// `Code::BadOption` for a model with several functions, variables, a weights file, calls of C functions, or several ranks.
pub fn module(face: &ModelInterface) -> Result<String> {
    let entry = match &face.entries[..] {
        [only] if face.state.is_empty() && face.file.is_none() && face.calls.is_empty() && face.ranks.is_none() => only,
        _ => {
            let told = "`--emit rust` is for a model of one function without variables, a file of weights, calls of C and other ranks";
            return Err(Error::user(Code::BadOption, told));
        }
    };
    let names = ArgumentNames::new(entry);
    let mut parts = vec![
        ("{VERSION}", env!("CARGO_PKG_VERSION").to_string()),
        ("{WORKSPACE_ALIGN}", WORKSPACE_ALIGN.to_string()),
        ("{BYTES}", entry.program.workspace_bytes.to_string()),
        ("{LINES}", entry.program.workspace_bytes.div_ceil(WORKSPACE_ALIGN).max(1).to_string()),
        ("{NAME}", face.name.clone()),
        ("{MODEL}", camel(&face.name)),
    ];
    parts.splice(0..0, test_parts(face));
    parts.extend(size_parts(&entry.sizes, &names));
    parts.extend(array_parts(&names));
    // the source file's name may contain anything, placeholders included
    parts.push(("{SOURCE}", comment(&face.source)));
    Ok(parts.into_iter().fold(MODULE.to_string(), |text, (placeholder, part)| text.replace(placeholder, &part)))
}

/// Placeholders and fragments for the self-test; the fragments are empty if the model has none.
fn test_parts(face: &ModelInterface) -> Vec<(&'static str, String)> {
    let Some(bytes) = face.test_workspace_bytes() else {
        return ["{TEST_PROTOTYPE}", "{TEST_METHOD}", "{TEST_ERROR}"].map(|part| (part, String::new())).into();
    };
    let lines = bytes.div_ceil(WORKSPACE_ALIGN).max(1);
    let method = format!(
        "    /// Compares what the model gives on this machine with answers that the object has.\n    ///\n    /// # Errors\n    ///\n    \
         /// Where a result is another one, or a call fails.\n    \
         pub fn self_test() -> Result<(), Error> {{\n        \
         let mut workspace = vec![Line([0; {{WORKSPACE_ALIGN}}]); {lines}];\n        \
         // SAFETY: the workspace has the size and the alignment that the test needs.\n        \
         match unsafe {{ {{NAME}}_selftest(workspace.as_mut_ptr()) }} {{\n            \
         0 => Ok(()),\n            code => Err(Error(code)),\n        }}\n    }}\n\n"
    );
    vec![
        ("{TEST_PROTOTYPE}", "    fn {NAME}_selftest(workspace: *mut Line) -> std::ffi::c_int;\n".to_string()),
        ("{TEST_METHOD}", method),
        (
            "{TEST_ERROR}",
            format!("            {E_SELFTEST} => f.write_str(\"a result is not the answer that the object has\"),\n"),
        ),
    ]
}

/// Names of the parameters of `run`.
struct ArgumentNames {
    args: Vec<Field>,
    results: Vec<Field>,
    /// The name of the parameter for the sizes, distinct from the arguments' names.
    sizes: &'static str,
}

impl ArgumentNames {
    fn new(entry: &EntryPoint) -> ArgumentNames {
        let (program, sizes) = (&entry.program, &entry.sizes);
        let args = fields(&program.args, sizes, &sizes.args);
        let results = fields(&program.results, sizes, &sizes.results);
        let is_taken = args.iter().chain(&results).any(|f| f.name == "sizes");
        ArgumentNames { args, results, sizes: if is_taken { "sizes_" } else { "sizes" } }
    }
}

/// Placeholders and fragments for arguments and results.
fn array_parts(names: &ArgumentNames) -> Vec<(&'static str, String)> {
    let ArgumentNames { args, results, .. } = names;
    let members = |of: &[Field], pointer: &str| {
        of.iter().map(|f| format!("    {}: *{pointer} {},\n", f.name, f.kind)).collect::<String>()
    };
    let parameters = |of: &[Field], reference: &str| {
        of.iter().map(|f| format!("        {}: &{reference}{},\n", f.name, f.array())).collect::<String>()
    };
    let pointers = |of: &[Field], method: &str| {
        of.iter().map(|f| format!("            {0}: {0}.{method}(),\n", f.name)).collect::<String>()
    };
    let docs = |of: &[Field], what: &str| {
        of.iter().map(|f| format!("    /// - `{}`: {what}, {}\n", f.name, f.told)).collect::<String>()
    };
    vec![
        ("{ARG_MEMBERS}", members(args, "const")),
        ("{RESULT_MEMBERS}", members(results, "mut")),
        ("{ARG_PARAMETERS}", parameters(args, "")),
        ("{RESULT_PARAMETERS}", parameters(results, "mut ")),
        ("{ARG_POINTERS}", pointers(args, "as_ptr")),
        ("{RESULT_POINTERS}", pointers(results, "as_mut_ptr")),
        ("{ARG_TOLD}", docs(args, "argument")),
        ("{RESULT_TOLD}", docs(results, "result")),
    ]
}

/// Placeholders and fragments for varying sizes; the fragments are empty if all sizes are fixed.
fn size_parts(sizes: &Sizes, names: &ArgumentNames) -> Vec<(&'static str, String)> {
    let name = names.sizes;
    let if_sized = |text: String| if sizes.is_empty() { String::new() } else { text };
    vec![
        ("{SIZE_STRUCT}", if_sized(size_struct(&sizes.all))),
        (
            "{SIZE_ERRORS}",
            if_sized(format!(
                "            {E_SIZE} => f.write_str(\"a size is outside of its bounds\"),\n            \
                 {E_BOUND} => f.write_str(\"the data ask for more than a bound\"),\n            \
                 {E_CHECK} => f.write_str(\"a value is not as a node takes it\"),\n            \
                 SHORT => f.write_str(\"an array is shorter than the sizes say\"),\n"
            )),
        ),
        ("{SIZE_POINTER}", if_sized("        sizes: *mut Sizes,\n".to_string())),
        ("{SIZE_TOLD}", if_sized(format!("    /// - `{name}`: those of the call, which writes what it finds\n"))),
        ("{SIZE_WRONG}", if_sized(", a size is outside of its bounds, or an array too short".to_string())),
        ("{SIZE_PARAMETER}", if_sized(format!("        {name}: &mut Sizes,\n"))),
        ("{SIZE_ARGUMENT}", if_sized(format!("{name}, "))),
        ("{CHECKS}", size_checks(sizes, names)),
    ]
}

/// Code that checks sizes and lengths of arrays before a call.
fn size_checks(sizes: &Sizes, names: &ArgumentNames) -> String {
    let name = names.sizes;
    let given = sizes.all.iter().filter(|s| !s.is_result).map(|s| {
        let (least, most, size) = (s.least, s.most, identifier(&s.name));
        format!("        if !({least}..={most}).contains(&{name}.{size}) {{\n            return Err(Error({E_SIZE}));\n        }}\n")
    });
    let enough = names.args.iter().chain(&names.results).filter(|f| !f.varying.is_empty()).map(|f| {
        let factors: String = f.varying.iter().map(|s| format!(" * {name}.{s} as usize")).collect();
        format!(
            "        if {}.len() < {}{factors} {{\n            return Err(Error(SHORT));\n        }}\n",
            f.name, f.elements
        )
    });
    given.chain(enough).collect()
}

/// The struct of varying sizes.
fn size_struct(all: &[Size]) -> String {
    let member = |s: &Size| {
        let told = if s.is_result { "out, at most".to_string() } else { format!("in, {} to", s.least) };
        format!("    /// {told} {}\n    pub {}: i64,\n", s.most, identifier(&s.name))
    };
    format!(
        "/// Sizes of a call.\n#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\n#[repr(C)]\npub struct Sizes {{\n{}}}\n\n\
         /// The code of [`Error`] for an array that is too short.\nconst SHORT: i32 = -1;\n\n",
        all.iter().map(member).collect::<String>()
    )
}

/// An argument or result as a field of the C struct and a parameter of `run`.
struct Field {
    name: String,
    kind: &'static str,
    /// Elements per unit of the varying sizes: the product of the fixed axes and of the bounds of sizes that the call returns.
    elements: u64,
    /// The varying sizes that the caller passes, as struct members.
    varying: Vec<String>,
    told: String,
}

impl Field {
    /// The Rust type behind the reference.
    fn array(&self) -> String {
        if self.varying.is_empty() { format!("[{}; {}]", self.kind, self.elements) } else { format!("[{}]", self.kind) }
    }
}

fn fields(infos: &[TensorInfo], sizes: &Sizes, axes: &[Vec<Option<usize>>]) -> Vec<Field> {
    let spelled = sizes.type_texts(infos, axes);
    let one = |(i, info): (usize, &TensorInfo)| {
        let said = |axis: usize| {
            axes.get(i)?.get(axis).copied().flatten().and_then(|s| sizes.all.get(s)).filter(|s| !s.is_result)
        };
        let fixed = (0..info.dims.len()).filter(|&axis| said(axis).is_none()).map(|axis| info.dims[axis]);
        Field {
            name: identifier(&info.field),
            kind: kind(info.dtype),
            elements: fixed.fold(1, u64::saturating_mul),
            varying: (0..info.dims.len()).filter_map(said).map(|s| identifier(&s.name)).collect(),
            told: format!("`{}` of `{}`{}", spelled[i], comment(&info.name), note(info.dtype)),
        }
    };
    infos.iter().enumerate().map(one).collect()
}

/// A C identifier as a Rust identifier. Unlikely clashes with names such as `self_` are compile errors.
fn identifier(field: &str) -> String {
    if RESERVED.contains(&field) {
        format!("{field}_")
    } else if KEYWORDS.contains(&field) {
        format!("r#{field}")
    } else {
        field.to_string()
    }
}

/// A snake-case name in camel case: `face_mesh` becomes `FaceMesh`.
fn camel(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
    };
    let made: String = name.split('_').map(word).collect();
    // the names that the module's text uses itself
    let taken = ["Line", "Error", "Args", "Results", "Sizes", "Self", "Vec", "Ok", "Err", "Result", "Default"];
    if made.is_empty() || made.starts_with(|c: char| c.is_ascii_digit()) || taken.contains(&made.as_str()) {
        format!("Model{made}")
    } else {
        made
    }
}

/// The Rust type of one element; the model only writes 0 or 1 to a `bool`.
fn kind(dtype: DType) -> &'static str {
    match dtype {
        DType::Pred => "bool",
        DType::F32 => "f32",
        DType::F64 => "f64",
        DType::C64 => "[f32; 2]",
        DType::C128 => "[f64; 2]",
        DType::S8 => "i8",
        DType::S16 => "i16",
        DType::S32 => "i32",
        DType::S64 => "i64",
        DType::U8 => "u8",
        DType::U16 => "u16",
        DType::U32 => "u32",
        DType::U64 => "u64",
        DType::S1 | DType::S2 | DType::S4 => "i8",
        t if t.bits() > 8 => "u16",
        _ => "u8",
    }
}

fn note(dtype: DType) -> &'static str {
    match dtype {
        DType::C64 | DType::C128 => ", real and imaginary part",
        t if t.is_float() && t.bits() < 32 => ", as bits",
        t if t.bits() < 8 && t != DType::Pred => ", a byte each",
        _ => "",
    }
}

/// `text` made safe for a comment of one line.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() && c != '`' { c } else { '_' }).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_rusts() {
        assert_eq!(["x", "type", "self", "_"].map(identifier), ["x", "r#type", "self_", "__"]);
        assert_eq!(["net", "face_mesh", "error", "_1"].map(camel), ["Net", "FaceMesh", "ModelError", "Model1"]);
    }
}
