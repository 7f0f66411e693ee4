//! Graphs that reports are made of, written as text.
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const F32: &str = "attr { key: \"T\" value { type: DT_FLOAT } }";

/// Residual blocks of five nodes in scopes; now and then a `Print`, which XLA does not compile, cuts them.
pub fn blocks(nodes: usize) -> String {
    let mut text = String::from(
        "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { key: \"shape\" value { shape { dim { size: 64 } dim { size: 256 } } } } }\n",
    );
    let mut live = vec!["x".to_string()];
    let mut n = 1;
    while n < nodes {
        let base = format!("model/block_{}/layer_{}/op", n / 400, n / 40 % 10);
        let (last, back) = (&live[live.len() - 1], &live[live.len().saturating_sub(1 + n % 11)]);
        let _ = write!(
            text,
            "node {{ name: \"{base}_{n}/scale\" op: \"Const\" attr {{ key: \"dtype\" value {{ type: DT_FLOAT }} }} attr {{ key: \"value\" value {{ tensor {{ dtype: DT_FLOAT tensor_shape {{ }} float_val: 1.5 }} }} }} }}\n\
             node {{ name: \"{base}_{n}/mul\" op: \"Mul\" input: \"{last}\" input: \"{base}_{n}/scale\" {F32} }}\n\
             node {{ name: \"{base}_{n}/add\" op: \"AddV2\" input: \"{base}_{n}/mul\" input: \"{back}\" {F32} }}\n\
             node {{ name: \"{base}_{n}/relu\" op: \"Relu\" input: \"{base}_{n}/add\" {F32} }}\n"
        );
        let end = if n % 2000 < 5 {
            format!("op: \"Print\" input: \"{base}_{n}/relu\" attr {{ key: \"U\" value {{ list {{ }} }} }} {F32}")
        } else {
            format!("op: \"Neg\" input: \"{base}_{n}/relu\" {F32}")
        };
        let _ = writeln!(text, "node {{ name: \"{base}_{n}/out\" {end} }}");
        live.push(format!("{base}_{n}/out"));
        n += 5;
    }
    text
}

/// Names, ops and attributes that would be markup if they were not escaped.
pub const HOSTILE: &[&str] = &[
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=2>",
    "'><svg onload=window.hacked=3>",
    "{{script}}-->]]>",
    "a&lt;b`c`",
];

/// A chain of nodes with such names; one op is such a name too.
pub fn hostile() -> String {
    let mut text = String::from(
        "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { key: \"shape\" value { shape { dim { size: 8 } } } } }\n",
    );
    let mut last = "x";
    for name in HOSTILE {
        let _ = writeln!(
            text,
            "node {{ name: \"{name}\" op: \"Neg\" input: \"{last}\" {F32} attr {{ key: \"<b>note</b>\" value {{ s: \"{name}\" }} }} }}"
        );
        last = name;
    }
    let _ = writeln!(text, "node {{ name: \"odd\" op: \"<img src=x onerror=window.hacked=4>\" input: \"{last}\" }}");
    text
}

/// The report of a graph in `folder`.
pub fn report(folder: &Path, graph: &Path, flags: &[&str]) -> PathBuf {
    let page = folder.join(graph.with_extension("html").file_name().expect("it has a name"));
    let output = Command::new(env!("CARGO_BIN_EXE_tfaot"))
        .arg("report")
        .arg(graph)
        .args(["-q", "--tf-xla-flags=--tf_xla_min_cluster_size=1", "-o"])
        .arg(&page)
        .args(flags)
        .env_remove("TF_XLA_FLAGS")
        .output()
        .expect("the binary starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    page
}

/// The report of a graph that is given as text.
pub fn report_of_text(folder: &Path, name: &str, text: &str, flags: &[&str]) -> PathBuf {
    let graph = folder.join(format!("{name}.pbtxt"));
    std::fs::write(&graph, text).expect("written");
    report(folder, &graph, flags)
}
