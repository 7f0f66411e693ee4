//! Liveness predicates. They are hash-consed: two predicates are equal if their ids are.
//!
//! Simplification follows TensorFlow's step by step, including the limit of nesting, because the clusters depend on which predicates
//! become identical and which do not.
use std::collections::{HashMap, HashSet};

/// Id of a hash-consed [`Predicate`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PredicateId(pub u32);

/// A Boolean formula over liveness and values of tensors.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Predicate {
    /// Conjunction; the empty one is true.
    And(Box<[PredicateId]>),
    /// Disjunction; the empty one is false.
    Or(Box<[PredicateId]>),
    /// Negation.
    Not(PredicateId),
    /// And-recurrence, the predicate of a value that a loop carries: `start` in the first iteration, and with `step` in each further one.
    AndRec {
        /// The predicate in the first iteration.
        start: PredicateId,
        /// The conjunct that each further iteration adds.
        step: PredicateId,
        /// Name ids of the surrounding frames.
        path: Box<[u32]>,
    },
    /// An output of a node is alive, or alive and true.
    Symbol {
        /// Id of the graph node whose output is the predicate.
        node: u32,
        /// Number of the output; -1 for control.
        port: i32,
        /// Whether the output must also be true.
        must_be_true: bool,
    },
    /// An output is alive and equals `value`.
    Equals {
        /// Number of the node.
        node: u32,
        /// Number of the output.
        port: i32,
        /// The integer that selects a branch.
        value: i32,
    },
}

/// Depth of nested simplifications from which on nothing is simplified, as in TensorFlow.
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
    fn make(self, ops: Box<[PredicateId]>) -> Predicate {
        match self {
            Op::And => Predicate::And(ops),
            Op::Or => Predicate::Or(ops),
        }
    }
}

/// All predicates of one analysis.
#[derive(Default)]
pub struct PredicateTable {
    formulas: Vec<Predicate>,
    known: HashMap<Predicate, PredicateId>,
    negations: HashMap<PredicateId, PredicateId>,
    same: HashMap<PredicateId, PredicateId>,
    depth: u32,
}

impl PredicateTable {
    /// The predicate with the id `pred`.
    pub fn get(&self, pred: PredicateId) -> &Predicate {
        &self.formulas[pred.0 as usize]
    }
    /// Interns a predicate, without simplifying it, and returns its id.
    pub fn intern(&mut self, formula: Predicate) -> PredicateId {
        if let Some(&known) = self.known.get(&formula) {
            return known;
        }
        let pred = PredicateId(self.formulas.len() as u32);
        self.formulas.push(formula.clone());
        self.known.insert(formula, pred);
        pred
    }
    /// The constant true.
    pub fn always_true(&mut self) -> PredicateId {
        self.intern(Predicate::And([].into()))
    }
    /// The constant false.
    pub fn always_false(&mut self) -> PredicateId {
        self.intern(Predicate::Or([].into()))
    }
    /// The simplified conjunction of `ops`.
    pub fn and(&mut self, ops: &[PredicateId]) -> PredicateId {
        // Most nodes have inputs with one predicate in common.
        let alike = ops.first().copied().filter(|first| self.depth == 0 && ops.iter().all(|op| op == first));
        let Some(first) = alike else { return self.combine(Op::And, ops) };
        if let Some(&known) = self.same.get(&first) {
            return known;
        }
        let made = self.combine(Op::And, ops);
        self.same.insert(first, made);
        made
    }
    /// The simplified disjunction of `ops`.
    pub fn or(&mut self, ops: &[PredicateId]) -> PredicateId {
        self.combine(Op::Or, ops)
    }
    /// The simplified negation of `pred`.
    pub fn not(&mut self, pred: PredicateId) -> PredicateId {
        if let Some(&known) = self.negations.get(&pred) {
            return known;
        }
        self.depth += 1;
        let made = self.negate(pred);
        self.depth -= 1;
        self.negations.insert(pred, made);
        made
    }

    fn negate(&mut self, pred: PredicateId) -> PredicateId {
        if self.depth < MOST_DEPTH {
            match self.get(pred).clone() {
                Predicate::And(ops) => {
                    let ops: Vec<PredicateId> = ops.iter().map(|&op| self.not(op)).collect();
                    return self.combine(Op::Or, &ops);
                }
                Predicate::Or(ops) => {
                    let ops: Vec<PredicateId> = ops.iter().map(|&op| self.not(op)).collect();
                    return self.combine(Op::And, &ops);
                }
                Predicate::Not(inner) => return inner,
                Predicate::AndRec { .. } | Predicate::Symbol { .. } | Predicate::Equals { .. } => {}
            }
        }
        self.intern(Predicate::Not(pred))
    }

    fn combine(&mut self, op: Op, ops: &[PredicateId]) -> PredicateId {
        self.depth += 1;
        let made = if self.depth >= MOST_DEPTH { self.intern_sorted(op, ops.to_vec()) } else { self.simplify(op, ops) };
        self.depth -= 1;
        made
    }

