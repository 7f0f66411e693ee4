//! `docs/ops.md` and `docs/diagnostics.md` say what the tables say. `TFAOT_BLESS=1 cargo test --test suite docs` rewrites them.
//! Every page is in the book, and every link leads somewhere.
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tfaot::ops::OpLowering;

fn hold(name: &str, want: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name);
    if std::env::var_os("TFAOT_BLESS").is_some() {
        std::fs::write(&path, want).expect("docs/ can be written");
        return;
    }
    let have = std::fs::read_to_string(&path).unwrap_or_default();
    let line = have
        .lines()
        .zip(want.lines())
        .position(|(a, b)| a != b)
        .unwrap_or(have.lines().count().min(want.lines().count()));
    assert!(
        have == want,
        "docs/{name} is out of date from line {}: TFAOT_BLESS=1 cargo test --test suite docs rewrites it",
        line + 1
    );
}

fn op_line(row: &OpLowering) -> String {
    let code = |names: Vec<&str>| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(" ");
    let inputs = row.input_names();
    let constants = row.constants.iter().map(|&i| inputs.get(i).or(inputs.last()).copied().unwrap_or("")).collect();
    format!(
        "| {} | {} | {} | {} | {} |",
        row.name,
        code(inputs.clone()),
        code(row.output_names()),
        code(constants),
        row.dtypes
    )
}

#[test]
fn ops() {
    let total = tfaot::ops::all_ops().count();
    let mut text = format!(
        "# The TensorFlow ops that tfaot compiles\n\n\
         Generated from the rows in `src/ops/` by `tests/suite/docs.rs`: {total} ops.\n\
         A `*` marks a list of tensors. \"Known\" are the inputs whose value must not depend on what is fed.\n\
         Where \"types\" is empty, the op takes every element type that HLO has for it.\n"
    );
    for (family, tables) in tfaot::ops::FAMILIES {
        let mut rows: Vec<&OpLowering> = tables.iter().flat_map(|t| t.iter()).collect();
        if rows.is_empty() {
            continue;
        }
        rows.sort_by_key(|r| r.name);
        writeln!(
            text,
            "\n## {family} ({})\n\n| op | inputs | outputs | known | types |\n|---|---|---|---|---|",
            rows.len()
        )
        .expect("a String takes all");
        for row in rows {
            writeln!(text, "{}", op_line(row)).expect("a String takes all");
        }
    }
    text += &without_rows();
    hold("ops.md", &text);
}

/// The ops that have a kernel for a CPU in TensorFlow 2.21, or that are named as left out, and no row: a section a reason.
fn without_rows() -> String {
    let whole =
        tfaot::ops::UNSUPPORTED_OPS.iter().flat_map(|row| row.names.split_whitespace()).filter(|n| !n.contains('*'));
    let with_kernel =
        tfaot::opdef::all_defs().into_iter().filter(|def| def.cpu_host_args.is_some()).map(|def| def.name);
    let names: BTreeSet<&str> = whole.chain(with_kernel).filter(|op| tfaot::ops::find_op(op).is_none()).collect();
    let mut text = format!(
        "\n## Without a row\n\n\
         {} ops that TensorFlow 2.21 has a kernel for on a CPU, or its XLA has one, and that tfaot does not compile, with the reason\n\
         and what to do. Many of them are compiled all the same where the graph is made of others before it is lowered (control flow\n\
         of TensorFlow 1), or are left out with a warning where no result needs them (printing, assertions, summaries).\n",
        names.len()
    );
    for row in tfaot::ops::UNSUPPORTED_OPS {
        let is_row = |op: &&&str| tfaot::ops::unsupported_reason(op).is_some_and(|r| r.title == row.title);
        let own: Vec<String> = names.iter().filter(is_row).map(|op| format!("`{op}`")).collect();
        if own.is_empty() {
            continue;
        }
        let (title, count, reason, help, list) = (row.title, own.len(), row.reason, row.help, own.join(", "));
        writeln!(text, "\n### {title} ({count})\n\nWhy: {reason}.\\\nWhat to do: {help}.\n\n{list}")
            .expect("a String takes all");
    }
    text
}

#[test]
fn diagnostics() {
    let mut text = String::from(
        "# Diagnostics\n\n\
         Generated from `src/diag/codes.rs` by `tests/suite/docs.rs`. `tfaot explain CODE` prints one of them.\n\n\
         | code | name | what it means | what usually helps |\n|---|---|---|---|\n",
    );
    for row in tfaot::diag::codes::CODES {
        writeln!(text, "| {} | `{}` | {} | {} |", row.code.id(), row.slug, row.about, row.cure)
            .expect("a String takes all");
    }
    hold("diagnostics.md", &text);
}

/// The Markdown files below `folder`.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
    found
}

/// What the links of a page name: each text in `](...)` outside of code.
fn links(text: &str) -> Vec<String> {
    let mut code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        code ^= line.starts_with("```");
        // every second part of a line stands between backticks
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        let parts = prose.split("](").skip(1).filter(|_| !code);
        found.extend(parts.filter_map(|rest| Some(rest.split_once(')')?.0.to_string())));
    }
    found
}

