//! Plans as data: which instructions share a kernel, how each kernel is made, where arrays lie, in which order kernels run. A plan follows
//! from a module, a machine and [`choices`].
//!
//! The decisions, in their order:
//! - the algorithm of each convolution (`families/convolution/recipe/algorithm.rs`), from which margins follow;
//! - [`fuse`]: what is fused into what;
//! - producers inside the loops of their consumers (`families/producer_fusion/`);
//! - [`placement`]: margins, and parts of concatenations that are made in their places;
//! - the order, [`sink`] and [`loop_state`] in loops, and the lifetimes of values in it;
//! - [`demand`]: the elements of arrays that results need, where sizes vary;
//! - [`recipe`]: how the kernels of each root are made, with all parameters. The method of a contraction alone is chosen when it is emitted,
//!   from sizes, types and strides (`families/contraction/recipe/`), as it depends on where its operands lie.
//!
//! [`branch_order`] and [`split`] look for plans that take less memory, on the arrays alone.
pub mod branch_order;
pub mod channel_scales;
pub mod compressed_constants;
pub mod context;
pub mod demand;
pub mod loop_state;
pub mod placement;
pub mod request;
pub mod short_operands;
pub mod sink;
pub mod split;
pub mod split_level;
pub mod trip_count;

pub mod choices;
pub mod epilogue;
pub mod fold;
pub mod fuse;
pub mod recipe;
pub mod rematerialize;
pub mod text;

use crate::diag::{Code, Error, Result};
use crate::hlo::{CompId, Computation, InstId, Module, Op};
use crate::schedule::families::convolution::recipe::algorithm::{Convolutions, ModuleConvolutions};
use crate::schedule::families::plane_sums::recipe as plane_sums;
use crate::schedule::families::producer_fusion::recipe::{self as producer_fusion, FusedProducer};
use crate::schedule::memory::liveness::{ArraySharing, Lifetimes, MemoryDemand};
use crate::schedule::plan::context::PlanContext;
use crate::schedule::target::KernelTarget;
use crate::schedule::unsupported_error;
use crate::util::id_vec::IdVec;
use channel_scales::ScaledWeights;
use choices::PlanChoices;
use demand::ElementDemand;
use fuse::Fusion;
use loop_state::EntryVariables;
use placement::Placement;
use recipe::{ChooseRecipe, Recipe};
use std::collections::{HashMap, HashSet};

/// Upper limit, in bytes, of an array on the stack: a row, a block, a panel of weights, a strip.
pub const MOST_STACK: u64 = 64 << 10;
/// Upper limit of columns of a contraction that may be vectorized along the axis that it sums over.
pub const MOST_NARROW_COLUMNS: u64 = 8;
/// Upper limit of nested computations.
const MOST_DEPTH: usize = 64;

/// Ownership of the memory that holds the parameters of a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ParameterOwnership {
    /// The computation owns the memory: nobody reads it again.
    Owned,
    /// The caller owns the memory.
    Borrowed,
}

/// The plan of a module: a plan for each computation, except those applied to scalars.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    methods: &'a ModuleConvolutions,
    needed: &'a ElementDemand,
    comps: HashMap<(CompId, ParameterOwnership), ComputationPlan>,
}

/// The plan of one computation.
#[derive(Clone, Debug)]
pub struct ComputationPlan {
    /// The fusion decision of each instruction.
    pub fusion: Fusion,
    /// The recipe of each root's kernels.
    pub recipes: HashMap<InstId, Recipe>,
    /// The placement of each array.
    pub placements: IdVec<InstId, Placement>,
    /// The execution order, which is topological.
    pub order: Vec<InstId>,
    /// Lifetimes of values in the execution order `order`.
    pub lifetimes: Lifetimes,
    /// Narrow constants that their readers widen, and that therefore have no array of their own.
    pub stored: HashSet<InstId>,
    /// Constant weights whose array stays in memory for other kernels that read it.
    pub kept: HashSet<InstId>,
    /// Products of constant weights and one factor per input feature, which the kernels of convolutions compute themselves.
    pub scaled: HashMap<InstId, ScaledWeights>,
    /// Results of depthwise convolutions whose pixels are all summed.
    pub summed: HashSet<InstId>,
    /// Instructions of the entry that make the next values of variables, with the parameters that hold the old ones.
    pub updates: Vec<(InstId, InstId)>,
}

