//! The table of a library's clusters that `glue/glue.c` declares, as LLVM IR text.
use super::cluster::{CompiledCluster, ConstantArgument};
use crate::opdef;
use crate::package::pool;
use crate::target::Target;
use crate::tensor::DType;
use std::fmt::Write;

/// Definitions that the glue needs: the clusters, the workspace of a call, the number of threads.
pub fn op_kernel_definitions(clusters: &[CompiledCluster], prefix: &str, threads: u16, target: &Target) -> String {
    let mut out = format!("target triple = \"{}\"\n\n", target.triple);
    for (number, cluster) in clusters.iter().enumerate() {
        write_cluster(&mut out, number, &super::op(prefix, number), cluster);
    }
    let all: Vec<String> = (0..clusters.len()).map(|i| format!("ptr @c{i}")).collect();
    let workspace = clusters.iter().map(|c| c.face.workspace_bytes).max().unwrap_or(0).max(64);
    let start = if target.triple.contains("apple") { "__DATA,__mod_init_func,mod_init_funcs" } else { ".init_array" };
    let _ = write!(
        out,
        "declare hidden void @tfaot_load()\n\
         @start = internal global ptr @tfaot_load, section \"{start}\", align 8\n\
         @llvm.used = appending global [1 x ptr] [ptr @start], section \"llvm.metadata\"\n\
         @tfaot_clusters = hidden constant [{} x ptr] [{}]\n\
         @tfaot_cluster_count = hidden constant i64 {}\n\
         @tfaot_workspace_bytes = hidden constant i64 {workspace}\n\
         @tfaot_threads = hidden constant i64 {threads}\n\
         declare hidden void @tfaot_set_shapes(ptr, ptr, ptr)\n\
         {}",
        all.len(),
        all.join(", "),
        all.len(),
        pool::spin_wait_function(target),
    );
    out
}

fn write_cluster(out: &mut String, n: usize, op: &str, cluster: &CompiledCluster) {
    let name = &cluster.name;
    string(out, &format!("op{n}"), op);
    string(out, &format!("fits{n}"), &super::fits(op));
    let args = cluster.args.iter().map(|a| {
        let value = a.value.as_ref();
        Row { dtype: a.dtype, number: a.number, dims: &a.dims, axes: &a.axes, value }
    });
    tensors(out, &format!("a{n}_"), 'a', &args.collect::<Vec<_>>());
    let axes = |i: usize| cluster.sizes.results.get(i).map_or(&[][..], |axes| axes);
    let results = cluster.face.results.iter().zip(&cluster.result_numbers).enumerate();
    let results = results.map(|(i, (r, &number))| {
        let (dtype, dims, axes) = (r.dtype, &r.dims[..], axes(i));
        Row { dtype, number, dims, axes, value: None }
    });
    tensors(out, &format!("r{n}_"), 'r', &results.collect::<Vec<_>>());
    let sizes = &cluster.sizes;
    let each: Vec<String> =
        sizes.all.iter().map(|s| format!("{{ i64, i64 }} {{ i64 {}, i64 {} }}", s.least, s.most)).collect();
    let has_sizes = !sizes.all.is_empty();
    let parameters = if has_sizes { "ptr, ptr, ptr, ptr, ptr" } else { "ptr, ptr, ptr, ptr" };
    let _ = write!(
        out,
        "@s{n} = internal constant [{} x {{ i64, i64 }}] [{}]\n\
         declare i32 @{name}_run({parameters})\ndeclare i32 @{name}_supported()\n\
         define internal ptr @create{n}(ptr %0) nounwind {{\n  ret ptr @c{n}\n}}\n\
         define internal void @shapes{n}(ptr %0, ptr %1) nounwind {{\n  call void @tfaot_set_shapes(ptr @c{n}, ptr %0, ptr %1)\n  ret void\n}}\n\
         @c{n} = internal constant {{ ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, i32, i32, i32, i32, i32 }} {{ ptr @op{n}, ptr @fits{n}, ptr @a{n}_, ptr @r{n}_, ptr @create{n}, ptr @shapes{n}, ptr @{name}_run, ptr @{name}_supported, ptr @s{n}, i32 {}, i32 {}, i32 {}, i32 {}, i32 {} }}\n\n",
        each.len(),
        each.join(", "),
        cluster.args.len(),
        cluster.face.results.len(),
        sizes.all.len(),
        sizes.caller_size_count(),
        i32::from(cluster.by_rows),
    );
}

/// Row of a cluster's table of arguments or of results, as `glue/glue.c` declares it.
struct Row<'a> {
    dtype: DType,
    /// TensorFlow's `DataType` number.
    number: i32,
    dims: &'a [u64],
    axes: &'a [Option<usize>],
    value: Option<&'a ConstantArgument>,
}

/// LLVM type of a [`Row`].
const ROW: &str = "{ ptr, ptr, ptr, ptr, ptr, i64, i32, i32, i32 }";

fn tensors(out: &mut String, symbol: &str, letter: char, rows: &[Row]) {
    let mut fields = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        let own = format!("{symbol}{i}");
        let spec = opdef::spec_name(row.number).unwrap_or("float");
        string(out, &format!("{own}spec"), &format!("{letter}{i}: {spec}"));
        let dims: Vec<String> = row.dims.iter().map(|d| format!("i64 {d}")).collect();
        let _ = writeln!(out, "@{own}dims = internal constant [{} x i64] [{}]", dims.len(), dims.join(", "));
        let axes = numbers(out, &format!("{own}axes"), row.axes);
        let (value, sizes) = match row.value {
            Some(ConstantArgument { tensor, sizes }) => {
                let (count, text) = (tensor.bytes.len(), escaped(&tensor.bytes));
                let _ = writeln!(out, "@{own}value = internal constant [{count} x i8] c\"{text}\"");
                (format!("ptr @{own}value"), numbers(out, &format!("{own}sizes"), sizes))
            }
            None => ("ptr null".to_string(), "ptr null".to_string()),
        };
        let count: u64 = row.dims.iter().product();
        let size = row.dtype.bytes() as u64;
        fields.push(format!(
            "{ROW} {{ ptr @{own}spec, ptr @{own}dims, {axes}, {value}, {sizes}, i64 {}, i32 {size}, i32 {}, i32 {} }}",
            count * size,
            row.number,
            row.dims.len(),
        ));
    }
    let _ = writeln!(out, "@{symbol} = internal constant [{} x {ROW}] [{}]", fields.len(), fields.join(", "));
}

/// Writes an array of size indices, with -1 for `None`, and returns a pointer to it; a null pointer if all are `None`.
fn numbers(out: &mut String, symbol: &str, sizes: &[Option<usize>]) -> String {
    if sizes.iter().all(Option::is_none) {
        return "ptr null".to_string();
    }
    let all: Vec<String> = sizes.iter().map(|s| format!("i32 {}", s.map_or(-1, |s| s as i64))).collect();
    let _ = writeln!(out, "@{symbol} = internal constant [{} x i32] [{}]", all.len(), all.join(", "));
    format!("ptr @{symbol}")
}

fn string(out: &mut String, symbol: &str, text: &str) {
    let _ =
        writeln!(out, "@{symbol} = internal constant [{} x i8] c\"{}\\00\"", text.len() + 1, escaped(text.as_bytes()));
}

fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &b in bytes {
        match b {
            b'"' | b'\\' | 0..=31 | 127.. => {
                let _ = write!(out, "\\{b:02X}");
            }
            _ => out.push(b as char),
        }
    }
    out
}
