//! Formulas as HLO text.
use std::fmt::Write;
use tfaot::scalar::ScalarOp;
use tfaot::scalar::formula::ScalarBuilder;

/// Instructions of one shape, the values of a formula; what they are of is `x`.
pub struct Lines {
    shape: String,
    text: String,
    names: Vec<String>,
}

impl Lines {
    /// The instructions of `formula` of `x`, and the name of the last one.
    pub fn of(shape: &str, formula: impl FnOnce(&mut Lines, usize) -> usize) -> (String, String) {
        let mut lines = Lines { shape: shape.to_string(), text: String::new(), names: vec!["x".into()] };
        let last = formula(&mut lines, 0);
        (lines.text, lines.names.swap_remove(last))
    }

    fn named(&mut self, instruction: &str) -> usize {
        let name = format!("v{}", self.names.len());
        let _ = writeln!(self.text, "  {name} = {instruction}");
        self.names.push(name);
        self.names.len() - 1
    }
}

impl ScalarBuilder for Lines {
    type Value = usize;

    fn number(&mut self, value: f64) -> usize {
        let scalar = self.named(&format!("f32[] constant({value})"));
        self.named(&format!("{} broadcast({}), dimensions={{}}", self.shape, self.names[scalar]))
    }

    fn op(&mut self, op: ScalarOp, args: &[usize]) -> usize {
        let (shape, attributes) = match op {
            ScalarOp::Compare(..) => (self.shape.replace("f32", "pred"), ", direction=LT"),
            _ => (self.shape.clone(), ""),
        };
        let args: Vec<&str> = args.iter().map(|&a| &*self.names[a]).collect();
        self.named(&format!("{shape} {}({}){attributes}", op.name(), args.join(", ")))
    }
}