impl<'a> Plan<'a> {
    /// Plans `module`, whose entry has `variables` and whose convolutions use the algorithms in `methods`. Errors: `Code::HloUnsupported`
    /// for an op without a kernel, `Code::TooLarge` for computations nested too deeply.
    pub fn build(
        module: &'a Module,
        variables: &EntryVariables,
        target: &'a KernelTarget<'a>,
        methods: &'a ModuleConvolutions,
        needed: &'a ElementDemand,
        choices: &PlanChoices,
        families: ChooseRecipe,
    ) -> Result<Plan<'a>> {
        let comps = HashMap::new();
        let spare_bytes = super::spare_bytes(module);
        let updates = variables.next_values(module.entry());
        let mut planner = Planner { module, updates, target, families, methods, choices, spare_bytes, depth: 0, comps };
        planner.plan_computation(module.entry, ParameterOwnership::Borrowed)?;
        Ok(Plan { methods, needed, comps: planner.comps })
    }

    /// The plan of a computation.
    pub fn computation_plan(&self, id: CompId, owner: ParameterOwnership) -> Result<&ComputationPlan> {
        self.comps.get(&(id, owner)).ok_or_else(|| Error::internal("schedule", "a computation has no plan"))
    }

    /// The needed elements of arrays.
    pub fn demand(&self) -> &'a ElementDemand {
        self.needed
    }

    /// The algorithms of a computation's convolutions.
    pub fn convolutions(&self, id: CompId) -> &'a Convolutions {
        self.methods.of_computation(id)
    }
}

/// Fusion decisions and placements of one computation.
pub struct FusionPlan {
    /// The fusion decision of each instruction.
    pub fusion: Fusion,
    /// Products of constant weights and one factor per input feature, which the kernels of convolutions compute themselves.
    pub scaled: HashMap<InstId, ScaledWeights>,
    /// Producers fused into kernels of their consumers, by the roots of the consumers.
    pub producers: HashMap<InstId, FusedProducer>,
    /// The placement of each array.
    pub placements: IdVec<InstId, Placement>,
}

/// Decides fusion and placements of a computation for a topological `order`.
fn plan_fusion(context: &PlanContext<'_>, order: &[InstId]) -> FusionPlan {
    let mut fusion = fuse::fuse(context.module, context.comp, order);
    let scaled = channel_scales::fuse_channel_scales(context.comp, &mut fusion);
    let producers = producer_fusion::choose(context, &mut fusion);
    placement::split_concatenations(context.comp, &mut fusion, context.convolutions, context.target);
    let placements = placement::plan_placements(context.comp, &fusion, context.convolutions);
    FusionPlan { fusion, scaled, producers, placements }
}

/// Execution order and memory of a computation, before its recipes.
pub struct MemoryForecast {
    /// The fusion decision of each instruction.
    pub fusion: Fusion,
    /// The order in which instructions run.
    pub order: Vec<InstId>,
    /// The memory that values need in the execution order `order`.
    pub need: MemoryDemand,
}

/// Plans the order and the memory of a computation, starting from `plain`, a topological order.
fn forecast_memory(context: &PlanContext<'_>, plain: Vec<InstId>) -> MemoryForecast {
    let FusionPlan { fusion, placements, .. } = plan_fusion(context, &plain);
    let order = sink::sink_order(context.comp, plain);
    let need = MemoryDemand::compute(context.comp, &fusion, &placements, &order, ArraySharing::Planned);
    MemoryForecast { fusion, order, need }
}

/// An execution order of the entry that takes less memory than post order; `None` if none was found.
pub fn low_memory_order(
    module: &Module,
    target: &KernelTarget<'_>,
    methods: &ModuleConvolutions,
) -> Option<Vec<InstId>> {
    let comp = module.entry();
    let context =
        PlanContext { module, comp, users: &comp.users(), convolutions: methods.of_computation(module.entry), target };
    branch_order::find_low_memory_order(comp, |order| forecast_memory(&context, order))
}

/// The state of planning a module.
pub struct Planner<'a> {
    pub(in crate::schedule) module: &'a Module,
    /// Parameters of the entry that hold variables, and the instructions that make their next values.
    updates: Vec<(InstId, InstId)>,
    /// The target of the kernels.
    pub target: &'a KernelTarget<'a>,
    /// Function that asks the families for the recipe of a root.
    families: ChooseRecipe,
    methods: &'a ModuleConvolutions,
    pub(in crate::schedule) choices: &'a PlanChoices,
    /// Bytes by which constants may still grow for speed.
    spare_bytes: u64,
    depth: usize,
    comps: HashMap<(CompId, ParameterOwnership), ComputationPlan>,
}

