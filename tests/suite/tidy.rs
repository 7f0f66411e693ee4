//! Order and layers, read from the sources themselves: one crate can't enforce them by its build.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The modules with their layers: a file may name its own module and modules of lower layers only.
const LAYERS: &[(&str, u32)] = &[
    ("util", 0),
    ("symbolic", 0),
    ("diag", 1),
    ("tensor", 2),
    ("scalar", 2),
    ("target", 2),
    ("graph", 3),
    ("hlo", 3),
    ("kernel", 3),
    ("interp", 4),
    ("opdef", 4),
    ("optimize", 5),
    ("ops", 5),
    ("import", 6),
    ("infer", 6),
    ("cluster", 7),
    ("lower", 7),
    ("bounded", 8),
    ("prepare", 8),
    ("schedule", 9),
    ("codegen", 10),
    ("package", 11),
    ("dump", 12),
    ("report", 12),
    ("compile", 13),
    ("reduce", 13),
    ("rewrite", 14),
    ("run", 14),
    ("measure", 15),
    ("verify", 15),
    ("model", 16),
    ("cli", 17),
];

/// Arrows inside one layer: a tensor's small floats are decoded by `scalar`, whose ops speak of element types.
const SIDEWAYS: &[(&str, &str)] = &[("tensor", "scalar"), ("scalar", "tensor")];

/// Downward arrows that must not be, so that each engine stands on its own.
const FORBIDDEN: &[(&str, &str)] = &[
    ("import", "hlo"),
    ("interp", "graph"),
    ("interp", "kernel"),
    ("optimize", "graph"),
    ("optimize", "kernel"),
    ("codegen", "hlo"),
    ("codegen", "graph"),
    ("codegen", "interp"),
    ("package", "hlo"),
    ("package", "graph"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `folder` with its text, in order; files that are not text are left out.
fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

/// The code of a source file: no comments, nothing from the first `#[cfg(test)]` on.
fn code(text: &str) -> String {
    let body = text.split("#[cfg(test)]").next().unwrap_or("");
    let lines = body.lines().map(|line| line.split("//").next().unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

/// The modules that `code` names after `crate::`, groups `crate::{a::B, c}` included.
fn named_modules(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut item = String::new();
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => found.extend(first_word(&std::mem::take(&mut item))),
                    c if depth == 0 => item.push(c),
                    _ => {}
                }
            }
            found.extend(first_word(&item));
        } else {
            found.extend(first_word(rest));
        }
    }
    found
}

fn first_word(text: &str) -> Option<String> {
    let word: String = text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!word.is_empty()).then_some(word)
}

fn layer(module: &str) -> Option<u32> {
    LAYERS.iter().find(|row| row.0 == module).map(|row| row.1)
}

/// Why module `from` may not name module `to`.
fn refusal(from: &str, to: &str) -> Option<&'static str> {
    let (Some(here), Some(there)) = (layer(from), layer(to)) else { return None };
    if from == to || SIDEWAYS.contains(&(from, to)) {
        None
    } else if FORBIDDEN.contains(&(from, to)) {
        Some("is forbidden")
    } else if there >= here {
        Some("points upward")
    } else {
        None
    }
}

#[test]
fn plans_know_no_kernels_of_theirs() {
    let is_recipe = |(path, _): &(PathBuf, String)| {
        path.components().any(|c| matches!(c.as_os_str().to_str(), Some("recipe" | "recipe.rs")))
    };
    let recipes = files(&root().join("src/schedule/families")).into_iter().filter(is_recipe);
    for (path, text) in files(&root().join("src/schedule/plan")).into_iter().chain(recipes) {
        let code = code(&text);
        let named = ["schedule::emit", "::loops", "schedule::search", "super::emit", "kernel::Kernel", "kernel::Stmt"];
        let wrong: Vec<&str> = named.into_iter().filter(|name| code.contains(name)).collect();
        assert!(
            wrong.is_empty(),
            "{} names {}: a plan is made before there are kernels",
            path.display(),
            wrong.join(", ")
        );
    }
}

