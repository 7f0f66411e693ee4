//! Formulas of liveness. They are hash-consed: two formulas are the same where their ids are.
//!
//! Simplification follows TensorFlow's step by step, its limit of nesting included, as the clusters depend on which formulas
//! become the same object and which do not.
use std::collections::{HashMap, HashSet};

/// A formula.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pred(pub u32);

/// A Boolean formula over liveness and values of tensors.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Predicate {
    /// All of these; of none: true.
    And(Box<[Pred]>),
    /// One of these; of none: false.
    Or(Box<[Pred]>),
    /// The contrary.
    Not(Pred),
    /// A value that a loop carries: alive at the start, and as long as the step holds.
    AndRec {
        /// The predicate in the first iteration.
        start: Pred,
        /// Operand that further iterations add to the predicate.
        step: Pred,
        /// The frames around, as name ids.
        path: Box<[u32]>,
    },
    /// An output of a node (control: -1) is alive, or alive and true.
    Symbol {
        /// The node.
        node: u32,
        /// The output's number; -1: control.
        port: i32,
        /// Whether it must be true.
        must_be_true: bool,
    },
    /// An output is alive and has this value.
    Equals {
        /// The node.
        node: u32,
        /// The output's number.
        port: i32,
        /// The value.
        value: i32,
    },
}

/// Nesting from which on nothing is simplified any more.
const MOST_DEPTH: u32 = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    And,
    Or,
}

impl Op {
    fn dual(self) -> Op {
        match self {
            Op::And => Op::Or,
            Op::Or => Op::And,
        }
    }
    fn make(self, ops: Box<[Pred]>) -> Predicate {
        match self {
            Op::And => Predicate::And(ops),
            Op::Or => Predicate::Or(ops),
        }
    }
}

/// All formulas of one analysis.
#[derive(Default)]
pub struct Predicates {
    formulas: Vec<Predicate>,
    known: HashMap<Predicate, Pred>,
    negations: HashMap<Pred, Pred>,
    same: HashMap<Pred, Pred>,
    depth: u32,
}

impl Predicates {
    /// The formula that the handle `pred` stands for.
    pub fn get(&self, pred: Pred) -> &Predicate {
        &self.formulas[pred.0 as usize]
    }
    /// The object of a formula as it is.
    pub fn intern(&mut self, formula: Predicate) -> Pred {
        if let Some(&known) = self.known.get(&formula) {
            return known;
        }
        let pred = Pred(self.formulas.len() as u32);
        self.formulas.push(formula.clone());
        self.known.insert(formula, pred);
        pred
    }
    /// Always.
    pub fn yes(&mut self) -> Pred {
        self.intern(Predicate::And([].into()))
    }
    /// Never.
    pub fn no(&mut self) -> Pred {
        self.intern(Predicate::Or([].into()))
    }
    /// All of `ops`.
    pub fn and(&mut self, ops: &[Pred]) -> Pred {
        // Most nodes have inputs that live and die together.
        let alike = ops.first().copied().filter(|first| self.depth == 0 && ops.iter().all(|op| op == first));
        let Some(first) = alike else { return self.combine(Op::And, ops) };
        if let Some(&known) = self.same.get(&first) {
            return known;
        }
        let made = self.combine(Op::And, ops);
        self.same.insert(first, made);
        made
    }
    /// One of `ops`.
    pub fn or(&mut self, ops: &[Pred]) -> Pred {
        self.combine(Op::Or, ops)
    }
    /// The contrary of `pred`.
    pub fn not(&mut self, pred: Pred) -> Pred {
        if let Some(&known) = self.negations.get(&pred) {
            return known;
        }
        self.depth += 1;
        let made = self.negate(pred);
        self.depth -= 1;
        self.negations.insert(pred, made);
        made
    }

    fn negate(&mut self, pred: Pred) -> Pred {
        if self.depth < MOST_DEPTH {
            match self.get(pred).clone() {
                Predicate::And(ops) => {
                    let ops: Vec<Pred> = ops.iter().map(|&op| self.not(op)).collect();
                    return self.combine(Op::Or, &ops);
                }
                Predicate::Or(ops) => {
                    let ops: Vec<Pred> = ops.iter().map(|&op| self.not(op)).collect();
                    return self.combine(Op::And, &ops);
                }
                Predicate::Not(inner) => return inner,
                Predicate::AndRec { .. } | Predicate::Symbol { .. } | Predicate::Equals { .. } => {}
            }
        }
        self.intern(Predicate::Not(pred))
    }

