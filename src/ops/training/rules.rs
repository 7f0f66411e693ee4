//! Update rules of optimizers. Source: the CPU kernels in `core/kernels/training_ops.cc`.
use super::Terms;
use crate::diag::Result;
use crate::ops::math::expr::ArrayExpr;

type Values<'s, 'b> = Result<Vec<ArrayExpr<'s, 'b>>>;

pub(super) fn gradient_descent<'s, 'b>(t: &Terms<'_, 's, 'b>) -> Values<'s, 'b> {
    Ok(vec![t.get("var")? - t.get("alpha")? * t.gradient()?])
}

/// Proximal step with the penalty `l1 |x| + l2 x^2 / 2`: `x` is moved towards 0 by `l1 * rate`, and divided.
fn shrunk<'s, 'b>(t: &Terms<'_, 's, 'b>, x: ArrayExpr<'s, 'b>, rate: ArrayExpr<'s, 'b>) -> Result<ArrayExpr<'s, 'b>> {
    let (l1, l2) = (t.get("l1")?, t.get("l2")?);
    let drawn = x.sign() * (x.abs() - rate * l1).max(0.0);
    let none = l1.le(0.0);
    let none = x.build(|b| {
        let dims = b.dims(x.id).to_vec();
        b.broadcast(none.id, &dims, &[])
    });
    Ok(x.select_where(none, drawn) / (l2 * rate + 1.0))
}

pub(super) fn proximal_gradient_descent<'s, 'b>(t: &Terms<'_, 's, 'b>) -> Values<'s, 'b> {
    let rate = t.get("alpha")?;
    Ok(vec![shrunk(t, t.get("var")? - t.gradient()? * rate, rate)?])
}

pub(super) fn momentum<'s, 'b>(t: &Terms<'_, 's, 'b>) -> Values<'s, 'b> {
    let (var, grad, lr, momentum) = (t.get("var")?, t.gradient()?, t.get("lr")?, t.get("momentum")?);
    let accum = t.get("accum")? * momentum + grad;
    let step = if t.flag("use_nesterov", false) { grad * lr + accum * momentum * lr } else { accum * lr };
    Ok(vec![var - step, accum])
}

pub(super) fn keras_momentum<'s, 'b>(t: &Terms<'_, 's, 'b>) -> Values<'s, 'b> {
    let (var, grad, lr, momentum) = (t.get("var")?, t.gradient()?, t.get("lr")?, t.get("momentum")?);
    let accum = t.get("accum")? * momentum - grad * lr;
    let step = if t.flag("use_nesterov", false) { accum * momentum - grad * lr } else { accum };
    Ok(vec![var + step, accum])
}

/// Adam, and AMSGrad (with the largest second moment so far) if the op has that.
pub(super) fn adam<'s, 'b>(t: &Terms<'_, 's, 'b>) -> Values<'s, 'b> {
    let (grad, beta1, beta2) = (t.gradient()?, t.get("beta1")?, t.get("beta2")?);
    let (m, v) = (t.get("m")?, t.get("v")?);
    let alpha = t.get("lr")? * (1.0 - t.get("beta2_power")?).sqrt() / (1.0 - t.get("beta1_power")?);
    let m = m + (grad - m) * (1.0 - beta1);
    let v = v + (grad.square() - v) * (1.0 - beta2);
    let largest = t.find("vhat").map(|old| old.max(v));
    let step = if t.flag("use_nesterov", false) { m * beta1 + grad * (1.0 - beta1) } else { m };
    let var = t.get("var")? - step * alpha / (largest.unwrap_or(v).sqrt() + t.get("epsilon")?);
    Ok([var, m, v].into_iter().chain(largest).collect())
}

pub(super) fn ada_max<'s, 'b>(t: &Terms<'_, 's, 'b>) -> Values<'s, 'b> {
    let (grad, m) = (t.gradient()?, t.get("m")?);
    let m = m + (grad - m) * (1.0 - t.get("beta1")?);
    let v = (t.get("beta2")? * t.get("v")?).max(grad.abs());
    let rate = t.get("lr")? / (1.0 - t.get("beta1_power")?);
    Ok(vec![t.get("var")? - rate * (m / (v + t.get("epsilon")?)), m, v])
}

pub(super) fn adadelta<'s, 'b>(t: &Terms<'_, 's, 'b>) -> Values<'s, 'b> {
    let (grad, rho, epsilon, updates) = (t.gradient()?, t.get("rho")?, t.get("epsilon")?, t.get("accum_update")?);
    let accum = t.get("accum")? * rho + grad.square() * (1.0 - rho);
    let update = (updates + epsilon).sqrt() * (accum + epsilon).rsqrt() * grad;
    let updates = updates * rho + update.square() * (1.0 - rho);
    Ok(vec![t.get("var")? - update * t.get("lr")?, accum, updates])
}

