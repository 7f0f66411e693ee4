//! Plans as text: what was chosen, which is read back, and what follows from it, which is held against the plan that is made.
//!
//! ```text
//! plan net for x86-64-v3: workspace 76032, constants 36936
//! halves none
//! known main conv.3
//! room main conv.7 262144
//! main, parameters borrowed
//!   conv.3: winograd axes 0:3 1:3, weights known, 2 bands of 1 strips of 9 tiles, products 3x1x4x8; makes relu.4; dense, 1..5
//! ```
//!
//! Instructions and computations have the names of the module's text. A line that begins with `#` is a comment.
use super::choices::{InstKey, PlanChoices};
use super::fuse::{Fusion, FusionDecision};
use super::recipe::{Recipe, RecipeSetup};
use super::{ComputationPlan, ParameterOwnership, Plan};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::text::unique_names;
use crate::hlo::{CompId, Computation, InstId, Module, Op};
use crate::kernel::Program;
use crate::schedule::memory::liveness::LiveRange;
use crate::schedule::plan::placement::Placement;
use crate::schedule::plan::split_level::SplitLevel;
use crate::schedule::target::KernelTarget;
use crate::util::id_vec::Id;
use std::collections::HashMap;
use std::fmt::Write;

/// The first word of a plan's text.
const HEAD: &str = "plan ";
/// The help that is printed where a plan does not fit.
const HELP: &str = "tfaot compile --emit plan writes one; the choices alone, without the lines of computations, do too";

/// The names of computations and instructions in a module's text.
struct ModuleNames {
    comps: Vec<String>,
    insts: Vec<Vec<String>>,
}

impl ModuleNames {
    fn collect(module: &Module) -> ModuleNames {
        let of_comp = |c: &Computation| unique_names(c.insts.values().map(|i| i.name.as_str()));
        ModuleNames {
            comps: unique_names(module.comps.values().map(|c| c.name.as_str())),
            insts: module.comps.values().map(of_comp).collect(),
        }
    }

    fn comp(&self, id: CompId) -> &str {
        &self.comps[id.index()]
    }

    fn inst(&self, key: InstKey) -> &str {
        &self.insts[key.0.index()][key.1.index()]
    }
}

/// Prints `plan` as text, with the `choices` and `halves` that led to it and the memory of `program`.
pub fn print(
    module: &Module,
    plan: &Plan<'_>,
    choices: &PlanChoices,
    halves: SplitLevel,
    program: &Program,
    target: &KernelTarget<'_>,
) -> String {
    let names = ModuleNames::collect(module);
    let sizes = format!("workspace {}, constants {}", program.workspace_bytes, program.weights_bytes);
    let mut out = format!("{HEAD}{} for {}: {sizes}\nhalves {}\n", program.name, target.machine().cpu, halves.name());
    print_choices(module, &names, choices, &mut out);
    let mut all: Vec<(&(CompId, ParameterOwnership), &ComputationPlan)> = plan.comps.iter().collect();
    all.sort_by_key(|(key, _)| **key);
    for (&(id, owner), stages) in all {
        let owner = match owner {
            ParameterOwnership::Owned => "own",
            ParameterOwnership::Borrowed => "borrowed",
        };
        let _ = writeln!(out, "{}, parameters {owner}", names.comp(id));
        let inlined = inlined(&module.comps[id], &stages.fusion);
        for &inst in stages.order.iter().filter(|i| stages.recipes.contains_key(i)) {
            let inlined = inlined.get(&inst).map_or(&[][..], Vec::as_slice);
            let _ = writeln!(out, "  {}", stage_line(stages, (id, inst), inlined, &names));
        }
    }
    out
}

fn print_choices(module: &Module, names: &ModuleNames, choices: &PlanChoices, out: &mut String) {
    let entry = module.entry;
    if let Some(order) = &choices.order {
        let order: Vec<&str> = order.iter().map(|&id| names.inst((entry, id))).collect();
        let _ = writeln!(out, "order {}", order.join(" "));
    }
    let mut lines: Vec<(usize, InstKey, String)> = Vec::new();
    lines.extend(choices.known.iter().map(|&key| (0, key, String::new())));
    lines.extend(choices.rooms.iter().map(|(&key, bytes)| (1, key, format!(" {bytes}"))));
    for (word, of_entry) in [(2, &choices.apart), (3, &choices.copied), (4, &choices.in_parts)] {
        lines.extend(of_entry.iter().map(|&id| (word, (entry, id), String::new())));
    }
    lines.sort();
    for (word, key, rest) in lines {
        let _ = writeln!(out, "{} {} {}{rest}", WORDS[word], names.comp(key.0), names.inst(key));
    }
    if choices.in_results {
        out.push_str("in-results\n");
    }
}