    fn combine(&mut self, op: Op, ops: &[Pred]) -> Pred {
        self.depth += 1;
        let made = if self.depth >= MOST_DEPTH { self.as_given(op, ops.to_vec()) } else { self.simplified(op, ops) };
        self.depth -= 1;
        made
    }

    fn as_given(&mut self, op: Op, mut ops: Vec<Pred>) -> Pred {
        ops.sort_unstable();
        self.intern(op.make(ops.into()))
    }

    /// The operands if `pred` is of kind `op`.
    fn operands(&self, op: Op, pred: Pred) -> Option<&[Pred]> {
        match (op, self.get(pred)) {
            (Op::And, Predicate::And(ops)) | (Op::Or, Predicate::Or(ops)) => Some(ops),
            _ => None,
        }
    }

    fn simplified(&mut self, op: Op, ops: &[Pred]) -> Pred {
        let (flat, seen) = self.flatten(op, ops);
        if let [only] = flat[..] {
            return only;
        }
        let mut negated: HashSet<Pred> = HashSet::new();
        for &one in &flat {
            let contrary = self.not(one);
            let clash = negated.contains(&one)
                || self.operands(op, contrary).is_some_and(|ops| ops.iter().all(|q| seen.contains(q)));
            if clash {
                return self.combine(op.dual(), &[]);
            }
            negated.insert(contrary);
        }
        let flat = if op == Op::And { self.end_loops(flat, &negated) } else { flat };
        self.factor(op, flat)
    }

    /// Operands of operands of the same kind, each once, in the order in which they are met.
    fn flatten(&self, op: Op, ops: &[Pred]) -> (Vec<Pred>, HashSet<Pred>) {
        let (mut flat, mut seen) = (Vec::new(), HashSet::new());
        for &one in ops {
            if !seen.insert(one) {
                continue;
            }
            match self.operands(op, one) {
                Some(inner) => flat.extend(inner.iter().filter(|&&q| seen.insert(q))),
                None => flat.push(one),
            }
        }
        (flat, seen)
    }

    /// `{S,&,X} & ~X` is S: a loop that ended was alive at its start.
    fn end_loops(&mut self, ops: Vec<Pred>, negated: &HashSet<Pred>) -> Vec<Pred> {
        let (mut gone, mut added) = (HashSet::new(), Vec::new());
        for &one in &ops {
            if let Predicate::AndRec { start, step, .. } = *self.get(one)
                && negated.contains(&step)
            {
                gone.insert(one);
                gone.insert(self.not(step));
                added.push(start);
            }
        }
        let mut left: Vec<Pred> = ops.into_iter().filter(|p| !gone.contains(p)).collect();
        left.extend(added);
        left
    }

    /// Takes operands out that all operands, being of the dual kind, have in common.
    fn factor(&mut self, op: Op, ops: Vec<Pred>) -> Pred {
        let mut common: Vec<Pred> = Vec::new();
        for &one in &ops {
            let Some(inner) = self.operands(op.dual(), one) else {
                common.clear();
                break;
            };
            common = if common.is_empty() {
                inner.to_vec()
            } else {
                inner.iter().copied().filter(|q| common.contains(q)).collect()
            };
            if common.is_empty() {
                break;
            }
        }
        if common.is_empty() {
            return self.as_given(op, ops);
        }
        let mut rests = Vec::with_capacity(ops.len());
        for &one in &ops {
            let inner = self.operands(op.dual(), one).unwrap_or_default();
            let rest: Vec<Pred> = inner.iter().copied().filter(|q| !common.contains(q)).collect();
            rests.push(self.combine(op.dual(), &rest));
        }
        let mut all = vec![self.combine(op, &rests)];
        all.extend(common);
        self.combine(op.dual(), &all)
    }

    /// The formulas that `pred` is made of.
    fn parts(&self, pred: Pred) -> Vec<Pred> {
        match self.get(pred) {
            Predicate::And(ops) | Predicate::Or(ops) => ops.to_vec(),
            Predicate::Not(inner) => vec![*inner],
            Predicate::AndRec { start, step, .. } => vec![*start, *step],
            Predicate::Symbol { .. } | Predicate::Equals { .. } => Vec::new(),
        }
    }
    /// Whether `part` occurs in `whole`.
    pub fn occurs(&self, part: Pred, whole: Pred) -> bool {
        let (mut open, mut seen) = (vec![whole], HashSet::new());
        while let Some(at) = open.pop() {
            if at == part {
                return true;
            }
            open.extend(self.parts(at).into_iter().filter(|&q| seen.insert(q)));
        }
        false
    }

