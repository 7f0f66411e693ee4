//! Sequential code: scalar variables, and loops whose bounds are known at run time only.
use crate::kernel::Atom;
use crate::scalar::{CompareKind, Direction};
use crate::schedule::loops::prelude::*;

/// A scalar variable of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct LocalVariable {
    reg: RegId,
    /// The expression that reads the variable.
    pub value: ExprId,
}

impl LocalVariable {
    /// Declares a variable of this type, without a value.
    pub fn new(k: &mut Kernel, dtype: DType) -> LocalVariable {
        let reg = k.add_reg(dtype, 1, 1);
        let value = k.read_reg(reg, 0);
        LocalVariable { reg, value }
    }
    /// Sets the variable to a value.
    pub fn set(self, value: ExprId) -> Stmt {
        Stmt::set(self.reg, 0, value)
    }
    /// The value of the variable as an index; its type must be `s64`.
    pub fn index(self) -> Index {
        Index::atom(Atom::Value(self.value))
    }
    /// Sets the variable to the value of an index.
    pub fn set_to_index(self, k: &mut Kernel, index: &Index) -> Stmt {
        let value = index_to_s64(k, index);
        self.set(value)
    }
    /// Adds a constant to the variable.
    pub fn add_constant(self, k: &mut Kernel, by: i64) -> Stmt {
        self.set_to_index(k, &self.index().offset(by))
    }
}

/// Converts an index to an `s64` expression.
pub fn index_to_s64(k: &mut Kernel, index: &Index) -> ExprId {
    k.add_expr(Expr::Number(index.clone(), DType::S64))
}

/// `a < b`, by value.
pub fn less_than(k: &mut Kernel, a: ExprId, b: ExprId) -> ExprId {
    k.add_op(ScalarOp::Compare(Direction::Lt, CompareKind::Partial), &[a, b], DType::Pred)
}

/// Emits `for counter in from..to { body }` with bounds known at run time; `to` is evaluated again before each iteration.
pub fn emit_counted_loop(
    k: &mut Kernel,
    counter: LocalVariable,
    from: &Index,
    to: ExprId,
    mut body: Vec<Stmt>,
) -> [Stmt; 2] {
    let start = counter.set_to_index(k, from);
    let cond = less_than(k, counter.value, to);
    body.push(counter.add_constant(k, 1));
    [start, Stmt::While { cond, body }]
}

/// Makes `body` the body of the kernel inside loops over `vars`, outermost first; the first with more than one iteration is divided into
/// chunks.
pub fn set_nested_body(k: &mut Kernel, vars: &[VarId], body: Vec<Stmt>) {
    let mut vars: Vec<VarId> = vars.to_vec();
    k.chunks = (!vars.is_empty()).then(|| {
        let first = vars.iter().position(|&v| k.vars[v] > 1).unwrap_or(0);
        vars.remove(first)
    });
    k.body = nest_loops(&vars, body);
}
