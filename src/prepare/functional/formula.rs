//! Boolean formulas of numbered variables as reduced ordered decision diagrams: equal formulas are equal numbers.
use std::collections::HashMap;

/// More variables on one path of a diagram are refused, so that nothing recurses deeper.
const MOST_DEEP: u32 = 400;

/// Limit on the number of nodes of a diagram.
const MOST_NODES: usize = 1 << 20;

/// A formula.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bdd(u32);

impl Bdd {
    /// Never.
    pub const FALSE: Bdd = Bdd(0);
    /// Always.
    pub const TRUE: Bdd = Bdd(1);
}

/// A decision about one variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Decision {
    variable: u32,
    no: Bdd,
    yes: Bdd,
}

/// All formulas of a graph.
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
    /// Whether a formula was too large, so that the results are meaningless.
    pub fn is_full(&self) -> bool {
        self.full
    }
    fn decision(&mut self, variable: u32, no: Bdd, yes: Bdd) -> Bdd {
        if no == yes {
            return no;
        }
        let new = Decision { variable, no, yes };
        if let Some(&found) = self.numbers.get(&new) {
            return found;
        }
        let deep = 1 + self.decisions[no.0 as usize].1.max(self.decisions[yes.0 as usize].1);
        if deep > MOST_DEEP || self.decisions.len() >= MOST_NODES {
            self.full = true;
            return Bdd::FALSE;
        }
        let number = Bdd(self.decisions.len() as u32);
        self.decisions.push((new, deep));
        self.numbers.insert(new, number);
        number
    }
    /// The formula "this variable has this value".
    pub fn literal(&mut self, variable: u32, value: bool) -> Bdd {
        if value {
            self.decision(variable, Bdd::FALSE, Bdd::TRUE)
        } else {
            self.decision(variable, Bdd::TRUE, Bdd::FALSE)
        }
    }
    /// Both.
    pub fn and(&mut self, a: Bdd, b: Bdd) -> Bdd {
        self.combined(a, b, true)
    }
    /// Either.
    pub fn or(&mut self, a: Bdd, b: Bdd) -> Bdd {
        self.combined(a, b, false)
    }
    fn combined(&mut self, a: Bdd, b: Bdd, and: bool) -> Bdd {
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
        let no = self.combined(side(x, a, false), side(y, b, false), and);
        let yes = self.combined(side(x, a, true), side(y, b, true), and);
        let made = self.decision(variable, no, yes);
        self.both.insert(key, made);
        made
    }
    /// The formula where the variables of a path have their values.
    pub fn under(&mut self, formula: Bdd, path: &[(u32, bool)]) -> Bdd {
        path.iter().fold(formula, |f, &(variable, value)| self.fix(f, variable, value))
    }
    fn fix(&mut self, f: Bdd, variable: u32, value: bool) -> Bdd {
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
        let (no, yes) = (self.fix(d.no, variable, value), self.fix(d.yes, variable, value));
        let made = self.decision(d.variable, no, yes);
        self.fixed.insert((f, variable, value), made);
        made
    }
    /// The values of variables without which a formula is false, if they make it true.
    pub fn only_way(&self, mut formula: Bdd) -> Option<Vec<(u32, bool)>> {
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
    /// The first variable that a formula depends on.
    pub fn first(&self, formula: Bdd) -> Option<u32> {
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
        assert_eq!(f.under(both, &[(0, true)]), q);
        assert_eq!(f.first(both), Some(0));
    }

    #[test]
    fn a_conjunction_has_one_way() {
        let mut f = BddManager::default();
        let (p, not_q) = (f.literal(0, true), f.literal(1, false));
        let (both, either) = (f.and(p, not_q), f.or(p, not_q));
        assert_eq!(f.only_way(both), Some(vec![(0, true), (1, false)]));
        assert_eq!((f.only_way(either), f.only_way(Bdd::FALSE)), (None, None));
        assert_eq!(f.only_way(Bdd::TRUE), Some(Vec::new()));
    }

    #[test]
    fn long_chains_are_refused() {
        let mut f = BddManager::default();
        let all = (0..1000).rev().fold(Bdd::TRUE, |all, v| {
            let one = f.literal(v, true);
            f.and(one, all)
        });
        assert!(f.is_full(), "{all:?}");
    }
}