/// The anchors of a page's headings, as mdBook and GitHub make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|l| l.starts_with('#')).map(|l| l.trim_start_matches('#').trim());
    let letter = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
        _ => None,
    };
    headings.map(|h| h.chars().filter_map(letter).collect()).collect()
}

#[test]
fn every_page_is_in_the_book() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).expect("the contents");
    let listed: Vec<PathBuf> = links(&summary).iter().map(|link| docs.join(link)).collect();
    let have: BTreeSet<PathBuf> = pages(&docs).into_iter().filter(|p| !p.ends_with("docs/SUMMARY.md")).collect();
    assert_eq!(have, listed.iter().cloned().collect());
    assert_eq!(have.len(), listed.len(), "a page is listed twice");
}

#[test]
fn every_link_leads_somewhere() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "ROADMAP.md", "CHANGELOG.md"].map(|name| top.join(name));
    let mut lost = Vec::new();
    for page in pages(&top.join("docs")).into_iter().chain(own) {
        let text = std::fs::read_to_string(&page).expect("a page");
        for link in links(&text).iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.with_file_name("").join(file) };
            let is_there = target.exists()
                && (anchor.is_empty()
                    || anchors(&std::fs::read_to_string(&target).unwrap_or_default()).contains(anchor));
            if !is_there {
                lost.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
}

/// `docs/` is what mdBook makes a site of; the settings are few enough to be held by hand.
#[test]
fn the_book_is_made_of_the_docs() {
    let settings =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("book.toml")).expect("the settings");
    assert!(settings.contains("src = \"docs\"") && settings.contains("[output.html.search]"), "{settings}");
}

/// The whole of `docs/` through the preprocessor of the book: what a page links to outside of `docs/` is a page of the book then.
#[test]
fn the_book_has_the_sources_that_pages_link_to() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let chapter = |page: &PathBuf| {
        let name = page.strip_prefix(top.join("docs")).expect("a page of docs/");
        let content = std::fs::read_to_string(page).expect("a page");
        json!({"Chapter": {"name": "", "content": content, "number": null, "sub_items": [], "path": name, "source_path": name, "parent_names": []}})
    };
    let items: Vec<Value> = pages(&top.join("docs")).iter().map(chapter).collect();
    let mut tool = Command::new(top.join("tools/book_sources"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python 3 is here");
    let told = json!([{"config": {"book": {"src": "docs"}}}, {"items": items}]).to_string();
    tool.stdin.take().expect("a pipe").write_all(told.as_bytes()).expect("it reads its input");
    let said = tool.wait_with_output().expect("it ends");
    let book: Value = serde_json::from_slice(&said.stdout).expect("a book");
    let chapters: Vec<&Value> = book["items"].as_array().expect("items").iter().map(|i| &i["Chapter"]).collect();
    let made: BTreeSet<PathBuf> = chapters.iter().filter_map(|c| Some(PathBuf::from(c["path"].as_str()?))).collect();
    let mut lost = Vec::new();
    for chapter in chapters.iter().filter(|c| c["source_path"].is_string()) {
        let page = Path::new(chapter["path"].as_str().expect("a path"));
        for link in links(chapter["content"].as_str().expect("text")).iter().filter(|link| link.contains("sources/")) {
            let mut target = PathBuf::new();
            for part in page.with_file_name("").join(link.split('#').next().expect("a file")).components() {
                match part.as_os_str() == ".." {
                    true => assert!(target.pop(), "{link} leads out of the book"),
                    false => target.push(part),
                }
            }
            if !made.contains(&target) {
                lost.push(format!("{}: {link}", page.display()));
            }
        }
        let outside: Vec<String> = links(chapter["content"].as_str().expect("text"));
        lost.extend(outside.into_iter().filter(|link| link.contains("../examples") && !link.contains("sources/")));
    }
    assert!(lost.is_empty(), "{lost:#?}");
    let example = chapters.iter().find(|c| c["path"] == "sources/examples/cmake.md").expect("a page of an example");
    assert!(example["content"].as_str().is_some_and(|text| text.contains("find_package(tfaot 0.1 REQUIRED)")));
}

#[test]
fn the_times_of_the_readme_are_those_of_the_page() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| std::fs::read_to_string(top.join(name)).expect("a page");
    let (readme, page) = (read("README.md"), read("docs/performance.md"));
    let table = readme.split("| ms a call, one thread |").nth(1).and_then(|t| t.split("\n\n").next()).expect("a table");
    let rows: Vec<&str> = table.lines().skip(2).collect();
    let measured = page.split("## 1 thread").nth(1).and_then(|t| t.split("\n## ").next()).expect("its section");
    assert!(rows.len() >= 5 && table.starts_with(" tfaot | TensorFlow | XLA | ONNX Runtime | OpenVINO | LiteRT |"));
    assert!(measured.contains("| model | tfaot | TensorFlow | XLA | ONNX Runtime | OpenVINO | LiteRT |"));
    for row in rows {
        assert!(measured.lines().any(|l| l.starts_with(row)), "{row} is not in docs/performance.md");
    }
}
