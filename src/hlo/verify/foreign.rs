//! Rules 3, 5, 9 and 10 for foreign opcodes.
use super::{CheckResult, array};
use crate::hlo::attrs::ForeignOp;
use crate::hlo::groups::parse_groups;
use crate::hlo::{Computation, Inst, Module, Op, Shape};

fn attr<'a>(f: &'a ForeignOp, name: &str) -> Option<&'a str> {
    f.attrs.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
}

/// Checks a foreign opcode: its operand count, shapes and groups.
pub(super) fn check(module: &Module, f: &ForeignOp, inst: &Inst, shapes: &[&Shape]) -> CheckResult {
    if attr(f, "use_global_device_ids") == Some("true") && attr(f, "channel_id").is_none_or(|c| c == "0") {
        return Err("cannot have use_global_device_ids=true without channel_id".to_string());
    }
    count(f, shapes.len())?;
    let group_size = collective_groups(module, f)?;
    match f.opcode.as_str() {
        "all-gather" => check_gather_or_scatter(f, shapes, &inst.shape, group_size, false),
        "reduce-scatter" => check_gather_or_scatter(f, shapes, &inst.shape, group_size, true),
        // A start returns its result, or its operand and its result.
        "all-reduce-start" if inst.shape.as_tuple().is_some() && shapes.len() == 1 => Ok(()),
        "all-reduce" | "all-reduce-start" | "collective-broadcast" => all_of(inst, shapes),
        "infeed" if inst.shape.as_tuple().is_none_or(<[Shape]>::is_empty) => {
            Err("infeed must have a non-empty tuple shape".to_string())
        }
        "custom-call" => layout_constraints(f, shapes),
        "all-to-all" => all_to_all(f, shapes, group_size),
        "collective-permute" | "collective-permute-start" => check_permute(f, inst, shapes),
        "ragged-all-to-all" => check_ragged(shapes),
        "scaled-dot" => scaled_dot(shapes),
        "copy-start" => {
            let want =
                |s: &Shape| Shape::Tuple(vec![s.clone(), s.clone(), Shape::array(crate::tensor::DType::U32, [])]);
            result_is(inst, &want(shapes[0]))
        }
        "copy-done" => match shapes[0].as_tuple() {
            Some([first, ..]) => result_is(inst, first),
            _ => Err("the operand of a copy-done is no copy-start".to_string()),
        },
        "stochastic-convert" => check_stochastic_convert(inst, shapes),
        "domain" => result_is(inst, shapes[0]),
        "async-start" => check_wrapped(module, f, inst, shapes),
        opcode if opcode.ends_with("-update") => match shapes {
            [one] => result_is(inst, one),
            _ => Err(format!("{opcode} takes one operand")),
        },
        opcode if opcode.ends_with("-start") && crate::hlo::text::is_async_shorthand(opcode) => {
            async_shape(&inst.shape)
        }
        _ => Ok(()),
    }
}

fn count(f: &ForeignOp, n: usize) -> CheckResult {
    let want = match f.opcode.as_str() {
        "rng-get-and-update-state" => 0,
        "domain"
        | "copy-start"
        | "copy-done"
        | "infeed"
        | "recv"
        | "recv-done"
        | "send-done"
        | "async-done"
        | "async-update"
        | "all-reduce-done"
        | "all-gather-done"
        | "collective-permute-done" => 1,
        "stochastic-convert" | "send" | "outfeed" => 2,
        "ragged-dot" => 3,
        "scaled-dot" => 4,
        "ragged-all-to-all" => 6,
        "dynamic-reshape" | "all-gather" | "reduce-scatter" | "all-reduce" | "all-to-all" | "collective-permute"
            if n >= 1 =>
        {
            n
        }
        "collective-permute-start" if n >= 1 => n,
        "dynamic-reshape" | "all-gather" | "reduce-scatter" | "all-reduce" | "collective-permute" => 1,
        _ => n,
    };
    if want == n { Ok(()) } else { Err(format!("{} takes {want} operands, not {n}", f.opcode)) }
}

fn result_is(inst: &Inst, want: &Shape) -> CheckResult {
    if inst.shape.same_type_and_dims(want) {
        return Ok(());
    }
    Err(format!("expected instruction to have shape equal to {want}, actual shape is {}", inst.shape))
}