/// Adagrad; the second version of the op adds an epsilon.
pub(super) fn adagrad<'s, 'b>(t: &Terms<'_, 's, 'b>) -> Values<'s, 'b> {
    let (grad, accum) = (t.gradient()?, t.get("accum")?);
    let accum = if t.flag("update_slots", true) { accum + grad.square() } else { accum };
    let step = grad * t.get("lr")?;
    let step = match t.find("epsilon") {
        Some(epsilon) => step / (accum.sqrt() + epsilon),
        None => step * accum.rsqrt(),
    };
    Ok(vec![t.get("var")? - step, accum])
}

pub(super) fn proximal_adagrad<'s, 'b>(t: &Terms<'_, 's, 'b>) -> Values<'s, 'b> {
    let grad = t.gradient()?;
    let accum = t.get("accum")? + grad.square();
    let rate = t.get("lr")? * accum.rsqrt();
    Ok(vec![shrunk(t, t.get("var")? - grad * rate, rate)?, accum])
}

pub(super) fn adagrad_da<'s, 'b>(t: &Terms<'_, 's, 'b>) -> Values<'s, 'b> {
    let (grad, lr, l1, step) = (t.gradient()?, t.get("lr")?, t.get("l1")?, t.get("global_step")?);
    let sum = t.get("gradient_accumulator")? + grad;
    let squares = t.get("gradient_squared_accumulator")? + grad.square();
    // Without l1, nothing is moved towards 0.
    let drawn = sum.sign() * (sum.abs() - l1.max(0.0) * step).max(0.0);
    let var = -lr * drawn / (t.get("l2")? * step * lr + squares.sqrt());
    Ok(vec![var, sum, squares])
}

/// RMSProp, and the centered variant (the first moment subtracted from the second) if the op has that.
pub(super) fn rms_prop<'s, 'b>(t: &Terms<'_, 's, 'b>) -> Values<'s, 'b> {
    let (grad, ms) = (t.gradient()?, t.get("ms")?);
    let rest = 1.0 - t.get("rho")?;
    let ms = ms + (grad.square() - ms) * rest;
    let mg = t.find("mg").map(|mg| mg + (grad - mg) * rest);
    let square = mg.map_or(ms, |mg| ms - mg.square()) + t.get("epsilon")?;
    let mom = t.get("mom")? * t.get("momentum")? + grad * t.get("lr")? / square.sqrt();
    Ok([t.get("var")? - mom].into_iter().chain(mg).chain([ms, mom]).collect())
}

/// FTRL, with a penalty of the variable added to the gradient if the op has that.
pub(super) fn ftrl<'s, 'b>(t: &Terms<'_, 's, 'b>) -> Values<'s, 'b> {
    let (var, grad, lr, l1, l2) = (t.get("var")?, t.gradient()?, t.get("lr")?, t.get("l1")?, t.get("l2")?);
    let (old, power) = (t.get("accum")?, -t.get("lr_power")?);
    let pulled = t.find("l2_shrinkage").map_or(grad, |shrinkage| grad + shrinkage * var * 2.0);
    let accum = old + grad.square();
    // TensorFlow's second form of the rule multiplies everything by the rate.
    let (rate, inverse) =
        if t.flag("multiply_linear_by_lr", false) { (lr, lr.constant(1.0)) } else { (lr.constant(1.0), 1.0 / lr) };
    let raised = |x: ArrayExpr<'s, 'b>| x.pow(x.constant(0.0) + power);
    let (before, after) = (raised(old), raised(accum));
    let linear = t.get("linear")? + pulled * rate - (after - before) * inverse * var;
    let drawn = l1 * rate * linear.sign() - linear;
    let var = drawn / (after * inverse + l2 * rate * 2.0);
    let far = linear.abs().gt(linear.constant(0.0) + l1 * rate);
    Ok(vec![var.select_where(far, 0.0), accum, linear])
}

/// First moment, and the agreement of its sign with the gradient's: 1 or -1, 0 if either is 0.
fn agreement<'s, 'b>(t: &Terms<'_, 's, 'b>) -> Result<(ArrayExpr<'s, 'b>, ArrayExpr<'s, 'b>)> {
    let (grad, beta) = (t.gradient()?, t.get("beta")?);
    let m = t.get("m")? * beta + grad * (1.0 - beta);
    Ok((m, grad.sign() * m.sign()))
}

pub(super) fn add_sign<'s, 'b>(t: &Terms<'_, 's, 'b>) -> Values<'s, 'b> {
    let (m, agrees) = agreement(t)?;
    let scale = t.get("alpha")? + t.get("sign_decay")? * agrees;
    Ok(vec![t.get("var")? - t.get("lr")? * scale * t.gradient()?, m])
}

pub(super) fn power_sign<'s, 'b>(t: &Terms<'_, 's, 'b>) -> Values<'s, 'b> {
    let (m, agrees) = agreement(t)?;
    let scale = (t.get("logbase")? * t.get("sign_decay")? * agrees).exp();
    Ok(vec![t.get("var")? - t.get("lr")? * scale * t.gradient()?, m])
}