impl Planner<'_> {
    /// Plans a computation and the computations that it runs, in the order in which they run.
    fn plan_computation(&mut self, id: CompId, owner: ParameterOwnership) -> Result<()> {
        if self.comps.contains_key(&(id, owner)) {
            return Ok(());
        }
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            let told = format!("computations are nested more than {MOST_DEPTH} deep");
            return Err(Error::user(Code::TooLarge, told));
        }
        let comp = &self.module.comps[id];
        let users = comp.users();
        let context = PlanContext {
            module: self.module,
            comp,
            users: &users,
            convolutions: self.methods.of_computation(id),
            target: self.target,
        };
        let is_entry = id == self.module.entry;
        let chosen = self.choices.order.as_ref().filter(|_| is_entry);
        let plain = chosen.cloned().unwrap_or_else(|| comp.post_order());
        let mut fused = plan_fusion(&context, &plain);
        let mut summed = plane_sums::summed_planes(&context, &fused.fusion);
        if is_entry {
            placement::apply_placement_choices(&mut fused.placements, self.choices);
        }
        let updates = if is_entry { self.updates.clone() } else { Vec::new() };
        let order = match owner {
            ParameterOwnership::Owned => loop_state::body_order(comp, &fused.fusion),
            ParameterOwnership::Borrowed => {
                loop_state::order_updates_last(comp, &fused.fusion, sink::sink_order(comp, plain), &updates)
            }
        };
        let lifetimes = Lifetimes::new(comp, &fused.fusion, &order);
        let stored = compressed_constants::constants_widened_by_readers(comp);
        let mut recipes = HashMap::new();
        for &inst in &order {
            if comp[inst].shape.leaves().iter().any(|a| a.dynamic.contains(&true)) {
                return Err(unsupported_error(comp, inst, ": sizes must be known at compile time"));
            }
            self.plan_called(comp, inst)?;
            let is_root = fused.fusion.is_materialised(inst) && !stored.contains(&inst);
            if is_root && has_kernels(comp, inst) {
                let recipe = self.choose_recipe(&context, &fused, &summed, id, inst)?;
                if !recipe.setup.makes_partial_sums() {
                    summed.remove(&inst);
                }
                recipes.insert(inst, recipe);
            }
        }
        self.depth -= 1;
        let FusionPlan { fusion, scaled, placements, .. } = fused;
        let kept = compressed_constants::weights_read_in_place(comp);
        let stages =
            ComputationPlan { fusion, recipes, placements, order, lifetimes, stored, kept, scaled, summed, updates };
        self.comps.insert((id, owner), stages);
        Ok(())
    }

    /// Plans the computations that an instruction runs as steps.
    fn plan_called(&mut self, comp: &Computation, id: InstId) -> Result<()> {
        match &comp[id].op {
            Op::Call(callee) | Op::Fusion { comp: callee, .. } => {
                self.plan_computation(*callee, ParameterOwnership::Borrowed)
            }
            Op::While { cond, body } => {
                self.plan_computation(*cond, ParameterOwnership::Borrowed)?;
                self.plan_computation(*body, ParameterOwnership::Owned)
            }
            Op::Conditional(branches) => {
                branches.iter().try_for_each(|&b| self.plan_computation(b, ParameterOwnership::Borrowed))
            }
            _ => Ok(()),
        }
    }
}