/// Words for choices about an instruction, in the text of plans.
const WORDS: [&str; 5] = ["known", "room", "apart", "copied", "in-parts"];

/// The line of root `key`: its recipe, the instructions inlined into it, its placement, and its live range in positions of the order.
fn stage_line(stages: &ComputationPlan, key: InstKey, inlined: &[InstId], names: &ModuleNames) -> String {
    let id = key.1;
    let of_comp = |id: InstId| names.inst((key.0, id));
    let mut out = format!("{}: {}", of_comp(id), recipe(&stages.recipes[&id], &of_comp));
    if !inlined.is_empty() {
        let _ = write!(out, "; makes {}", inlined.iter().map(|&i| of_comp(i)).collect::<Vec<_>>().join(" "));
    }
    match &stages.placements[id] {
        Placement::Dense => out.push_str("; dense"),
        Placement::Margin { low, high, made } => {
            let when = if *made { "margins" } else { "margins when read" };
            let _ = write!(out, "; {when} {low:?} {high:?}");
        }
        Placement::Part { whole, axis, before } => {
            let _ = write!(out, "; part of {} at {before} along {axis}", of_comp(*whole));
        }
    }
    let LiveRange { first, last } = stages.lifetimes.live_range(id);
    let until = if last == usize::MAX { String::new() } else { last.to_string() };
    let _ = write!(out, ", {first}..{until}");
    out
}

/// The instructions inlined into each root alone, in the order of their numbers.
fn inlined(comp: &Computation, fusion: &Fusion) -> HashMap<InstId, Vec<InstId>> {
    let mut inlined: HashMap<InstId, Vec<InstId>> = HashMap::new();
    for id in comp.insts.ids() {
        if let FusionDecision::Inlined(Some(root)) = fusion.decision[id] {
            inlined.entry(root).or_default().push(id);
        }
    }
    inlined
}

/// The family and its parameters.
fn recipe<'n>(recipe: &Recipe, name: &impl Fn(InstId) -> &'n str) -> String {
    let parameters = match &recipe.setup {
        RecipeSetup::Plain => return recipe.family.to_string(),
        RecipeSetup::Concatenate(axis) => format!("along {axis}"),
        RecipeSetup::Rows(rows) => format!("{} of {}", rows.rows, rows.columns),
        RecipeSetup::Scan(scan) => scan.to_string(),
        RecipeSetup::Reduce(reduction) => reduction.to_string(),
        RecipeSetup::Solve(solve) => solve.to_string(),
        RecipeSetup::SelectMethod(selected) => selected.to_string(),
        RecipeSetup::Direct(direct) => direct.to_string(),
        RecipeSetup::Filter(filter) => filter.to_string(),
        RecipeSetup::Depthwise(window) => window.to_string(),
        RecipeSetup::Winograd(setup) => setup.to_string(),
        RecipeSetup::FusedProducer(producer, setup) => {
            let setup = setup.as_ref().map_or(String::new(), |setup| format!(", {setup}"));
            format!("{}{setup}", producer.text(name))
        }
    };
    format!("{} {parameters}", recipe.family)
}

/// A plan read from a file.
pub struct PlanText<'t> {
    /// The lines of the plan, with their numbers in the file.
    lines: Vec<(usize, &'t str)>,
}

