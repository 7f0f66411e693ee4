//! Orders branches that meet, to lower the peak of memory. Post order takes operands as they stand; what another branch still reads
//! then lives while the first one is made. So the peak of memory is looked at: of what lives there and is not read by what runs
//! then, the last reader belongs to a branch that meets this one further on, and coming first it would leave its result instead.
//! That is tried, and kept where the peak falls, until nothing lowers it.
//!
//! ```text
//! x = conv(p); b = conv(conv(x)); s = slice(x); add(b, s): b before s  ->  s before b
//! ```
//!
//! A round takes time linear in the instructions but for some maps; there are a few, and fewer for large computations. Which
//! instructions share a kernel is decided anew for each order, as a kernel takes in what comes last.
use crate::hlo::{Computation, InstId, Users};
use crate::schedule::memory::liveness::{LiveRange, MemoryDemand};
use crate::schedule::plan::MemoryForecast;
use crate::schedule::plan::fuse::Fusion;
use crate::util::id_vec::{Id, IdVec};
use std::collections::HashMap;

/// Upper limit of orders that are tried; their instructions together are at most `MOST_INSTRUCTIONS`.
const MOST_TRIES: usize = 64;
const MOST_INSTRUCTIONS: usize = 100_000;
/// Upper limit of the arrays live at the peak (the largest ones), and of the readers of each, that the search considers.
const MOST_ARRAYS: usize = 8;

/// Visiting order of the operands (their indices) of instructions whose operands are not visited in the given order.
type SwappedOperands = HashMap<InstId, Vec<usize>>;

/// A topological order that takes less memory than post order; `None` if none was found.
pub fn find_low_memory_order(
    comp: &Computation,
    planned: impl Fn(Vec<InstId>) -> MemoryForecast,
) -> Option<Vec<InstId>> {
    let search = BranchOrderSearch { comp, users: comp.users(), planned };
    let mut turned = SwappedOperands::new();
    let mut best = search.walk_order(&turned);
    let mut tries = MOST_TRIES.min(MOST_INSTRUCTIONS / comp.insts.len().max(1));
    let mut found = false;
    'rounds: loop {
        for (meet, operand) in search.candidate_moves(&best) {
            if tries == 0 {
                break 'rounds;
            }
            tries -= 1;
            let mut tried = turned.clone();
            let operands = tried.entry(meet).or_insert_with(|| (0..comp[meet].operands.len()).collect());
            operands.retain(|&o| o != operand);
            operands.insert(0, operand);
            let walked = search.walk_order(&tried);
            if walked.need.bytes < best.need.bytes {
                (best, turned, found) = (walked, tried, true);
                continue 'rounds;
            }
        }
        break;
    }
    found.then_some(best.plain)
}

struct BranchOrderSearch<'a, P> {
    comp: &'a Computation,
    users: Users,
    planned: P,
}

/// One order of execution, and the memory that it needs.
struct Walked {
    plain: Vec<InstId>,
    /// The order in which instructions run.
    order: Vec<InstId>,
    /// The reader, and the index of its operand, from which the walk first reached each instruction.
    reached: IdVec<InstId, Option<(InstId, usize)>>,
    fusion: Fusion,
    need: MemoryDemand,
}

impl<P: Fn(Vec<InstId>) -> MemoryForecast> BranchOrderSearch<'_, P> {
    fn walk_order(&self, turned: &SwappedOperands) -> Walked {
        let (plain, reached) = walk(self.comp, turned);
        let MemoryForecast { fusion, order, need } = (self.planned)(plain.clone());
        Walked { plain, order, reached, fusion, need }
    }

    /// Changes of the visiting order that may lower the peak of memory: instructions, each with the operand to visit first.
    fn candidate_moves(&self, walked: &Walked) -> Vec<(InstId, usize)> {
        let need = &walked.need;
        let Some(at) = need.at else { return vec![] };
        // what the peak's result comes to, with the operand on whose side the peak is
        let mut above: IdVec<InstId, Option<usize>> = self.comp.insts.ids().map(|_| None).collect();
        let mut next = Some((walked.order[at], 0));
        while let Some((id, operand)) = next {
            above[id] = Some(operand);
            next = walked.reached[id];
        }
        // what lives there and later
        let lives = |span: LiveRange| span.first <= at && at < span.last;
        let live = need.spans.iter().filter(|(_, (bytes, span))| lives(*span) && *bytes > 0);
        let mut live: Vec<(u64, InstId)> = live.map(|(&id, &(bytes, _))| (bytes, id)).collect();
        live.sort_by_key(|&(bytes, id)| (std::cmp::Reverse(bytes), id.index()));
        live.truncate(MOST_ARRAYS);
        let mut moves = Vec::new();
        for (_, array) in live {
            let values = walked.order.iter().filter(|&&v| need.of[v] == array && lives(need.lifetimes.live_range(v)));
            let readers = values.flat_map(|&v| &self.users[v]).filter(|&&u| walked.kernel_position(u) > at);
            for &reader in readers.take(MOST_ARRAYS) {
                let meet = meeting_point(reader, &above, &walked.reached);
                moves.extend(meet.filter(|m| !moves.contains(m)));
            }
        }
        moves
    }
}

impl Walked {
    /// Position in the execution order of the kernel that computes `id`; `usize::MAX` if several kernels compute it.
    fn kernel_position(&self, id: InstId) -> usize {
        self.fusion.root_of(id).map_or(usize::MAX, |root| self.need.lifetimes.live_range(root).first)
    }
}