    fn intern_sorted(&mut self, op: Op, mut ops: Vec<PredicateId>) -> PredicateId {
        ops.sort_unstable();
        self.intern(op.make(ops.into()))
    }

    /// The operands of `pred` if its kind is `op`.
    fn operands(&self, op: Op, pred: PredicateId) -> Option<&[PredicateId]> {
        match (op, self.get(pred)) {
            (Op::And, Predicate::And(ops)) | (Op::Or, Predicate::Or(ops)) => Some(ops),
            _ => None,
        }
    }

    fn simplify(&mut self, op: Op, ops: &[PredicateId]) -> PredicateId {
        let (flat, seen) = self.flatten(op, ops);
        if let [only] = flat[..] {
            return only;
        }
        let mut negated: HashSet<PredicateId> = HashSet::new();
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
        self.factor_common(op, flat)
    }

    /// Operands with nested ones of the same kind expanded, in the order of first occurrence, and every predicate that was visited.
    fn flatten(&self, op: Op, ops: &[PredicateId]) -> (Vec<PredicateId>, HashSet<PredicateId>) {
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

    /// Rewrites `{S,&,X} & ~X` to S: a loop that ended was alive at its start.
    fn end_loops(&mut self, ops: Vec<PredicateId>, negated: &HashSet<PredicateId>) -> Vec<PredicateId> {
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
        let mut left: Vec<PredicateId> = ops.into_iter().filter(|p| !gone.contains(p)).collect();
        left.extend(added);
        left
    }

    /// Factors out the operands that all of `ops`, being of the dual kind, have in common.
    fn factor_common(&mut self, op: Op, ops: Vec<PredicateId>) -> PredicateId {
        let mut common: Vec<PredicateId> = Vec::new();
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
            return self.intern_sorted(op, ops);
        }
        let mut rests = Vec::with_capacity(ops.len());
        for &one in &ops {
            let inner = self.operands(op.dual(), one).unwrap_or_default();
            let rest: Vec<PredicateId> = inner.iter().copied().filter(|q| !common.contains(q)).collect();
            rests.push(self.combine(op.dual(), &rest));
        }
        let mut all = vec![self.combine(op, &rests)];
        all.extend(common);
        self.combine(op.dual(), &all)
    }

    /// The operands of a predicate.
    fn all_operands(&self, pred: PredicateId) -> Vec<PredicateId> {
        match self.get(pred) {
            Predicate::And(ops) | Predicate::Or(ops) => ops.to_vec(),
            Predicate::Not(inner) => vec![*inner],
            Predicate::AndRec { start, step, .. } => vec![*start, *step],
            Predicate::Symbol { .. } | Predicate::Equals { .. } => Vec::new(),
        }
    }
    /// Whether `part` occurs anywhere in `whole`.
    pub fn occurs(&self, part: PredicateId, whole: PredicateId) -> bool {
        let (mut open, mut seen) = (vec![whole], HashSet::new());
        while let Some(at) = open.pop() {
            if at == part {
                return true;
            }
            open.extend(self.all_operands(at).into_iter().filter(|&q| seen.insert(q)));
        }
        false
    }

    /// A predicate as TensorFlow prints it, truncated after about `most` bytes.
    pub fn text(&self, pred: PredicateId, names: &dyn PredicateNames, most: usize) -> String {
        enum Step {
            Formula(PredicateId),
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
            let list = |ops: &[PredicateId], sign: &str, todo: &mut Vec<Step>| {
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

/// Names of nodes and frames for printing predicates.
pub trait PredicateNames {
    /// The name of a node.
    fn node(&self, n: u32) -> &str;
    /// The name of a frame.
    fn frame(&self, name: u32) -> &str;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(f: &mut PredicateTable, node: u32) -> PredicateId {
        f.intern(Predicate::Symbol { node, port: 0, must_be_true: true })
    }

    #[test]
    fn both_branches_together_are_always() {
        let mut f = PredicateTable::default();
        let p = symbol(&mut f, 2);
        let not = f.not(p);
        let (yes, no) = (f.always_true(), f.always_false());
        assert_eq!(f.or(&[not, p]), yes);
        assert_eq!(f.and(&[not, p]), no);
        assert_eq!(f.not(not), p);
    }

    #[test]
    fn a_loop_that_ended_was_alive_at_its_start() {
        let mut f = PredicateTable::default();
        let (start, step) = (symbol(&mut f, 2), symbol(&mut f, 3));
        let carried = f.intern(Predicate::AndRec { start, step, path: [1].into() });
        let ended = f.not(step);
        let after = f.and(&[ended, carried]);
        assert_eq!(f.and(&[after]), start);
    }

    #[test]
    fn what_all_have_in_common_comes_out() {
        let mut f = PredicateTable::default();
        let (a, b, c) = (symbol(&mut f, 2), symbol(&mut f, 3), symbol(&mut f, 4));
        let (ab, ac) = (f.and(&[a, b]), f.and(&[a, c]));
        let bc = f.or(&[b, c]);
        let want = f.and(&[bc, a]);
        assert_eq!(f.or(&[ab, ac]), want);
    }
}