    /// The text of a formula as TensorFlow prints it, cut after about `most` bytes. `name` names nodes, `frame` frames.
    pub fn text(&self, pred: Pred, names: &dyn PredicateNames, most: usize) -> String {
        enum Step {
            Formula(Pred),
            Text(String),
        }
        let mut out = String::new();
        let mut todo = vec![Step::Formula(pred)];
        while let Some(step) = todo.pop() {
            if out.len() > most {
                out.push_str("...");
                break;
            }
            let pred = match step {
                Step::Text(text) => {
                    out.push_str(&text);
                    continue;
                }
                Step::Formula(pred) => pred,
            };
            let list = |ops: &[Pred], sign: &str, todo: &mut Vec<Step>| {
                todo.push(Step::Text(")".into()));
                for (i, &op) in ops.iter().enumerate().rev() {
                    todo.push(Step::Formula(op));
                    todo.push(Step::Text(if i == 0 { "(".into() } else { format!(" {sign} ") }));
                }
            };
            match self.get(pred) {
                Predicate::And(ops) if ops.is_empty() => out.push_str("#true"),
                Predicate::Or(ops) if ops.is_empty() => out.push_str("#false"),
                Predicate::And(ops) => list(ops, "&", &mut todo),
                Predicate::Or(ops) => list(ops, "|", &mut todo),
                Predicate::Not(inner) => {
                    out.push('~');
                    todo.push(Step::Formula(*inner));
                }
                Predicate::AndRec { start, step, path } => {
                    let path: Vec<&str> = path.iter().map(|&f| names.frame(f)).collect();
                    out.push('{');
                    todo.push(Step::Text(format!("}}<{}>", path.join(";"))));
                    todo.push(Step::Formula(*step));
                    todo.push(Step::Text(",&,".into()));
                    todo.push(Step::Formula(*start));
                }
                Predicate::Symbol { node, port: -1, must_be_true } => {
                    out.push_str(&format!("{}^{}", if *must_be_true { "*" } else { "" }, names.node(*node)))
                }
                Predicate::Symbol { node, port, must_be_true } => {
                    out.push_str(&format!("{}{}:{port}", if *must_be_true { "*" } else { "" }, names.node(*node)))
                }
                Predicate::Equals { node, port, value } => {
                    out.push_str(&format!("{}:{port}={value}", names.node(*node)))
                }
            }
        }
        out
    }
}

/// Names for printing formulas.
pub trait PredicateNames {
    /// The name of a node.
    fn node(&self, n: u32) -> &str;
    /// The name of a frame.
    fn frame(&self, name: u32) -> &str;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(f: &mut Predicates, node: u32) -> Pred {
        f.intern(Predicate::Symbol { node, port: 0, must_be_true: true })
    }

    #[test]
    fn both_branches_together_are_always() {
        let mut f = Predicates::default();
        let p = symbol(&mut f, 2);
        let not = f.not(p);
        let (yes, no) = (f.yes(), f.no());
        assert_eq!(f.or(&[not, p]), yes);
        assert_eq!(f.and(&[not, p]), no);
        assert_eq!(f.not(not), p);
    }

    #[test]
    fn a_loop_that_ended_was_alive_at_its_start() {
        let mut f = Predicates::default();
        let (start, step) = (symbol(&mut f, 2), symbol(&mut f, 3));
        let carried = f.intern(Predicate::AndRec { start, step, path: [1].into() });
        let ended = f.not(step);
        let after = f.and(&[ended, carried]);
        assert_eq!(f.and(&[after]), start);
    }

    #[test]
    fn what_all_have_in_common_comes_out() {
        let mut f = Predicates::default();
        let (a, b, c) = (symbol(&mut f, 2), symbol(&mut f, 3), symbol(&mut f, 4));
        let (ab, ac) = (f.and(&[a, b]), f.and(&[a, c]));
        let bc = f.or(&[b, c]);
        let want = f.and(&[bc, a]);
        assert_eq!(f.or(&[ab, ac]), want);
    }
}
