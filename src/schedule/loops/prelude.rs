//! Imports of nearly every file that writes kernels.
pub(in crate::schedule) use crate::diag::Result;
pub(in crate::schedule) use crate::hlo::{InstId, Op};
pub(in crate::schedule) use crate::kernel::index::{linear_index, reshape_coordinates};
pub(in crate::schedule) use crate::kernel::{BufId, Expr, ExprId, Index, Kernel, LoopKind, RegId, Stmt, VarId};
pub(in crate::schedule) use crate::scalar::ScalarOp;
pub(in crate::schedule) use crate::schedule::emit::family::{Family, KernelRoot};
pub(in crate::schedule) use crate::schedule::emit::label::instruction_label;
pub(in crate::schedule) use crate::schedule::emit::{Emitter, value::ValueBuffers};
pub(in crate::schedule) use crate::schedule::loops::element::KernelBuilder;
pub(in crate::schedule) use crate::schedule::loops::idioms::add_condition;
pub(in crate::schedule) use crate::schedule::loops::idioms::assign_registers;
pub(in crate::schedule) use crate::schedule::loops::idioms::clamped_coordinate;
pub(in crate::schedule) use crate::schedule::loops::idioms::constant_of_number;
pub(in crate::schedule) use crate::schedule::loops::idioms::convert;
pub(in crate::schedule) use crate::schedule::loops::idioms::for_loop;
pub(in crate::schedule) use crate::schedule::loops::idioms::logical_and;
pub(in crate::schedule) use crate::schedule::loops::idioms::logical_not;
pub(in crate::schedule) use crate::schedule::loops::idioms::loop_variables;
pub(in crate::schedule) use crate::schedule::loops::idioms::nest_loops;
pub(in crate::schedule) use crate::schedule::loops::idioms::nonunit_loop_variables;
pub(in crate::schedule) use crate::schedule::loops::idioms::select;
pub(in crate::schedule) use crate::schedule::loops::view::ArrayView;

pub(in crate::schedule) use crate::schedule::plan::recipe::RecipeSetup;
pub(in crate::schedule) use crate::schedule::unsupported_error;
pub(in crate::schedule) use crate::tensor::DType;
