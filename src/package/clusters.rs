//! Separate objects for the clusters of one graph: `clusters.json` says how they are connected, and `main.c` runs them in order.
use super::header::{WORKSPACE_ALIGN, escape_comment};
use super::metadata;
use crate::kernel::ModelInterface;
use crate::tensor::TensorInfo;
use serde_json::{Value, json};
use std::fmt::Write;

/// A cluster of a graph that was compiled to an object with one function.
#[derive(Clone, Debug)]
pub struct ClusterObject {
    /// The name of the cluster.
    pub cluster: String,
    /// The function marked with `jit_compile=True` that the cluster is, if any.
    pub function: Option<String>,
    /// Number of nodes of the graph in the cluster.
    pub nodes: u64,
    /// The C interface of the object.
    pub face: ModelInterface,
    /// By argument: index of its tensor in [`ClusterChain::tensors`].
    pub args: Vec<usize>,
    /// By result: index of its tensor in [`ClusterChain::tensors`].
    pub results: Vec<usize>,
    /// Names of the files written for the cluster.
    pub files: Vec<String>,
}

/// A tensor that clusters take or return.
#[derive(Clone, Debug)]
pub struct ClusterTensor {
    /// Name, type and sizes of the tensor in the graph.
    pub info: TensorInfo,
    /// The op of the node that produces the tensor.
    pub op: String,
    /// Index of the cluster that produces the tensor; `None` if a node outside of all clusters does.
    pub from: Option<usize>,
    /// Whether nodes outside of all clusters use the tensor.
    pub leaves: bool,
}

/// The compiled clusters of a graph and their connections.
#[derive(Clone, Debug, Default)]
pub struct ClusterChain {
    /// The source file of the graph.
    pub source: String,
    /// The clusters in topological order, also with regard to paths through nodes outside.
    pub pieces: Vec<ClusterObject>,
    /// The tensors that clusters take or return.
    pub tensors: Vec<ClusterTensor>,
    /// Clusters that could not be compiled: name, number of nodes, and the reasons.
    pub refused: Vec<(String, u64, Value)>,
}

/// The JSON document `clusters.json`, with a newline at its end.
pub fn clusters_json(chain: &ClusterChain) -> String {
    let tensor = |(i, wire): (usize, &ClusterTensor)| {
        let mut all = metadata::tensors_json(std::slice::from_ref(&wire.info)).pop().unwrap_or_default();
        all["op"] = wire.op.as_str().into();
        all["file"] = file(i).into();
        all["from"] = wire.from.map_or(Value::Null, |at| chain.pieces[at].cluster.as_str().into());
        let takes = chain.pieces.iter().filter(|p| p.args.contains(&i));
        all["to"] = takes.map(|p| p.cluster.as_str()).collect();
        all["leaves"] = wire.leaves.into();
        if let Some(fields) = all.as_object_mut() {
            fields.remove("field");
        }
        all
    };
    let ends = |infos: &[TensorInfo], wires: &[usize]| -> Value {
        let one = |(info, at): (&TensorInfo, &usize)| json!({"field": info.field, "tensor": at});
        infos.iter().zip(wires).map(one).collect()
    };
    let piece = |p: &ClusterObject| {
        let entry = p.face.entries.first();
        json!({
            "name": p.cluster,
            "jit_compile": p.function,
            "nodes": p.nodes,
            "symbol": entry.map(|e| e.function.as_str()),
            "files": p.files,
            "args": ends(entry.map_or(&[], |e| &e.program.args), &p.args),
            "results": ends(entry.map_or(&[], |e| &e.program.results), &p.results),
            "workspace_bytes": p.face.workspace_bytes(),
            "flops": entry.map(|e| e.program.flops),
        })
    };
    let refused = |(name, nodes, why): &(String, u64, Value)| json!({"name": name, "nodes": nodes, "reasons": why});
    let document = json!({
        "generator": concat!("tfaot ", env!("CARGO_PKG_VERSION")),
        "source": chain.source,
        "clusters": chain.pieces.iter().map(piece).collect::<Value>(),
        "tensors": chain.tensors.iter().enumerate().map(tensor).collect::<Value>(),
        "refused": chain.refused.iter().map(refused).collect::<Value>(),
    });
    format!("{document:#}\n")
}

