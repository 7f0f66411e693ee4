//! `docs/ops.md` and `docs/diagnostics.md` say what the tables say. `TFAOT_BLESS=1 cargo test --test docs` rewrites them.
use std::fmt::Write;
use std::path::Path;

use tfaot::ops::OpRow;

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
        "docs/{name} is out of date from line {}: TFAOT_BLESS=1 cargo test --test docs rewrites it",
        line + 1
    );
}

fn op_line(row: &OpRow) -> String {
    let code = |names: Vec<&str>| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(" ");
    let inputs = row.inputs();
    let constants = row.constants.iter().map(|&i| inputs.get(i).or(inputs.last()).copied().unwrap_or("")).collect();
    format!(
        "| {} | {} | {} | {} | {} |",
        row.name,
        code(inputs.clone()),
        code(row.outputs()),
        code(constants),
        row.dtypes
    )
}

#[test]
fn ops() {
    let total = tfaot::ops::all().count();
    let mut text = format!(
        "# The TensorFlow ops that tfaot compiles\n\n\
         Generated from the rows in `src/ops/` by `tests/docs.rs`: {total} ops.\n\
         A `*` marks a list of tensors. \"Known\" are the inputs whose value must not depend on what is fed.\n\
         Where \"types\" is empty, the op takes every element type that HLO has for it.\n"
    );
    for (family, tables) in tfaot::ops::FAMILIES {
        let mut rows: Vec<&OpRow> = tables.iter().flat_map(|t| t.iter()).collect();
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
    text += "\n## Left out\n\nOps that TensorFlow's XLA has a kernel for on a CPU, and why they have none here.\n\n\
             | op | reason |\n|---|---|\n";
    for (op, reason) in tfaot::ops::LEFT_OUT {
        writeln!(text, "| {op} | {reason} |").expect("a String takes all");
    }
    hold("ops.md", &text);
}

#[test]
fn diagnostics() {
    let mut text = String::from(
        "# Diagnostics\n\n\
         Generated from `src/diag/codes.rs` by `tests/docs.rs`. `tfaot explain CODE` prints one of them.\n\n\
         | code | name | what it means | what usually helps |\n|---|---|---|---|\n",
    );
    for row in tfaot::diag::codes::CODES {
        writeln!(text, "| {} | `{}` | {} | {} |", row.code.id(), row.slug, row.about, row.cure)
            .expect("a String takes all");
    }
    hold("diagnostics.md", &text);
}