/// The first instruction on the path from `reader` to the root that is on the path from the peak to the root too, with the operand on the
/// side of `reader`; if `reader` itself is on the path from the peak, `reader` with the operand on the side of the peak.
fn meeting_point(
    mut reader: InstId,
    above: &IdVec<InstId, Option<usize>>,
    reached: &IdVec<InstId, Option<(InstId, usize)>>,
) -> Option<(InstId, usize)> {
    if let Some(operand) = above[reader] {
        return Some((reader, operand));
    }
    loop {
        let (by, operand) = reached[reader]?;
        if above[by].is_some() {
            return Some((by, operand));
        }
        reader = by;
    }
}

/// Walks a computation in post order; also returns the reader, and the index of its operand, from which each instruction was first reached.
fn walk(comp: &Computation, turned: &SwappedOperands) -> (Vec<InstId>, IdVec<InstId, Option<(InstId, usize)>>) {
    let mut reached: IdVec<InstId, Option<(InstId, usize)>> = comp.insts.ids().map(|_| None).collect();
    let mut seen: IdVec<InstId, bool> = comp.insts.ids().map(|_| false).collect();
    let mut out = Vec::with_capacity(comp.insts.len());
    for start in comp.params.iter().copied().chain([comp.root]) {
        let mut stack = vec![];
        if !std::mem::replace(&mut seen[start], true) {
            stack.push((start, 0));
        }
        while let Some((id, next)) = stack.pop() {
            let operands = &comp[id].operands;
            if next == operands.len() {
                out.push(id);
                continue;
            }
            stack.push((id, next + 1));
            let number = turned.get(&id).map_or(next, |numbers| numbers[next]);
            let operand = operands[number];
            if !std::mem::replace(&mut seen[operand], true) {
                reached[operand] = Some((id, number));
                stack.push((operand, 0));
            }
        }
    }
    (out, reached)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::{Module, text};
    use crate::schedule::families::convolution::recipe::algorithm;
    use crate::schedule::plan::context::PlanContext;
    use crate::schedule::target::KernelTarget;
    use crate::target::{PanelSizes, Target};

    const SHORTCUT: &str = "HloModule t
ENTRY e {
  p = f32[1,64,64,8] parameter(0)
  wide = f32[3,3,8,16] parameter(1)
  one = f32[1,1,16,16] parameter(2)
  half = f32[2,2,16,16] parameter(3)
  short = f32[1,1,8,16] parameter(4)
  x = f32[1,64,64,8] negate(p)
  a = f32[1,64,64,16] convolution(x, wide), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  b = f32[1,64,64,16] convolution(a, one), window={size=1x1}, dim_labels=b01f_01io->b01f
  c = f32[1,32,32,16] convolution(b, half), window={size=2x2 stride=2x2}, dim_labels=b01f_01io->b01f
  s = f32[1,32,32,16] convolution(x, short), window={size=1x1 stride=2x2}, dim_labels=b01f_01io->b01f
  sum = f32[1,32,32,16] add(c, s)
  ROOT t = (f32[1,32,32,16]) tuple(sum)
}
";

    fn module(text: &str) -> Module {
        text::parse(text).expect("sound HLO")
    }

    fn found(module: &Module) -> Option<Vec<String>> {
        let request =
            Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v4"), None).expect("a processor").into();
        let target = KernelTarget { request: &request, panels: &PanelSizes::default() };
        let comp = module.entry();
        let convolutions = algorithm::choose_algorithms(comp, &target);
        let context = PlanContext { module, comp, users: &comp.users(), convolutions: &convolutions, target: &target };
        let planned = |order| crate::schedule::plan::forecast_memory(&context, order);
        let order = find_low_memory_order(comp, planned)?;
        let mut left: IdVec<InstId, usize> = comp.insts.ids().map(|id| comp[id].operands.len()).collect();
        let users = comp.users();
        for &id in &order {
            assert_eq!(left[id], 0, "{} before its operands", comp[id].name);
            users[id].iter().for_each(|&u| left[u] -= 1);
        }
        assert_eq!(order.len(), comp.insts.len());
        Some(order.iter().map(|&id| comp[id].name.clone()).collect())
    }

    fn at(order: &[String], name: &str) -> usize {
        order.iter().position(|n| n == name).expect("an instruction")
    }

    #[test]
    fn what_reads_the_source_of_a_shortcut_comes_before_larger_branches() {
        let order = found(&module(SHORTCUT)).expect("an order");
        assert!(at(&order, "s") < at(&order, "a"), "{order:?}");
    }

    #[test]
    fn an_order_that_is_good_stays() {
        assert_eq!(found(&module(&SHORTCUT.replace("add(c, s)", "add(s, c)"))), None);
    }

    #[test]
    fn a_large_branch_comes_before_results_that_would_wait_for_it() {
        let text = "HloModule t
ENTRY e {
  p = f32[1,64,64,8] parameter(0)
  wide = f32[3,3,8,16] parameter(1)
  back = f32[1,1,16,8] parameter(2)
  same = f32[3,3,8,8] parameter(3)
  one = f32[1,1,16,16] parameter(4)
  s = f32[1,64,64,8] convolution(p, same), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  a = f32[1,64,64,16] convolution(p, wide), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  b = f32[1,64,64,16] convolution(a, one), window={size=1x1}, dim_labels=b01f_01io->b01f
  c = f32[1,64,64,8] convolution(b, back), window={size=1x1}, dim_labels=b01f_01io->b01f
  sum = f32[1,64,64,8] add(s, c)
  ROOT t = (f32[1,64,64,8]) tuple(sum)
}
";
        let order = found(&module(text)).expect("an order");
        assert!(at(&order, "c") < at(&order, "s"), "{order:?}");
    }
}