fn all_of(inst: &Inst, shapes: &[&Shape]) -> CheckResult {
    match shapes {
        [one] => result_is(inst, one),
        many => result_is(inst, &Shape::Tuple(many.iter().map(|s| (*s).clone()).collect())),
    }
}

/// Checks rule 9; returns the number of devices in a group, if it is known.
fn collective_groups(module: &Module, f: &ForeignOp) -> Result<Option<u64>, String> {
    let Some(text) = attr(f, "replica_groups") else { return Ok(None) };
    let Some(groups) = parse_groups(text) else { return Ok(None) };
    let channel = attr(f, "channel_id").is_some();
    let global = attr(f, "use_global_device_ids") == Some("true");
    let factor = if channel && !global { module.devices()[1] } else { 1 };
    let Some(first) = groups.first() else {
        let whole = matches!(f.opcode.as_str(), "all-to-all") && attr(f, "dimensions").is_none();
        return match () {
            () if channel && global => Err("global device ids need replica groups that are written".to_string()),
            () if whole => Ok(Some(module.devices()[0])),
            () => Ok(None),
        };
    };
    let uniform = matches!(f.opcode.as_str(), "all-gather" | "reduce-scatter" | "all-to-all" | "ragged-all-to-all");
    if uniform && groups.iter().any(|g| g.len() != first.len()) {
        return Err("replica groups expected to be of uniform size".to_string());
    }
    let mut all: Vec<i64> = groups.iter().flatten().copied().collect();
    all.sort_unstable();
    if all.windows(2).any(|w| w[0] == w[1]) {
        return Err("a device stands in two replica groups".to_string());
    }
    Ok(Some(first.len() as u64 * factor))
}

fn check_gather_or_scatter(
    f: &ForeignOp,
    shapes: &[&Shape],
    own: &Shape,
    group: Option<u64>,
    scatter: bool,
) -> CheckResult {
    let Some(dim) = f.number("dimensions") else { return Err("expects one dimension".to_string()) };
    let results: Vec<&Shape> = match own {
        Shape::Tuple(parts) if shapes.len() > 1 || parts.len() == 1 => parts.iter().collect(),
        one => vec![one],
    };
    if results.len() != shapes.len() {
        return Err(format!("{} results for {} operands", results.len(), shapes.len()));
    }
    for (i, result) in results.iter().enumerate() {
        let x = array(shapes, i)?;
        let Some(y) = result.as_array() else { return Err("the result is not an array".to_string()) };
        let (small, large) = if scatter { (y, x) } else { (x, y) };
        let others = small.rank() == large.rank()
            && dim < small.rank()
            && small.dtype == large.dtype
            && (0..small.rank()).all(|d| d == dim || small.dims[d] == large.dims[d]);
        if !others {
            return Err(format!("{x} and {y} differ in more than dimension {dim}"));
        }
        if small.dims[dim] == 0 {
            continue;
        }
        let shards = large.dims[dim] / small.dims[dim];
        if large.dims[dim] % small.dims[dim] != 0 || group.is_some_and(|g| g != 1 && g != shards) {
            return Err(format!("{x} to {y} makes {shards} shards in groups of {}", group.unwrap_or(1)));
        }
    }
    Ok(())
}

fn all_to_all(f: &ForeignOp, shapes: &[&Shape], group: Option<u64>) -> CheckResult {
    let split = attr(f, "dimensions").is_some();
    let laid_out = |s: &Shape| s.as_array().and_then(|a| a.layout.clone());
    let differ =
        |a: &Shape, b: &Shape| !a.same_type_and_dims(b) || (laid_out(a).is_some() && laid_out(b).is_some() && a != b);
    if shapes.windows(2).any(|w| !split && differ(w[0], w[1])) {
        return Err("all-to-all has operands with different shapes".to_string());
    }
    match group {
        Some(g) if !split && g != shapes.len() as u64 => Err(format!("{} operands in groups of {g}", shapes.len())),
        _ => Ok(()),
    }
}

