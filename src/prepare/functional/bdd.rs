//! Boolean formulas as reduced ordered binary decision diagrams (BDDs): equal formulas have equal ids.
use std::collections::HashMap;

/// Upper bound on the variables along a path of a diagram, which bounds recursion.
const MAX_DEPTH: u32 = 400;

/// Upper bound on the nodes of all diagrams.
const MAX_NODES: usize = 1 << 20;

/// Id of a formula.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bdd(u32);

impl Bdd {
    /// The formula that is always false.
    pub const FALSE: Bdd = Bdd(0);
    /// The formula that is always true.
    pub const TRUE: Bdd = Bdd(1);
}

/// Node of a diagram: a decision on one variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Decision {
    variable: u32,
    no: Bdd,
    yes: Bdd,
}

/// Owner of all formulas of a graph, with caches of operations.
#[derive(Debug)]
pub struct BddManager {
    decisions: Vec<(Decision, u32)>,
    numbers: HashMap<Decision, Bdd>,
    both: HashMap<(Bdd, Bdd, bool), Bdd>,
    fixed: HashMap<(Bdd, u32, bool), Bdd>,
    full: bool,
}

impl Default for BddManager {
    fn default() -> Self {
        let end = Decision { variable: u32::MAX, no: Bdd::FALSE, yes: Bdd::FALSE };
        BddManager {
            decisions: vec![(end, 0), (end, 0)],
            numbers: HashMap::new(),
            both: HashMap::new(),
            fixed: HashMap::new(),
            full: false,
        }
    }
}

impl BddManager {
    /// Whether a limit was exceeded, so that results are meaningless.
    pub fn limit_exceeded(&self) -> bool {
        self.full
    }
    fn intern_decision(&mut self, variable: u32, no: Bdd, yes: Bdd) -> Bdd {
        if no == yes {
            return no;
        }
        let new = Decision { variable, no, yes };
        if let Some(&found) = self.numbers.get(&new) {
            return found;
        }
        let deep = 1 + self.decisions[no.0 as usize].1.max(self.decisions[yes.0 as usize].1);
        if deep > MAX_DEPTH || self.decisions.len() >= MAX_NODES {
            self.full = true;
            return Bdd::FALSE;
        }
        let number = Bdd(self.decisions.len() as u32);
        self.decisions.push((new, deep));
        self.numbers.insert(new, number);
        number
    }
    /// Formula that is true where the variable has the value.
    pub fn literal(&mut self, variable: u32, value: bool) -> Bdd {
        if value {
            self.intern_decision(variable, Bdd::FALSE, Bdd::TRUE)
        } else {
            self.intern_decision(variable, Bdd::TRUE, Bdd::FALSE)
        }
    }
    /// Conjunction of two formulas.
    pub fn and(&mut self, a: Bdd, b: Bdd) -> Bdd {
        self.combine(a, b, true)
    }
    /// Disjunction of two formulas.
    pub fn or(&mut self, a: Bdd, b: Bdd) -> Bdd {
        self.combine(a, b, false)
    }
    fn combine(&mut self, a: Bdd, b: Bdd, and: bool) -> Bdd {
        let (neutral, absorbing) = if and { (Bdd::TRUE, Bdd::FALSE) } else { (Bdd::FALSE, Bdd::TRUE) };
        if a == b || b == neutral || a == absorbing {
            return a;
        }
        if a == neutral || b == absorbing {
            return b;
        }
        let key = (if a.0 < b.0 { a } else { b }, if a.0 < b.0 { b } else { a }, and);
        if let Some(&found) = self.both.get(&key) {
            return found;
        }
        let (x, y) = (self.decisions[a.0 as usize].0, self.decisions[b.0 as usize].0);
        let variable = x.variable.min(y.variable);
        let side = |d: Decision, f: Bdd, yes: bool| match d.variable == variable {
            true if yes => d.yes,
            true => d.no,
            false => f,
        };
        let no = self.combine(side(x, a, false), side(y, b, false), and);
        let yes = self.combine(side(x, a, true), side(y, b, true), and);
        let made = self.intern_decision(variable, no, yes);
        self.both.insert(key, made);
        made
    }
    /// Restriction of a formula: the variables of a path are replaced by their values.
    pub fn restrict(&mut self, formula: Bdd, path: &[(u32, bool)]) -> Bdd {
        path.iter().fold(formula, |f, &(variable, value)| self.restrict_variable(f, variable, value))
    }
    fn restrict_variable(&mut self, f: Bdd, variable: u32, value: bool) -> Bdd {
        let d = self.decisions[f.0 as usize].0;
        if d.variable > variable {
            return f;
        }
        if d.variable == variable {
            return if value { d.yes } else { d.no };
        }
        if let Some(&found) = self.fixed.get(&(f, variable, value)) {
            return found;
        }
        let (no, yes) = (self.restrict_variable(d.no, variable, value), self.restrict_variable(d.yes, variable, value));
        let made = self.intern_decision(d.variable, no, yes);
        self.fixed.insert((f, variable, value), made);
        made
    }
    /// Variables and their values if the formula is a cube, that is a conjunction of literals; `None` for any other formula.
    pub fn as_cube(&self, mut formula: Bdd) -> Option<Vec<(u32, bool)>> {
        let mut way = Vec::new();
        while formula != Bdd::TRUE {
            let d = self.decisions[formula.0 as usize].0;
            formula = match (d.no, d.yes) {
                (Bdd::FALSE, yes) if yes != Bdd::FALSE => yes,
                (no, Bdd::FALSE) if no != Bdd::FALSE => no,
                _ => return None,
            };
            way.push((d.variable, formula == d.yes));
        }
        Some(way)
    }
    /// First variable, in the order of the diagram, that a formula depends on; `None` for constant formulas.
    pub fn first_variable(&self, formula: Bdd) -> Option<u32> {
        let variable = self.decisions[formula.0 as usize].0.variable;
        (variable != u32::MAX).then_some(variable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_formulas_are_one() {
        let mut f = BddManager::default();
        let (p, not_p, q) = (f.literal(0, true), f.literal(0, false), f.literal(1, true));
        assert_eq!(f.or(p, not_p), Bdd::TRUE);
        assert_eq!(f.and(p, not_p), Bdd::FALSE);
        let (both, only_p) = (f.and(p, q), f.literal(1, false));
        let only_p = f.and(p, only_p);
        assert_eq!(f.or(both, only_p), p);
        assert_eq!(f.restrict(both, &[(0, true)]), q);
        assert_eq!(f.first_variable(both), Some(0));
    }

    #[test]
    fn a_conjunction_has_one_way() {
        let mut f = BddManager::default();
        let (p, not_q) = (f.literal(0, true), f.literal(1, false));
        let (both, either) = (f.and(p, not_q), f.or(p, not_q));
        assert_eq!(f.as_cube(both), Some(vec![(0, true), (1, false)]));
        assert_eq!((f.as_cube(either), f.as_cube(Bdd::FALSE)), (None, None));
        assert_eq!(f.as_cube(Bdd::TRUE), Some(Vec::new()));
    }

    #[test]
    fn long_chains_are_refused() {
        let mut f = BddManager::default();
        let all = (0..1000).rev().fold(Bdd::TRUE, |all, v| {
            let one = f.literal(v, true);
            f.and(one, all)
        });
        assert!(f.limit_exceeded(), "{all:?}");
    }
}
