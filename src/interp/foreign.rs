//! Opcodes that HLO keeps as foreign: collectives on a single device, custom calls, async pairs.
use super::machine::Machine;
use super::operands::{Operands, invalid_hlo, unsupported_hlo};
use super::{scan, shape_ops, top_k};
use crate::diag::{Code, Diagnostic, Result};
use crate::hlo::attrs::ForeignOp;
use crate::hlo::groups::is_self_permute;
use crate::hlo::{Literal, Shape};
use crate::scalar::eval::convert;
use crate::tensor::{DType, Tensor};

/// Evaluates a foreign instruction that has a defined meaning on a single device.
///
/// Errors: `HloUnsupported` for any other.
pub(super) fn foreign_call(m: &Machine, f: &ForeignOp, operands: Operands, shape: &Shape) -> Result<Literal> {
    match f.opcode.as_str() {
        "scan" => scan::scan(m, f, &operands.arrays()?, shape),
        // A start operation with one operand may return it beside the result.
        "all-reduce-start" if operands.0.len() == 1 && shape.as_tuple().is_some_and(|p| p.len() == 2) => {
            started(shape, operands.get(0)?.clone(), operands.get(0)?.clone())
        }
        "all-reduce-done" if shape.as_array().is_some() && matches!(operands.get(0)?, Literal::Tuple(_)) => {
            part(operands.get(0)?, 1)
        }
        "collective-permute-start" if shape.as_array().is_some() => permute(f, operands, shape),
        "collective-permute-done" if !matches!(operands.get(0)?, Literal::Tuple(_)) => operands.get(0).cloned(),
        "all-reduce"
        | "all-gather"
        | "reduce-scatter"
        | "all-to-all"
        | "collective-broadcast"
        | "all-reduce-start"
        | "domain"
        | "all-reduce-done"
        | "async-update" => identity(operands, shape),
        "collective-permute" => permute(f, operands, shape),
        "collective-permute-start" | "all-gather-start" => {
            let moved =
                if f.opcode == "all-gather-start" { identity(operands, shape) } else { permute(f, operands, shape) };
            let input = operands.get(0)?.clone();
            started(shape, input.clone(), moved.unwrap_or(input))
        }
        "copy-start" => started(shape, operands.get(0)?.clone(), operands.get(0)?.clone()),
        "copy-done" => part(operands.get(0)?, 0),
        "collective-permute-done" | "all-gather-done" | "async-done" => part(operands.get(0)?, 1),
        "async-start" => {
            let callee = f.calls.first().ok_or_else(|| invalid_hlo("async-start calls nothing"))?.1;
            let args: Vec<Literal> = operands.0.iter().map(|&l| l.clone()).collect();
            let result = m.call(callee, &args)?;
            started(shape, Literal::Tuple(args), result)
        }
        "dynamic-reshape" => match shape {
            Shape::Array(a) => Ok(Literal::Array(shape_ops::reshape(operands.array(0)?, a)?)),
            Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => {
                Err(invalid_hlo("dynamic-reshape gives an array"))
            }
        },
        "custom-call" => custom_call(f, operands, shape),
        "stochastic-convert" => {
            let to = shape.as_array().ok_or_else(|| invalid_hlo("stochastic-convert gives an array"))?.dtype;
            round_by_random_bits(operands.array(0)?, operands.array(1)?, to)
        }
        other => match function(other) {
            Some(function) => pointwise(operands.array(0)?, function, other),
            None => Err(unsupported_hlo(format!("opcode `{other}` is not interpreted"))),
        },
    }
}

/// Operands returned unchanged as the result, in the form that the instruction declares: a single value or a tuple.
fn identity(operands: Operands, shape: &Shape) -> Result<Literal> {
    match shape {
        Shape::Tuple(parts) if operands.0.len() == parts.len() && !matches!(operands.get(0)?, Literal::Tuple(_)) => {
            Ok(Literal::Tuple(operands.0.iter().map(|&l| l.clone()).collect()))
        }
        _ => operands.get(0).cloned(),
    }
}

/// Value of a collective permute on device 0: its own operand if it sends to itself, else zeros.
fn permute(f: &ForeignOp, operands: Operands, shape: &Shape) -> Result<Literal> {
    if is_self_permute(f) {
        return identity(operands, shape);
    }
    let zero = |l: &&Literal| match l {
        Literal::Array(t) => Literal::Array(Tensor::new(t.dtype, t.dims.clone(), vec![0; t.bytes.len()])),
        Literal::Tuple(_) | Literal::Token => (*l).clone(),
    };
    let zeros: Vec<Literal> = operands.0.iter().map(zero).collect();
    identity(Operands(&zeros.iter().collect::<Vec<_>>()), shape)
}