/// Whether kernels compute root `id`. Loops and calls (steps of their own), views, and roots that need no computation have none.
fn has_kernels(comp: &Computation, id: InstId) -> bool {
    match comp[id].op {
        Op::Parameter(_)
        | Op::Constant(_)
        | Op::Tuple
        | Op::GetTupleElement(_)
        | Op::Call(_)
        | Op::Fusion { .. }
        | Op::While { .. }
        | Op::Conditional(_)
        | Op::AfterAll => false,
        Op::OptimizationBarrier | Op::Copy => comp[id].shape.as_tuple().is_none(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::{Module, text};
    use crate::schedule::families;
    use crate::target::{PanelSizes, Target};
    use recipe::RecipeSetup;

    const LOOP: &str = "HloModule t
body {
  s = (s32[], f32[1,32,32,16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[1,32,32,16] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  w = f32[3,3,16,16] constant({...})
  c = f32[1,32,32,16] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  ROOT t = (s32[], f32[1,32,32,16]) tuple(next, c)
}
cond {
  s = (s32[], f32[1,32,32,16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT more = pred[] compare(i, n), direction=LT
}
ENTRY e {
  p = f32[1,32,32,16] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[1,32,32,16]) tuple(zero, p)
  loop = (s32[], f32[1,32,32,16]) while(s), condition=cond, body=body
  r = f32[1,32,32,16] get-tuple-element(loop), index=1
  ROOT t = (f32[1,32,32,16]) tuple(r)
}
";

    fn module() -> Module {
        let row = format!("{{{}}}", ["0"; 16].join(","));
        let matrix = format!("{{{}}}", vec![row; 16].join(","));
        let line = format!("{{{}}}", vec![matrix; 3].join(","));
        let window = format!("{{{}}}", vec![line; 3].join(","));
        text::parse(&LOOP.replace("{...}", &window)).expect("sound HLO")
    }

    /// A 1x1 convolution to so many channels and the depthwise window that reads them, on 16 by 16 pixels.
    fn expanded(channels: u64) -> Module {
        let text = "HloModule t
ENTRY e {
  p = f32[1,16,16,8] parameter(0)
  w = f32[1,1,8,ALL] parameter(1)
  v = f32[3,3,1,ALL] parameter(2)
  x = f32[1,16,16,ALL] convolution(p, w), window={size=1x1}, dim_labels=b01f_01io->b01f
  y = f32[1,16,16,ALL] convolution(x, v), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=ALL
  ROOT t = (f32[1,16,16,ALL]) tuple(y)
}
";
        text::parse(&text.replace("ALL", &channels.to_string())).expect("sound HLO")
    }

    /// The plan of a computation for a processor of that name.
    fn stages(
        module: &Module,
        cpu: &str,
        choices: &PlanChoices,
        comp: CompId,
        params: ParameterOwnership,
    ) -> ComputationPlan {
        let request = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some(cpu), None).expect("a processor").into();
        let target = KernelTarget { request: &request, panels: &PanelSizes::default() };
        let (methods, demand) = (ModuleConvolutions::choose(module, &target), ElementDemand::default());
        let plan = Plan::build(
            module,
            &EntryVariables::default(),
            &target,
            &methods,
            &demand,
            choices,
            families::choose_recipe,
        );
        plan.expect("a plan").comps.remove(&(comp, params)).expect("a plan of the computation")
    }

    /// Whether the operand of the window is made in its kernel, of a processor of that name.
    fn is_chain(module: &Module, cpu: &str) -> bool {
        let stages = stages(module, cpu, &PlanChoices::default(), module.entry, ParameterOwnership::Borrowed);
        stages
            .recipes
            .values()
            .any(|recipe| matches!(recipe.setup, RecipeSetup::FusedProducer(FusedProducer::DepthwiseChain(_), _)))
    }

    #[test]
    fn a_larger_second_level_keeps_what_a_smaller_one_does_not() {
        // 128 KiB between the two stay in a level of 1 MiB, and not in one of 512 KiB; 256 KiB stay in 2 MiB alone
        let (small, large) = (expanded(128), expanded(256));
        assert!(is_chain(&small, "znver3") && !is_chain(&small, "x86-64-v3"));
        assert!(is_chain(&large, "x86-64-v4") && !is_chain(&large, "sapphirerapids"));
    }

    #[test]
    fn a_choice_holds_in_the_body_of_a_loop() {
        let module = module();
        let is_convolution = |comp: &Computation, id: InstId| matches!(comp[id].op, Op::Convolution(_));
        let mut all = module.comps.iter().flat_map(|(id, comp)| comp.insts.ids().map(move |inst| (id, comp, inst)));
        let (body, _, convolution) = all.find(|(_, comp, inst)| is_convolution(comp, *inst)).expect("a convolution");
        let known = |choices: &PlanChoices| {
            let stages = stages(&module, "x86-64-v4", choices, body, ParameterOwnership::Owned);
            match &stages.recipes[&convolution].setup {
                RecipeSetup::Winograd(setup) => setup.is_known,
                other => panic!("{other:?}"),
            }
        };
        assert!(!known(&PlanChoices::default()));
        assert!(known(&PlanChoices { known: [(body, convolution)].into(), ..PlanChoices::default() }));
    }
}
