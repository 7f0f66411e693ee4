//! Loops and conditions of C in the place of jumps.
//!
//! A function is a list of lines with labels and jumps, as the instruction text has them. A jump back to a label is the end of a loop, one
//! to the label behind a loop leaves it, and a conditional one to a label further on is a condition around the lines between. Braces
//! always stand around lines that follow one another, so that what remains as `goto` means what it meant.
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// A line of C in a function's body, before jumps become loops and conditions.
#[derive(Debug)]
pub enum SourceLine {
    Text(String),
    Label(String),
    Jump(Jump),
}

/// A conditional or unconditional jump to a label.
#[derive(Clone, Debug)]
pub struct Jump {
    /// The condition; `None` for an unconditional jump.
    pub test: Option<JumpCondition>,
    /// Assignments to the phis of the target block.
    pub edge: String,
    pub to: String,
    /// An upper limit of the iterations of the loop that the jump closes, if it is known.
    pub rounds: Option<u64>,
}

/// The condition of a jump.
#[derive(Clone, Debug)]
pub struct JumpCondition {
    pub value: String,
    /// Whether the jump is taken if the value is false.
    pub is_negated: bool,
}

impl JumpCondition {
    fn text(&self, is_negated: bool) -> String {
        if self.is_negated == is_negated { self.value.clone() } else { format!("!{}", self.value) }
    }
}

/// Prints the lines as structured C (loops, conditions, and `goto` for the remaining jumps) with the indentation of a function's body.
pub fn structured_text(lines: &[SourceLine], name: impl Fn(&str) -> String) -> String {
    let (mut places, mut first) = (HashMap::new(), 0);
    for (i, line) in lines.iter().enumerate() {
        if let SourceLine::Label(label) = line {
            // labels that follow one another are one place
            let is_alias = i > 0 && matches!(lines[i - 1], SourceLine::Label(_));
            first = if is_alias { first } else { i };
            places.insert(label.as_str(), first);
        }
    }
    let mut last_back = HashMap::new();
    for (i, line) in lines.iter().enumerate() {
        if let SourceLine::Jump(jump) = line
            && let Some(&at) = places.get(jump.to.as_str())
            && at < i
        {
            last_back.insert(at, i);
        }
    }
    let mut writer = StructuredText { lines, places, last_back, out: Vec::new(), targets: HashSet::new() };
    writer.write(0..lines.len(), None, 1);
    let mut out = String::new();
    for (depth, line) in &writer.out {
        match line {
            OutLine::Text(text) => out += &format!("{}{text}\n", "  ".repeat(*depth)),
            OutLine::Label(at) if writer.targets.contains(at) => {
                if let SourceLine::Label(label) = &lines[*at] {
                    out += &format!("{}:;\n", name(label));
                }
            }
            OutLine::Label(_) => {}
            OutLine::Goto(before, at) => {
                if let SourceLine::Label(label) = &lines[*at] {
                    let after = if before.ends_with("{ ") || before.contains(" { ") { " }" } else { "" };
                    out += &format!("{}{before}goto {};{after}\n", "  ".repeat(*depth), name(label));
                }
            }
        }
    }
    out
}

/// A line of structured C.
enum OutLine {
    Text(String),
    /// The label at this line number, left out if no jump to it remains.
    Label(usize),
    /// A `goto` to the label at this line number, with the text before it.
    Goto(String, usize),
}

struct StructuredText<'l> {
    lines: &'l [SourceLine],
    /// The line number of each label.
    places: HashMap<&'l str, usize>,
    /// The last backward jump to the label at each line number.
    last_back: HashMap<usize, usize>,
    out: Vec<(usize, OutLine)>,
    /// Line numbers of labels that are still the target of a `goto`.
    targets: HashSet<usize>,
}

