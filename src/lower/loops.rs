//! `While` as one HLO loop over a tuple.
use super::flat::Form;
use super::state::Threaded;
use super::walker::{Slot, Walker};
use crate::diag::{Code, Error, Result};
use crate::graph::{Endpoint, FuncRef, Function};
use crate::hlo::{Op, Shape};
use crate::ops::Value;
use crate::ops::value::ListValue;

impl Walker<'_> {
    /// The final values of a loop's variables.
    ///
    /// Variables that the body returns as they are and whose first value is a constant are no state: they are constants in
    /// the condition and the body. Lists of open element shape take the shape that the body gives them.
    pub(super) fn while_loop(&mut self, cond: &FuncRef, body: &FuncRef, args: Vec<Value>) -> Result<Vec<Slot>> {
        let (c, f) = (self.function(&cond.name)?, self.function(&body.name)?);
        let n = args.len();
        if c.args.len() != n || c.rets.len() != 1 || f.args.len() != n || f.rets.len() != n {
            return Err(Error::user(
                Code::BadFunction,
                format!("the condition or body of a loop over {n} variables has another signature"),
            ));
        }
        let threaded = self.threaded(&[cond, body], &args);
        if self.accesses.function(self.program, &cond.name).acts() {
            let told = format!("the condition `{}` of a loop changes a variable or draws random numbers", cond.name);
            return Err(Error::user(Code::UnsupportedCase, told));
        }
        let args = [args, self.values_of(&threaded)?].concat();
        let mut fixed = invariant(f);
        fixed.extend(threaded.variables.iter().map(|v| !v.1));
        let constants: Vec<Option<_>> =
            args.iter().zip(&fixed).map(|(v, &fixed)| if fixed { self.known(v) } else { None }).collect();
        let form = |w: &Self, (i, v): (usize, &Value)| constants[i].clone().map_or_else(|| w.form(v), Form::Constant);
        let mut init = args;
        loop {
            let forms: Vec<Form> = init.iter().enumerate().map(|v| form(self, v)).collect();
            let open = |i: usize| matches!(forms[i], Form::Unshaped(..)) && !fixed[i];
            if !(0..n).any(open) {
                break;
            }
            let Some(after) = self.probe(body, &forms, &threaded)? else { return Ok(vec![None; n]) };
            let mut changed = false;
            for i in (0..n).filter(|&i| open(i)) {
                if let Form::List(Shape::Array(a)) = &after[i] {
                    let buffer = self.b.full(a.dtype, &a.dims, 0.0);
                    init[i] = Value::List(ListValue { buffer });
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        let forms: Vec<Form> = init.iter().enumerate().map(|v| form(self, v)).collect();
        let Some(mut out) = self.emit_loop(cond, body, &init, &forms, &threaded)? else { return Ok(vec![None; n]) };
        let after = out.split_off(n);
        self.leave(&threaded, &after)?;
        Ok(out.into_iter().map(Some).collect())
    }

    /// The forms of the body's results, without leaving a computation behind.
    fn probe(&mut self, body: &FuncRef, forms: &[Form], threaded: &Threaded) -> Result<Option<Vec<Form>>> {
        let values = self.open("probe", forms);
        let out = self.call_inside(body, values, threaded);
        let after = out.map(|out| out.map(|out| out.iter().map(|v| self.form(v)).collect()));
        self.b.abandon();
        after
    }

    fn emit_loop(
        &mut self,
        cond: &FuncRef,
        body: &FuncRef,
        init: &[Value],
        forms: &[Form],
        threaded: &Threaded,
    ) -> Result<Option<Vec<Value>>> {
        let values = self.open(&cond.name, forms);
        let test = self.call_inside(cond, values, threaded)?;
        let cond_comp = match test.as_deref() {
            Some([test, ..]) => {
                let root = self.truth(test)?;
                Some(self.b.end(root))
            }
            _ => {
                self.b.abandon();
                None
            }
        };
        let values = self.open(&body.name, forms);
        let after = self.call_inside(body, values, threaded)?;
        let (Some(cond), Some(after)) = (cond_comp, after) else { return Ok(None) };
        let root = self.pack(&after, forms, "loop variable")?;
        let body = self.b.end(root);
        let state = self.pack(init, forms, "loop variable")?;
        let end = self.b.add_inst(Op::While { cond, body }, &[state]);
        Ok(Some(self.unpack(end, forms)))
    }
}

/// For each argument of a loop body, whether the body returns it as it is.
fn invariant(body: &Function) -> Vec<bool> {
    let origin = |mut e: Endpoint| {
        for _ in 0..body.graph.nodes.len() {
            let node = &body.graph.nodes[e.node];
            let next = match &*node.op {
                "Identity" | "StopGradient" | "PreventGradient" | "Snapshot" => node.inputs.first(),
                "IdentityN" => node.inputs.get(e.port as usize),
                _ => None,
            };
            match next {
                Some(&next) => e = next,
                None => break,
            }
        }
        e
    };
    body.args.iter().zip(&body.rets).map(|(&node, &ret)| origin(ret) == Endpoint { node, port: 0 }).collect()
}
