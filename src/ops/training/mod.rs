//! `training_ops.cc`: optimizer steps, which update a variable and its slots (momentum and the like).
//!
//! `rules.rs` has the formulas. An op updates whole variables with a gradient of their sizes, or rows selected by indices with
//! a gradient for each.
mod rules;
mod sparse;

use super::math::expr::{ArrayExpr, build_formulas};
use super::op_lowering::op;
use super::shape::no_outputs;
use super::{LowerCtx, OpLowering, Value};
use crate::diag::{Error, Result};
use crate::graph::Node;
use crate::hlo::symbolic::InstId;
use rules::*;
use sparse::update_rows;

/// Definitions of the ops of this family.
#[rustfmt::skip]
pub const ROWS: &[&[OpLowering]] = &[&[
    op("ResourceApplyAdaMax", "var m v beta1_power lr beta1 beta2 epsilon grad ->", |cx| dense(cx, ada_max)).shape(no_outputs).assigns_inputs(&[0, 1, 2]),
    op("ResourceApplyAdadelta", "var accum accum_update lr rho epsilon grad ->", |cx| dense(cx, adadelta)).shape(no_outputs).assigns_inputs(&[0, 1, 2]),
    op("ResourceApplyAdagrad", "var accum lr grad ->", |cx| dense(cx, adagrad)).shape(no_outputs).assigns_inputs(&[0, 1]),
    op("ResourceApplyAdagradDA", "var gradient_accumulator gradient_squared_accumulator grad lr l1 l2 global_step ->", |cx| dense(cx, adagrad_da)).shape(no_outputs).assigns_inputs(&[0, 1, 2]),
    op("ResourceApplyAdagradV2", "var accum lr epsilon grad ->", |cx| dense(cx, adagrad)).shape(no_outputs).assigns_inputs(&[0, 1]),
    op("ResourceApplyAdam", "var m v beta1_power beta2_power lr beta1 beta2 epsilon grad ->", |cx| dense(cx, adam)).shape(no_outputs).assigns_inputs(&[0, 1, 2]),
    op("ResourceApplyAdamWithAmsgrad", "var m v vhat beta1_power beta2_power lr beta1 beta2 epsilon grad ->", |cx| dense(cx, adam)).shape(no_outputs).assigns_inputs(&[0, 1, 2, 3]),
    op("ResourceApplyAddSign", "var m lr alpha sign_decay beta grad ->", |cx| dense(cx, add_sign)).shape(no_outputs).assigns_inputs(&[0, 1]),
    op("ResourceApplyCenteredRMSProp", "var mg ms mom lr rho momentum epsilon grad ->", |cx| dense(cx, rms_prop)).shape(no_outputs).assigns_inputs(&[0, 1, 2, 3]),
    op("ResourceApplyFtrl", "var accum linear grad lr l1 l2 lr_power ->", |cx| dense(cx, ftrl)).shape(no_outputs).assigns_inputs(&[0, 1, 2]),
    op("ResourceApplyFtrlV2", "var accum linear grad lr l1 l2 l2_shrinkage lr_power ->", |cx| dense(cx, ftrl)).shape(no_outputs).assigns_inputs(&[0, 1, 2]),
    op("ResourceApplyGradientDescent", "var alpha delta ->", |cx| dense(cx, gradient_descent)).shape(no_outputs).assigns_inputs(&[0]),
    op("ResourceApplyKerasMomentum", "var accum lr grad momentum ->", |cx| dense(cx, keras_momentum)).shape(no_outputs).assigns_inputs(&[0, 1]),
    op("ResourceApplyMomentum", "var accum lr grad momentum ->", |cx| dense(cx, momentum)).shape(no_outputs).assigns_inputs(&[0, 1]),
    op("ResourceApplyPowerSign", "var m lr logbase sign_decay beta grad ->", |cx| dense(cx, power_sign)).shape(no_outputs).assigns_inputs(&[0, 1]),
    op("ResourceApplyProximalAdagrad", "var accum lr l1 l2 grad ->", |cx| dense(cx, proximal_adagrad)).shape(no_outputs).assigns_inputs(&[0, 1]),
    op("ResourceApplyProximalGradientDescent", "var alpha l1 l2 delta ->", |cx| dense(cx, proximal_gradient_descent)).shape(no_outputs).assigns_inputs(&[0]),
    op("ResourceApplyRMSProp", "var ms mom lr rho momentum epsilon grad ->", |cx| dense(cx, rms_prop)).shape(no_outputs).assigns_inputs(&[0, 1, 2]),
], &[
    op("ResourceSparseApplyAdadelta", "var accum accum_update lr rho epsilon grad indices ->", |cx| update_rows(cx, adadelta)).shape(no_outputs).assigns_inputs(&[0, 1, 2]),
    op("ResourceSparseApplyAdagrad", "var accum lr grad indices ->", |cx| update_rows(cx, adagrad)).shape(no_outputs).assigns_inputs(&[0, 1]),
    op("ResourceSparseApplyAdagradDA", "var gradient_accumulator gradient_squared_accumulator grad indices lr l1 l2 global_step ->", |cx| update_rows(cx, adagrad_da)).shape(no_outputs).assigns_inputs(&[0, 1, 2]),
    op("ResourceSparseApplyAdagradV2", "var accum lr epsilon grad indices ->", |cx| update_rows(cx, adagrad)).shape(no_outputs).assigns_inputs(&[0, 1]),
    op("ResourceSparseApplyCenteredRMSProp", "var mg ms mom lr rho momentum epsilon grad indices ->", |cx| update_rows(cx, rms_prop)).shape(no_outputs).assigns_inputs(&[0, 1, 2, 3]),
    op("ResourceSparseApplyFtrl", "var accum linear grad indices lr l1 l2 lr_power ->", |cx| update_rows(cx, ftrl)).shape(no_outputs).assigns_inputs(&[0, 1, 2]),
    op("ResourceSparseApplyFtrlV2", "var accum linear grad indices lr l1 l2 l2_shrinkage lr_power ->", |cx| update_rows(cx, ftrl)).shape(no_outputs).assigns_inputs(&[0, 1, 2]),
    op("ResourceSparseApplyKerasMomentum", "var accum lr grad indices momentum ->", |cx| update_rows(cx, keras_momentum)).shape(no_outputs).assigns_inputs(&[0, 1]),
    op("ResourceSparseApplyMomentum", "var accum lr grad indices momentum ->", |cx| update_rows(cx, momentum)).shape(no_outputs).assigns_inputs(&[0, 1]),
    op("ResourceSparseApplyProximalAdagrad", "var accum lr l1 l2 grad indices ->", |cx| update_rows(cx, proximal_adagrad)).shape(no_outputs).assigns_inputs(&[0, 1]),
    op("ResourceSparseApplyProximalGradientDescent", "var alpha l1 l2 grad indices ->", |cx| update_rows(cx, proximal_gradient_descent)).shape(no_outputs).assigns_inputs(&[0]),
    op("ResourceSparseApplyRMSProp", "var ms mom lr rho momentum epsilon grad indices ->", |cx| update_rows(cx, rms_prop)).shape(no_outputs).assigns_inputs(&[0, 1, 2]),
]];

