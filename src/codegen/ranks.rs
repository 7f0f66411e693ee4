//! Models that ask other ranks: what moves blocks through the communicator of the caller, and the functions around drivers that look at
//! it first and tell it where a call fails, so that no rank waits for this one.
use super::{info, size_dispatch};
use crate::kernel::{Collective, EntryPoint, Exchange, ModelInterface};
use std::fmt::Write;

/// Status of a call whose communicator is missing, has another number of ranks, or failed: `TFAOT_E_RANKS`.
pub const E_RANKS: u32 = 6;

/// LLVM type of `tfaot_communicator` in the C header: context, rank, size, and functions.
const COMMUNICATOR: &str = "{ ptr, i32, i32, ptr, ptr, ptr, ptr, ptr }";
/// LLVM type of `tfaot_exchange` in the C header.
const EXCHANGE: &str = "{ i32, i32, ptr, %tfaot.size }";
/// Index of the communicator's member that is called on failure.
const FAIL: usize = 7;

/// The name of the inner function that the public function of a model with ranks wraps.
pub fn inner_function_name(entry: &EntryPoint, face: &ModelInterface) -> String {
    let suffix = if face.ranks.is_some() { ".rank" } else { "" };
    format!("{}{suffix}", entry.function)
}

/// Emits the public functions, which report failures to the communicator.
pub fn emit(out: &mut String, face: &ModelInterface) {
    let Some(count) = face.ranks else { return };
    for entry in &face.entries {
        let (parameters, own) = (size_dispatch::c_parameters(entry, face), inner_function_name(entry, face));
        let function = &entry.function;
        let _ = write!(
            out,
            "define i32 @{function}({parameters}) #1 {{\n  %none = icmp eq ptr %ranks, null\n  br i1 %none, label %refuse, label %look\n\
             look:\n  %size.at = getelementptr {COMMUNICATOR}, ptr %ranks, i64 0, i32 2\n  %size = load i32, ptr %size.at\n  \
             %as.many = icmp eq i32 %size, {count}\n  %rank.at = getelementptr {COMMUNICATOR}, ptr %ranks, i64 0, i32 1\n  \
             %rank = load i32, ptr %rank.at\n  %below = icmp ult i32 %rank, {count}\n  %fits = and i1 %as.many, %below\n  \
             br i1 %fits, label %go, label %tell\n\
             go:\n  %code = call i32 @{own}({parameters})\n  %fine = icmp eq i32 %code, 0\n  br i1 %fine, label %done, label %tell\n\
             done:\n  ret i32 0\n\
             tell:\n  %failed = phi i32 [ {E_RANKS}, %look ], [ %code, %go ]\n  %self = load ptr, ptr %ranks\n  \
             %fail.at = getelementptr {COMMUNICATOR}, ptr %ranks, i64 0, i32 {FAIL}\n  %fail = load ptr, ptr %fail.at\n  \
             call void %fail(ptr %self)\n  ret i32 %failed\n\
             refuse:\n  ret i32 {E_RANKS}\n}}\n"
        );
    }
}

/// The LLVM text of an exchange in a driver, and of the tables that it reads; `n` is unique in the driver.
pub fn emit_exchange(to: &Exchange, name: &str, n: usize, args: &[String], result: &str) -> (String, String) {
    let mut out = format!(
        "  %r.at{n} = getelementptr {COMMUNICATOR}, ptr %ranks, i64 0, i32 1\n  %r{n} = load i32, ptr %r.at{n}\n"
    );
    let member = match to.movement {
        Collective::Rank { divisor, modulus } => {
            let _ = writeln!(
                out,
                "  %d{n} = udiv i32 %r{n}, {divisor}\n  %m{n} = urem i32 %d{n}, {modulus}\n  store i32 %m{n}, ptr {result}, align 1"
            );
            return (out, String::new());
        }
        Collective::AllGather(_) => 3,
        Collective::AllToAll(_) => 4,
        Collective::Broadcast(_) => 5,
        Collective::Permute(_) => 6,
    };
    let symbol = format!("{name}.x{n}");
    let tables = tables(to, &symbol);
    if to.movement.fills_ranks_with_zeros(to.ranks) {
        let _ = writeln!(out, "  call void @llvm.memset.p0.i64(ptr {result}, i8 0, i64 {}, i1 false)", to.bytes);
    }
    let from = args.first().map_or("null", String::as_str);
    let _ = write!(
        out,
        "  %l.at{n} = getelementptr i32, ptr @{symbol}.lists, i32 %r{n}\n  %l{n} = load i32, ptr %l.at{n}\n  \
         %joins{n} = icmp sge i32 %l{n}, 0\n  br i1 %joins{n}, label %join{n}x, label %joined{n}\njoin{n}x:\n  \
         %x{n} = getelementptr {EXCHANGE}, ptr @{symbol}, i32 %l{n}\n  %self{n} = load ptr, ptr %ranks\n  \
         %f.at{n} = getelementptr {COMMUNICATOR}, ptr %ranks, i64 0, i32 {member}\n  %f{n} = load ptr, ptr %f.at{n}\n  \
         %s{n} = call i32 %f{n}(ptr %self{n}, ptr %x{n}, ptr {from}, ptr {result})\n  %w{n} = icmp eq i32 %s{n}, 0\n  \
         br i1 %w{n}, label %joined{n}, label %apart{n}\napart{n}:\n  ret i32 {E_RANKS}\njoined{n}:\n"
    );
    (out, tables)
}

/// The LLVM tables of an exchange: the list number of each rank, and the `tfaot_exchange` of each list.
fn tables(to: &Exchange, symbol: &str) -> String {
    let (of, all) = to.movement.communicator_lists(to.ranks);
    let mut out = String::new();
    let mut rows = Vec::new();
    for (i, list) in all.iter().enumerate() {
        let ranks: Vec<String> = list.iter().map(|rank| format!("i32 {rank}")).collect();
        info::emit_table(&mut out, &format!("{symbol}.ranks{i}"), "i32", &ranks);
        let (number, count, bytes) = (to.number, list.len(), to.bytes);
        rows.push(format!("{EXCHANGE} {{ i32 {number}, i32 {count}, ptr @{symbol}.ranks{i}, %tfaot.size {bytes} }}"));
    }
    info::emit_table(&mut out, symbol, EXCHANGE, &rows);
    let lists: Vec<String> = of.iter().map(|list| format!("i32 {}", list.map_or(-1, i64::from))).collect();
    info::emit_table(&mut out, &format!("{symbol}.lists"), "i32", &lists);
    out
}
