//! Attributes of StableHLO's custom calls: target, calling convention, configuration, and layouts.
use super::attribute_values::{AttrCollector, AttrResult, flag, int_or};
use super::call_attributes;
use super::tree::{MlirAttr, Operation};
use crate::hlo::proto::quoted;
use crate::hlo::{ArrayShape, CompId, Shape, XlaLayout};

/// Attributes whose value is passed to the callee.
const CONFIG: &[&str] = &["mhlo.backend_config", "backend_config"];

/// Names of the calling conventions of custom calls, from number 2 on; a call without a name has the first.
const API_VERSIONS: &[&str] =
    &["API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"];

/// `shapes` with the layouts that attribute `name` lists; empty if it is missing.
///
/// # Errors
/// If it lists no layouts of these shapes.
pub(super) fn layouts(op: &Operation, name: &str, shapes: &[&Shape]) -> AttrResult<Vec<Shape>> {
    let Some(MlirAttr::List(all)) = op.attr(&[name]) else { return Ok(Vec::new()) };
    if all.is_empty() {
        return Ok(Vec::new());
    }
    if all.len() != shapes.len() {
        return Err(format!("`{name}` has {} layouts for {} arrays", all.len(), shapes.len()));
    }
    let one = |(layout, shape): (&MlirAttr, &&Shape)| {
        let Shape::Array(a) = shape else { return Ok((*shape).clone()) };
        let minor_to_major = layout.ints().unwrap_or_default();
        let mut axes = minor_to_major.clone();
        axes.sort_unstable();
        if !axes.into_iter().eq(0..a.rank() as i64) {
            return Err(format!("`{name}` has a layout that is none of {shape}"));
        }
        Ok(Shape::Array(ArrayShape {
            layout: Some(Box::new(XlaLayout { minor_to_major, ..XlaLayout::default() })),
            ..a.clone()
        }))
    };
    all.iter().zip(shapes).map(one).collect()
}

/// Converts the attributes of a custom call.
///
/// # Errors
/// The reason why the operation is refused.
pub(super) fn attributes(
    op: &Operation,
    shapes: &[&Shape],
    comps: &[CompId],
    out: &mut AttrCollector,
) -> AttrResult<()> {
    let target = match op.attr(&["call_target_name", "callee"]) {
        Some(MlirAttr::Symbol(name) | MlirAttr::Text(name)) => name,
        _ => return Err("a custom call has a target".to_string()),
    };
    if !comps.is_empty()
        || op.attr(&["called_computations"]).is_some_and(|c| !matches!(c, MlirAttr::List(l) if l.is_empty()))
    {
        return Err("a custom call that calls computations".to_string());
    }
    out.add_opaque("custom_call_target", format!("\"{target}\""));
    match op.attr(CONFIG) {
        Some(MlirAttr::Text(config)) if !config.is_empty() => {
            out.add_opaque("backend_config", quoted(config.as_bytes()))
        }
        Some(MlirAttr::Dict(entries)) => out.add_opaque("backend_config", call_attributes::print(entries)?),
        _ => {}
    }
    // Text has the number, bytecode the name. Only the last version has dictionaries; JAX then gives the first, or none.
    let version = match op.attr(&["api_version"]) {
        _ if matches!(op.attr(CONFIG), Some(MlirAttr::Dict(_))) => API_VERSIONS.last(),
        Some(MlirAttr::Text(word)) => API_VERSIONS.iter().find(|v| *v == word),
        _ => usize::try_from(int_or(op, &["api_version"], 1)? - 2).ok().and_then(|i| API_VERSIONS.get(i)),
    };
    if let Some(version) = version {
        out.add_opaque("api_version", version.to_string());
    }
    let layouts = layouts(op, "operand_layouts", shapes)?;
    if !layouts.is_empty() {
        let all: Vec<String> = layouts.iter().map(Shape::to_string).collect();
        out.add_opaque("operand_layout_constraints", format!("{{{}}}", all.join(", ")));
    }
    if let Some(MlirAttr::List(aliases)) = op.attr(&["output_operand_aliases"])
        && !aliases.is_empty()
    {
        let all = aliases.iter().map(alias).collect::<Option<Vec<_>>>().ok_or("an output_operand_alias is expected")?;
        out.add_opaque("output_to_operand_aliasing", format!("{{{}}}", all.join(", ")));
    }
    if flag(op, "has_side_effect") {
        out.add_opaque("custom_call_has_side_effect", "true".to_string());
    }
    Ok(())
}

/// Operand whose memory a result shares, in HLO's syntax.
fn alias(value: &MlirAttr) -> Option<String> {
    let MlirAttr::Dict(entries) = value else { return None };
    let ints = |name: &str| entries.iter().find(|e| e.0 == name).and_then(|e| e.1.ints());
    let path = |name: &str| {
        let path: Vec<String> = ints(name).unwrap_or_default().iter().map(i64::to_string).collect();
        format!("{{{}}}", path.join(", "))
    };
    let operand = *ints("operand_index")?.first()?;
    Some(format!("{}: ({operand}, {})", path("output_tuple_indices"), path("operand_tuple_indices")))
}