#[test]
fn arrows_point_downward() {
    let src = root().join("src");
    let mut wrong = Vec::new();
    for (path, text) in files(&src) {
        let inside = path.strip_prefix(&src).expect("it was found there");
        let first = inside.components().next().expect("a file has a name").as_os_str().to_string_lossy().to_string();
        let module = first.trim_end_matches(".rs").to_string();
        if module == "lib" || module == "main" {
            continue;
        }
        assert!(
            layer(&module).is_some(),
            "src/{first} is a module without a layer: add it to LAYERS in tests/suite/tidy.rs"
        );
        for to in named_modules(&code(&text)) {
            if let Some(why) = refusal(&module, &to) {
                wrong.push(format!("src/{}: {module} -> {to} {why}", inside.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "arrows between modules:\n{}", wrong.join("\n"));
}

/// Modules that may read the environment, for the user's flags and tools: the output of all others is a function of their input.
const ASK_THE_ENVIRONMENT: &[&str] = &["cli", "package"];

#[test]
fn modules_below_do_not_read_the_environment() {
    let src = root().join("src");
    let asks = |path: &Path, text: &str| {
        let module = path.strip_prefix(&src).ok()?.components().next()?.as_os_str().to_string_lossy().to_string();
        let may = ASK_THE_ENVIRONMENT.contains(&module.trim_end_matches(".rs"));
        // tests behind the code may: it says whether they rewrite what they expect
        let shipped = text.split("#[test]").next()?.split("#[cfg(test)]").next()?;
        (!may && code(shipped).contains("env::")).then(|| path.display().to_string())
    };
    let wrong: Vec<String> = files(&src).iter().filter_map(|(path, text)| asks(path, text)).collect();
    assert!(wrong.is_empty(), "the environment is asked in\n{}", wrong.join("\n"));
}

#[test]
fn the_reader_of_arrows_reads() {
    let text = "use crate::{graph::Node, hlo::{Op, Shape}, tensor};\nfn f(x: crate::diag::Error) {} // crate::cli\n";
    let modules: Vec<String> = named_modules(&code(text)).into_iter().collect();
    assert_eq!(modules, ["diag", "graph", "hlo", "tensor"]);
    assert_eq!(refusal("hlo", "cli"), Some("points upward"));
    assert_eq!(refusal("hlo", "graph"), Some("points upward"));
    assert_eq!(refusal("codegen", "hlo"), Some("is forbidden"));
    assert_eq!(refusal("lower", "hlo"), None);
}

#[test]
fn no_path_of_one_machine() {
    let words = [["/wo", "rk/"].concat(), ["/ro", "ot/"].concat(), ["/ho", "me/"].concat()];
    let mut wrong = Vec::new();
    for place in ["src", "tests", "tools", "docs", "protos", ".ci", ".config", ".cargo", "testdata"] {
        for (path, text) in files(&root().join(place)) {
            for (number, line) in text.lines().enumerate() {
                if words.iter().any(|w| line.contains(w.as_str())) {
                    wrong.push(format!("{}:{}: {line}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "paths of one machine:\n{}", wrong.join("\n"));
}

/// Pages that texts point to: of the project's formats, tools and sources, none of which a command asks for anything.
const PAGES: &[&str] = &[
    "127.0.0.1",
    "example.com",
    "git-lfs.github.com",
    "github.com",
    "keepachangelog.com",
    "opensource.org",
    "pypi.org/project",
    "rustup.rs",
    "semver.org",
    "www.apache.org",
    "www.tensorflow.org",
    "www.w3.org",
];

/// Where packages come from is the machine's own configuration.
#[test]
fn no_host_of_one_network() {
    let mut wrong = Vec::new();
    for place in
        ["src", "tests", "tools", "docs", "bazel", "cmake", "python", "examples", "crates", ".ci", ".config", ".cargo"]
    {
        for (path, text) in files(&root().join(place)) {
            for (at, scheme) in text.match_indices("http://").chain(text.match_indices("https://")) {
                let rest = &text[at + scheme.len()..];
                let is_host = rest.starts_with(|c: char| c.is_ascii_alphanumeric());
                if is_host && !PAGES.iter().any(|page| rest.starts_with(page)) {
                    wrong.push(format!("{}: {scheme}{}", path.display(), rest.lines().next().unwrap_or("")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "hosts:\n{}", wrong.join("\n"));
}

#[test]
fn ops_have_one_row_each() {
    let mut seen = BTreeSet::new();
    for (family, row) in tfaot::ops::all_ops() {
        assert!(seen.insert(row.name), "`{}` has two rows, one in {family}", row.name);
        assert!(row.signature.contains("->"), "the signature of `{}` has no arrow", row.name);
        let inputs = row.input_names().len();
        let lists = row.input_names().iter().any(|n| n.ends_with('*'));
        let fits = |&at: &usize| at < inputs || lists;
        assert!(row.constants.iter().all(fits), "`{}` wants constants that it does not take", row.name);
        assert!(tfaot::ops::find_op(row.name).is_some(), "`{}` is not found by its name", row.name);
    }
}

#[test]
fn diagnostics_are_in_order_and_unique() {
    let rows = tfaot::diag::codes::CODES;
    assert!(rows.windows(2).all(|w| w[0].number < w[1].number), "codes are sorted by number, each once");
    let slugs: BTreeSet<&str> = rows.iter().map(|r| r.slug).collect();
    assert_eq!(slugs.len(), rows.len(), "each slug stands once");
    for row in rows {
        assert!(row.about.ends_with('.') && row.cure.ends_with('.'), "{} is written in whole sentences", row.slug);
        assert_eq!(tfaot::diag::Code::parse(&row.code.id()).map(|r| r.slug), Some(row.slug));
    }
}

#[test]
fn nothing_is_left_undone() {
    let ignored = ["#[ig", "nore"].concat();
    let words = [["to", "do!("].concat(), ["unimpl", "emented!("].concat(), ["db", "g!("].concat(), ignored.clone()];
    // CI runs these, so that they are not left undone.
    let long = format!("{ignored} = \"slow without optimization; .ci/run runs it with\"]");
    let ci = std::fs::read_to_string(root().join(".ci/run")).expect("it is there");
    assert!(ci.contains("-- --ignored"), "CI leaves the long tests out");
    let mut wrong = Vec::new();
    for place in ["src", "tests"] {
        for (path, text) in files(&root().join(place)) {
            if path.extension().is_some_and(|e| e == "rs") {
                let text = text.replace(&long, "");
                wrong.extend(
                    words.iter().filter(|w| text.contains(w.as_str())).map(|w| format!("{}: {w}", path.display())),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "left undone:\n{}", wrong.join("\n"));
}

/// Words that stand for something which a reader of the first sentence has not seen.
const PRONOUNS: &[&str] = &["What", "Its", "Those", "That", "It", "They", "These", "Which", "Their", "This", "Whose"];
/// Most lines of a function.
const MOST_LINES: usize = 80;
/// Most functions of the crate that may take tuples as parameters.
const MOST_TUPLES: usize = 20;

/// A function of a source file.
struct FunctionItem {
    path: PathBuf,
    line: usize,
    /// Lines from its signature to the end of its body.
    length: usize,
    parameters: Vec<String>,
}

impl FunctionItem {
    /// The place of the function, for messages.
    fn place(&self) -> String {
        format!("{}:{}", self.path.display(), self.line)
    }
}

/// Every function of the crate.
fn functions() -> Vec<FunctionItem> {
    let mut all = Vec::new();
    for (path, text) in files(&root().join("src")) {
        let lines: Vec<&str> = text.lines().collect();
        for (i, line) in lines.iter().enumerate().filter(|(_, line)| begins_function(line)) {
            let start = line.trim_start();
            let end = format!("{}}}", &line[..line.len() - start.len()]);
            let is_one_line = line.ends_with(['}', ';']);
            let last = lines[i..].iter().position(|l| *l == end).filter(|_| !is_one_line).unwrap_or(0);
            let parameters = parameters(&text, line);
            all.push(FunctionItem { path: path.clone(), line: i + 1, length: last + 1, parameters });
        }
    }
    all
}

/// Whether a function begins in a line.
fn begins_function(line: &str) -> bool {
    let mut rest = line.trim_start();
    if let Some(after) = rest.strip_prefix("pub(") {
        rest = after.split_once(") ").map_or("", |(_, rest)| rest);
    }
    loop {
        let words = ["pub ", "const ", "unsafe ", "async ", "extern \"C\" "];
        match words.iter().find_map(|word| rest.strip_prefix(word)) {
            Some(after) => rest = after,
            None => return rest.starts_with("fn "),
        }
    }
}

/// The parameters of the function that a line begins, as text.
fn parameters(text: &str, line: &str) -> Vec<String> {
    let from = line.as_ptr() as usize - text.as_ptr() as usize + line.find("fn ").unwrap_or(0);
    let (mut depth, mut generics, mut all, mut before) = (0, 0, vec![String::new()], ' ');
    for c in text[from..].chars() {
        let is_arrow = std::mem::replace(&mut before, c) == '-' && c == '>';
        match c {
            // parameters of types come before those of the function
            '<' if depth == 0 => generics += 1,
            '>' if depth == 0 && !is_arrow => generics -= 1,
            _ if depth == 0 && (generics > 0 || c != '(') => continue,
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if !is_arrow => depth -= 1,
            ',' if depth == 1 => {
                all.push(String::new());
                continue;
            }
            _ => {}
        }
        match depth {
            0 if generics > 0 || c == '>' => {}
            0 => break,
            1 if c == '(' && all == [""] => {}
            _ => all.last_mut().expect("there is one").push(c),
        }
    }
    all.iter().map(|parameter| parameter.trim().to_string()).filter(|p| !p.is_empty()).collect()
}

/// Whether a parameter is a tuple, or is taken apart as one.
fn is_tuple(parameter: &str) -> bool {
    let of_type = parameter.split_once(": ").map_or("", |(_, of_type)| of_type);
    let of_type = of_type.trim_start_matches('&').trim_start_matches("mut ");
    parameter.starts_with('(') || of_type.starts_with('(') && of_type != "()"
}

/// Files of `src/` that may be named by a participle, three at most.
const PARTICIPLES: &[&str] = &[];
/// Words that name no file: adverbs, and participles that don't end in -ed.
const NO_FILE_NAMES: &[&str] = &[
    "actual", "ahead", "alone", "along", "across", "beyond", "found", "given", "held", "inside", "known", "late",
    "left", "left_out", "once", "outside", "rest", "said", "seen", "told", "together", "unlike", "whole", "within",
    "written",
];

#[test]
fn files_are_named_by_nouns() {
    let mut wrong = Vec::new();
    for (path, _) in files(&root().join("src")) {
        let inside = path.strip_prefix(root()).expect("it was found there").display().to_string();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().to_string();
        let is_odd = name.ends_with("ed") && !name.ends_with("seed") || NO_FILE_NAMES.contains(&name.as_str());
        if is_odd && !PARTICIPLES.contains(&inside.as_str()) {
            wrong.push(format!("{inside}: name the file by a noun that says what it holds"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files whose types are other files' with a parameter chosen, and have their names: HLO with symbolic sizes.
const ALIASES: &[&str] = &["src/hlo/symbolic.rs"];
/// Names of several public types that are one concept: the program that a stage works on, always written with its module.
const SHARED_TYPE_NAMES: &[&str] = &["Program"];

#[test]
fn a_type_name_has_one_meaning() {
    let mut places: std::collections::BTreeMap<String, Vec<String>> = std::collections::BTreeMap::new();
    for (path, text) in files(&root().join("src")) {
        let inside = path.strip_prefix(root()).expect("it was found there").display().to_string();
        if ALIASES.contains(&inside.as_str()) || path.extension().is_none_or(|e| e != "rs") {
            continue;
        }
        for line in code(&text).lines() {
            let item = line.trim_start();
            let item = match item.strip_prefix("pub(").and_then(|rest| rest.split_once(") ")) {
                Some((_, rest)) => rest,
                None => item.strip_prefix("pub ").unwrap_or(""),
            };
            let of_kind = ["struct ", "enum ", "trait ", "type ", "union "];
            let name = of_kind.iter().find_map(|kind| item.strip_prefix(kind)).and_then(first_word);
            if let Some(name) = name.filter(|name| !SHARED_TYPE_NAMES.contains(&name.as_str())) {
                places.entry(name).or_default().push(inside.clone());
            }
        }
    }
    let wrong = places.iter().filter(|(_, places)| places.len() > 1);
    let wrong: Vec<String> = wrong.map(|(name, places)| format!("{name}: {}", places.join(", "))).collect();
    assert!(wrong.is_empty(), "public types of one name:\n{}", wrong.join("\n"));
}

#[test]
fn comments_begin_with_nouns_or_verbs() {
    let mut wrong = Vec::new();
    for (path, text) in files(&root().join("src")) {
        let lines: Vec<&str> = text.lines().collect();
        let is_doc = |line: &str| line.trim_start().starts_with("///") || line.trim_start().starts_with("//!");
        for (i, line) in lines.iter().enumerate().filter(|(i, line)| is_doc(line) && (*i == 0 || !is_doc(lines[i - 1])))
        {
            let first = first_word(&line.trim_start()[3..]).unwrap_or_default();
            if PRONOUNS.contains(&first.as_str()) {
                wrong.push(format!("{}:{}: the first sentence begins with `{first}`", path.display(), i + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Modules whose functions are named by a verb with its object, or by the property that they return.
const WELL_NAMED: &[&str] = &["hlo", "kernel", "optimize", "schedule"];
/// Words that say neither what a function does nor what it returns.
const NO_FUNCTION_NAMES: &[&str] = &[
    "all", "along", "alone", "apart", "asked", "at", "both", "cut", "each", "found", "given", "held", "joined", "kept",
    "left", "made", "moved", "of", "one", "part", "plain", "raised", "rest", "said", "seen", "taken", "told",
    "touched", "turned", "whole", "within",
];

#[test]
fn functions_say_what_they_return() {
    let mut wrong = Vec::new();
    for module in WELL_NAMED {
        for (path, text) in files(&root().join("src").join(module)) {
            let is_test = path.file_name().is_some_and(|name| name == "tests.rs");
            for line in code(&text).lines().filter(|line| !is_test && begins_function(line)) {
                let name = line.split_once("fn ").and_then(|(_, rest)| first_word(rest)).unwrap_or_default();
                if NO_FUNCTION_NAMES.contains(&name.as_str()) {
                    wrong.push(format!("{}: `{name}`", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "functions named by neither a verb nor a property:\n{}", wrong.join("\n"));
}

#[test]
fn functions_are_short() {
    let long = functions().into_iter().filter(|f| f.length > MOST_LINES);
    let wrong: Vec<String> = long.map(|f| format!("{}: {} lines", f.place(), f.length)).collect();
    assert!(wrong.is_empty(), "functions of more than {MOST_LINES} lines:\n{}", wrong.join("\n"));
}

#[test]
fn tuples_are_no_parameters() {
    let with_tuple = |f: &FunctionItem| f.parameters.iter().any(|parameter| is_tuple(parameter));
    let all: Vec<FunctionItem> = functions().into_iter().filter(with_tuple).collect();
    let of_schedule = |f: &&FunctionItem| f.path.starts_with(root().join("src/schedule"));
    let list = |all: &mut dyn Iterator<Item = &FunctionItem>| all.map(|f| f.place()).collect::<Vec<_>>().join("\n");
    let told = list(&mut all.iter());
    assert!(
        all.len() <= MOST_TUPLES,
        "{} functions take tuples; make structs, or several parameters:\n{told}",
        all.len()
    );
    let wrong = list(&mut all.iter().filter(of_schedule));
    assert!(wrong.is_empty(), "a tuple is a parameter; make it a struct, or several parameters:\n{wrong}");
}

#[test]
fn the_reader_of_signatures_reads() {
    let text = "pub(in crate::a) fn f<T: Fn(u8) -> (u8, u8)>(\n    x: &mut T,\n    (a, b): (u8, Vec<(u8, u8)>),\n) {}";
    let line = text.lines().next().expect("there is one");
    assert!(begins_function(line) && !begins_function("// fn f()") && begins_function("    pub const unsafe fn f() {"));
    assert_eq!(parameters(text, line), ["x: &mut T", "(a, b): (u8, Vec<(u8, u8)>)"]);
    assert_eq!(["x: &mut T", "(a, b): (u8, u8)", "x: &(u8, u8)", "x: ()"].map(is_tuple), [false, true, true, false]);
}
