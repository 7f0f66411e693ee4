//! Constants of the module: tables that describe the model, and its weights.
use super::function::SymbolNames;
use super::text::{IrOperand, IrType};
use super::types::c_scalar_type;
use crate::diag::{Error, Result};
use bytes::Bytes;
use std::fmt::Write;

/// The C definition of a global constant.
pub fn constant_definition(name: &str, ty: &IrType, value: &IrOperand, names: &SymbolNames) -> Result<String> {
    let (count, element) = match ty {
        IrType::Array(count, element) => (*count, (**element).clone()),
        ty => (1, ty.clone()),
    };
    let rows: Vec<IrOperand> = match (ty, value) {
        (IrType::Array(..), IrOperand::List(all)) => all.iter().map(|(_, row)| row.clone()).collect(),
        (_, IrOperand::Bytes(all)) => all.iter().map(|byte| IrOperand::Int(u64::from(*byte))).collect(),
        (_, value) => vec![value.clone()],
    };
    // C has no arrays of nothing, and no one reads these
    if count == 0 {
        return Ok(format!("static const unsigned char {name}[1] = {{0}};\n"));
    }
    let rows_of: Vec<&IrOperand> = rows.iter().collect();
    let c_type = declared(&element, &rows_of, names);
    let mut out = format!("static const {c_type} {name}[{count}] = {{");
    let is_long = matches!(element, IrType::Struct(_));
    for (i, row) in rows.iter().enumerate() {
        out += if i == 0 { "" } else { "," };
        out += if is_long || i % 16 == 0 { "\n  " } else { " " };
        out += &initial(&element, row, names)?;
    }
    Ok(out + "\n};\n")
}

/// The C element type of a constant array with these values.
fn declared(ty: &IrType, values: &[&IrOperand], names: &SymbolNames) -> String {
    match ty {
        IrType::Struct(parts) => {
            let mut out = "struct {".to_string();
            for (i, part) in parts.iter().enumerate() {
                let own: Vec<&IrOperand> = values
                    .iter()
                    .filter_map(
                        |value| if let IrOperand::List(all) = value { all.get(i).map(|(_, v)| v) } else { None },
                    )
                    .collect();
                let _ = write!(out, " {} m{i};", declared(part, &own, names));
            }
            out + " }"
        }
        IrType::Pointer => {
            let is_function =
                |value: &&IrOperand| matches!(value, IrOperand::Global(name) if names.functions.contains_key(name));
            if values.iter().any(is_function) { "tf_function".to_string() } else { "void *".to_string() }
        }
        IrType::Int(32) => "int32_t".to_string(),
        IrType::Int(64) => "int64_t".to_string(),
        ty => c_scalar_type(ty),
    }
}

fn initial(ty: &IrType, value: &IrOperand, names: &SymbolNames) -> Result<String> {
    Ok(match (ty, value) {
        (IrType::Struct(parts), IrOperand::List(all)) => {
            let each = parts.iter().zip(all).map(|(part, (_, value))| initial(part, value, names));
            format!("{{{}}}", each.collect::<Result<Vec<_>>>()?.join(", "))
        }
        (_, IrOperand::Null) => "NULL".to_string(),
        (_, IrOperand::Global(name)) => match (names.functions.get(name), names.globals.get(name)) {
            (Some(function), _) => format!("(tf_function){}", function.name),
            (None, Some(name)) => format!("(void *){name}"),
            (None, None) => return Err(Error::internal("C", format!("`@{name}` is unknown"))),
        },
        (IrType::Int(64), IrOperand::Int(value)) if *value == 1 << 63 => "INT64_MIN".to_string(),
        (IrType::Int(64), IrOperand::Int(value)) => format!("INT64_C({})", *value as i64),
        (IrType::Int(32), IrOperand::Int(value)) => format!("{}", *value as i32),
        (_, IrOperand::Int(value)) => format!("{value}u"),
        (ty, value) => return Err(Error::internal("C", format!("{value:?} is no constant of {ty:?}"))),
    })
}

/// Number of 8-byte words per line of weights.
const WORDS_IN_LINE: usize = 6;

/// The C definition of the weights as an array of 8-byte words, the form that compilers parse fastest.
pub fn weights_definition(name: &str, bytes: u64, pieces: &[(u64, Bytes)]) -> String {
    let mut all = vec![0u8; (bytes.max(1) as usize).next_multiple_of(8)];
    for (at, piece) in pieces {
        all[*at as usize..*at as usize + piece.len()].copy_from_slice(piece);
    }
    let mut out = String::with_capacity(all.len() / 8 * 21 + 256);
    let _ = write!(out, "static const uint64_t {name}[{}] = {{", all.len() / 8);
    for (i, word) in all.chunks_exact(8).enumerate() {
        let word = word.iter().rev().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
        out += if i % WORDS_IN_LINE == 0 { "\n  " } else { " " };
        let _ = write!(out, "{word:#x}u,");
    }
    out + "\n};\n"
}