/// The name of the file from or to which `main.c` transfers a tensor.
fn file(tensor: usize) -> String {
    format!("tensor_{tensor}.bin")
}

/// C function of `main.c` that reads and writes tensors.
const FILES: &str = r#"/* Bytes of a tensor from or to the file of this name in a folder; 0, or 1 with a message. */
static int move(const char *folder, const char *name, const char *mode, void *bytes, size_t count) {
  char path[4096];
  FILE *file;
  size_t done;
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return 1;
  file = fopen(path, mode);
  if (!file) {
    perror(path);
    return 1;
  }
  done = mode[0] == 'r' ? fread(bytes, 1, count, file) : fwrite(bytes, 1, count, file);
  if (fclose(file) || done != count) {
    fprintf(stderr, "%s: not %zu bytes\n", path, count);
    return 1;
  }
  return 0;
}
"#;

/// The text of `main.c`, which needs C11 because of the headers.
pub fn main_source(chain: &ClusterChain) -> String {
    let mut out = format!(
        "/* Runs the clusters of {} in order, each on what those before it gave.\n \
         * What comes from nodes outside of them is read from IN/tensor_N.bin, dense and row-major; results go to OUT/tensor_N.bin.\n \
         * clusters.json says which tensor is which. */\n",
        escape_comment(&chain.source)
    );
    for piece in &chain.pieces {
        let _ = writeln!(out, "#include \"{}.h\"", piece.face.name);
    }
    out += "#include <stdio.h>\n\n";
    for (i, wire) in chain.tensors.iter().enumerate() {
        let (bytes, told) = (wire.info.bytes().max(1), escape_comment(&wire.info.name));
        let _ = writeln!(
            out,
            "static _Alignas({WORKSPACE_ALIGN}) unsigned char tensor_{i}[{bytes}]; /* {}  {told} */",
            wire.info.type_text()
        );
    }
    let most = chain.pieces.iter().map(|p| p.face.workspace_bytes()).max().unwrap_or(0).max(1);
    let _ = write!(out, "static _Alignas({WORKSPACE_ALIGN}) unsigned char workspace[{most}];\n\n{FILES}\n");
    out += "int main(int argc, char **argv) {\n  if (argc != 3) {\n    fprintf(stderr, \"%s IN OUT\\n\", argv[0]);\n    return 2;\n  }\n";
    for (i, wire) in chain.tensors.iter().enumerate().filter(|(_, wire)| wire.from.is_none()) {
        let _ =
            writeln!(out, "  if (move(argv[1], \"{}\", \"rb\", tensor_{i}, {})) return 1;", file(i), wire.info.bytes());
    }
    chain.pieces.iter().for_each(|piece| out += &call(piece));
    for (i, wire) in chain.tensors.iter().enumerate().filter(|(_, wire)| wire.from.is_some()) {
        let _ =
            writeln!(out, "  if (move(argv[2], \"{}\", \"wb\", tensor_{i}, {})) return 1;", file(i), wire.info.bytes());
    }
    out + "  return 0;\n}\n"
}

/// The C statements that call one cluster.
fn call(piece: &ClusterObject) -> String {
    let name = &piece.face.name;
    let Some(entry) = piece.face.entries.first() else { return String::new() };
    let members = |infos: &[TensorInfo], wires: &[usize]| -> Vec<String> {
        infos.iter().zip(wires).map(|(info, at)| format!(".{} = (void *)tensor_{at}", info.field)).collect()
    };
    let (args, results) = (members(&entry.program.args, &piece.args), members(&entry.program.results, &piece.results));
    let (taken, given) = if args.is_empty() {
        (String::new(), "NULL")
    } else {
        (format!("    {name}_args args = {{{}}};\n", args.join(", ")), "&args")
    };
    format!(
        "  {{\n{taken}    {name}_results results = {{{}}};\n    if ({}({given}, &results, workspace, NULL)) return 1;\n  }}\n",
        results.join(", "),
        entry.function
    )
}