fn check_permute(f: &ForeignOp, inst: &Inst, shapes: &[&Shape]) -> CheckResult {
    let pairs = attr(f, "source_target_pairs").and_then(parse_groups).unwrap_or_default();
    // With separate targets, several slices of a device may be sent and received.
    let most = match (shapes.len(), shapes[0].as_array()) {
        (4, Some(_)) => 2,
        (4, None) => 4,
        _ => 1,
    };
    for side in 0..2 {
        let mut ends: Vec<i64> = pairs.iter().filter_map(|p| p.get(side).copied()).collect();
        ends.sort_unstable();
        if ends.windows(most + 1).any(|w| w[0] == w[most]) {
            return Err(format!("a device is a source or a target more than {most} times in source_target_pairs"));
        }
    }
    if shapes.len() != 4 {
        for i in 0..shapes.len() {
            array(shapes, i)?;
        }
    }
    if inst.op.name() == "collective-permute" && shapes.len() == 1 {
        array(shapes, 0)?;
        return result_is(inst, shapes[0]);
    }
    Ok(())
}

fn check_ragged(shapes: &[&Shape]) -> CheckResult {
    for i in 2..shapes.len() {
        let a = array(shapes, i)?;
        if a.rank() == 0 || a.rank() > 2 || array(shapes, 2)?.dims != a.dims {
            return Err(format!("ragged-all-to-all operand {i} is {a}"));
        }
    }
    Ok(())
}

/// Checks that a scale has the rank of the scaled operand, or none.
fn scaled_dot(shapes: &[&Shape]) -> CheckResult {
    for i in 0..2 {
        let (x, scale) = (array(shapes, i)?, array(shapes, i + 2)?);
        if scale.rank() != 0 && scale.rank() != x.rank() {
            return Err(format!("the scale {scale} has another number of dimensions than {x}"));
        }
    }
    Ok(())
}

fn check_stochastic_convert(inst: &Inst, shapes: &[&Shape]) -> CheckResult {
    let (x, random) = (array(shapes, 0)?, array(shapes, 1)?);
    let unsigned = random.dtype.class() == crate::tensor::DTypeClass::Unsigned;
    let out = inst.shape.as_array().ok_or("the result is not an array")?;
    if !unsigned || random.dtype.bits() != x.dtype.bits() || random.dims != x.dims || out.dims != x.dims {
        return Err(format!("a stochastic conversion of {x} by {random} to {out}"));
    }
    Ok(())
}

/// Checks that `operand_layout_constraints` has a compatible shape for each operand.
fn layout_constraints(f: &ForeignOp, shapes: &[&Shape]) -> CheckResult {
    let Some(wanted) = f.operand_layouts() else { return Ok(()) };
    let Ok(wanted) = wanted else {
        return Err("operand_layout_constraints are no shapes".to_string());
    };
    let fits = wanted.len() == shapes.len() && wanted.iter().zip(shapes).all(|(a, b)| a.same_type_and_dims(b));
    if fits { Ok(()) } else { Err("operand layout constraints do not fit the operands".to_string()) }
}

fn async_shape(shape: &Shape) -> CheckResult {
    match shape.as_tuple() {
        Some([Shape::Tuple(_), _, ..]) => Ok(()),
        _ => Err(format!("an async start has a shape ((operands), result, state), not {shape}")),
    }
}

/// Checks that a wrapped computation has only parameters and one instruction.
fn check_wrapped(module: &Module, f: &ForeignOp, inst: &Inst, shapes: &[&Shape]) -> CheckResult {
    async_shape(&inst.shape)?;
    let Some([Shape::Tuple(given), result, ..]) = inst.shape.as_tuple() else { return Ok(()) };
    if given.len() != shapes.len() || given.iter().zip(shapes).any(|(a, b)| !a.same_type_and_dims(b)) {
        return Err("an async start has a tuple of its operands' shapes first".to_string());
    }
    for (_, id) in &f.calls {
        let comp = &module.comps[*id];
        let params = comp.params.iter().zip(given).all(|(&p, s)| comp.insts[p].shape.same_type_and_dims(s));
        if comp.params.len() != given.len() || !params || !comp.insts[comp.root].shape.same_type_and_dims(result) {
            return Err(format!("async-start's shape does not match computation {}", comp.name));
        }
    }
    for (_, id) in &f.calls {
        let comp = &module.comps[*id];
        let extra = comp.insts.iter().any(|(i, inst)| i != comp.root && !matches!(inst.op, Op::Parameter(_)));
        if extra {
            return Err(format!(
                "asynchronous computation {} expected to contain only the root and parameter instructions",
                comp.name
            ));
        }
    }
    Ok(())
}