impl<'t> PlanText<'t> {
    /// Finds the plan of program `name` in a file, or the only plan. Errors: `Code::BadOption` if there is none.
    pub fn find_program(text: &'t str, name: &str) -> Result<PlanText<'t>> {
        let told = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim_end()));
        let lines: Vec<_> = told.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).collect();
        let plans: Vec<&[(usize, &str)]> = match lines.first() {
            Some((_, first)) if first.starts_with(HEAD) => {
                lines.chunk_by(|_, (_, next)| !next.starts_with(HEAD)).collect()
            }
            _ => Vec::new(),
        };
        let is_named = |plan: &&&[(usize, &str)]| plan[0].1[HEAD.len()..].split(' ').next() == Some(name);
        let found = plans.iter().find(is_named).or(plans.first().filter(|_| plans.len() == 1));
        let found = found.ok_or_else(|| bad_plan(format!("there is no plan of `{name}` in the file")))?;
        Ok(PlanText { lines: found[1..].to_vec() })
    }

    /// The lines that state choices, split into words.
    fn choice_lines(&self) -> impl Iterator<Item = (usize, Vec<&'t str>)> + '_ {
        let all = self.lines.iter().take_while(|(_, line)| !is_of_computation(line));
        all.map(|(number, line)| (*number, line.split_whitespace().collect()))
    }

    /// The splits that the plan asks for. Errors: `Code::BadOption`.
    pub fn split_level(&self) -> Result<SplitLevel> {
        let line = self.choice_lines().find(|(_, words)| words[0] == "halves");
        let Some((number, words)) = line else { return Ok(SplitLevel::None) };
        let of_name =
            |name: &str| [SplitLevel::None, SplitLevel::Once, SplitLevel::Twice].into_iter().find(|h| h.name() == name);
        let halves = if let ["halves", name] = words[..] { of_name(name) } else { None };
        halves.ok_or_else(|| bad_plan(format!("line {number}: `halves` is followed by none, once or twice")))
    }

    /// The choices. Errors: `Code::BadOption` for malformed lines, and for names that `module` lacks or uses for something else.
    pub fn choices(&self, module: &Module) -> Result<PlanChoices> {
        let names = ModuleNames::collect(module);
        let mut all: HashMap<(&str, &str), InstKey> = HashMap::new();
        for (id, comp) in module.comps.iter() {
            all.extend(comp.insts.ids().map(|inst| ((names.comp(id), names.inst((id, inst))), (id, inst))));
        }
        let mut choices = PlanChoices::default();
        for (number, words) in self.choice_lines() {
            let taken = match words[..] {
                ["halves", ..] => Some(()),
                ["in-results"] => {
                    choices.in_results = true;
                    Some(())
                }
                ["order", ..] => {
                    let entry = names.comp(module.entry);
                    let order = words[1..].iter().map(|&name| all.get(&(entry, name)).map(|key| key.1));
                    order.collect::<Option<Vec<_>>>().filter(|o| is_order(module.entry(), o)).map(|order| {
                        choices.order = Some(order);
                    })
                }
                [word, comp, inst, ref rest @ ..] => {
                    all.get(&(comp, inst)).and_then(|&key| add(&mut choices, module, word, key, rest))
                }
                _ => None,
            };
            taken
                .ok_or_else(|| bad_plan(format!("line {number}: `{}` is no choice for this graph", words.join(" "))))?;
        }
        Ok(choices)
    }

    /// Checks that the plan's lines about computations, if any, agree with the plan `made` from its choices. Errors: `Code::BadOption`.
    pub fn check_matches_plan(&self, made: &str) -> Result<()> {
        let told = self.lines.iter().skip_while(|(_, line)| !is_of_computation(line));
        let mut came = made.lines().skip(1).skip_while(|line| !is_of_computation(line));
        let mut says = false;
        for &(number, line) in told {
            says = true;
            let other = came.next().unwrap_or("nothing more");
            if line != other {
                let told = format!("line {number}: the plan has `{}`", line.trim());
                let came = format!("what follows from its choices is `{}`", other.trim());
                return Err(Diagnostic::new(Code::BadOption, told).note(came).help(HELP).into());
            }
        }
        match came.next().filter(|_| says) {
            Some(line) => Err(bad_plan(format!("the plan ends before `{}`", line.trim()))),
            None => Ok(()),
        }
    }
}

/// Whether a line begins a computation or describes one of its instructions.
fn is_of_computation(line: &str) -> bool {
    line.starts_with("  ") || line.contains(", parameters ")
}

/// Adds the choice that `word` stands for; `None` if it does not apply to that instruction.
fn add(choices: &mut PlanChoices, module: &Module, word: &str, key: InstKey, rest: &[&str]) -> Option<()> {
    let op = &module.comps[key.0][key.1].op;
    let of_entry = key.0 == module.entry;
    match (word, op, rest) {
        ("known", Op::Convolution(_), []) => drop(choices.known.insert(key)),
        ("room", Op::Convolution(_), [bytes]) => drop(choices.rooms.insert(key, bytes.parse().ok()?)),
        ("apart", Op::Concatenate(_), []) if of_entry => drop(choices.apart.insert(key.1)),
        ("copied", _, []) if of_entry => drop(choices.copied.insert(key.1)),
        ("in-parts", _, []) if of_entry => drop(choices.in_parts.insert(key.1)),
        _ => return None,
    }
    Some(())
}

/// Whether `order` is a topological order of the instructions in post order.
fn is_order(comp: &Computation, order: &[InstId]) -> bool {
    let mut left: HashMap<InstId, bool> = comp.post_order().into_iter().map(|id| (id, true)).collect();
    let mut next = |&id: &InstId| {
        let ready = comp[id].operands.iter().all(|o| left.get(o) == Some(&false));
        left.get_mut(&id).is_some_and(|left| std::mem::replace(left, false)) && ready
    };
    let sound = order.iter().all(&mut next);
    sound && left.values().all(|left| !left)
}

fn bad_plan(told: String) -> Error {
    Diagnostic::new(Code::BadOption, told).help(HELP).into()
}