impl StructuredText<'_> {
    fn line(&mut self, depth: usize, text: impl Into<String>) {
        self.out.push((depth, OutLine::Text(text.into())));
    }

    fn edge(&mut self, depth: usize, edge: &str) {
        if !edge.is_empty() {
            self.line(depth, edge.trim_end());
        }
    }

    /// The line number of the label that a jump leads to.
    fn place(&self, jump: &Jump) -> usize {
        self.places.get(jump.to.as_str()).copied().unwrap_or(usize::MAX)
    }

    /// Writes a range of lines; `behind` is the line number after the innermost enclosing loop.
    fn write(&mut self, range: Range<usize>, behind: Option<usize>, depth: usize) {
        let lines = self.lines;
        let mut i = range.start;
        while i < range.end {
            i = match &lines[i] {
                SourceLine::Text(text) => {
                    self.line(depth, text.as_str());
                    i + 1
                }
                SourceLine::Label(_) => {
                    self.out.push((depth, OutLine::Label(i)));
                    match self.last_back.get(&i).copied().filter(|last| *last < range.end) {
                        Some(last) => self.write_loop(i, last, depth),
                        None => i + 1,
                    }
                }
                SourceLine::Jump(jump) => self.write_jump(jump, i, range.end, behind, depth),
            };
        }
    }

    /// Writes the loop from the label at `from` to the jump back at `last`; returns the line number after it.
    fn write_loop(&mut self, from: usize, last: usize, depth: usize) -> usize {
        let SourceLine::Jump(jump) = &self.lines[last] else { return from + 1 };
        let jump = jump.clone();
        let behind = matches!(self.lines.get(last + 1), Some(SourceLine::Label(_))).then_some(last + 1);
        let bound = jump.rounds.map_or(String::new(), |n| format!(" /* at most {n} rounds */"));
        self.line(depth, format!("for (;;) {{{bound}"));
        self.write(from + 1..last, behind, depth + 1);
        if let Some(test) = &jump.test {
            self.line(depth + 1, format!("if ({}) {{ break; }}", test.text(true)));
        }
        self.edge(depth + 1, &jump.edge);
        self.line(depth, "}");
        last + 1
    }

    /// Writes the jump at `i` of a range that ends at `end`; returns the line number after what was written.
    fn write_jump(&mut self, jump: &Jump, i: usize, end: usize, behind: Option<usize>, depth: usize) -> usize {
        let to = self.place(jump);
        let Some(test) = &jump.test else {
            match to {
                _ if to == i + 1 => self.edge(depth, &jump.edge),
                _ if Some(to) == behind => {
                    self.edge(depth, &jump.edge);
                    self.line(depth, "break;");
                }
                _ => self.goto(depth, jump.edge.clone(), to),
            }
            return i + 1;
        };
        if Some(to) == behind {
            self.line(depth, format!("if ({}) {{ {}break; }}", test.text(false), jump.edge));
            return i + 1;
        }
        if to <= i || to > end {
            self.goto(depth, format!("if ({}) {{ {}", test.text(false), jump.edge), to);
            return i + 1;
        }
        self.line(depth, format!("if ({}) {{", test.text(true)));
        // a jump over what stands behind the label is the end of one of two branches
        let over = match &self.lines[to - 1] {
            SourceLine::Jump(last) if last.test.is_none() && to - 1 > i => Some(last.clone()),
            _ => None,
        };
        let over = over.map(|last| (self.place(&last), last)).filter(|(at, _)| (to + 1..=end).contains(at));
        let Some((join, last)) = over.filter(|(at, _)| Some(*at) != behind) else {
            self.write(i + 1..to, behind, depth + 1);
            if !jump.edge.is_empty() {
                self.line(depth, "} else {");
                self.edge(depth + 1, &jump.edge);
            }
            self.line(depth, "}");
            return to;
        };
        self.write(i + 1..to - 1, behind, depth + 1);
        self.edge(depth + 1, &last.edge);
        self.line(depth, "} else {");
        self.edge(depth + 1, &jump.edge);
        self.write(to..join, behind, depth + 1);
        self.line(depth, "}");
        join
    }

    fn goto(&mut self, depth: usize, before: String, to: usize) {
        self.targets.insert(to);
        self.out.push((depth, OutLine::Goto(before, to)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> SourceLine {
        let jump = |test: Option<JumpCondition>, to: &str| {
            SourceLine::Jump(Jump { test, edge: String::new(), to: to.into(), rounds: None })
        };
        match text.split(' ').collect::<Vec<_>>()[..] {
            ["goto", to] => jump(None, to),
            ["if", value, to] => {
                let is_negated = value.starts_with('!');
                jump(Some(JumpCondition { value: value.trim_start_matches('!').into(), is_negated }), to)
            }
            [label] if label.ends_with(':') => SourceLine::Label(label.trim_end_matches(':').into()),
            _ => SourceLine::Text(format!("{text};")),
        }
    }

    fn structured(lines: &[&str]) -> String {
        let lines: Vec<SourceLine> = lines.iter().map(|text| line(text)).collect();
        structured_text(&lines, |label| label.to_string()).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn loops_are_tested_at_both_ends() {
        let head = ["a", "l:", "b", "if !c e", "d", "goto l", "e:", "f"];
        assert_eq!(structured(&head), "a; for (;;) { b; if (!c) { break; } d; } f;");
        let end = ["a", "l:", "b", "m:", "c", "if d m", "if e l", "f"];
        assert_eq!(structured(&end), "a; for (;;) { b; for (;;) { c; if (!d) { break; } } if (!e) { break; } } f;");
    }

    #[test]
    fn conditions_have_branches() {
        assert_eq!(structured(&["if !a e", "b", "e:", "c"]), "if (a) { b; } c;");
        let both = ["if !a x", "b", "goto e", "x:", "c", "e:", "d"];
        assert_eq!(structured(&both), "if (a) { b; } else { c; } d;");
    }

    #[test]
    fn what_is_no_structure_stays_a_jump() {
        let out = ["l:", "m:", "a", "if b e", "if c m2", "m2:", "if d m", "x:", "if f l", "g", "e:", "h"];
        let made = structured(&out);
        assert!(made.contains("goto e;") && made.contains("e:; h;"), "{made}");
        let into = ["if a m", "l:", "b", "m:", "c", "if d l", "e"];
        assert!(structured(&into).contains("c; if (!d) { break; }") || structured(&into).contains("goto"));
    }
}