/// Operands of an update rule by their names in TensorFlow: variables, hyperparameters and the gradient.
struct Terms<'n, 's, 'b> {
    node: &'n Node,
    names: &'n [&'static str],
    values: Vec<ArrayExpr<'s, 'b>>,
}

/// Update rule: returns the new values of the variables, in order.
type Rule = for<'n, 's, 'b> fn(&Terms<'n, 's, 'b>) -> Result<Vec<ArrayExpr<'s, 'b>>>;

impl<'s, 'b> Terms<'_, 's, 'b> {
    /// Operand called `name`.
    fn get(&self, name: &str) -> Result<ArrayExpr<'s, 'b>> {
        self.find(name).ok_or_else(|| Error::internal("ops", format!("{} has no input `{name}`", self.node.op)))
    }
    /// Operand called `name`, for operands that only some ops of a rule have.
    fn find(&self, name: &str) -> Option<ArrayExpr<'s, 'b>> {
        self.names.iter().position(|n| *n == name).and_then(|i| self.values.get(i)).copied()
    }
    /// Gradient operand.
    fn gradient(&self) -> Result<ArrayExpr<'s, 'b>> {
        self.find("delta").map_or_else(|| self.get("grad"), Ok)
    }
    /// Value of a boolean attribute.
    fn flag(&self, name: &str, default: bool) -> bool {
        self.node.bool(name).unwrap_or(default)
    }
}

/// Lowers an optimizer step on whole variables.
fn dense(cx: &mut LowerCtx, rule: Rule) -> Result<Vec<Value>> {
    let (names, variables) = declared(cx)?;
    let values = operands(cx, &names, variables)?;
    let dims = cx.b.dims(values[0]).to_vec();
    let grad = names.iter().position(|n| matches!(*n, "grad" | "delta")).unwrap_or(0);
    for (i, &value) in values.iter().enumerate().filter(|(i, _)| *i < variables || *i == grad) {
        if cx.b.dims(value) != dims {
            return Err(cx.shape_mismatch(format!(
                "`{}` is {}, where {dims:?} is needed",
                names[i],
                cx.b.shape(value)
            )));
        }
    }
    let node = cx.node;
    let new = build_formulas(cx.b, &values, |values| rule(&Terms { node, names: &names, values }))?;
    for (i, &value) in new.iter().enumerate() {
        cx.write_variable(i, value)?;
    }
    Ok(vec![])
}

/// Names of the node's inputs, and the number of leading ones that are variables.
fn declared(cx: &LowerCtx) -> Result<(Vec<&'static str>, usize)> {
    let row = super::find_op(&cx.node.op).ok_or_else(|| Error::internal("ops", "an op without a row"))?;
    Ok((row.input_names(), row.writes.len()))
}

/// Values of the variables and of all other inputs, in the variables' type; hyperparameters are scalars.
fn operands(cx: &mut LowerCtx, names: &[&'static str], variables: usize) -> Result<Vec<InstId>> {
    let first = cx.read_variable(0)?;
    let dtype = cx.b.dtype(first);
    let mut values = Vec::with_capacity(names.len());
    for (i, name) in names.iter().enumerate() {
        let value = if i < variables { cx.read_variable(i)? } else { cx.arg(i)? };
        values.push(match *name {
            "indices" => value,
            "global_step" => cx.b.convert(value, dtype),
            _ if cx.b.dtype(value) != dtype => {
                return Err(cx.shape_mismatch(format!("`{name}` is {}, and the variable {dtype}", cx.b.shape(value))));
            }
            _ => value,
        });
        let number = i >= variables && !matches!(*name, "grad" | "delta" | "indices");
        if number && cx.b.rank(value) != 0 {
            return Err(cx.shape_mismatch(format!("`{name}` must be a number, not {}", cx.b.shape(value))));
        }
    }
    Ok(values)
}