/// Checks that `foo-update` and `foo-done` continue a `foo-start`, on its thread and with its computation.
fn wrapper_chain(comp: &Computation, inst: &Inst) -> CheckResult {
    let opcode = inst.op.name();
    let wraps = crate::hlo::text::is_async_shorthand(opcode) || opcode.starts_with("async-");
    if !wraps || opcode.ends_with("-start") {
        return Ok(());
    }
    let base = opcode.rsplit_once('-').map_or("", |p| p.0);
    let before = inst.operands.first().map(|&o| &comp.insts[o]);
    let name = before.map_or("", |b| b.op.name());
    let from = name.strip_suffix("-start").or_else(|| name.strip_suffix("-update"));
    let sugar = crate::hlo::text::is_async_shorthand(opcode);
    if sugar && !from.is_some_and(|from| from == base || from == "async") {
        return Err(format!("{opcode} expects a {base}-start, but got {name}"));
    }
    let (Some(Op::Foreign(start)), Op::Foreign(own)) = (before.map(|b| &b.op), &inst.op) else { return Ok(()) };
    let thread = |f: &ForeignOp| attr(f, "async_execution_thread").map(str::to_string);
    if let Some(thread_here) = thread(own) {
        let expected = thread(start).unwrap_or_else(|| "\"main\"".to_string());
        if sugar && thread_here != expected {
            return Err(format!("expects async_execution_thread to be {expected}, but got {thread_here}"));
        }
    }
    match (start.calls.first(), own.calls.first()) {
        (Some(a), Some(b)) if a.1 != b.1 => Err(format!("{opcode} calls another computation than {name}")),
        _ => Ok(()),
    }
}

/// Checks rule 10: starts and ends of asynchronous operations come in pairs. The error is the name of an instruction without
/// its partner, and the reason.
pub(super) fn check_async_pairs(comp: &Computation) -> Result<(), (String, String)> {
    for (id, inst) in comp.insts.iter() {
        let opcode = inst.op.name();
        wrapper_chain(comp, inst).map_err(|m| (inst.name.clone(), m))?;
        let starts =
            opcode == "async-start" || (opcode.ends_with("-start") && crate::hlo::text::is_async_shorthand(opcode));
        if starts && !comp.insts.values().any(|u| u.operands.contains(&id)) {
            return Err((inst.name.clone(), "async start has no matching async done".to_string()));
        }
        let end = match opcode {
            "copy-start" => "copy-done",
            "all-reduce-start" => "all-reduce-done",
            "all-gather-start" => "all-gather-done",
            "collective-permute-start" => "collective-permute-done",
            _ => "",
        };
        if !end.is_empty() {
            let users = comp.insts.values().filter(|u| u.operands.contains(&id)).count();
            if users != 1 {
                return Err((
                    inst.name.clone(),
                    format!("the {opcode} instruction requires one consumer, found {users}"),
                ));
            }
        }
        let start = match opcode {
            "copy-done" => "copy-start",
            "collective-permute-done" => "collective-permute-start",
            "all-reduce-done" => "all-reduce-start",
            "all-gather-done" => "all-gather-start",
            _ => continue,
        };
        let found = inst.operands.first().map_or("", |&o| comp.insts[o].op.name());
        if found != start {
            return Err((inst.name.clone(), format!("the operand of a {opcode} needs to be {start}, found {found}")));
        }
    }
    Ok(())
}

/// Checks that either all or no cross-device reductions constrain their layouts.
pub(super) fn check_layout_constraints_agree(module: &Module) -> CheckResult {
    let mut seen: Option<bool> = None;
    for inst in module.comps.values().flat_map(|c| c.insts.values()) {
        let Op::Foreign(f) = &inst.op else { continue };
        if f.opcode != "all-reduce" {
            continue;
        }
        let constrained = attr(f, "constrain_layout") == Some("true");
        if seen.replace(constrained).is_some_and(|before| before != constrained) {
            return Err("some all-reduces constrain their layouts and some do not".to_string());
        }
    }
    Ok(())
}