/// Value of an async start: input, result, and zeros for the context.
fn started(shape: &Shape, input: Literal, result: Literal) -> Result<Literal> {
    let parts = shape.as_tuple().ok_or_else(|| invalid_hlo("a start gives a tuple"))?;
    let context = parts.iter().skip(2).map(zeros);
    Ok(Literal::Tuple([input, result].into_iter().chain(context).collect()))
}

fn zeros(shape: &Shape) -> Literal {
    match shape {
        Shape::Array(a) => Literal::Array(Tensor::new(a.dtype, a.dims.clone(), vec![0; a.bytes() as usize])),
        Shape::Tuple(parts) => Literal::Tuple(parts.iter().map(zeros).collect()),
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => Literal::Token,
    }
}

fn part(value: &Literal, i: usize) -> Result<Literal> {
    match value {
        Literal::Tuple(parts) if i < parts.len() => Ok(parts[i].clone()),
        Literal::Tuple(_) | Literal::Array(_) | Literal::Token => {
            Err(invalid_hlo("a done needs the tuple of its start"))
        }
    }
}

fn custom_call(f: &ForeignOp, operands: Operands, shape: &Shape) -> Result<Literal> {
    let target = f.attr("custom_call_target").unwrap_or("");
    match target {
        "TopK" => {
            let values = shape.as_tuple().and_then(|p| p.first()).and_then(Shape::as_array);
            let k = values.and_then(|a| a.dims.last()).ok_or_else(|| invalid_hlo("TopK gives values and indices"))?;
            top_k::top_k_total_order(operands.array(0)?, *k, true)
        }
        "Pin" | "Unpin" => identity(operands, shape),
        _ if f.is_placement_hint() => identity(operands, shape),
        other => Err(Diagnostic::new(Code::NoBody, format!("the custom call `{other}` can't be interpreted"))
            .help("it is a function in C: compile the module, and link the object with the file that defines it")
            .into()),
    }
}

/// `x` as a signed integer, its magnitude rounded up where the fraction times 2^bits is more than the random number of so many bits; what
/// lies beyond the integers gives the last of them, NaN gives 0.
fn round_by_random_bits(x: &Tensor, random: &Tensor, to: DType) -> Result<Literal> {
    if !x.dtype.is_float() || !to.is_signed() {
        return Err(unsupported_hlo(format!("`stochastic-convert` of {} to {to}", x.dtype)));
    }
    let bits = random.dtype.bits();
    let steps = f64::from(bits).exp2();
    let (least, most) = (i64::MIN >> (64 - to.bits()), i64::MAX >> (64 - to.bits()));
    // XLA compares with the limits in the type of the operand.
    let limits = convert(&Tensor::from_vec(DType::S64, vec![2], vec![least, most]), x.dtype);
    let limits = convert(&limits, DType::F64).view::<f64>().to_vec();
    let (x, random) = (convert(x, DType::F64), convert(random, DType::U64));
    let round = |(&x, &random): (&f64, &u64)| {
        let below = x.abs().floor();
        let is_up = random < ((x.abs() - below) * steps) as u64;
        let magnitude = (below as i64).wrapping_add(i64::from(is_up));
        match x {
            _ if x <= limits[0] => least,
            _ if x >= limits[1] => most,
            _ if x < 0.0 => magnitude.wrapping_neg(),
            _ => magnitude,
        }
    };
    let values = x.view::<f64>().iter().zip(random.view::<u64>().iter()).map(round).collect();
    Ok(Literal::Array(convert(&Tensor::from_vec(DType::S64, x.dims.clone(), values), to)))
}

/// Evaluator of a custom call that newer HLO expresses as an opcode.
fn function(opcode: &str) -> Option<fn(f64) -> f64> {
    Some(match opcode {
        "acos" => f64::acos,
        "acosh" => f64::acosh,
        "asin" => f64::asin,
        "asinh" => libm::asinh,
        "atanh" => libm::atanh,
        "cosh" => f64::cosh,
        "sinh" => f64::sinh,
        _ => return None,
    })
}

fn pointwise(x: &Tensor, f: fn(f64) -> f64, opcode: &str) -> Result<Literal> {
    if !x.dtype.is_float() {
        return Err(unsupported_hlo(format!("`{opcode}` of {}", x.dtype)));
    }
    let values = convert(x, DType::F64).view::<f64>().iter().map(|&v| f(v)).collect();
    Ok(Literal::Array(convert(&Tensor::from_vec(DType::F64, x.dims.clone(), values), x.dtype)))
}
