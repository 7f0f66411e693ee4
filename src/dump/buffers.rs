//! The buffer assignment of a program in the format of XLA's dumps.
use std::fmt::Write;

use crate::kernel::{Buffer, BufferLocation, Program};

/// One line for each allocation (argument, result, constants, workspace), followed by the values in it.
pub(super) fn assignment(program: &Program) -> String {
    let mut out = String::from("BufferAssignment:\n");
    for (n, a) in allocations(program).iter().enumerate() {
        let _ = writeln!(out, "allocation {n}: size {}, {}:", a.size, a.attributes);
        for (number, buffer, offset) in &a.values {
            let (size, dtype, elements) = (bytes(buffer), buffer.dtype, buffer.elements);
            let _ = writeln!(
                out,
                " value: <{number} buffer.{number} @0> (size={size},offset={offset}): {dtype}[{elements}]"
            );
        }
    }
    let total = total(program);
    let _ = write!(out, "\nTotal bytes used: {total} ({})\n", spelled(total));
    out
}

/// The allocations by size, in the format of XLA's memory usage report.
pub(super) fn usage(program: &Program) -> String {
    let total = total(program);
    let mut out = format!("Total bytes used: {total} ({})\n\nAllocations sorted by size:\n\n", spelled(total));
    out += "cumulative_size; total_size - cumulative_size; allocation\n";
    out += "------------------------------------------------------------------------------\n";
    let mut all: Vec<_> = allocations(program).into_iter().enumerate().collect();
    all.sort_by_key(|(_, a)| std::cmp::Reverse(a.size));
    let mut sum = 0;
    for (n, a) in all {
        sum += a.size;
        let share = (100.0 * sum as f64 / (total.max(1)) as f64).round();
        let (so_far, left, size) = (spelled(sum), spelled(total - sum), spelled(a.size));
        let _ = writeln!(out, "{so_far:>10}({share:>3}%); {left:>10}; allocation {n}: size {size}, {}:", a.attributes);
    }
    out
}

/// A contiguous range of memory with its values.
struct Allocation<'a> {
    size: u64,
    attributes: String,
    values: Vec<(usize, &'a Buffer, u64)>,
}

fn allocations(program: &Program) -> Vec<Allocation<'_>> {
    let of = |wanted: &dyn Fn(&BufferLocation) -> Option<u64>| {
        let all = program.buffers.values().enumerate();
        all.filter_map(|(i, b)| wanted(&b.place).map(|offset| (i, b, offset))).collect::<Vec<_>>()
    };
    let mut out = Vec::new();
    for (i, arg) in program.args.iter().enumerate() {
        let values = of(&|p| matches!(p, BufferLocation::Arg(n) if *n == i).then_some(0));
        let attributes = format!("parameter {i}, shape |{}| at ShapeIndex {{}}", arg.type_text());
        out.push(Allocation { size: arg.bytes(), attributes, values });
    }
    for (i, result) in program.results.iter().enumerate() {
        let values = of(&|p| matches!(p, BufferLocation::Result(n) if *n == i).then_some(0));
        let attributes = format!("output shape is |{}|, maybe-live-out", result.type_text());
        out.push(Allocation { size: result.bytes(), attributes, values });
    }
    let constants = |p: &BufferLocation| if let BufferLocation::Weights(at) = p { Some(*at) } else { None };
    out.push(Allocation { size: program.weights_bytes, attributes: "constant".to_string(), values: of(&constants) });
    for (i, v) in program.state.iter().enumerate() {
        let values = of(&|p| matches!(p, BufferLocation::State(at) if *at == v.offset).then_some(0));
        let attributes =
            format!("parameter {}, shape |{}| at ShapeIndex {{}}", program.args.len() + i, v.info.type_text());
        out.push(Allocation { size: v.info.bytes(), attributes, values });
    }
    let temporary = |p: &BufferLocation| if let BufferLocation::Workspace(at) = p { Some(*at) } else { None };
    let values = of(&temporary);
    out.push(Allocation { size: program.workspace_bytes, attributes: "preallocated-temp".to_string(), values });
    out
}

fn bytes(buffer: &Buffer) -> u64 {
    buffer.elements.saturating_mul(buffer.dtype.bytes() as u64)
}

fn total(program: &Program) -> u64 {
    allocations(program).iter().map(|a| a.size).sum()
}

/// A size in XLA's format, such as `1.5KiB`.
fn spelled(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB"] {
        if value < 1024.0 {
            return if unit == "B" { format!("{bytes}B") } else { format!("{value:.1}{unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1}GiB")
}
